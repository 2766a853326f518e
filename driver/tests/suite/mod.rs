//! What every engine must do, whatever it is: one function per obligation, each of which takes a
//! [`Fixture`]. A new engine adds a fixture and one line of [`conformance`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lsmtune_driver::engine::{
    load, probe, BatchEntry, Cursor, Database, Durability, Engine, EngineError, Options, Session,
};
use tempfile::TempDir;

mod options;
mod parts;

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
    })
}

/// A fresh place for a database, and the shortest way to open it.
struct Place<'a> {
    fixture: &'a Fixture,
    folder: TempDir,
}

impl<'a> Place<'a> {
    fn new(fixture: &'a Fixture) -> Self {
        Self {
            fixture,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn directory(&self) -> PathBuf {
        self.folder.path().join("db")
    }

    fn open(&self) -> Box<dyn Database> {
        self.open_with(&[]).unwrap()
    }

    fn open_with(&self, options: &[(&str, &str)]) -> Result<Box<dyn Database>, EngineError> {
        let options = named(options);
        self.fixture
            .engine
            .open(&self.directory(), &options, Durability::Wal)
    }

    fn small(&self) -> Box<dyn Database> {
        let options: Vec<_> = self.fixture.small_memtable.into_iter().collect();
        self.open_with(&options).unwrap()
    }

    /// Nothing is left beside the database directory.
    fn assert_clean(&self) {
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

fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_micros()).unwrap()
}

/// Values of which no two are alike and which compress little.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
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

pub fn a_value_that_was_put_is_found(fixture: &Fixture) {
    let place = Place::new(fixture);
    let database = place.open();
    let mut session = database.session();
    session.put(b"a", b"1").unwrap();
    assert_eq!(get(&mut *session, b"a").as_deref(), Some(&b"1"[..]));
    assert_eq!(get(&mut *session, b"b"), None);
    assert_eq!(get(&mut *session, b""), None);
    assert_eq!(get(&mut *session, b"aa"), None);
}

pub fn the_last_write_wins(fixture: &Fixture) {
    let place = Place::new(fixture);
    let database = place.open();
    let mut session = database.session();
    session.put(b"a", b"1").unwrap();
    session.put(b"a", b"22").unwrap();
    assert_eq!(get(&mut *session, b"a").as_deref(), Some(&b"22"[..]));
    session.delete(b"a").unwrap();
    assert_eq!(get(&mut *session, b"a"), None);
    session.delete(b"a").unwrap();
    session.delete(b"never").unwrap();
    session.put(b"a", b"3").unwrap();
    assert_eq!(get(&mut *session, b"a").as_deref(), Some(&b"3"[..]));
}

pub fn any_bytes_are_keys_and_values(fixture: &Fixture) {
    let place = Place::new(fixture);
    let database = place.open();
    let mut session = database.session();
    let large = noise(1, 1 << 20);
    let entries: Vec<(Vec<u8>, Vec<u8>)> = vec![
        (vec![0], b"nul".to_vec()),
        (vec![0, 0], vec![0, 0xff, 0]),
        (b"empty".to_vec(), Vec::new()),
        (b"large".to_vec(), large),
        (vec![0xff], b"ff".to_vec()),
        (vec![0xff; 40], vec![0xff; 3]),
    ];
    for (key, value) in &entries {
        session.put(key, value).unwrap();
    }
    for round in 0..2 {
        for (key, value) in &entries {
            assert_eq!(
                get(&mut *session, key).as_ref(),
                Some(value),
                "{key:?} {round}"
            );
        }
        assert_eq!(all(&mut *session), entries);
        database.drain(&|| false).unwrap();
    }
}

pub fn a_scan_is_in_order_of_bytes(fixture: &Fixture) {
    let place = Place::new(fixture);
    let database = place.small();
    let mut session = database.session();
    let mut model = BTreeMap::new();
    for number in 0..2000_u64 {
        let key = noise(number, 1 + usize::try_from(number % 9).unwrap());
        let value = number.to_le_bytes().repeat(10);
        session.put(&key, &value).unwrap();
        model.insert(key, value);
        if number % 3 == 0 {
            let gone = model.keys().next().unwrap().clone();
            session.delete(&gone).unwrap();
            model.remove(&gone);
        }
    }
    let expected: Vec<_> = model.into_iter().collect();
    assert_eq!(all(&mut *session), expected);
    database.drain(&|| false).unwrap();
    assert_eq!(all(&mut *session), expected);
}

pub fn a_seek_finds_the_first_entry_at_or_after_the_key(fixture: &Fixture) {
    let place = Place::new(fixture);
    let database = place.open();
    let mut session = database.session();
    {
        let mut cursor = session.cursor().unwrap();
        assert!(!cursor.valid(), "not positioned before a seek");
        cursor.seek_to_first();
        assert!(!cursor.valid(), "an empty database");
        cursor.seek(b"a");
        assert!(!cursor.valid());
        cursor.status().unwrap();
    }
    for key in [&b"b"[..], b"d", b"da", b"f"] {
        session.put(key, key).unwrap();
    }
    session.delete(b"da").unwrap();
    let mut cursor = session.cursor().unwrap();
    for (sought, found) in [
        ("", "b"),
        ("a", "b"),
        ("b", "b"),
        ("c", "d"),
        ("d\0", "f"),
        ("f", "f"),
    ] {
        cursor.seek(sought.as_bytes());
        assert!(cursor.valid(), "{sought}");
        assert_eq!(cursor.key(), found.as_bytes(), "{sought}");
        assert_eq!(cursor.value(), found.as_bytes(), "{sought}");
    }
    cursor.next();
    assert!(!cursor.valid(), "after the last entry");
    cursor.seek(b"g");
    assert!(!cursor.valid());
    cursor.seek(b"d");
    assert!(cursor.valid(), "a cursor at the end can be sought again");
    let keys: Vec<_> = rest(&mut *cursor).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [b"d".to_vec(), b"f".to_vec()]);
}

pub fn a_cursor_sees_the_database_as_it_was(fixture: &Fixture) {
    let place = Place::new(fixture);
    let database = place.open();
    let mut session = database.session();
    session.put(b"a", b"1").unwrap();
    session.put(b"b", b"1").unwrap();
    let mut cursor = session.cursor().unwrap();
    let mut other = database.session();
    other.put(b"a", b"2").unwrap();
    other.delete(b"b").unwrap();
    other.put(b"c", b"2").unwrap();
    cursor.seek_to_first();
    let pair = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
    assert_eq!(rest(&mut *cursor), [pair(b"a", b"1"), pair(b"b", b"1")]);
    drop(cursor);
    assert_eq!(all(&mut *session), [pair(b"a", b"2"), pair(b"c", b"2")]);
}

pub fn a_batch_is_applied_in_order(fixture: &Fixture) {
    let place = Place::new(fixture);
    let database = place.open();
    let mut session = database.session();
    session.put(b"old", b"0").unwrap();
    session
        .write(&[
            BatchEntry::Put(b"a", b"1"),
            BatchEntry::Delete(b"old"),
            BatchEntry::Put(b"b", b"1"),
            BatchEntry::Put(b"a", b"2"),
            BatchEntry::Delete(b"b"),
            BatchEntry::Delete(b"c"),
            BatchEntry::Put(b"c", b""),
        ])
        .unwrap();
    let pair = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
    assert_eq!(all(&mut *session), [pair(b"a", b"2"), pair(b"c", b"")]);
    // Nothing of a batch is left over for what comes after it.
    session.delete(b"a").unwrap();
    session.put(b"d", b"1").unwrap();
    session.write(&[]).unwrap();
    assert_eq!(all(&mut *session), [pair(b"c", b""), pair(b"d", b"1")]);
}

pub fn a_batch_is_seen_whole_or_not_at_all(fixture: &Fixture) {
    let place = Place::new(fixture);
    let database = place.open();
    let stop = std::sync::atomic::AtomicBool::new(false);
    database
        .session()
        .write(&[BatchEntry::Put(b"x", b"0"), BatchEntry::Put(b"y", b"0")])
        .unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = database.session();
            for number in 0..2000_u32 {
                let value = number.to_be_bytes();
                let batch = [BatchEntry::Put(b"x", &value), BatchEntry::Put(b"y", &value)];
                session.write(&batch).unwrap();
            }
            stop.store(true, std::sync::atomic::Ordering::Release);
        });
        let mut session = database.session();
        while !stop.load(std::sync::atomic::Ordering::Acquire) {
            let seen = all(&mut *session);
            assert_eq!(seen[0].1, seen[1].1);
        }
    });
}

