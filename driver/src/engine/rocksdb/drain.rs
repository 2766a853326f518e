//! Waiting until RocksDB has written everything out and has nothing left to compact.

use std::ffi::CStr;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use super::api::ColumnFamily;
use super::stuck;
use super::RocksDatabase;
use crate::engine::flusher::Backoff;
use crate::engine::{EngineError, Result};

/// How long RocksDB may say that a compaction is pending while none runs.
///
/// A needed compaction is handed to a thread under the same lock that the properties take, so the
/// gap is that of waking a thread. A compaction that has not begun after a whole second will not:
/// the picker found nothing to pick although the score asks for one.
const IDLE_MAX: Duration = Duration::from_secs(1);

impl RocksDatabase {
    /// As [`crate::engine::Database::drain`].
    ///
    /// After the flush, properties are polled. `rocksdb_wait_for_compact`, where a version has it,
    /// waits for the same counters; it blocks, and tells that its time ran out only by a text.
    pub(super) fn wait_until_drained(&self, cancelled: &dyn Fn() -> bool) -> Result<()> {
        self.flush(cancelled)?;
        let mut backoff = Backoff::new();
        let mut quiet = false;
        let mut idle_since = None;
        loop {
            if cancelled() {
                return Err(EngineError::Cancelled);
            }
            self.background_error()?;
            match self.work()? {
                // The properties are read one after another, and a compaction may end between two
                // of them and leave another one needed. With nothing running at the end of one
                // look, a second look sees all that was needed.
                Work::None if quiet => return Ok(()),
                Work::None => {
                    quiet = true;
                    continue;
                }
                Work::Pending => {
                    quiet = false;
                    let since = *idle_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > IDLE_MAX {
                        return Ok(());
                    }
                }
                Work::Running => {
                    quiet = false;
                    idle_since = None;
                }
            }
            backoff.sleep();
        }
    }

    /// Writes the memtables out, on another thread: even a flush without waiting blocks for as long
    /// as its table would stall writers.
    fn flush(&self, cancelled: &dyn Fn() -> bool) -> Result<()> {
        let (api, handle) = (self.api, self.handle);
        let families = FamilyHandles(self.family_handles());
        let call = move || {
            let (handle, families) = (handle, families);
            families.0.iter().try_for_each(|&family| {
                let mut error = null_mut();
                // SAFETY: `drop` joins this call before it closes the database and its families.
                unsafe {
                    let options = (api.rocksdb_flushoptions_create)();
                    (api.rocksdb_flushoptions_set_wait)(options, 1);
                    if family.is_null() {
                        (api.rocksdb_flush)(handle.get(), options, &raw mut error);
                    } else {
                        (api.rocksdb_flush_cf)(handle.get(), options, family, &raw mut error);
                    }
                    (api.rocksdb_flushoptions_destroy)(options);
                    api.check(error)
                }
            })
        };
        self.flusher.run(call, cancelled)
    }

    fn work(&self) -> Result<Work> {
        // What is needed is read before what is running, for the reason given above.
        let pending = self.number_of_families(c"rocksdb.mem-table-flush-pending")? > 0
            || (self.compacts && self.number_of_families(c"rocksdb.compaction-pending")? > 0);
        let running = self.number(c"rocksdb.num-running-flushes")?
            + self.number(c"rocksdb.num-running-compactions")?;
        Ok(match (running, pending) {
            (0, false) => Work::None,
            (0, true) => Work::Pending,
            _ => Work::Running,
        })
    }

    /// An engine that failed in the background compacts no more: waiting would never end.
    fn background_error(&self) -> Result<()> {
        let count = self.number(c"rocksdb.background-errors")?;
        if count == 0 {
            return Ok(());
        }
        // The reason is kept by the engine, which tells it to whoever writes.
        self.try_write()?;
        Err(EngineError::Failed {
            message: format!("the engine counts {count} background errors"),
        })
    }

    /// A property of the database as a whole.
    fn number(&self, property: &CStr) -> Result<u64> {
        stuck::number(self.api, self.handle, property).ok_or_else(|| lacks(property))
    }

    /// A property that each column family has for itself, summed up.
    fn number_of_families(&self, property: &CStr) -> Result<u64> {
        match self.families.as_ref().filter(|some| !some.is_empty()) {
            None => self.number(property),
            Some(families) => {
                let number = families.number(self.handle, property);
                number.ok_or_else(|| lacks(property))
            }
        }
    }
}

fn lacks(property: &CStr) -> EngineError {
    EngineError::Failed {
        message: format!("the engine has no property {}", property.to_string_lossy()),
    }
}

/// What a flush beside this thread takes with it.
struct FamilyHandles(Vec<*mut ColumnFamily>);

// SAFETY: handles may be used from every thread; see `Families`.
unsafe impl Send for FamilyHandles {}

enum Work {
    None,
    Pending,
    Running,
}

/// Seconds from the line `Cumulative stall: HH:MM:SS.mmm H:M:S, P percent` of `rocksdb.dbstats`,
/// which counts since the database was opened; `None` if there is no line of exactly that form.
pub fn stall_s(statistics: &str) -> Option<f64> {
    let line = statistics
        .lines()
        .find_map(|line| line.strip_prefix("Cumulative stall: "))?;
    let clock = line.split_once(" H:M:S, ")?.0;
    let mut parts = clock.split(':');
    let hours: u64 = parts.next()?.parse().ok()?;
    let minutes: u64 = parts.next()?.parse().ok()?;
    let seconds: f64 = parts.next()?.parse().ok()?;
    let sound = parts.next().is_none() && minutes < 60 && (0.0..60.001).contains(&seconds);
    #[allow(clippy::cast_precision_loss)] // exact below 2^53 seconds
    sound.then(|| (hours * 3600 + minutes * 60) as f64 + seconds)
}

#[cfg(test)]
mod tests {
    use super::stall_s;

    #[test]
    fn stall_is_read_from_the_line_of_the_whole_lifetime() {
        let text = "\n** DB Stats **\nUptime(secs): 0.4 total\n\
                    Cumulative stall: 01:02:3.250 H:M:S, 0.5 percent\n\
                    Interval stall: 00:00:9.000 H:M:S, 0.0 percent\n";
        assert_eq!(stall_s(text), Some(3723.25));
        assert_eq!(
            stall_s("Cumulative stall: 00:00:0.000 H:M:S, 0.0 percent"),
            Some(0.0)
        );
    }

    #[test]
    fn any_other_form_is_not_guessed_at() {
        for text in [
            "",
            "Interval stall: 00:00:9.000 H:M:S, 0.0 percent",
            "Cumulative stall: 00:0.000 H:M:S, 0.0 percent",
            "Cumulative stall: 00:61:0.000 H:M:S, 0.0 percent",
            "Cumulative stall: 12 s",
            "Cumulative stall: 00:00:-1.000 H:M:S, 0.0 percent",
            "Cumulative stall: 0:00:00:0.000 H:M:S, 0.0 percent",
        ] {
            assert_eq!(stall_s(text), None, "{text}");
        }
    }
}
