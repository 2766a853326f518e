//! The engines that the suite runs over, and what its tests share.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use lsmtune_driver::engine::{
    load, Cursor, Database, Durability, Engine, EngineError, Options, Session,
};
use tempfile::TempDir;

/// An engine and what is particular about it.
pub struct Fixture {
    pub engine: Box<dyn Engine>,
    /// Whether it keeps data on disk, and so flushes and compacts.
    pub persistent: bool,
    /// An option that makes memtables small, so that little data gives work in the background.
    pub small_memtable: Option<(&'static str, &'static str)>,
    /// Mistyped names and the name each was meant to be.
    pub mistyped: &'static [(&'static str, &'static str)],
    /// Known names with values that the engine does not take.
    pub bad_values: &'static [(&'static str, &'static str)],
    /// Durability settings that the engine honours.
    pub durabilities: &'static [Durability],
    /// Whether it tells what it flushed and compacted when, what its levels hold, and which
    /// compressions work.
    pub tells_work: bool,
    /// An option that makes it refuse a database that is there.
    pub refuses_existing: Option<(&'static str, &'static str)>,
}

/// The library named by the environment variable. Tests without it fail, and say what to do; those
/// that the crate root calls optional say that they did nothing.
pub fn library(variable: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(variable) {
        return Some(path.into());
    }
    if !crate::OPTIONAL {
        panic!("{variable} is not set: run `make setup`, then `make test`, which sets it");
    }
    eprintln!("{variable} is not set: nothing was tested");
    None
}

pub fn memory() -> Fixture {
    Fixture {
        engine: load("memory", None).unwrap(),
        persistent: false,
        small_memtable: None,
        mistyped: &[],
        bad_values: &[],
        durabilities: &[Durability::Sync, Durability::Wal, Durability::None],
        tells_work: false,
        refuses_existing: None,
    }
}

pub fn rocksdb() -> Option<Fixture> {
    let library = library(crate::ROCKSDB)?;
    Some(Fixture {
        engine: load("rocksdb", Some(&library)).unwrap(),
        persistent: true,
        small_memtable: Some(("write_buffer_size", "65536")),
        mistyped: &[
            ("write_bufer_size", "write_buffer_size"),
            ("max_openfiles", "max_open_files"),
            ("block_size", "block_based_table_factory.block_size"),
            ("size_ratio", "compaction_options_universal.size_ratio"),
            (
                "block_based_table_factory.blocksize",
                "block_based_table_factory.block_size",
            ),
            (
                "block_based_table_factory.block_cach",
                "block_based_table_factory.block_cache",
            ),
            (
                "compaction_options_universal.sise_ratio",
                "compaction_options_universal.size_ratio",
            ),
        ],
        bad_values: &[
            ("write_buffer_size", "abc"),
            ("write_buffer_size", "12GG"),
            ("write_buffer_size", ""),
            ("max_open_files", "many"),
            ("compression", "kFoo"),
            ("disable_auto_compactions", "perhaps"),
            ("max_bytes_for_level_multiplier", "x"),
            ("block_based_table_factory.block_size", "abc"),
            ("block_based_table_factory.block_cache", "xyz"),
            ("compaction_options_universal.size_ratio", "abc"),
            ("write_buffer_size", "1\0"),
            ("wal_dir", "/tmp"),
        ],
        durabilities: &[Durability::Sync, Durability::Wal, Durability::None],
        tells_work: true,
        refuses_existing: Some(("error_if_exists", "true")),
    })
}

pub fn leveldb() -> Option<Fixture> {
    let library = library(crate::LEVELDB)?;
    Some(Fixture {
        engine: load("leveldb", Some(&library)).unwrap(),
        persistent: true,
        small_memtable: Some(("write_buffer_size", "65536")),
        mistyped: &[
            ("write_bufer_size", "write_buffer_size"),
            ("max_openfiles", "max_open_files"),
            ("filter_bit", "filter_bits"),
            ("bloom_bits", "filter_bits"),
        ],
        bad_values: &[
            ("write_buffer_size", "65535"),
            ("write_buffer_size", "1073741825"),
            ("max_file_size", "1048575"),
            ("max_file_size", "2M"),
            ("max_open_files", "73"),
            ("max_open_files", "50001"),
            ("block_size", "1023"),
            ("block_size", "4194305"),
            ("block_restart_interval", "0"),
            ("cache_size", "-1"),
            ("filter_bits", "ten"),
            ("compression", "lz4"),
            ("paranoid_checks", "perhaps"),
            ("create_if_missing", "false"),
        ],
        durabilities: &[Durability::Sync, Durability::Wal],
        tells_work: true,
        refuses_existing: Some(("error_if_exists", "true")),
    })
}

/// A fresh folder for a database, and the shortest way to open it.
pub struct DatabaseFolder<'a> {
    pub fixture: &'a Fixture,
    pub folder: TempDir,
}

impl<'a> DatabaseFolder<'a> {
    pub fn new(fixture: &'a Fixture) -> Self {
        Self {
            fixture,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn directory(&self) -> PathBuf {
        self.folder.path().join("db")
    }

    pub fn open(&self) -> Box<dyn Database> {
        self.open_with(&[]).unwrap()
    }

    pub fn open_with(&self, options: &[(&str, &str)]) -> Result<Box<dyn Database>, EngineError> {
        let options = named(options);
        self.fixture
            .engine
            .open(&self.directory(), &options, Durability::Wal)
    }

    pub fn small(&self) -> Box<dyn Database> {
        let options: Vec<_> = self.fixture.small_memtable.into_iter().collect();
        self.open_with(&options).unwrap()
    }

    /// Nothing is left beside the database directory.
    pub fn assert_clean(&self) {
        let left: Vec<_> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .filter(|name| name != "db")
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

pub fn named(options: &[(&str, &str)]) -> Options {
    options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

pub fn get(session: &mut dyn Session, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = None;
    let found = session
        .get(key, &mut |bytes| value = Some(bytes.to_vec()))
        .unwrap();
    assert_eq!(
        found,
        value.is_some(),
        "`read` is called exactly if the key is found"
    );
    value
}

/// From where the cursor stands to the end.
pub fn rest(cursor: &mut dyn Cursor) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries = Vec::new();
    while cursor.valid() {
        entries.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.next();
    }
    cursor.status().unwrap();
    entries
}

pub fn all(session: &mut dyn Session) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = session.cursor().unwrap();
    cursor.seek_to_first();
    rest(&mut *cursor)
}

pub fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_micros()).unwrap()
}

/// Values of which no two are alike and which compress little.
pub fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        })
        .collect()
}
