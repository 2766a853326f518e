//! Random operations on an engine and on the model must have the same results.

use lsmtune_driver::engine::{BatchEntry, Session};
use proptest::prelude::*;

use super::fixtures::*;

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
    let (folder, model) = (DatabaseFolder::new(fixture), DatabaseFolder::new(&model));
    let (mut database, expected) = (folder.small(), model.open());
    let mut reference = expected.session();
    for operation in operations {
        match operation {
            Operation::Drain => drop(database.drain(&|| false).unwrap()),
            Operation::Reopen => {
                drop(database);
                database = folder.small();
            }
            _ => {}
        }
        let seen = apply(&mut *database.session(), operation);
        prop_assert_eq!(seen, apply(&mut *reference, operation), "{:?}", operation);
    }
    prop_assert_eq!(all(&mut *database.session()), all(&mut *reference));
    Ok(())
}
