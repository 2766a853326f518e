//! Waiting until RocksDB has written out everything and has nothing left to compact.

use std::ffi::CStr;
use std::time::{Duration, Instant};

use super::api::ColumnFamily;
use super::stuck;
use super::RocksDatabase;
use crate::engine::flusher::Backoff;
use crate::engine::{not_flushed, EngineError, Result};

/// How long RocksDB may report a pending compaction while none runs.
///
/// RocksDB hands a needed compaction to a thread under the lock that the properties also take, so
/// the gap only lasts until a thread wakes up. A compaction that has not begun after a whole second
/// will never begin: the score asks for one, but the picker found nothing to pick. The engine had no
/// work meanwhile, so that nobody is charged for that second.
const IDLE_MAX: Duration = Duration::from_secs(1);

impl RocksDatabase {
    /// See [`crate::engine::Database::drain`].
    ///
    /// After the flush, this polls properties. Newer versions have `rocksdb_wait_for_compact`,
    /// which waits for the same counters. But it blocks, and reports a timeout only as a text.
    pub(super) fn wait_until_drained(&self, cancelled: &dyn Fn() -> bool) -> Result<Duration> {
        self.flush(cancelled)?;
        self.background_error()?;
        let held = self.number_of_families(c"rocksdb.num-entries-active-mem-table")?;
        if held > 0 {
            return Err(not_flushed(&format!("{held} entries are still in memory")));
        }
        let mut backoff = Backoff::new();
        let mut looks = Looks::default();
        loop {
            if cancelled() {
                return Err(EngineError::Cancelled);
            }
            self.background_error()?;
            if let Some(idle) = looks.end(&self.work()?, Instant::now()) {
                return Ok(idle);
            }
            if !looks.quiet {
                backoff.sleep();
            }
        }
    }

    /// Writes out the memtables on another thread. Even a flush that does not wait can block, for
    /// as long as its table would stall writers.
    fn flush(&self, cancelled: &dyn Fn() -> bool) -> Result<()> {
        let (api, handle) = (self.api, self.db.handle);
        let families = FamilyHandles(self.families.raw());
        let call = move || {
            let (handle, families) = (handle, families);
            families.0.iter().try_for_each(|&family| {
                // SAFETY: the flusher waits for this call before the database and its families are
                // dropped.
                unsafe {
                    let options = (api.flushoptions_create)();
                    (api.flushoptions_set_wait)(options, 1);
                    let flushed = api.call(|error| match family.is_null() {
                        true => (api.flush)(handle.get(), options, error),
                        false => (api.flush_cf)(handle.get(), options, family, error),
                    });
                    (api.flushoptions_destroy)(options);
                    flushed
                }
            })
        };
        self.flusher.run(call, cancelled)
    }

    /// What compactions have yet to rewrite. The engine estimates it under level compaction alone, and
    /// it is nothing where it compacts only on request.
    pub fn pending_bytes(&self) -> Result<u64> {
        match self.compacts {
            true => self.number_of_families(c"rocksdb.estimate-pending-compaction-bytes"),
            false => Ok(0),
        }
    }

    fn work(&self) -> Result<Work> {
        // Needed work is read before running work, for the reason given above.
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

    /// Checks for an error in the background: an engine that failed there compacts no more, and
    /// waiting would never end.
    fn background_error(&self) -> Result<()> {
        let count = self.number(c"rocksdb.background-errors")?;
        if count == 0 {
            return Ok(());
        }
        // The engine keeps the reason and reports it to the next writer.
        self.try_write()?;
        Err(EngineError::failed(format!(
            "the engine counts {count} background errors"
        )))
    }

    /// A property of the whole database.
    fn number(&self, property: &CStr) -> Result<u64> {
        stuck::number(self.api, self.db.handle, property).ok_or_else(|| lacks(property))
    }

    /// A property of each column family, summed up.
    fn number_of_families(&self, property: &CStr) -> Result<u64> {
        let number = self.families.number(self.db.handle, property);
        number.ok_or_else(|| lacks(property))
    }
}

fn lacks(property: &CStr) -> EngineError {
    EngineError::failed(format!(
        "the engine has no property {}",
        property.to_string_lossy()
    ))
}

/// The handles that a flush on another thread takes along.
struct FamilyHandles(Vec<*mut ColumnFamily>);

// SAFETY: handles may be used from every thread; see `Families`.
unsafe impl Send for FamilyHandles {}

enum Work {
    None,
    Pending,
    Running,
}

/// What the looks at an engine's work tell, taken together.
#[derive(Default)]
struct Looks {
    /// Whether the last one found nothing.
    quiet: bool,
    /// Since when each of them has found the same: something pending, and nothing running.
    idle_since: Option<Instant>,
}

impl Looks {
    /// Takes a look at `now`. Once the wait is over, it returns for how long that was in vain.
    fn end(&mut self, work: &Work, now: Instant) -> Option<Duration> {
        let was_quiet = self.quiet;
        self.quiet = matches!(work, Work::None);
        match work {
            // The properties are read one after another. Between two of them a compaction may end
            // and make another one necessary. If nothing runs at the end of one look, a second look
            // sees all that was necessary.
            Work::None if was_quiet => Some(Duration::ZERO),
            Work::None | Work::Running => {
                self.idle_since = None;
                None
            }
            Work::Pending => {
                let idle = now.duration_since(*self.idle_since.get_or_insert(now));
                (idle > IDLE_MAX).then_some(idle)
            }
        }
    }
}

/// The seconds in the line `Cumulative stall: HH:MM:SS.mmm H:M:S, P percent` of `rocksdb.dbstats`,
/// which count since the database was opened; `None` if no line has exactly that form.
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
    use super::{stall_s, Looks, Work};
    use std::time::{Duration, Instant};

    /// The looks at half a second from each other; when they end the wait, and what was in vain.
    fn looked(each: &[Work]) -> Option<(usize, Duration)> {
        let (mut looks, started) = (Looks::default(), Instant::now());
        each.iter().enumerate().find_map(|(number, work)| {
            let now = started + Duration::from_millis(500 * number as u64);
            Some((number, looks.end(work, now)?))
        })
    }

    #[test]
    fn what_stays_pending_and_never_runs_is_not_waited_for() {
        use Work::{None, Pending, Running};
        let idle = Duration::from_millis(1500);
        assert_eq!(
            looked(&[Running, Pending, Pending, Pending, Pending]),
            Some((4, idle))
        );
        assert_eq!(looked(&[Running, None, None]), Some((2, Duration::ZERO)));
        let busy = [Pending, Pending, Running, Pending, Pending];
        assert_eq!(looked(&busy), Option::None);
    }

    /// Compactions that are shorter than the time between two looks: what is pending has begun, and
    /// was done, each time. The wait ended after a second of them, which was charged to nobody.
    #[test]
    fn what_is_pending_again_after_a_look_that_found_nothing_has_begun() {
        use Work::{None, Pending};
        let looks = [Pending, None, Pending, None, Pending, None, Pending, None];
        assert_eq!(looked(&looks), Option::None);
    }

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
