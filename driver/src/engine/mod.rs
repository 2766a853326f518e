//! Engines: what the driver needs from a key-value store in order to measure it.
//!
//! An [`Engine`] is a library at a known version. It opens [`Database`]s. A database gives each
//! worker thread a [`Session`], and a session gives a [`Cursor`] for ordered reads. No other room
//! knows which engine it drives. A new engine is a library that exports the C interface of
//! `include/lsmtune_engine.h`; or a file, a line in [`load`], a fixture in `tests/conformance.rs`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod c_bytes;
mod c_store;
mod flusher;
mod foreign;
pub(crate) mod leveldb;
mod library;
mod log_lines;
mod memory;
mod nearest;
mod noop;
mod parts;
mod probe;
pub(crate) mod rocksdb;
mod scratch;
mod several;

pub use probe::{probe, Probe};

/// Option name to option value, both in the engine's own spelling.
pub type Options = BTreeMap<String, String>;

/// Name, version and library of an engine.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "EngineReply"))]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Name of the engine.
    pub name: String,
    /// As the engine states it.
    // RocksDB states it only in the OPTIONS file that it writes when it opens a database.
    pub version: Option<String>,
    /// What was loaded.
    pub library: Option<PathBuf>,
}

/// An option whose effective value is not the requested one, or is not known.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "OptionReply"))]
#[serde(deny_unknown_fields)]
pub struct OptionNotTaken {
    /// The option.
    pub name: String,
    /// What was asked for.
    pub requested: String,
    /// What is in force; `None` where the engine does not say.
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
    /// The same compactions, by the level that they wrote to.
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
        self.compaction_write_bytes = self.compaction_write_bytes.saturating_add(bytes);
    }
}

/// Table files of one level of the tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LevelSize {
    /// The number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Why an engine refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The library cannot be loaded, or is not this engine: what was found and what is needed.
    #[error("{0}")]
    Library(String),
    /// No such option.
    #[error("unknown option {name}{}", suggestion(.nearest))]
    UnknownOption {
        /// The name as requested.
        name: String,
        /// The nearest names that the engine knows, best first.
        nearest: Vec<String>,
    },
    /// The option exists, but the engine does not accept this value.
    #[error("option {name}: found {found}; allowed: {allowed}")]
    BadOptionValue {
        /// The option.
        name: String,
        /// The value as requested.
        found: String,
        /// What is allowed, in words.
        allowed: String,
    },
    /// The engine reported that the device is full, in these words.
    #[error("disk full: {0}")]
    DiskFull(String),
    /// The engine failed in any other way, in these words.
    #[error("{0}")]
    Failed(String),
    /// The workload asks for what no configuration of the engine can do.
    #[error("{0}")]
    Unable(&'static str),
    /// The caller cancelled the wait.
    #[error("cancelled")]
    Cancelled,
}

/// What the operating system says of EIO, EROFS, EUCLEAN and ESTALE.
const DISK_FAILED: [&str; 4] = [
    "Input/output error",
    "Read-only file system",
    "Structure needs cleaning",
    "Stale file handle",
];

impl EngineError {
    /// Whether the disk failed, and nothing that was asked of the engine: it is full, damaged, gone,
    /// or was made read-only. Of other faults than a full disk, engines only give the operating
    /// system's words.
    pub fn is_of_the_disk(&self) -> bool {
        match self {
            EngineError::DiskFull(_) => true,
            EngineError::Failed(message) => DISK_FAILED.iter().any(|said| message.contains(said)),
            _ => false,
        }
    }

    /// The engine failed, in these words.
    pub fn failed(message: impl Into<String>) -> Self {
        EngineError::Failed(message.into())
    }

    /// The error for a value that the engine does not accept.
    fn bad_value(name: &str, found: &str, allowed: &str) -> Self {
        EngineError::BadOptionValue {
            name: name.to_owned(),
            found: found.to_owned(),
            allowed: allowed.to_owned(),
        }
    }
}

/// The error of an engine that was told to write out what it holds, and did not. What it puts off
/// costs it nothing while it is measured.
fn not_flushed(held: &str) -> EngineError {
    EngineError::failed(format!("the engine was told to flush and did not: {held}"))
}

fn suggestion(nearest: &[String]) -> String {
    if nearest.is_empty() {
        return String::new();
    }
    format!("; nearest: {}", nearest.join(", "))
}

/// Result of every engine call.
pub type Result<T> = std::result::Result<T, EngineError>;

/// What opening a database comes to.
pub type OpenResult = Result<Box<dyn Database>>;

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