pub fn data_is_kept_when_reopened(fixture: &Fixture) {
    for &durability in fixture.durabilities {
        for drained in [false, true] {
            let place = Place::new(fixture);
            let open = || {
                fixture
                    .engine
                    .open(&place.directory(), &Options::new(), durability)
            };
            let database = open().unwrap();
            let mut session = database.session();
            for number in 0..300_u32 {
                session
                    .put(&number.to_be_bytes(), &noise(number.into(), 100))
                    .unwrap();
            }
            session.delete(&7_u32.to_be_bytes()).unwrap();
            drop(session);
            if drained {
                database.drain(&|| false).unwrap();
            }
            drop(database);
            let database = open().unwrap();
            let entries = all(&mut *database.session());
            assert_eq!(entries.len(), 299, "{durability:?} {drained}");
            for (key, value) in entries {
                let number = u32::from_be_bytes(key.try_into().unwrap());
                assert_eq!(value, noise(number.into(), 100));
            }
        }
    }
}

pub fn only_a_database_that_is_there_is_reopened(fixture: &Fixture) {
    if !fixture.persistent {
        return;
    }
    let place = Place::new(fixture);
    let options = named(&[("error_if_exists", "true")]);
    let reopen = || {
        let engine = &fixture.engine;
        engine.reopen(&place.directory(), &options, Durability::Wal)
    };
    assert!(matches!(reopen(), Err(EngineError::Failed { .. })));
    assert!(!place.directory().exists());
    let database = place.open_with(&[("error_if_exists", "true")]).unwrap();
    database.session().put(b"a", b"1").unwrap();
    drop(database);
    let refused = place.open_with(&[("error_if_exists", "true")]).err();
    assert!(
        matches!(refused, Some(EngineError::Failed { .. })),
        "{refused:?}"
    );
    let database = reopen().unwrap();
    assert_eq!(all(&mut *database.session()).len(), 1);
    assert_eq!(database.options_not_taken(), []);
}

