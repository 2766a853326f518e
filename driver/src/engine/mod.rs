//! Engines: what a key-value store must be able to do for the driver to measure it.
//!
//! An [`Engine`] is a library at a known version. It opens [`Database`]s; a database hands each
//! worker thread a [`Session`]; a session hands out a [`Cursor`] for ordered reads. Nothing above
//! this room knows which engine it drives, and a new engine is one file, one line in [`load`] and
//! one fixture in `tests/conformance.rs`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

mod c_bytes;
mod existing;
mod flusher;
mod leveldb;
mod library;
mod log_lines;
mod memory;
mod nearest;
mod noop;
mod parts;
mod probe;
mod rocksdb;
mod scratch;
mod several;

pub use probe::{probe, Probe};

/// Option name to option value, both in the engine's own spelling.
pub type Options = BTreeMap<String, String>;

/// Which engine this is, as it said itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Engine name as registered in [`load`]: `rocksdb`, `leveldb`, `memory`, `noop`.
    pub name: String,
    /// Version as the engine states it; `None` until it can be known (RocksDB states its version
    /// only in the OPTIONS file that it writes when a database is opened).
    pub version: Option<String>,
    /// The shared library that was loaded, if the engine is not built in.
    pub library: Option<PathBuf>,
}

/// One option whose effective value differs from the requested one, or could not be read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionNotTaken {
    /// The option, in the spelling of the request.
    pub name: String,
    /// What was asked for.
    pub requested: String,
    /// What the engine says it uses; `None` where the engine does not say.
    pub effective: Option<String>,
}

/// Compaction and flush work between two instants, as the engine recorded it.
///
/// `None` means that the engine cannot tell, never zero.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BackgroundWork {
    /// Memtables written out as tables.
    pub flushes: Option<u64>,
    /// Bytes of the tables that flushes wrote.
    pub flush_bytes: Option<u64>,
    /// Finished compactions that rewrote data (trivial moves are not counted).
    pub compactions: Option<u64>,
    /// Bytes of table files read by compactions.
    pub compaction_read_bytes: Option<u64>,
    /// Bytes of table files written by compactions.
    pub compaction_write_bytes: Option<u64>,
    /// The compactions again, by the level that they wrote to.
    pub levels: Option<BTreeMap<u32, LevelWork>>,
}

/// Compactions into one level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LevelWork {
    /// Finished compactions that rewrote data.
    pub compactions: u64,
    /// Bytes of table files written by them.
    pub compaction_write_bytes: u64,
}

impl LevelWork {
    fn add(&mut self, bytes: u64) {
        self.compactions += 1;
        self.compaction_write_bytes += bytes;
    }
}

/// Table files of one level of the tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LevelSize {
    /// How many there are.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Why an engine refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The library cannot be loaded, or is not this engine.
    #[error("{message}")]
    Library {
        /// What was found and what is needed, in one line.
        message: String,
    },
    /// No such option.
    #[error("unknown option {name}{}", suggestion(.nearest))]
    UnknownOption {
        /// The name as requested.
        name: String,
        /// The nearest names that the engine knows, best first.
        nearest: Vec<String>,
    },
    /// The option exists; its value is not one that the engine takes.
    #[error("option {name}: found {found}; allowed: {allowed}")]
    BadOptionValue {
        /// The option.
        name: String,
        /// The value as requested.
        found: String,
        /// What is allowed, in words.
        allowed: String,
    },
    /// The engine reported that the device is full.
    #[error("disk full: {message}")]
    DiskFull {
        /// The engine's own words.
        message: String,
    },
    /// The engine failed in any other way.
    #[error("{message}")]
    Failed {
        /// The engine's own words.
        message: String,
    },
    /// The wait was cancelled by the caller.
    #[error("cancelled")]
    Cancelled,
}

impl EngineError {
    /// The error for a value that the engine does not take.
    fn bad_value(name: &str, found: &str, allowed: &str) -> Self {
        EngineError::BadOptionValue {
            name: name.to_owned(),
            found: found.to_owned(),
            allowed: allowed.to_owned(),
        }
    }
}

fn suggestion(nearest: &[String]) -> String {
    if nearest.is_empty() {
        return String::new();
    }
    format!("; nearest: {}", nearest.join(", "))
}