/// A loaded engine. Every implementation must ensure this:
///
/// `open` opens the database of the directory, and creates it if it does not exist. `reopen` only
/// opens an existing one. Every unknown or unusable option is an error that names it, before
/// anything is written outside `directory`. Dropping the [`Database`] closes it. After that, the
/// same engine can open the same directory again, with all data present.
pub trait Engine: Send + Sync {
    /// Opens or creates the database in `directory`, with `options` applied to the engine's
    /// defaults. An engine that cannot provide `durability` refuses here.
    fn open(&self, directory: &Path, options: &Options, durability: Durability) -> OpenResult;

    /// Like [`Engine::open`], for a database that the same options have opened before. It must
    /// exist. An option that refuses existing databases (`error_if_exists`) is left out.
    fn reopen(&self, directory: &Path, options: &Options, durability: Durability) -> OpenResult;

    /// Whether a database is files in its directory, so that a copy of them is a database, too.
    fn keeps_files(&self) -> bool {
        true
    }

    /// Flush and compaction work that a *closed* database in `directory` recorded between two
    /// instants of the wall clock, in microseconds since the epoch; the start is included, the end
    /// is not. Nothing is known of an engine that records none.
    fn background_work(&self, _directory: &Path, _from_us: u64, _to_us: u64) -> BackgroundWork {
        BackgroundWork::default()
    }

    /// Short names of the compressions that work, found with throw-away databases inside `scratch`.
    /// Empty for an engine without compression.
    fn compressions(&self, _scratch: &Path) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// This engine, with databases of `count` column families, including the default one; `None` if
    /// the engine has no column families.
    fn with_column_families(&self, _count: usize) -> Option<Box<dyn Engine>> {
        None
    }

    /// Every option that the engine lists, by full name, with its default. `scratch` as above.
    fn known_options(&self, _scratch: &Path) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }
}

/// An open database. Shared by all worker threads.
pub trait Database: Send + Sync {
    /// Name, version and library of the engine.
    fn identity(&self) -> Identity;

    /// The options that did not take effect, found by comparing with what the engine reports. Empty
    /// where it reports none: the driver then refuses every value that the engine would change.
    fn options_not_taken(&self) -> Vec<OptionNotTaken> {
        Vec::new()
    }

    /// A handle for one worker thread.
    fn session(&self) -> Box<dyn Session + '_>;

    /// Writes out every memtable and waits until no flush or compaction is pending or running: the
    /// drain. Polls `cancelled` at least every 50 ms. Returns for how long it waited in vain at the
    /// end, for work that the engine called pending and never began.
    fn drain(&self, cancelled: &dyn Fn() -> bool) -> Result<Duration>;

    /// Lets compactions wait, or run again. Returns false if the engine cannot do that.
    fn hold_compactions(&self, _hold: bool) -> Result<bool> {
        Ok(false)
    }

    /// Tables in key order; `None` if the tree would be another than that of writes.
    fn sorted_tables(&self) -> Result<Option<Box<dyn SortedTables + '_>>> {
        Ok(None)
    }

    /// Seconds since open for which writers were stalled or slowed; `None` if not known.
    fn stall_s(&self) -> Option<f64>;

    /// Whether data outlives the handle: not with the no-op engine, which has nothing to read back.
    fn keeps_data(&self) -> bool {
        true
    }

    /// Whether table files are read by system calls, which the process's own counters see. False
    /// for engines that map their files or hold everything in memory.
    fn reads_by_system_call(&self) -> bool {
        false
    }

    /// The levels of the tree, level 0 first, including empty ones; `None` if not known.
    fn levels(&self) -> Option<Vec<LevelSize>> {
        None
    }

    /// Estimated bytes that compactions have yet to rewrite; `None` if not known.
    fn pending_compaction_bytes(&self) -> Option<u64> {
        None
    }

    /// How the names of the threads begin that flush and compact; empty if they have no names.
    fn background_threads(&self) -> &'static str {
        ""
    }

    /// The text of an engine property such as `rocksdb.stats`; `None` if there is none.
    fn property(&self, _name: &str) -> Option<String> {
        None
    }
}

/// One entry of an atomic batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchEntry<'a> {
    /// Set `key` to `value`.
    Put(&'a [u8], &'a [u8]),
    /// Remove `key`.
    Delete(&'a [u8]),
}

/// Blocks that the reads of a thread requested from the engine's block cache since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockCacheReads {
    /// Found there.
    pub hits: u64,
    /// Not found there, and read.
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