pub fn a_durability_that_cannot_be_had_is_refused(fixture: &Fixture) {
    for durability in [Durability::Sync, Durability::Wal, Durability::None] {
        let place = Place::new(fixture);
        let opened = fixture
            .engine
            .open(&place.directory(), &Options::new(), durability);
        assert_eq!(
            opened.is_ok(),
            fixture.durabilities.contains(&durability),
            "{durability:?}"
        );
        if let Err(error) = opened {
            assert!(error.to_string().contains("durability"), "{error}");
            assert!(!place.directory().exists());
        }
    }
}

pub fn an_unknown_option_is_named_with_the_nearest(fixture: &Fixture) {
    let place = Place::new(fixture);
    for (mistyped, meant) in fixture.mistyped {
        match place.open_with(&[(mistyped, "1")]) {
            Err(EngineError::UnknownOption { name, nearest }) => {
                assert_eq!(&name, mistyped);
                assert_eq!(
                    nearest.first().map(String::as_str),
                    Some(*meant),
                    "{nearest:?}"
                );
                assert!(nearest.len() <= 3);
            }
            other => panic!("{mistyped}: {:?}", other.err()),
        }
    }
    match place.open_with(&[("zzz_qqq_xxx", "1")]) {
        Err(EngineError::UnknownOption { name, nearest }) => {
            assert_eq!(name, "zzz_qqq_xxx");
            assert!(nearest.is_empty(), "{nearest:?}");
        }
        other => panic!("{:?}", other.err()),
    }
    assert!(
        !place.directory().exists(),
        "nothing is made for a request that is refused"
    );
    place.assert_clean();
}

