//! Flushes and compactions from RocksDB's information log.
//!
//! RocksDB writes one JSON object per event after `EVENT_LOG_v1`, unless `info_log_level` is above
//! INFO. The events are the same in 5.14, 7.8.3 and 10.2.1: `flush_started`, `table_file_creation`
//! (`file_size`), `flush_finished`, `compaction_started` (`input_data_size`), `compaction_finished`
//! (`total_output_size`, `output_level`). `job` connects the events of one job. Values in blob files
//! have a size of their own: `blob_file_creation` (`total_blob_bytes`), and `total_blob_output_size`
//! of a compaction that wrote some. What a compaction read of them no event says.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::options_file::OptionsFile;
use crate::engine::log_lines::{for_each_line, LogClock};
use crate::engine::{BackgroundWork, LevelWork};

/// The work that finished between two instants in microseconds, as recorded in `directory`.
///
/// `None` if the log cannot tell: it is in another place, it does not list events, its part about
/// this time is gone, or an event in it cannot be read.
pub fn background_work(directory: &Path, during: Range<u64>) -> Option<BackgroundWork> {
    let written = OptionsFile::newest_in(directory)?;
    let level = written.value("info_log_level")?;
    if !["INFO_LEVEL", "DEBUG_LEVEL"].contains(&level.as_str()) {
        return None;
    }
    let files = log_files(directory);
    let kept_max: usize = written.value("keep_log_file_num")?.parse().ok()?;
    // If there are as many logs as RocksDB keeps, older ones may have been deleted.
    let complete = files.len() < kept_max;
    let logs = files.iter().map(|file| {
        let log = File::open(file).ok()?;
        Some(BufReader::with_capacity(1 << 16, log))
    });
    work_in(logs, during, complete)
}

/// The files `LOG.old.<microseconds>` in order of time, then `LOG`.
fn log_files(directory: &Path) -> Vec<PathBuf> {
    let mut old: Vec<(u64, PathBuf)> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let stamp = path.file_name()?.to_str()?.strip_prefix("LOG.old.")?;
            Some((stamp.parse().ok()?, path))
        })
        .collect();
    old.sort();
    let mut files: Vec<PathBuf> = old.into_iter().map(|(_, path)| path).collect();
    files.push(directory.join("LOG"));
    files
}

/// The work in `logs` in order of time, if all of them can be read. `complete` means that no older
/// log was deleted.
pub fn work_in(
    logs: impl IntoIterator<Item = Option<impl BufRead>>,
    during: Range<u64>,
    complete: bool,
) -> Option<BackgroundWork> {
    let clock = LogClock::between(during.start, during.end)?;
    let mut sums = EventSums::new(during);
    for log in logs {
        for_each_line(log?, |line| sums.line(line, &clock)).ok()?;
    }
    sums.finish(complete)
}

#[derive(Debug, serde::Deserialize)]
struct Event<'a> {
    time_micros: u64,
    job: u64,
    #[serde(borrow)]
    event: Cow<'a, str>,
    file_size: Option<u64>,
    total_blob_bytes: Option<u64>,
    input_data_size: Option<u64>,
    total_output_size: Option<u64>,
    total_blob_output_size: Option<u64>,
    output_level: Option<u32>,
}

/// Adds up events. Holds one number per running job.
#[derive(Debug, Default)]
struct EventSums {
    during: Range<u64>,
    first_line_us: Option<u64>,
    unreadable: bool,
    flushing: HashMap<u64, u64>,
    compacting: HashMap<u64, u64>,
    flushes: u64,
    flush_bytes: u64,
    compactions: u64,
    compaction_read_bytes: u64,
    compaction_write_bytes: u64,
    /// `None` once a compaction does not say into which level it wrote.
    levels: Option<BTreeMap<u32, LevelWork>>,
}

impl EventSums {
    fn new(during: Range<u64>) -> Self {
        Self {
            during,
            levels: Some(BTreeMap::new()),
            ..Self::default()
        }
    }

