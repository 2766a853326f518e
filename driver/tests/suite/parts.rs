//! Several databases and column families as one store, on every engine that can have them.

use std::collections::BTreeSet;
use std::path::Path;

use super::{all, get, leveldb, memory, named, rocksdb};
use lsmtune_driver::engine::{arrange, Database, Durability, Engine, Options};

const ENTRIES: u64 = 3000;

/// An engine with `databases` databases of `families` column families; `None` where it is not
/// installed.
fn engine(name: &str, databases: usize, families: usize) -> Option<Box<dyn Engine>> {
    let fixture = match name {
        "rocksdb" => rocksdb()?,
        "leveldb" => leveldb()?,
        _ => memory(),
    };
    Some(arrange(fixture.engine, databases, families).expect("the engine can be arranged so"))
}

const ARRANGED: [(&str, usize, usize); 6] = [
    ("memory", 3, 1),
    ("leveldb", 3, 1),
    ("rocksdb", 3, 1),
    ("rocksdb", 1, 4),
    ("rocksdb", 2, 3),
    ("rocksdb", 1, 1),
];

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn filled(engine: &dyn Engine, directory: &Path, options: &Options) -> Box<dyn Database> {
    let database = engine.open(directory, options, Durability::Wal).unwrap();
    let mut session = database.session();
    for number in 0..ENTRIES {
        session.put(&key(number), &[number as u8; 200]).unwrap();
    }
    drop(session);
    database
}

#[test]
fn every_key_is_found_scanned_once_deleted_and_kept() {
    for (name, databases, families) in ARRANGED {
        let Some(engine) = engine(name, databases, families) else {
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        let (directory, options) = (folder.path().join("db"), Options::new());
        let database = filled(&*engine, &directory, &options);
        let mut session = database.session();
        for number in (0..ENTRIES).step_by(3) {
            session.delete(&key(number)).unwrap();
        }
        drop(session);
        database.drain(&|| false).unwrap();
        drop(database);
        let database = engine
            .reopen(&directory, &options, Durability::Wal)
            .unwrap();
        let mut session = database.session();
        for number in 0..ENTRIES {
            let expected = (number % 3 > 0).then(|| vec![number as u8; 200]);
            assert_eq!(
                get(&mut *session, &key(number)),
                expected,
                "{name} {number}"
            );
        }
        let seen = all(&mut *session);
        let keys: BTreeSet<_> = seen.iter().map(|(key, _)| key.clone()).collect();
        assert_eq!(seen.len() as u64, ENTRIES - ENTRIES / 3, "{name}");
        assert_eq!(keys.len(), seen.len(), "{name}: a key comes up twice");
    }
}

#[test]
fn a_seek_stays_in_the_part_of_its_key() {
    for (name, databases, families) in ARRANGED {
        let Some(engine) = engine(name, databases, families) else {
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        let database = filled(&*engine, &folder.path().join("db"), &Options::new());
        let mut session = database.session();
        let mut cursor = session.cursor().unwrap();
        let mut steps = 0_u64;
        cursor.seek(&key(ENTRIES / 2));
        assert_eq!(cursor.key(), key(ENTRIES / 2), "{name}");
        while cursor.valid() {
            steps += 1;
            cursor.next();
        }
        cursor.status().unwrap();
        let fair = ENTRIES / 2 / (databases * families) as u64;
        assert!(
            steps.abs_diff(fair) < fair / 4 + 2,
            "{name}: {steps} of {fair}"
        );
    }
}

#[test]
fn a_drain_reaches_every_part_and_its_work_is_counted() {
    for (name, databases, families) in ARRANGED {
        let Some(engine) = engine(name, databases, families).filter(|e| e.keeps_files()) else {
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("db");
        let database = filled(&*engine, &directory, &Options::new());
        database.drain(&|| false).unwrap();
        let levels = database.levels().expect("the engine has levels");
        let files: u64 = levels.iter().map(|level| level.files).sum();
        let parts = (databases * families) as u64;
        assert!(files >= parts, "{name}: {files} tables of {parts} parts");
        drop(database);
        let work = engine.background_work(&directory, 0, u64::MAX);
        if let Some(flushes) = work.flushes {
            assert!(
                flushes >= parts,
                "{name}: {flushes} flushes of {parts} parts"
            );
        }
    }
}

#[test]
fn leveldb_has_no_column_families() {
    if let Some(fixture) = leveldb() {
        assert!(arrange(fixture.engine, 1, 2).is_none());
    }
    assert!(arrange(memory().engine, 2, 2).is_none());
}

#[test]
fn the_last_merge_operand_is_the_value() {
    for families in [1, 3] {
        let Some(engine) = engine("rocksdb", 1, families) else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let options = named(&[("merge_operator", "put")]);
        let directory = folder.path().join("db");
        let database = engine.open(&directory, &options, Durability::Wal).unwrap();
        let mut session = database.session();
        session.put(b"a", b"1").unwrap();
        session.merge(b"a", b"22").unwrap();
        session.merge(b"b", b"333").unwrap();
        assert_eq!(get(&mut *session, b"a").as_deref(), Some(&b"22"[..]));
        assert_eq!(get(&mut *session, b"b").as_deref(), Some(&b"333"[..]));
    }
    let database = memory()
        .engine
        .open(Path::new("m"), &Options::new(), Durability::Wal)
        .unwrap();
    let refused = database.session().merge(b"a", b"1").unwrap_err();
    assert!(refused.to_string().contains("no merges"), "{refused}");
}
