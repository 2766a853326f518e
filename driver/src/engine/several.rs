//! Several databases of one engine in one process, as one store: each key belongs to one of them.
//!
//! Such databases share what an engine shares within a process (RocksDB's thread pools, LevelDB's
//! one background thread). Databases in separate processes do not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::library::status_error;
use super::parts::PartsSession;
use super::{
    BackgroundWork, Database, Durability, Engine, Identity, LevelSize, LevelWork, OpenResult,
    OptionNotTaken, Options, Result, Session,
};

/// An engine that opens `count` databases, in folders `0`, `1` ... of the directory.
pub struct Several {
    engine: Box<dyn Engine>,
    count: usize,
}

impl Several {
    /// `count` databases of `engine`.
    pub fn new(engine: Box<dyn Engine>, count: usize) -> Self {
        Several { engine, count }
    }

    fn folders<'a>(&self, directory: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
        (0..self.count).map(|number| directory.join(number.to_string()))
    }
}

impl Engine for Several {
    fn open(&self, directory: &Path, options: &Options, durability: Durability) -> OpenResult {
        let open = |folder: PathBuf| {
            // An engine makes the folder of a database, but not the folders above it.
            if self.engine.keeps_files() {
                std::fs::create_dir_all(&folder)
                    .map_err(|error| status_error(&format!("{}: {error}", folder.display())))?;
            }
            self.engine.open(&folder, options, durability)
        };
        let databases = self.folders(directory).map(open).collect::<Result<_>>()?;
        Ok(Box::new(Databases(databases)))
    }

    fn reopen(&self, directory: &Path, options: &Options, durability: Durability) -> OpenResult {
        let reopen = |folder: PathBuf| self.engine.reopen(&folder, options, durability);
        let databases = self.folders(directory).map(reopen).collect::<Result<_>>()?;
        Ok(Box::new(Databases(databases)))
    }

    fn keeps_files(&self) -> bool {
        self.engine.keeps_files()
    }

    fn background_work(&self, directory: &Path, from_us: u64, to_us: u64) -> BackgroundWork {
        self.folders(directory)
            .map(|folder| self.engine.background_work(&folder, from_us, to_us))
            .reduce(sum)
            .unwrap_or_default()
    }
}

/// Joins two parts; unknown if one of them is unknown.
fn both<T>(one: Option<T>, other: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    one.zip(other).map(|(one, other)| join(one, other))
}

fn sum(one: BackgroundWork, other: BackgroundWork) -> BackgroundWork {
    let add = |one: Option<u64>, other: Option<u64>| both(one, other, |a, b| a + b);
    BackgroundWork {
        flushes: add(one.flushes, other.flushes),
        flush_bytes: add(one.flush_bytes, other.flush_bytes),
        compactions: add(one.compactions, other.compactions),
        compaction_read_bytes: add(one.compaction_read_bytes, other.compaction_read_bytes),
        compaction_write_bytes: add(one.compaction_write_bytes, other.compaction_write_bytes),
        levels: both(one.levels, other.levels, sum_work),
    }
}

type Levels = BTreeMap<u32, LevelWork>;

fn sum_work(mut one: Levels, other: Levels) -> Levels {
    for (level, work) in other {
        let sum = one.entry(level).or_default();
        sum.compactions += work.compactions;
        sum.compaction_write_bytes += work.compaction_write_bytes;
    }
    one
}

fn sum_sizes(one: Vec<LevelSize>, other: Vec<LevelSize>) -> Vec<LevelSize> {
    let (mut longer, shorter) = if one.len() < other.len() {
        (other, one)
    } else {
        (one, other)
    };
    for (sum, size) in longer.iter_mut().zip(shorter) {
        sum.files += size.files;
        sum.bytes += size.bytes;
    }
    longer
}

/// One or more open databases.
struct Databases(Vec<Box<dyn Database>>);

impl Database for Databases {
    fn identity(&self) -> Identity {
        self.0[0].identity()
    }

    fn options_not_taken(&self) -> Vec<OptionNotTaken> {
        // All databases have the same options.
        self.0[0].options_not_taken()
    }

    fn session(&self) -> Box<dyn Session + '_> {
        let sessions = self.0.iter().map(|database| database.session());
        Box::new(PartsSession::new(sessions.collect()))
    }

    /// Drains one after another, twice: a shared thread pool may begin work for the first database
    /// while a later one drains.
    fn drain(&self, cancelled: &dyn Fn() -> bool) -> Result<Duration> {
        let twice = self.0.iter().chain(&self.0);
        twice.map(|database| database.drain(cancelled)).sum()
    }

    fn stall_s(&self) -> Option<f64> {
        self.0.iter().map(|database| database.stall_s()).sum()
    }

    fn keeps_data(&self) -> bool {
        self.0[0].keeps_data()
    }

    fn reads_by_system_call(&self) -> bool {
        self.0[0].reads_by_system_call()
    }

    fn levels(&self) -> Option<Vec<LevelSize>> {
        let levels = self.0.iter().map(|database| database.levels());
        levels.reduce(|one, other| both(one, other, sum_sizes))?
    }

    fn pending_compaction_bytes(&self) -> Option<u64> {
        self.0
            .iter()
            .map(|database| database.pending_compaction_bytes())
            .sum()
    }

    fn background_threads(&self) -> &'static str {
        self.0[0].background_threads()
    }

    /// The property of the first database.
    fn property(&self, name: &str) -> Option<String> {
        self.0[0].property(name)
    }
}