/// Result of every engine call.
pub type Result<T> = std::result::Result<T, EngineError>;

/// How writes are made durable: part of the workload, never of the tuning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Every write is synced to the device before it returns.
    Sync,
    /// Every write reaches the write-ahead log; the operating system decides when to sync.
    Wal,
    /// No write-ahead log. LevelDB cannot do this and says so.
    None,
}

/// A loaded engine.
///
/// Obligations: `open` creates the directory's database where there is none and opens it
/// otherwise; `reopen` only opens one that is there; every unknown or unusable option is an error that names it, before anything is
/// written outside `directory`; closing is dropping the [`Database`], and after it the same
/// directory can be opened again by the same engine with all data present.
pub trait Engine: Send + Sync {
    /// Name, version if known without a database, and library.
    fn identity(&self) -> Identity;

    /// Opens or creates the database in `directory` with `options` applied over the engine's
    /// defaults. `durability` is checked here, so that an engine which cannot honour it refuses.
    fn open(
        &self,
        directory: &Path,
        options: &Options,
        durability: Durability,
    ) -> Result<Box<dyn Database>>;

    /// As [`Engine::open`], for a database that the same options have opened before: it must be
    /// there, and an option that says otherwise (`error_if_exists`) is left out.
    fn reopen(
        &self,
        directory: &Path,
        options: &Options,
        durability: Durability,
    ) -> Result<Box<dyn Database>>;

    /// Whether a database is in files of its directory, so that a copy of them is a database too.
    fn keeps_files(&self) -> bool {
        true
    }

    /// Flush and compaction work recorded in `directory` by a *closed* database between two wall
    /// clock instants, in microseconds since the epoch, start included, end excluded.
    fn background_work(&self, directory: &Path, from_us: u64, to_us: u64) -> BackgroundWork;

    /// Short names of the compressions that work, found out with throw-away databases inside
    /// `scratch`. Empty for an engine that has none.
    fn compressions(&self, _scratch: &Path) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// This engine, with databases of `count` column families, the default one among them; `None`
    /// if it has no such thing.
    fn with_column_families(&self, _count: usize) -> Option<Box<dyn Engine>> {
        None
    }

    /// Every option that the engine lists, by full name, with its default; `scratch` as above.
    fn known_options(&self, _scratch: &Path) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }
}

/// An open database. Shared by all worker threads.
pub trait Database: Send + Sync {
    /// As [`Engine::identity`], with the version filled in where only an open database tells it.
    fn identity(&self) -> Identity;

    /// The options that did not take, by reading back what the engine says it uses.
    fn options_not_taken(&self) -> Vec<OptionNotTaken>;

    /// A handle for one worker thread.
    fn session(&self) -> Box<dyn Session + '_>;

    /// Writes every memtable out and waits until no flush or compaction is pending or running:
    /// what [the caller measures as](crate) drain. Polls `cancelled` at least every 50 ms.
    fn drain(&self, cancelled: &dyn Fn() -> bool) -> Result<()>;

    /// Seconds for which writers were stalled or slowed since open; `None` if the engine cannot
    /// tell.
    fn stall_s(&self) -> Option<f64>;

    /// Whether data outlives the handle: true of every engine but the no-op one, whose runs have
    /// nothing to read back.
    fn keeps_data(&self) -> bool {
        true
    }

    /// Whether reads of table files are system calls, which the process's own counters see. False
    /// for engines that map their files or hold everything in memory.
    fn reads_by_system_call(&self) -> bool {
        false
    }

    /// The levels of the tree, level 0 first, empty ones included; `None` if the engine has none or
    /// does not say.
    fn levels(&self) -> Option<Vec<LevelSize>> {
        None
    }

    /// The engine's own property text, such as `rocksdb.stats`; `None` if it has none of that name.
    fn property(&self, name: &str) -> Option<String>;
}

/// One entry of an atomic batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchEntry<'a> {
    /// Set `key` to `value`.
    Put(&'a [u8], &'a [u8]),
    /// Remove `key`.
    Delete(&'a [u8]),
}

/// Blocks that reads of one thread asked the engine's block cache for, since the thread began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockCacheReads {
    /// Found there.
    pub hits: u64,
    /// Not found, and read.
    pub misses: u64,
}

