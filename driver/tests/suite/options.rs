//! What is particular about single engines: how options are applied and read back, and what the
//! built-in engines leave out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lsmtune_driver::engine::{load, probe, Durability, Engine, EngineError, Options};

use super::{get, library, named};
use crate::{LEVELDB, ROCKSDB};

fn rocksdb() -> Option<Box<dyn Engine>> {
    Some(load("rocksdb", Some(&library(ROCKSDB)?)).unwrap())
}

fn leveldb() -> Option<Box<dyn Engine>> {
    Some(load("leveldb", Some(&library(LEVELDB)?)).unwrap())
}

/// Opens a new database and says which options did not take.
fn not_taken(engine: &dyn Engine, options: &[(&str, &str)]) -> BTreeMap<String, Option<String>> {
    let folder = tempfile::tempdir().unwrap();
    let database = engine
        .open(&folder.path().join("db"), &named(options), Durability::Wal)
        .unwrap_or_else(|error| panic!("{options:?}: {error}"));
    database
        .options_not_taken()
        .into_iter()
        .map(|option| (option.name, option.effective))
        .collect()
}

fn refusal(engine: &dyn Engine, options: &[(&str, &str)]) -> EngineError {
    let folder = tempfile::tempdir().unwrap();
    match engine.open(&folder.path().join("db"), &named(options), Durability::Wal) {
        Ok(_) => panic!("{options:?} was taken"),
        Err(error) => error,
    }
}

#[test]
fn rocksdb_options_take_and_are_read_back() {
    let Some(engine) = rocksdb() else {
        return;
    };
    let found = not_taken(
        &*engine,
        &[
            ("write_buffer_size", "4194304"),
            ("max_write_buffer_number", "6"),
            ("target_file_size_base", "8M"),
            ("max_background_jobs", "4"),
            ("max_bytes_for_level_multiplier", "8"),
            ("level_compaction_dynamic_level_bytes", "false"),
            ("compression", "kZSTD"),
            ("compression_opts.level", "3"),
            ("compaction_style", "kCompactionStyleUniversal"),
            ("compaction_options_universal.size_ratio", "7"),
            ("compaction_options_universal.min_merge_width", "3"),
            ("memtable_factory", "skip_list"),
            ("block_based_table_factory.block_size", "16384"),
            (
                "block_based_table_factory.filter_policy",
                "bloomfilter:10:false",
            ),
            (
                "block_based_table_factory.cache_index_and_filter_blocks",
                "true",
            ),
            (
                "block_based_table_factory.metadata_cache_options.partition_pinning",
                "kAll",
            ),
        ],
    );
    assert_eq!(found, BTreeMap::new());
}

#[test]
fn rocksdb_options_that_it_changes_or_hides_are_reported() {
    let Some(engine) = rocksdb() else {
        return;
    };
    let found = not_taken(
        &*engine,
        &[
            ("max_open_files", "5"),
            ("write_buffer_size", "1"),
            ("memtable_factory", "nosuch"),
            ("create_if_missing", "false"),
            ("rate_limiter_bytes_per_sec", "1000000"),
            ("block_based_table_factory.block_size", "4096"),
        ],
    );
    let text = |text: &str| Some(text.to_owned());
    let expected = BTreeMap::from([
        ("max_open_files".to_owned(), text("20")),
        ("write_buffer_size".to_owned(), text("65536")),
        ("memtable_factory".to_owned(), text("SkipListFactory")),
        ("create_if_missing".to_owned(), text("true")),
        ("rate_limiter_bytes_per_sec".to_owned(), None),
    ]);
    assert_eq!(found, expected);
}

#[test]
fn rocksdb_objects_take_with_parts_of_their_own() {
    let Some(engine) = rocksdb() else {
        return;
    };
    for options in [
        &[
            ("memtable_factory.id", "skip_list"),
            ("memtable_factory.lookahead", "16"),
        ][..],
        &[
            ("memtable_factory", "vector"),
            ("memtable_factory.count", "7"),
            ("allow_concurrent_memtable_write", "false"),
        ],
        &[
            ("memtable_factory.id", "hash_linkedlist"),
            ("memtable_factory.bucket_count", "1K"),
            ("prefix_extractor", "fixed:4"),
            ("allow_concurrent_memtable_write", "false"),
        ],
        &[
            ("block_based_table_factory.block_cache", "8M"),
            ("block_based_table_factory.block_cache.num_shard_bits", "2"),
            (
                "block_based_table_factory.block_cache.high_pri_pool_ratio",
                "0.25",
            ),
            ("block_based_table_factory.filter_policy", "ribbonfilter:10"),
        ],
        &[("block_based_table_factory.block_cache.num_shard_bits", "-1")],
        &[("block_based_table_factory.block_cache.num_shard_bits", "3")],
    ] {
        assert_eq!(not_taken(&*engine, options), BTreeMap::new(), "{options:?}");
    }
}