    fn line(&mut self, line: &[u8], clock: &LogClock) {
        if self.first_line_us.is_none() {
            self.first_line_us = clock.instant_us(line);
        }
        let Some(object) = after(line, b"EVENT_LOG_v1 ") else {
            return;
        };
        let relevant = [
            &b"\"flush_"[..],
            b"\"compaction_",
            b"\"table_file_creation\"",
            b"\"blob_file_creation\"",
        ]
        .iter()
        .any(|name| after(object, name).is_some());
        if !relevant {
            return;
        }
        match serde_json::from_slice::<Event<'_>>(object) {
            Ok(event) => self.event(&event),
            Err(_) => self.unreadable = true,
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        match event.event.as_ref() {
            "flush_started" => {
                self.flushing.insert(event.job, 0);
            }
            "table_file_creation" => self.flushed(event.job, event.file_size),
            "blob_file_creation" => self.flushed(event.job, event.total_blob_bytes),
            "flush_finished" => {
                let bytes = self.flushing.remove(&event.job);
                if self.during.contains(&event.time_micros) {
                    self.flushes += 1;
                    self.unreadable |= bytes.is_none();
                    self.flush_bytes = self.flush_bytes.saturating_add(bytes.unwrap_or_default());
                }
            }
            "compaction_started" => match event.input_data_size {
                Some(bytes) => drop(self.compacting.insert(event.job, bytes)),
                None => self.unreadable = true,
            },
            "compaction_finished" => {
                let read = self.compacting.remove(&event.job);
                if self.during.contains(&event.time_micros) {
                    self.compaction(read, event);
                }
            }
            _ => {}
        }
    }

    /// A file of `bytes` was written by `job`. Those of a compaction are counted when it ends.
    fn flushed(&mut self, job: u64, bytes: Option<u64>) {
        if let Some(sum) = self.flushing.get_mut(&job) {
            *sum = sum.saturating_add(bytes.unwrap_or_default());
            self.unreadable |= bytes.is_none();
        }
    }

    fn compaction(&mut self, read: Option<u64>, event: &Event<'_>) {
        let written = event.total_output_size.unwrap_or_default();
        self.compactions += 1;
        self.unreadable |= read.is_none() || event.total_output_size.is_none();
        self.compaction_read_bytes = self
            .compaction_read_bytes
            .saturating_add(read.unwrap_or_default());
        let blobs = event.total_blob_output_size.unwrap_or_default();
        self.compaction_write_bytes = self
            .compaction_write_bytes
            .saturating_add(written.saturating_add(blobs));
        // Blob files are in no level.
        match (&mut self.levels, event.output_level) {
            (Some(levels), Some(level)) => levels.entry(level).or_default().add(written),
            _ => self.levels = None,
        }
    }

    fn finish(self, complete: bool) -> Option<BackgroundWork> {
        // A log that begins after the window (because older parts were deleted) has missed some
        // work.
        let whole = self
            .first_line_us
            .is_some_and(|first| complete || first <= self.during.start);
        (whole && !self.unreadable).then_some(BackgroundWork {
            flushes: Some(self.flushes),
            flush_bytes: Some(self.flush_bytes),
            compactions: Some(self.compactions),
            compaction_read_bytes: Some(self.compaction_read_bytes),
            compaction_write_bytes: Some(self.compaction_write_bytes),
            levels: self.levels,
        })
    }
}