impl std::iter::Sum for BlockCacheReads {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, each| BlockCacheReads {
            hits: sum.hits + each.hits,
            misses: sum.misses + each.misses,
        })
    }
}

/// Asks for the counters of the thread that it was made on, which must keep it: engines count by
/// thread, so any session of the thread will do.
pub struct BlockCacheCounters<'a> {
    session: Box<dyn Session + 'a>,
    before: Option<BlockCacheReads>,
}

impl<'a> BlockCacheCounters<'a> {
    /// Begins to count.
    pub fn begin(database: &'a dyn Database) -> Self {
        let mut session = database.session();
        let before = session.block_cache();
        BlockCacheCounters { session, before }
    }

    /// What was counted since; `None` if the engine does not count.
    pub fn end(&mut self) -> Option<BlockCacheReads> {
        let (after, before) = (self.session.block_cache()?, self.before?);
        Some(BlockCacheReads {
            hits: after.hits - before.hits,
            misses: after.misses - before.misses,
        })
    }
}

/// Operations of one thread. No call may allocate in proportion to the number of earlier calls.
pub trait Session {
    /// Sets `key` to `value`.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes `key`; removing an absent key is not an error.
    fn delete(&mut self, key: &[u8]) -> Result<()>;

    /// Applies the batch atomically.
    fn write(&mut self, batch: &[BatchEntry<'_>]) -> Result<()>;

    /// Passes the value to `read` without copying it and returns true; returns false if the key is
    /// absent. The value is released before the call returns, so that its cost is measured.
    fn get(&mut self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// A cursor over a consistent view of the database.
    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>>;

    /// Hands `key` a merge operand, which its merge operator combines with the value. Refused by
    /// engines that have no merges.
    fn merge(&mut self, _key: &[u8], _operand: &[u8]) -> Result<()> {
        Err(EngineError::Failed {
            message: "the engine has no merges".to_owned(),
        })
    }

    /// What the engine counts of this thread; `None` if it does not.
    fn block_cache(&mut self) -> Option<BlockCacheReads> {
        None
    }
}

/// An ordered scan. Not positioned until a seek.
pub trait Cursor {
    /// Moves to the first entry.
    fn seek_to_first(&mut self);
    /// Moves to the first entry at or after `key`.
    fn seek(&mut self, key: &[u8]);
    /// Moves to the next entry. Only while [`Cursor::valid`].
    fn next(&mut self);
    /// Whether the cursor stands on an entry.
    fn valid(&self) -> bool;
    /// The key here. Only while [`Cursor::valid`].
    fn key(&self) -> &[u8];
    /// The value here. Only while [`Cursor::valid`].
    fn value(&self) -> &[u8];
    /// Moves to the next entry and returns its key and value, or `None` at the end: one call
    /// through the trait for what a scan does at every step. Only while [`Cursor::valid`].
    fn next_entry(&mut self) -> Option<(&[u8], &[u8])> {
        self.next();
        self.valid().then(|| (self.key(), self.value()))
    }
    /// The error that ended the scan, if one did.
    fn status(&self) -> Result<()>;
}

/// `engine` with `databases` databases of `column_families` each wherever one is opened; `None` if it
/// has no column families and there are to be several.
pub fn arrange(
    engine: Box<dyn Engine>,
    databases: usize,
    column_families: usize,
) -> Option<Box<dyn Engine>> {
    let engine = match column_families {
        1 => engine,
        _ => engine.with_column_families(column_families)?,
    };
    Some(match databases {
        1 => engine,
        _ => Box::new(several::Several::new(engine, databases)),
    })
}

/// The names that [`load`] takes.
pub const NAMES: [&str; 4] = ["rocksdb", "leveldb", "memory", "noop"];

/// Loads the engine called `name`, from `library` where it is not built in.
pub fn load(name: &str, library: Option<&Path>) -> Result<Box<dyn Engine>> {
    match name {
        "rocksdb" => Ok(Box::new(rocksdb::RocksDb::load(library)?)),
        "leveldb" => Ok(Box::new(leveldb::LevelDb::load(library)?)),
        "memory" => Ok(Box::new(memory::Memory::default())),
        "noop" => Ok(Box::new(noop::Noop)),
        _ => Err(EngineError::Library {
            message: format!("unknown engine {name}; known: {}", NAMES.join(", ")),
        }),
    }
}