#[test]
fn rocksdb_makes_a_hyper_clock_cache_where_its_library_can() {
    let Some(engine) = rocksdb() else {
        return;
    };
    let id = "block_based_table_factory.block_cache.id";
    let options = [
        ("block_based_table_factory.block_cache", "16M"),
        (id, "hyper_clock_cache"),
        ("block_based_table_factory.block_size", "16384"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("db");
    match engine.open(&directory, &named(&options), Durability::Wal) {
        Ok(database) => assert_eq!(database.options_not_taken().len(), 0),
        Err(EngineError::BadOptionValue { name, allowed, .. }) => {
            assert_eq!(name, id);
            assert!(allowed.starts_with("lru_cache; "), "{allowed}");
        }
        Err(other) => panic!("{other}"),
    }
}

/// Whether a database that `engine` opens once more with `options` leaves its neighbours alone;
/// `None` if the engine does not take the options.
fn reopens_by_itself(engine: &dyn Engine, options: &[(&str, &str)]) -> Option<bool> {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("db");
    drop(
        engine
            .open(&directory, &named(options), Durability::Wal)
            .ok()?,
    );
    // A folder's time is that of the last entry that came or went.
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    let opened = std::fs::File::open(folder.path()).unwrap();
    opened.set_modified(long_ago).unwrap();
    let reopened = engine.reopen(&directory, &named(options), Durability::Wal);
    drop(reopened.unwrap());
    Some(opened.metadata().unwrap().modified().unwrap() == long_ago)
}

/// How long that takes is told (`reopen_s`). It included throw-away databases, by which the driver
/// finds out what a library can do, or has by default.
#[test]
fn an_engine_makes_no_other_database_when_it_opens_one_again() {
    if let Some(engine) = rocksdb() {
        let shards = ("block_based_table_factory.block_cache.num_shard_bits", "2");
        assert_eq!(reopens_by_itself(&*engine, &[shards]), Some(true));
    }
    if let Some(engine) = leveldb() {
        // Of a library without zstd there is nothing to see.
        let alone = reopens_by_itself(&*engine, &[("compression", "zstd")]);
        assert_ne!(alone, Some(false));
    }
}

#[test]
fn rocksdb_is_not_blamed_for_the_kind_of_its_cache() {
    let Some(engine) = rocksdb() else {
        return;
    };
    for kind in ["lru_cache", "hyper_clock_cache"] {
        let options = [
            ("block_based_table_factory.block_cache.id", kind),
            ("block_based_table_factory.checksum", "kNoSuch"),
        ];
        match refusal(&*engine, &options) {
            EngineError::BadOptionValue { name, .. } if name.ends_with(".checksum") => {}
            // A library that makes one kind only says so first.
            EngineError::BadOptionValue { found, .. } if found == "hyper_clock_cache" => {}
            other => panic!("{kind}: {other}"),
        }
    }
    let unknown = [("block_based_table_factory.block_cache.id", "clock_cache")];
    match refusal(&*engine, &unknown) {
        EngineError::BadOptionValue { allowed, .. } => {
            assert_eq!(allowed, "lru_cache or hyper_clock_cache");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn rocksdb_takes_every_option_that_it_lists_at_its_default() {
    let Some(engine) = rocksdb() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let listed = probe(&*engine, folder.path()).unwrap().options;
    assert!(listed.len() > 180, "{}", listed.len());
    // Objects without a name of their own cannot be asked for, and one option is the database's.
    let options: Vec<_> = listed
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(|(name, value)| {
            !value.contains("nullptr") && !value.starts_with('{') && *name != "db_host_id"
        })
        .collect();
    let found = not_taken(&*engine, &options);
    assert_eq!(found, BTreeMap::new());
}

#[test]
fn rocksdb_names_the_option_that_it_cannot_open_with() {
    let Some(engine) = rocksdb() else {
        return;
    };
    // Each of the two is parsed, and each opens by itself.
    let options = [
        ("allow_mmap_writes", "false"),
        ("max_open_files", "100"),
        ("unordered_write", "true"),
        ("allow_concurrent_memtable_write", "false"),
    ];
    match refusal(&*engine, &options) {
        EngineError::BadOptionValue {
            name,
            found,
            allowed,
        } => {
            assert_eq!(name, "allow_concurrent_memtable_write");
            assert_eq!(found, "false");
            assert!(allowed.contains("with unordered_write=true;"), "{allowed}");
            assert!(!allowed.contains("max_open_files"), "{allowed}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn rocksdb_gets_no_second_option_out_of_a_name_or_a_value() {
    let Some(engine) = rocksdb() else {
        return;
    };
    let name = "write_buffer_size=1048576;max_open_files";
    match refusal(&*engine, &[(name, "20")]) {
        EngineError::UnknownOption { name: found, .. } => assert_eq!(found, name),
        other => panic!("{other}"),
    }
    // RocksDB itself would read the number and pass over what follows it.
    let value = "1048576;max_open_files=20";
    match refusal(&*engine, &[("write_buffer_size", value)]) {
        EngineError::BadOptionValue { name, found, .. } => {
            assert_eq!(
                (name.as_str(), found.as_str()),
                ("write_buffer_size", value)
            );
        }
        other => panic!("{other}"),
    }
}

#[test]
fn rocksdb_takes_the_table_options_in_one_piece() {
    let Some(engine) = rocksdb() else {
        return;
    };
    let whole = (
        "block_based_table_factory",
        "{block_size=8192;checksum=kCRC32c}",
    );
    assert_eq!(not_taken(&*engine, &[whole]), BTreeMap::new());
    let wrong = (
        "block_based_table_factory",
        "{block_size=8192;blok_cache=8M}",
    );
    match refusal(&*engine, &[wrong]) {
        EngineError::UnknownOption { name, nearest } => {
            assert_eq!(name, "block_based_table_factory.blok_cache");
            assert_eq!(nearest[0], "block_based_table_factory.block_cache");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn rocksdb_drains_when_automatic_compactions_are_off() {
    let Some(engine) = rocksdb() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let options = named(&[
        ("disable_auto_compactions", "true"),
        ("level0_file_num_compaction_trigger", "1"),
    ]);
    let database = engine
        .open(&folder.path().join("db"), &options, Durability::Wal)
        .unwrap();
    // Waiting for compactions that never come takes a second each time.
    let took = || {
        let began = std::time::Instant::now();
        for round in 0..5_u8 {
            database.session().put(b"key", &[round]).unwrap();
            database.drain(&|| false).unwrap();
        }
        began.elapsed()
    };
    // On a busy machine somebody else may have the processors for a while, but not each time.
    let most = std::time::Duration::from_millis(900);
    assert!((0..50).any(|_| took() < most));
}

#[test]
fn rocksdb_without_a_log_of_events_tells_nothing_about_them() {
    let Some(engine) = rocksdb() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("db");
    let options = named(&[("info_log_level", "WARN_LEVEL")]);
    let database = engine.open(&directory, &options, Durability::Wal).unwrap();
    database.session().put(b"key", b"value").unwrap();
    database.drain(&|| false).unwrap();
    drop(database);
    let work = engine.background_work(&directory, 0, u64::MAX / 2);
    assert_eq!(work, Default::default());
}

#[test]
fn leveldb_takes_every_setter() {
    let Some(engine) = leveldb() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let options: Options = probe(&*engine, folder.path())
        .unwrap()
        .options
        .into_iter()
        .collect();
    assert_eq!(options.len(), 11);
    for (name, value) in [
        ("cache_size", "1048576"),
        ("filter_bits", "10"),
        ("compression", "none"),
        ("compression", "no"),
        ("paranoid_checks", "1"),
        ("error_if_exists", "true"),
        ("max_open_files", "50000"),
    ] {
        let mut options = options.clone();
        options.insert(name.into(), value.into());
        let directory = folder.path().join(format!("{name}-{value}"));
        let database = engine.open(&directory, &options, Durability::Wal).unwrap();
        database.session().put(b"key", b"value").unwrap();
    }
}

#[test]
fn leveldb_refuses_a_compression_that_it_was_not_built_with() {
    let Some(engine) = leveldb() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let compressions = probe(&*engine, folder.path()).unwrap().compressions;
    let opened = engine.open(
        &folder.path().join("db"),
        &named(&[("compression", "zstd")]),
        Durability::Wal,
    );
    assert_eq!(opened.is_ok(), compressions.contains(&"zstd".to_owned()));
}

#[test]
fn a_library_of_another_engine_is_refused() {
    let (Some(rocksdb), Some(leveldb)) = (library(ROCKSDB), library(LEVELDB)) else {
        return;
    };
    for (engine, library) in [("rocksdb", leveldb), ("leveldb", rocksdb)] {
        let Err(EngineError::Library(message)) = load(engine, Some(&library)) else {
            panic!("{engine} was loaded from {}", library.display());
        };
        assert!(message.contains(library.to_str().unwrap()), "{message}");
        assert!(
            message.contains(&format!("lacks {engine}_open")),
            "{message}"
        );
    }
    assert!(load("nosuch", None)
        .err()
        .unwrap()
        .to_string()
        .contains("known: rocksdb"));
}

#[test]
fn noop_does_nothing_in_every_way() {
    let engine = load("noop", None).unwrap();
    let nowhere = PathBuf::from("/nonexistent/db");
    let database = engine
        .open(&nowhere, &Options::new(), Durability::Wal)
        .unwrap();
    let mut session = database.session();
    session.put(b"key", b"value").unwrap();
    session.delete(b"key").unwrap();
    assert_eq!(get(&mut *session, b"key"), Some(Vec::new()));
    let mut cursor = session.cursor().unwrap();
    assert!(!cursor.valid());
    cursor.seek_to_first();
    for _ in 0..1000 {
        assert!(cursor.valid());
        assert_eq!(cursor.key().len(), 16);
        cursor.next();
    }
    assert!(engine
        .open(&nowhere, &named(&[("a", "1")]), Durability::Wal)
        .is_err());
}