pub fn a_bad_value_is_named_with_what_is_allowed(fixture: &Fixture) {
    let place = Place::new(fixture);
    for (option, value) in fixture.bad_values {
        // A good option beside it must not be blamed.
        let mut options = vec![(*option, *value)];
        options.extend(fixture.small_memtable.filter(|(name, _)| name != option));
        match place.open_with(&options) {
            Err(EngineError::BadOptionValue {
                name,
                found,
                allowed,
            }) => {
                assert_eq!(&name, option);
                assert_eq!(&found, value);
                assert!(!allowed.is_empty());
            }
            other => panic!("{option}={value}: {:?}", other.err()),
        }
    }
    assert!(
        !place.directory().exists(),
        "nothing is made for a request that is refused"
    );
    place.assert_clean();
}

pub fn drain_leaves_nothing_pending_and_the_work_is_recorded(fixture: &Fixture) {
    let place = Place::new(fixture);
    let database = place.small();
    let from = now_us();
    let mut session = database.session();
    let mut written = 0_u64;
    for number in 0..20_000_u64 {
        let value = noise(number, 100);
        session.put(&noise(number % 7000, 8), &value).unwrap();
        written += 108;
    }
    drop(session);
    database.drain(&|| false).unwrap();
    let to = now_us();
    std::thread::sleep(Duration::from_millis(50));
    database.drain(&|| false).unwrap();
    let later = now_us() + 1;
    drop(database);
    let work = fixture.engine.background_work(&place.directory(), from, to);
    if !fixture.persistent {
        assert_eq!(work, Default::default());
        return;
    }
    assert!(work.flushes.unwrap() > 5, "{work:?}");
    let flushed = work.flush_bytes.unwrap();
    assert!(
        flushed > written / 4 && flushed < written * 2,
        "{work:?} of {written}"
    );
    assert!(work.compactions.unwrap() > 0, "{work:?}");
    assert!(work.compaction_write_bytes.unwrap() > 0, "{work:?}");
    assert!(
        work.compaction_read_bytes.is_none_or(|read| read > 0),
        "{work:?}"
    );
    // All that was needed happened before the drain returned.
    let after = fixture
        .engine
        .background_work(&place.directory(), to, later);
    assert_eq!(after.flush_bytes, Some(0), "{after:?}");
    assert_eq!(after.compactions, Some(0), "{after:?}");
    let before = fixture
        .engine
        .background_work(&place.directory(), from - 2, from);
    assert!(
        before.flushes.is_none_or(|flushes| flushes == 0),
        "{before:?}"
    );
    let nowhere = fixture
        .engine
        .background_work(&place.directory().join("none"), from, to);
    assert_eq!(nowhere, Default::default());
}

pub fn levels_are_those_of_the_tables(fixture: &Fixture) {
    let place = Place::new(fixture);
    let database = place.small();
    if !fixture.persistent {
        assert_eq!(database.levels(), None);
        return;
    }
    let empty = database.levels().unwrap();
    assert_eq!(empty, vec![Default::default(); 7]);
    let mut session = database.session();
    for number in 0..20_000_u64 {
        session.put(&noise(number, 8), &noise(number, 100)).unwrap();
    }
    drop(session);
    database.drain(&|| false).unwrap();
    let levels = database.levels().unwrap();
    drop(database);
    let tables: Vec<u64> = std::fs::read_dir(place.directory())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| {
            let path = entry.path();
            path.extension().is_some_and(|e| e == "sst" || e == "ldb")
        })
        .map(|entry| entry.metadata().unwrap().len())
        .collect();
    let files: u64 = levels.iter().map(|level| level.files).sum();
    let bytes: u64 = levels.iter().map(|level| level.bytes).sum();
    assert_eq!(files, u64::try_from(tables.len()).unwrap(), "{levels:?}");
    assert_eq!(bytes, tables.iter().sum::<u64>(), "{levels:?}");
    assert!(
        levels[1..].iter().any(|level| level.files > 0),
        "{levels:?}"
    );
}

pub fn a_drain_ends_soon_after_it_is_cancelled(fixture: &Fixture) {
    if !fixture.persistent {
        return;
    }
    let place = Place::new(fixture);
    let database = place.small();
    let mut session = database.session();
    for number in 0..30_000_u64 {
        session.put(&noise(number, 8), &noise(number, 200)).unwrap();
    }
    drop(session);
    let began = Instant::now();
    let result = database.drain(&|| true);
    let took = began.elapsed();
    assert!(took < Duration::from_millis(200), "{took:?}");
    assert!(
        matches!(result, Ok(()) | Err(EngineError::Cancelled)),
        "{result:?}"
    );
    drop(database);
    let database = place.small();
    assert_eq!(all(&mut *database.session()).len(), 30_000);
}

