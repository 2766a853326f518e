//! Puts, gets, deletes, scans and batches.

use std::collections::BTreeMap;

use lsmtune_driver::engine::{BatchEntry, Durability, Options};

use super::fixtures::*;

pub fn a_value_that_was_put_is_found(fixture: &Fixture) {
    let folder = DatabaseFolder::new(fixture);
    let database = folder.open();
    let mut session = database.session();
    session.put(b"a", b"1").unwrap();
    assert_eq!(get(&mut *session, b"a").as_deref(), Some(&b"1"[..]));
    assert_eq!(get(&mut *session, b"b"), None);
    assert_eq!(get(&mut *session, b""), None);
    assert_eq!(get(&mut *session, b"aa"), None);
}

pub fn the_last_write_wins(fixture: &Fixture) {
    let folder = DatabaseFolder::new(fixture);
    let database = folder.open();
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
    let folder = DatabaseFolder::new(fixture);
    let database = folder.open();
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

/// RocksDB from 10.9 on copies values of up to 1024 bytes; a session that meets a larger one pins
/// values from then on.
pub fn values_of_any_size_are_read_whole_in_any_order(fixture: &Fixture) {
    let sizes = [0, 1, 1023, 1024, 1025, 2048, 100_000];
    let key = |bytes: usize| format!("key of {bytes:06} bytes").into_bytes();
    let families = fixture.engine.with_column_families(3);
    for engine in [Some(&fixture.engine), families.as_ref()]
        .into_iter()
        .flatten()
    {
        let folder = tempfile::tempdir().unwrap();
        let (directory, options) = (folder.path().join("db"), Options::new());
        let database = engine.open(&directory, &options, Durability::Wal).unwrap();
        for bytes in sizes {
            let mut session = database.session();
            session
                .put(&key(bytes), &noise(bytes as u64, bytes))
                .unwrap();
        }
        for first in sizes {
            let mut session = database.session();
            for bytes in [first].into_iter().chain(sizes) {
                let found = get(&mut *session, &key(bytes));
                assert!(
                    found == Some(noise(bytes as u64, bytes)),
                    "{bytes} after {first}"
                );
                assert_eq!(get(&mut *session, b"absent"), None);
            }
        }
    }
}

pub fn a_scan_is_in_order_of_bytes(fixture: &Fixture) {
    let folder = DatabaseFolder::new(fixture);
    let database = folder.small();
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
    let folder = DatabaseFolder::new(fixture);
    let database = folder.open();
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
    let folder = DatabaseFolder::new(fixture);
    let database = folder.open();
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
    let folder = DatabaseFolder::new(fixture);
    let database = folder.open();
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
    let folder = DatabaseFolder::new(fixture);
    let database = folder.open();
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