/// The text after the first `mark` in `line`.
fn after<'a>(line: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    let at = line.windows(mark.len()).position(|window| window == mark)?;
    Some(&line[at + mark.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r#"1970/01/01-00:00:00.000005 1 RocksDB version: 10.2.1
1970/01/01-00:00:00.000010 1 EVENT_LOG_v1 {"time_micros": 10, "job": 2, "event": "flush_started", "num_memtables": 1}
1970/01/01-00:00:00.000011 1 EVENT_LOG_v1 {"time_micros": 11, "job": 3, "event": "compaction_started", "files_L0": [1, 2], "input_data_size": 700}
1970/01/01-00:00:00.000012 1 EVENT_LOG_v1 {"time_micros": 12, "cf_name": "default", "job": 2, "event": "table_file_creation", "file_number": 9, "file_size": 100, "table_properties": {"data_size": 5}}
1970/01/01-00:00:00.000013 1 EVENT_LOG_v1 {"time_micros": 13, "cf_name": "default", "job": 3, "event": "table_file_creation", "file_number": 10, "file_size": 600}
1970/01/01-00:00:00.000020 1 (Original Log Time 1970/01/01-00:00:00.000020) EVENT_LOG_v1 {"time_micros": 20, "job": 2, "event": "flush_finished", "lsm_state": [1]}
1970/01/01-00:00:00.000030 1 EVENT_LOG_v1 {"time_micros": 30, "job": 3, "event": "compaction_finished", "output_level": 1, "total_output_size": 600}
1970/01/01-00:00:00.000031 1 EVENT_LOG_v1 {"time_micros": 31, "job": 3, "event": "table_file_deletion", "file_number": 1}
"#;

    fn work_in(text: &str, during: Range<u64>) -> Option<BackgroundWork> {
        super::work_in([Some(text.as_bytes())], during, false)
    }

    #[test]
    fn work_belongs_to_the_instant_when_it_finished() {
        let all = work_in(LINES, 5..31).unwrap();
        assert_eq!(all.flushes, Some(1));
        assert_eq!(all.flush_bytes, Some(100));
        assert_eq!(all.compactions, Some(1));
        assert_eq!(all.compaction_read_bytes, Some(700));
        assert_eq!(all.compaction_write_bytes, Some(600));
        let into_level_1 = LevelWork {
            compactions: 1,
            compaction_write_bytes: 600,
        };
        assert_eq!(all.levels, Some(BTreeMap::from([(1, into_level_1)])));
        // The start is included, the end excluded.
        let flush = work_in(LINES, 20..30).unwrap();
        assert_eq!((flush.flushes, flush.compactions), (Some(1), Some(0)));
        let compaction = work_in(LINES, 21..31).unwrap();
        assert_eq!(
            (compaction.flushes, compaction.compactions),
            (Some(0), Some(1))
        );
    }

    /// With `enable_blob_files` tables hold little more than keys: the write amplification was nearly
    /// 0, as if such a configuration wrote nothing.
    #[test]
    fn blob_files_count_as_written_and_belong_to_no_level() {
        let created = |us: u64, job: u64, bytes: u64| {
            format!(
                "1970/01/01-00:00:00.0000{us} 1 EVENT_LOG_v1 {{\"time_micros\": {us}, \
                 \"cf_name\": \"default\", \"job\": {job}, \"event\": \"blob_file_creation\", \
                 \"file_number\": 20, \"total_blob_count\": 7, \"total_blob_bytes\": {bytes}, \
                 \"file_checksum\": \"\", \"status\": \"OK\"}}\n"
            )
        };
        let mut lines: Vec<String> = LINES.lines().map(|line| format!("{line}\n")).collect();
        lines.insert(3, created(14, 3, 5000) + &created(15, 2, 4000));
        let text = lines.concat().replace(
            "\"total_output_size\": 600",
            "\"total_output_size\": 600, \"num_blob_output_files\": 1, \"total_blob_output_size\": 5000",
        );
        let work = work_in(&text, 5..31).unwrap();
        assert_eq!(work.flush_bytes, Some(100 + 4000));
        assert_eq!(work.compaction_write_bytes, Some(600 + 5000));
        assert_eq!(work.levels.unwrap()[&1].compaction_write_bytes, 600);
        let broken = text.replace("\"total_blob_bytes\"", "\"bytes\"");
        assert_eq!(work_in(&broken, 5..31), None, "a size that is not told");
    }

    #[test]
    fn what_cannot_be_known_is_none() {
        assert_eq!(work_in(LINES, 2..31), None, "the log begins later");
        assert_eq!(work_in("", 5..31), None, "an empty log");
        let mut all = EventSums::new(2..31);
        all.first_line_us = Some(5);
        assert!(
            all.finish(true).is_some(),
            "the log begins later, because the database does"
        );
        let broken = LINES.replace("\"time_micros\": 20", "\"time_micros\": ?");
        assert_eq!(work_in(&broken, 5..31), None, "an unreadable event");
        let silent = work_in(&LINES.replace("\"output_level\": 1, ", ""), 5..31).unwrap();
        assert_eq!((silent.compactions, silent.levels), (Some(1), None));
        let lost: String = LINES
            .lines()
            .filter(|line| !line.contains("compaction_started"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(work_in(&lost, 5..31), None, "an end without a start");
    }

    #[test]
    fn logs_are_read_in_order_of_time() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["LOG", "LOG.old.20", "LOG.old.3", "LOG.old.x"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let files: Vec<_> = log_files(folder.path())
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(files, ["LOG.old.3", "LOG.old.20", "LOG"]);
    }

    #[test]
    fn a_real_log_of_rocksdb_5_14_is_read() {
        // The file is collected data, which not every checkout has beside it.
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/rocksdb/LOG-0");
        let Ok(text) = std::fs::read_to_string(file) else {
            return;
        };
        // An excerpt: it has the end of one flush without its start, and the start of another
        // without its end.
        let all = 1_527_283_800_000_000..1_600_000_000_000_000;
        assert_eq!(work_in(&text, all.clone()), None);
        let whole: String = text
            .lines()
            .filter(|line| !line.contains("flush_finished"))
            .map(|line| format!("{line}\n"))
            .collect();
        let work = work_in(&whole, all).unwrap();
        assert_eq!((work.flushes, work.compactions), (Some(0), Some(0)));
    }
}