pub fn threads_write_and_read_at_once(fixture: &Fixture) {
    const THREADS: u32 = 4;
    const KEYS: u32 = 1000;
    let place = Place::new(fixture);
    let database = place.small();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let database = &database;
            scope.spawn(move || {
                let mut session = database.session();
                for number in 0..KEYS {
                    let key = (thread * KEYS + number).to_be_bytes();
                    session.put(&key, &noise(number.into(), 50)).unwrap();
                    assert_eq!(get(&mut *session, &key), Some(noise(number.into(), 50)));
                    get(&mut *session, &number.to_be_bytes());
                }
            });
        }
    });
    let count = all(&mut *database.session()).len();
    assert_eq!(count, usize::try_from(THREADS * KEYS).unwrap());
}

pub fn a_database_is_open_once(fixture: &Fixture) {
    let place = Place::new(fixture);
    let first = place.open();
    assert!(matches!(
        place.open_with(&[]),
        Err(EngineError::Failed { .. })
    ));
    drop(first);
    place.open();
    place.assert_clean();
}

pub fn a_directory_that_cannot_be_made_is_an_error(fixture: &Fixture) {
    if !fixture.persistent {
        return;
    }
    let place = Place::new(fixture);
    let file = place.folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for directory in [file.clone(), file.join("db")] {
        let error = fixture
            .engine
            .open(&directory, &Options::new(), Durability::Wal)
            .err();
        let Some(EngineError::Failed { message }) = error else {
            panic!("{error:?}");
        };
        assert!(message.contains(directory.to_str().unwrap()), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"");
}

pub fn identity_and_properties_are_told(fixture: &Fixture) {
    let place = Place::new(fixture);
    let database = place.open();
    let (identity, engine) = (database.identity(), fixture.engine.identity());
    assert_eq!(identity.name, engine.name);
    assert_eq!(identity.library, engine.library);
    let version = identity.version.unwrap();
    assert!(
        version.starts_with(|digit: char| digit.is_ascii_digit()),
        "{version}"
    );
    assert_eq!(identity.library.is_some(), fixture.persistent);
    assert_eq!(database.property("nosuch.property"), None);
    assert_eq!(database.property("a\0b"), None);
    if fixture.persistent {
        let stats = format!("{}.stats", identity.name);
        assert!(database
            .property(&stats)
            .is_some_and(|text| !text.is_empty()));
    }
    assert!(database
        .stall_s()
        .is_none_or(|stall| (0.0..1.0).contains(&stall)));
    assert_eq!(database.options_not_taken(), []);
}

pub fn a_probe_finds_compressions_and_options(fixture: &Fixture) {
    let folder = tempfile::tempdir().unwrap();
    let probe = probe(&*fixture.engine, folder.path()).unwrap();
    assert_eq!(probe.identity.name, fixture.engine.identity().name);
    assert!(probe.identity.version.is_some());
    if fixture.persistent {
        assert!(probe.compressions.contains(&"none".to_owned()));
        assert!(
            probe.compressions.contains(&"snappy".to_owned()),
            "{:?}",
            probe.compressions
        );
        let default = |name: &str| {
            let found = probe.options.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        let size: u64 = default("write_buffer_size").unwrap().parse().unwrap();
        assert!(size >= 1 << 20);
        assert_eq!(default("max_open_filez"), None);
    }
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "nothing is left behind"
    );
}

/// Random operations on `fixture`'s engine and on the model must be seen alike.
pub mod model {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Operation {
        Put(Vec<u8>, Vec<u8>),
        Delete(Vec<u8>),
        Batch(Vec<(Vec<u8>, Option<Vec<u8>>)>),
        Get(Vec<u8>),
        Seek(Vec<u8>),
        Drain,
        Reopen,
    }

    /// Few keys, so that they meet again; bytes from the ends of their range.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0, 1, b'a', 0xfe, 0xff]), 1..4)
    }

    fn value() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            4 => prop::collection::vec(any::<u8>(), 0..40),
            1 => any::<u64>().prop_map(|seed| noise(seed, 20_000)),
        ]
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            8 => (key(), value()).prop_map(|(key, value)| Operation::Put(key, value)),
            3 => key().prop_map(Operation::Delete),
            2 => prop::collection::vec((key(), prop::option::of(value())), 0..6)
                .prop_map(Operation::Batch),
            4 => key().prop_map(Operation::Get),
            2 => key().prop_map(Operation::Seek),
            1 => Just(Operation::Drain),
            1 => Just(Operation::Reopen),
        ]
    }

    fn apply(session: &mut dyn Session, operation: &Operation) -> Vec<(Vec<u8>, Vec<u8>)> {
        match operation {
            Operation::Put(key, value) => session.put(key, value).unwrap(),
            Operation::Delete(key) => session.delete(key).unwrap(),
            Operation::Batch(entries) => {
                let batch: Vec<_> = entries
                    .iter()
                    .map(|(key, value)| match value {
                        Some(value) => BatchEntry::Put(key, value),
                        None => BatchEntry::Delete(key),
                    })
                    .collect();
                session.write(&batch).unwrap();
            }
            Operation::Get(key) => {
                return get(session, key)
                    .map(|value| (key.clone(), value))
                    .into_iter()
                    .collect();
            }
            Operation::Seek(key) => {
                let mut cursor = session.cursor().unwrap();
                cursor.seek(key);
                return rest(&mut *cursor);
            }
            Operation::Drain | Operation::Reopen => {}
        }
        Vec::new()
    }

    pub fn agrees(fixture: &Fixture) {
        let operations = prop::collection::vec(operation(), 1..120);
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            cases: 24,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        runner
            .run(&operations, |operations| replay(fixture, &operations))
            .unwrap();
    }

    fn replay(fixture: &Fixture, operations: &[Operation]) -> Result<(), TestCaseError> {
        let model = memory();
        let (place, model) = (Place::new(fixture), Place::new(&model));
        let (mut database, expected) = (place.small(), model.open());
        let mut reference = expected.session();
        for operation in operations {
            match operation {
                Operation::Drain => database.drain(&|| false).unwrap(),
                Operation::Reopen => {
                    drop(database);
                    database = place.small();
                }
                _ => {}
            }
            let seen = apply(&mut *database.session(), operation);
            prop_assert_eq!(seen, apply(&mut *reference, operation), "{:?}", operation);
        }
        prop_assert_eq!(all(&mut *database.session()), all(&mut *reference));
        Ok(())
    }
}

