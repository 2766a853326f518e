//! Waiting until LevelDB has written out everything and has nothing left to compact.

use std::path::Path;
use std::time::{Duration, Instant};

use super::LevelDatabase;
use crate::engine::flusher::Backoff;
use crate::engine::{not_flushed, EngineError, LevelSize, Result};

/// A key after every key that the driver writes.
const LAST_KEY: [u8; 64] = [0xff; 64];

/// How often a database that still has work to do is checked for an error.
const ERROR_CHECK: Duration = Duration::from_millis(100);

/// LevelDB keeps seven levels; the last one is never compacted (`kNumLevels` in its `dbformat.h`).
const LEVELS: usize = 7;

/// What the log may hold after a flush, which begins a new one: empty writes.
const LOG_BYTES_MAX: u64 = 4096;

impl LevelDatabase {
    /// See [`crate::engine::Database::drain`].
    ///
    /// LevelDB does not say whether a compaction is needed. But it lists its tables, and it needs a
    /// compaction exactly if a level's score reaches 1 ([`compaction_needed`]). A running
    /// compaction keeps its inputs listed until its outputs are listed, so it counts as needed.
    ///
    /// Compactions of tables that too many reads searched in vain are not visible. If such a
    /// compaction runs when the drain begins, [`Self::flush`] waits for it, as for any running
    /// compaction. A new one needs reads, and a drain makes none.
    pub(super) fn wait_until_drained(&self, cancelled: &dyn Fn() -> bool) -> Result<()> {
        self.flush(cancelled)?;
        self.try_write()?;
        let held = log_bytes(&self.directory);
        if held > LOG_BYTES_MAX {
            return Err(not_flushed(&format!("{held} bytes are still in its log")));
        }
        let mut backoff = Backoff::new();
        let mut asked = Instant::now();
        let mut before = None;
        loop {
            if cancelled() {
                return Err(EngineError::Cancelled);
            }
            let tables = self.tables()?;
            if !compaction_needed(&tables)? && before.as_ref() == Some(&tables) {
                return Ok(());
            }
            before = Some(tables);
            // An engine that failed in the background compacts no more, and waiting would never
            // end.
            if asked.elapsed() > ERROR_CHECK {
                self.try_write()?;
                asked = Instant::now();
            }
            backoff.sleep();
        }
    }

    /// Writes out the memtable on another thread, because the call blocks.
    ///
    /// The C interface has no flush. A manual compaction begins with one. It compacts nothing if no
    /// table has a key in its range.
    fn flush(&self, cancelled: &dyn Fn() -> bool) -> Result<()> {
        let (api, handle) = (self.api, self.db.handle);
        let call = move || {
            let handle = handle;
            let (key, length) = (LAST_KEY.as_ptr().cast(), LAST_KEY.len());
            // SAFETY: the flusher waits for this call before the database is dropped.
            unsafe { (api.compact_range)(handle.get(), key, length, key, length) };
            Ok(())
        };
        self.flusher.run(call, cancelled)
    }

    /// An empty write. It fails if the engine has stopped accepting writes.
    fn try_write(&self) -> Result<()> {
        // SAFETY: the database is open, and the options are new.
        unsafe {
            let options = (self.api.writeoptions_create)();
            self.api.write_nothing(self.db.get(), options)
        }
    }

    /// See [`crate::engine::Database::levels`].
    pub(super) fn tree(&self) -> Option<Vec<LevelSize>> {
        let levels = levels_of(&self.tables().ok()?).ok()?;
        Some(levels.to_vec())
    }

    fn tables(&self) -> Result<String> {
        let tables = self.db.property("leveldb.sstables");
        tables.ok_or_else(|| EngineError::failed("the engine has no property leveldb.sstables"))
    }
}

/// Bytes of the newest log in `directory`. Older ones may be there until LevelDB removes them.
fn log_bytes(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let logs = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let number = name.strip_suffix(".log")?.parse::<u64>().ok()?;
        Some((number, entry.metadata().ok()?.len()))
    });
    logs.max().map_or(0, |(_, bytes)| bytes)
}

/// Whether LevelDB would compact the tables of such a listing, by the scores of
/// `VersionSet::Finalize`: at four tables in level 0, or at 10 MiB times ten to the power of L-1 in
/// level L.
fn compaction_needed(listing: &str) -> Result<bool> {
    let levels = levels_of(listing)?;
    let mut bytes_max = 10 << 20;
    let crowded = levels[1..LEVELS - 1].iter().any(|level| {
        let full = level.bytes >= bytes_max;
        bytes_max *= 10;
        full
    });
    Ok(levels[0].files >= 4 || crowded)
}

/// The number of tables and their bytes in each level of a listing.
fn levels_of(listing: &str) -> Result<[LevelSize; LEVELS]> {
    let mut levels = [LevelSize::default(); LEVELS];
    let mut level = None;
    for line in listing.lines() {
        if let Some(name) = line.strip_prefix("--- level ") {
            level = name.trim_end_matches(" ---").parse::<usize>().ok();
            continue;
        }
        let size = line
            .split_once(':')
            .and_then(|(_, rest)| rest.split_once('['))
            .and_then(|(size, _)| size.parse::<u64>().ok());
        let (Some(level @ 0..LEVELS), Some(size)) = (level, size) else {
            return Err(EngineError::failed(format!(
                "leveldb.sstables has a line that is no table: {line}"
            )));
        };
        levels[level].files += 1;
        levels[level].bytes += size;
    }
    Ok(levels)
}

#[cfg(test)]
mod tests {
    use super::compaction_needed;

    fn listing(levels: &[&[u64]]) -> String {
        let mut text = String::new();
        for level in 0..7 {
            text += &format!("--- level {level} ---\n");
            for size in levels.get(level).copied().unwrap_or_default() {
                text += &format!(" 17:{size}['a:[' @ 7 : 1 .. 'd' @ 9 : 1]\n");
            }
        }
        text
    }

    #[test]
    fn scores_are_those_of_leveldb() {
        const MIB: u64 = 1 << 20;
        for (levels, needed) in [
            (&[][..], false),
            (&[&[1, 1, 1][..]], false),
            (&[&[1, 1, 1, 1][..]], true),
            (&[&[], &[10 * MIB - 1][..]], false),
            (&[&[], &[5 * MIB, 5 * MIB][..]], true),
            (&[&[], &[], &[100 * MIB - 1][..]], false),
            (&[&[], &[], &[100 * MIB][..]], true),
            (&[&[], &[], &[], &[], &[], &[100_000 * MIB][..]], true),
            // The last level is never compacted.
            (
                &[&[], &[], &[], &[], &[], &[], &[10_000_000 * MIB][..]],
                false,
            ),
        ] {
            assert_eq!(
                compaction_needed(&listing(levels)),
                Ok(needed),
                "{levels:?}"
            );
        }
    }

    #[test]
    fn a_listing_of_another_form_is_an_error() {
        for text in ["tables: 3", "--- level x ---\n 1:2[]", " 1:2['a' .. 'b']"] {
            assert!(compaction_needed(text).is_err(), "{text}");
        }
    }
}
