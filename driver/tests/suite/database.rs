//! Opening, options, background work, threads, and what an engine says about itself.

use std::time::{Duration, Instant};

use lsmtune_driver::engine::{probe, Durability, EngineError, Options};

use super::fixtures::*;

pub fn data_is_kept_when_reopened(fixture: &Fixture) {
    for &durability in fixture.durabilities {
        for drained in [false, true] {
            let folder = DatabaseFolder::new(fixture);
            let open = || {
                fixture
                    .engine
                    .open(&folder.directory(), &Options::new(), durability)
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
    let folder = DatabaseFolder::new(fixture);
    let refusing: Vec<_> = fixture.refuses_existing.into_iter().collect();
    let options = named(&refusing);
    let reopen = || {
        let engine = &fixture.engine;
        engine.reopen(&folder.directory(), &options, Durability::Wal)
    };
    assert!(matches!(reopen(), Err(EngineError::Failed(_))));
    assert!(!folder.directory().exists());
    let database = folder.open_with(&refusing).unwrap();
    database.session().put(b"a", b"1").unwrap();
    drop(database);
    if !refusing.is_empty() {
        let refused = folder.open_with(&refusing).err();
        assert!(
            matches!(refused, Some(EngineError::Failed(_))),
            "{refused:?}"
        );
    }
    let database = reopen().unwrap();
    assert_eq!(all(&mut *database.session()).len(), 1);
    assert_eq!(database.options_not_taken(), []);
}

pub fn a_durability_that_cannot_be_had_is_refused(fixture: &Fixture) {
    for durability in [Durability::Sync, Durability::Wal, Durability::None] {
        let folder = DatabaseFolder::new(fixture);
        let opened = fixture
            .engine
            .open(&folder.directory(), &Options::new(), durability);
        assert_eq!(
            opened.is_ok(),
            fixture.durabilities.contains(&durability),
            "{durability:?}"
        );
        if let Err(error) = opened {
            assert!(error.to_string().contains("durability"), "{error}");
            assert!(!folder.directory().exists());
        }
    }
}

pub fn an_unknown_option_is_named_with_the_nearest(fixture: &Fixture) {
    let folder = DatabaseFolder::new(fixture);
    for (mistyped, meant) in fixture.mistyped {
        match folder.open_with(&[(mistyped, "1")]) {
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
    match folder.open_with(&[("zzz_qqq_xxx", "1")]) {
        Err(EngineError::UnknownOption { name, nearest }) => {
            assert_eq!(name, "zzz_qqq_xxx");
            assert!(nearest.is_empty(), "{nearest:?}");
        }
        other => panic!("{:?}", other.err()),
    }
    assert!(
        !folder.directory().exists(),
        "nothing is made for a request that is refused"
    );
    folder.assert_clean();
}

pub fn a_bad_value_is_named_with_what_is_allowed(fixture: &Fixture) {
    let folder = DatabaseFolder::new(fixture);
    for (option, value) in fixture.bad_values {
        // A good option beside it must not be blamed.
        let mut options = vec![(*option, *value)];
        options.extend(fixture.small_memtable.filter(|(name, _)| name != option));
        match folder.open_with(&options) {
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
        !folder.directory().exists(),
        "nothing is made for a request that is refused"
    );
    folder.assert_clean();
}

pub fn drain_leaves_nothing_pending_and_the_work_is_recorded(fixture: &Fixture) {
    let folder = DatabaseFolder::new(fixture);
    let database = folder.small();
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
    let work = fixture
        .engine
        .background_work(&folder.directory(), from, to);
    if !fixture.tells_work {
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
        .background_work(&folder.directory(), to, later);
    assert_eq!(after.flush_bytes, Some(0), "{after:?}");
    assert_eq!(after.compactions, Some(0), "{after:?}");
    let before = fixture
        .engine
        .background_work(&folder.directory(), from - 2, from);
    assert!(
        before.flushes.is_none_or(|flushes| flushes == 0),
        "{before:?}"
    );
    let nowhere = fixture
        .engine
        .background_work(&folder.directory().join("none"), from, to);
    assert_eq!(nowhere, Default::default());
}

pub fn levels_are_those_of_the_tables(fixture: &Fixture) {
    let folder = DatabaseFolder::new(fixture);
    let database = folder.small();
    if !fixture.tells_work {
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
    let tables: Vec<u64> = std::fs::read_dir(folder.directory())
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
    // On a busy machine somebody else may have the processors for a while, but not each time.
    let in_time = |_: i32| cancelled_drain(fixture) < Duration::from_millis(200);
    assert!(!fixture.persistent || (0..50).any(in_time));
}

fn cancelled_drain(fixture: &Fixture) -> Duration {
    let folder = DatabaseFolder::new(fixture);
    let database = folder.small();
    let mut session = database.session();
    for number in 0..30_000_u64 {
        session.put(&noise(number, 8), &noise(number, 200)).unwrap();
    }
    drop(session);
    let began = Instant::now();
    let result = database.drain(&|| true);
    let took = began.elapsed();
    assert!(
        matches!(result, Ok(_) | Err(EngineError::Cancelled)),
        "{result:?}"
    );
    drop(database);
    let database = folder.small();
    assert_eq!(all(&mut *database.session()).len(), 30_000);
    took
}

pub fn threads_write_and_read_at_once(fixture: &Fixture) {
    const THREADS: u32 = 4;
    const KEYS: u32 = 1000;
    let folder = DatabaseFolder::new(fixture);
    let database = folder.small();
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
    let folder = DatabaseFolder::new(fixture);
    let first = folder.open();
    assert!(matches!(folder.open_with(&[]), Err(EngineError::Failed(_))));
    drop(first);
    folder.open();
    folder.assert_clean();
}

pub fn a_directory_that_cannot_be_made_is_an_error(fixture: &Fixture) {
    if !fixture.persistent {
        return;
    }
    let folder = DatabaseFolder::new(fixture);
    let file = folder.folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for directory in [file.clone(), file.join("db")] {
        let error = fixture
            .engine
            .open(&directory, &Options::new(), Durability::Wal)
            .err();
        let Some(EngineError::Failed(message)) = error else {
            panic!("{error:?}");
        };
        assert!(message.contains(directory.to_str().unwrap()), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"");
}

pub fn identity_and_properties_are_told(fixture: &Fixture) {
    let folder = DatabaseFolder::new(fixture);
    let database = folder.open();
    let identity = database.identity();
    let version = identity.version.unwrap();
    assert!(
        version.starts_with(|digit: char| digit.is_ascii_digit()),
        "{version}"
    );
    assert_eq!(identity.library.is_some(), fixture.persistent);
    assert_eq!(database.property("nosuch.property"), None);
    assert_eq!(database.property("a\0b"), None);
    if fixture.tells_work {
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
    let opened = DatabaseFolder::new(fixture).open().identity();
    assert_eq!(probe.identity, opened);
    if fixture.tells_work {
        assert!(probe.compressions.contains(&"none".to_owned()));
        assert!(
            probe.compressions.contains(&"snappy".to_owned()),
            "{:?}",
            probe.compressions
        );
    }
    if let Some((option, _)) = fixture.small_memtable {
        let default = |name: &str| {
            let found = probe.options.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        let size: u64 = default(option).unwrap().parse().unwrap();
        assert!(size >= 1 << 20);
        assert_eq!(default("max_open_filez"), None);
    }
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "nothing is left behind"
    );
}