/// Reads the counters of the thread that made it. It must stay on this thread: engines count by
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

    /// The counts since then; `None` if the engine does not count.
    pub fn end(&mut self) -> Option<BlockCacheReads> {
        let (after, before) = (self.session.block_cache()?, self.before?);
        Some(BlockCacheReads {
            hits: after.hits - before.hits,
            misses: after.misses - before.misses,
        })
    }
}

/// Tables that a database without entries of their keys takes as they are.
pub trait SortedTables: Sync {
    /// Bytes of new entries after which a compaction moves them down: a cycle.
    fn cycle_bytes(&self) -> u64;

    /// Writes what `fill` puts, in rising order of keys; several threads may do so at once.
    fn write(&self, fill: &mut dyn FnMut(&mut PutEntry<'_>) -> Result<()>) -> Result<Vec<PathBuf>>;

    /// Makes `tables` part of the database, all or none.
    fn take(&self, tables: &[PathBuf]) -> Result<()>;
}

/// Adds a key and its value.
pub type PutEntry<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// Operations of one thread. No call may allocate in proportion to the number of earlier calls.
pub trait Session {
    /// Sets `key` to `value`.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes `key`; removing an absent key is not an error.
    fn delete(&mut self, key: &[u8]) -> Result<()>;

    /// Applies the batch atomically.
    fn write(&mut self, batch: &[BatchEntry<'_>]) -> Result<()>;

    /// Passes the value to `read` without copying it and returns true; returns false if the key is
    /// absent. The value is released before the call returns: the measurement includes this cost.
    fn get(&mut self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// A cursor over a consistent view of the database.
    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>>;

    /// Passes `scan` a cursor that is released before the call returns: for short scans, which notice
    /// what it costs to put a cursor on the heap.
    fn with_cursor(&mut self, scan: &mut dyn FnMut(&mut dyn Cursor) -> Result<()>) -> Result<()> {
        scan(&mut *self.cursor()?)
    }

    /// A cursor over all entries, also where options make other scans see those of a prefix only.
    fn whole_cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        self.cursor()
    }

    /// Gives `key` an operand for the merge operator. Engines without merges refuse it.
    fn merge(&mut self, _key: &[u8], _operand: &[u8]) -> Result<()> {
        Err(EngineError::Unable("the engine has no merges"))
    }

    /// What the engine counts for this thread; `None` if it does not count.
    fn block_cache(&mut self) -> Option<BlockCacheReads> {
        None
    }
}

/// An ordered scan. It has no position until a seek.
pub trait Cursor {
    /// Moves to the first entry.
    fn seek_to_first(&mut self);
    /// Moves to the first entry at or after `key`.
    fn seek(&mut self, key: &[u8]);
    /// Moves to the next entry. Only while [`Cursor::valid`].
    fn next(&mut self);
    /// Whether the cursor is at an entry.
    fn valid(&self) -> bool;
    /// The key here. Only while [`Cursor::valid`].
    fn key(&self) -> &[u8];
    /// The value here. Only while [`Cursor::valid`].
    fn value(&self) -> &[u8];
    /// Moves to the next entry and returns its key and value, or `None` at the end. This makes each
    /// step of a scan one call through the trait. Only while [`Cursor::valid`].
    fn next_entry(&mut self) -> Option<(&[u8], &[u8])> {
        self.next();
        self.valid().then(|| (self.key(), self.value()))
    }
    /// Moves to the first entry at or after `key`, and returns what [`Cursor::next_entry`] would.
    fn seek_entry(&mut self, key: &[u8]) -> Option<(&[u8], &[u8])> {
        self.seek(key);
        self.valid().then(|| (self.key(), self.value()))
    }
    /// The error that ended the scan, if one did.
    fn status(&self) -> Result<()>;
}

/// `engine`, so that it opens `databases` databases with `column_families` families each. `None` if
/// several families are requested and the engine has none.
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

/// The names that [`load`] knows; others take a library.
pub const NAMES: [&str; 4] = ["rocksdb", "leveldb", "memory", "noop"];

/// Loads the engine called `name`, from `library` unless it is built in.
pub fn load(name: &str, library: Option<&Path>) -> Result<Box<dyn Engine>> {
    match name {
        "rocksdb" => Ok(Box::new(rocksdb::RocksDb::load(library)?)),
        "leveldb" => Ok(Box::new(leveldb::LevelDb::load(library)?)),
        "memory" => Ok(Box::new(memory::Memory::default())),
        "noop" => Ok(Box::new(noop::Noop)),
        _ => match library {
            Some(path) => Ok(Box::new(foreign::Foreign::load(name, path)?)),
            None => Err(EngineError::Library(format!(
                "unknown engine {name}; known: {}",
                NAMES.join(", ")
            ))),
        },
    }
}