/// Runs the whole suite over the engine of the fixture that an expression may give.
macro_rules! conformance {
    ($($name:ident => $fixture:expr;)*) => { $( mod $name {
        $crate::conformance!(@tests $fixture;
            a_value_that_was_put_is_found,
            the_last_write_wins,
            any_bytes_are_keys_and_values,
            a_scan_is_in_order_of_bytes,
            a_seek_finds_the_first_entry_at_or_after_the_key,
            a_cursor_sees_the_database_as_it_was,
            a_batch_is_applied_in_order,
            a_batch_is_seen_whole_or_not_at_all,
            data_is_kept_when_reopened,
            only_a_database_that_is_there_is_reopened,
            a_durability_that_cannot_be_had_is_refused,
            an_unknown_option_is_named_with_the_nearest,
            a_bad_value_is_named_with_what_is_allowed,
            drain_leaves_nothing_pending_and_the_work_is_recorded,
            levels_are_those_of_the_tables,
            a_drain_ends_soon_after_it_is_cancelled,
            threads_write_and_read_at_once,
            a_database_is_open_once,
            a_directory_that_cannot_be_made_is_an_error,
            identity_and_properties_are_told,
            a_probe_finds_compressions_and_options,
        );
        #[test]
        fn random_operations_agree_with_the_model() {
            if let Some(fixture) = $fixture {
                $crate::suite::model::agrees(&fixture);
            }
        }
    } )* };
    (@tests $fixture:expr; $($case:ident,)*) => { $(
        #[test]
        fn $case() {
            if let Some(fixture) = $fixture {
                $crate::suite::$case(&fixture);
            }
        }
    )* };
}
pub(crate) use conformance;
