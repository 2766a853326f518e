//! Flushes and compactions from LevelDB's information log.
//!
//! The line `Level-0 table #N: B bytes OK` says that a memtable was written out. The line
//! `Compacted a@L + b@M files => B bytes` says that a compaction from level L to level M was
//! installed (the same in 1.22 and 1.23). Tables that only moved down a level have a line of their
//! own and are not counted. No line says exactly how much a compaction read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;

use crate::engine::log_lines::{for_each_line, LogClock};
use crate::engine::{BackgroundWork, LevelWork};

/// The work that finished between two instants in microseconds, as recorded in `directory`.
///
/// `None` if the log cannot tell: it is missing, its part about this time is gone (LevelDB keeps one
/// old log), or the clock was changed meanwhile.
pub fn background_work(directory: &Path, during: Range<u64>) -> Option<BackgroundWork> {
    let open = |name: &str| File::open(directory.join(name)).map(BufReader::new);
    // Without an old log, this one is the database's first.
    let old = open("LOG.old").ok();
    work_in(old, open("LOG").ok()?, during)
}

/// The work in `log`, and in the `old` one before it, if both can be read.
pub fn work_in<R: BufRead>(old: Option<R>, log: R, during: Range<u64>) -> Option<BackgroundWork> {
    let clock = LogClock::between(during.start, during.end)?;
    let complete = old.is_none();
    let mut first_line_us = None;
    let (mut flushes, mut flush_bytes) = (0, 0_u64);
    let mut levels: BTreeMap<u32, LevelWork> = BTreeMap::new();
    let mut line = |line: &[u8]| {
        let Some(instant) = clock.instant_us(line) else {
            return;
        };
        first_line_us.get_or_insert(instant);
        if !during.contains(&instant) {
            return;
        }
        match Work::of(line) {
            Some(Work::Flush(bytes)) => {
                flushes += 1;
                flush_bytes = flush_bytes.saturating_add(bytes);
            }
            Some(Work::Compaction { level, bytes }) => levels.entry(level).or_default().add(bytes),
            None => {}
        }
    };
    for part in old.into_iter().chain([log]) {
        for_each_line(part, &mut line).ok()?;
    }
    let whole = first_line_us.is_some_and(|first| complete || first <= during.start);
    whole.then_some(BackgroundWork {
        flushes: Some(flushes),
        flush_bytes: Some(flush_bytes),
        compactions: Some(levels.values().map(|work| work.compactions).sum()),
        compaction_read_bytes: None,
        compaction_write_bytes: Some(levels.values().fold(0, |sum, work| {
            sum.saturating_add(work.compaction_write_bytes)
        })),
        levels: Some(levels),
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Work {
    Flush(u64),
    Compaction { level: u32, bytes: u64 },
}

impl Work {
    fn of(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        // The time stamp and the thread's number come first.
        let message = line.splitn(3, ' ').nth(2)?;
        if let Some(flush) = message.strip_prefix("Level-0 table #") {
            let bytes = flush
                .split_once(": ")?
                .1
                .strip_suffix(" bytes OK")?
                .parse()
                .ok()?;
            // The flush of an empty memtable writes no table.
            return (bytes > 0).then_some(Self::Flush(bytes));
        }
        let compaction = message.strip_prefix("Compacted ")?;
        let (inputs, bytes) = compaction.split_once(" files => ")?;
        let level = inputs.rsplit_once('@')?.1;
        Some(Self::Compaction {
            level: level.parse().ok()?,
            bytes: bytes.strip_suffix(" bytes")?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(message: &str) -> Option<Work> {
        Work::of(format!("2026/11/21-02:20:44.221322 140193237415744 {message}").as_bytes())
    }

    #[test]
    fn lines_are_told_apart() {
        assert_eq!(
            work("Level-0 table #5: 2345678 bytes OK"),
            Some(Work::Flush(2_345_678))
        );
        assert_eq!(
            work("Compacted 4@0 + 3@1 files => 987 bytes"),
            Some(Work::Compaction {
                level: 1,
                bytes: 987
            })
        );
        for other in [
            "Level-0 table #5: started",
            "Level-0 table #5: 0 bytes OK",
            "Level-0 table #5: 12 bytes IO error: /x: No space left on device",
            "Compacting 4@0 + 3@1 files",
            "Moved #5 to level-1 2345 bytes OK: files[ 0 1 0 0 0 0 0 ]",
            "compacted to: files[ 0 1 0 0 0 0 0 ]",
            "Generated table #7@0: 12 keys, 345 bytes",
        ] {
            assert_eq!(work(other), None, "{other}");
        }
    }

    #[test]
    fn nothing_is_known_without_a_log() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(background_work(folder.path(), 0..10), None);
    }
}
