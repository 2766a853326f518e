//! Runs on copies of a database that an earlier run made: they must see what a run that did
//! everything itself would have seen.

mod conversation;

use std::path::{Path, PathBuf};

use conversation::{
    engines, failure, finished, load, measure, replace, rocksdb, verified, workload, Conversation,
    Target,
};
use lsmtune_driver::protocol::{Message, Outcome, PhaseReply};
use serde_json::{json, Value};
use tempfile::TempDir;

const NUM: u64 = 20_000;

fn loaded() -> Vec<Value> {
    vec![load(NUM), json!({"name": "settle", "kind": "settle"})]
}

/// Keys that are drawn from twice the key space of the load, so that half of them are missing.
fn work() -> Vec<Value> {
    let size = json!({"operations_per_thread": NUM / 2, "threads": 2});
    vec![
        measure("readrandom", size.clone()),
        measure("deleterandom", size.clone()),
        measure("overwrite", size),
        measure("readuniquerandom", json!({"operations_per_thread": NUM})),
    ]
}

fn sparse(phases: Vec<Value>) -> Value {
    workload(2 * NUM, Value::Array(phases))
}

/// A database with its ledger, made once and copied for each run.
struct Golden {
    folder: TempDir,
}

impl Golden {
    fn make(target: &Target, phases: Vec<Value>, more: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let golden = Golden { folder };
        let mut request = json!({
            "directory": golden.folder.path().join("db"), "save_ledger": golden.ledger(),
            "load_seed": 5,
        });
        replace(&mut request, &more);
        let messages = Conversation::start(target, sparse(phases), request).messages();
        finished(&messages);
        golden
    }

    fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }

    /// What a run on a copy says; `more` replaces fields of its request.
    fn run(&self, target: &Target, phases: Vec<Value>, more: Value) -> Vec<Message> {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("db");
        copy(&self.folder.path().join("db"), &directory);
        let mut request = json!({
            "directory": directory, "load_seed": 5, "seed": 6,
            "prepared": {"ledger": self.ledger(), "phases": 2},
        });
        replace(&mut request, &more);
        Conversation::start(target, sparse(phases), request).messages()
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn phases(messages: &[Message]) -> Vec<(usize, PhaseReply)> {
    messages
        .iter()
        .filter_map(|message| match message {
            Message::PhaseFinished { index, phase } => Some((*index, (**phase).clone())),
            _ => None,
        })
        .collect()
}

#[test]
fn a_run_on_a_copy_sees_what_a_whole_run_sees() {
    for target in engines() {
        let all: Vec<Value> = loaded().into_iter().chain(work()).collect();
        let seeds = json!({"load_seed": 5, "seed": 6});
        let whole = Conversation::start(&target, sparse(all.clone()), seeds).messages();
        let golden = Golden::make(&target, loaded(), json!({"seed": 99}));
        let copied = golden.run(&target, all, json!({}));
        finished(&whole);
        finished(&copied);
        let (expected, seen) = (phases(&whole), phases(&copied));
        assert_eq!(seen.len(), work().len());
        for ((index, expected), (position, seen)) in expected[2..].iter().zip(&seen) {
            assert_eq!(index, position);
            assert_eq!(
                (seen.keys_found, seen.keys_missing, seen.user_bytes_written),
                (
                    expected.keys_found,
                    expected.keys_missing,
                    expected.user_bytes_written
                ),
                "{} {}",
                target.name,
                seen.name
            );
        }
        assert_eq!(verified(&copied), verified(&whole), "{}", target.name);
        assert!(verified(&copied).0 > 4096 / 4);
        // The estimate of live keys came with the ledger.
        let space = seen[0].1.space_amplification.unwrap();
        let expected = expected[2].1.space_amplification.unwrap();
        assert!((space / expected - 1.0).abs() < 0.2, "{space} {expected}");
        let started = copied.iter().find_map(|message| match message {
            Message::PhaseStarted { index, .. } => Some(*index),
            _ => None,
        });
        assert_eq!(started, Some(2));
    }
}

/// Where a later phase wrote larger values, all that had been loaded seemed to be wrong: the load did
/// not know of them.
#[test]
fn larger_values_of_a_later_phase_leave_those_of_the_load_as_they_are() {
    let all: Vec<Value> = loaded()
        .into_iter()
        .chain([
            measure("readrandom", json!({"operations_per_thread": NUM})),
            json!({
                "name": "larger", "kind": "measure", "operations": 100, "mix": {
                    "operations": {"put": 1.0}, "keys": {"distribution": "uniform"},
                    "records": NUM, "value_sizes": {"distribution": "constant", "size": 1000},
                },
            }),
        ])
        .collect();
    for target in engines() {
        let golden = Golden::make(&target, loaded(), json!({}));
        let messages = golden.run(&target, all.clone(), json!({}));
        finished(&messages);
        let (checked, lost, wrong) = verified(&messages);
        assert!(checked > 1000, "{checked}");
        assert_eq!((lost, wrong), (0, 0), "{}", target.name);
    }
}

#[test]
fn the_load_and_the_values_follow_their_own_seed() {
    let target = &rocksdb();
    let golden = Golden::make(target, loaded(), json!({"seed": 1}));
    let again = Golden::make(target, loaded(), json!({"seed": 2}));
    let other = Golden::make(target, loaded(), json!({"seed": 2, "load_seed": 6}));
    let read = |golden: &Golden| std::fs::read_to_string(golden.ledger()).unwrap();
    assert_eq!(read(&golden), read(&again));
    assert_ne!(read(&golden), read(&other));
    assert!(read(&golden).len() < 300_000, "{}", read(&golden).len());
}

/// Loads of 20,000 records, each of which several threads may share. The keys of the last one differ
/// after their first 16 bytes.
fn bulk_loads() -> [Value; 3] {
    let settle = json!({"name": "settle", "kind": "settle"});
    let insert = json!({
        "name": "load", "kind": "load", "operations": NUM,
        "mix": {"operations": {"insert": 1.0}, "records": 0, "keys": {"distribution": "uniform"}},
    });
    let hashed = |prefix: &str, key_bytes: usize| {
        let keys = json!({
            "format": "ycsb", "prefix": prefix, "zero_padding": 1, "order": "hashed",
        });
        let mut inserts = sparse(vec![insert.clone(), settle.clone()]);
        replace(&mut inserts, &json!({"keys": keys, "key_bytes": key_bytes}));
        inserts
    };
    let long = "a-prefix-of-many-bytes:";
    [
        sparse(loaded()),
        hashed("user", 24),
        hashed(long, long.len() + 20),
    ]
}

/// The ledger has the version of each key's value, and the run reads the keys back. With memtables
/// of 64 KiB most of the load is written in the order of its keys (RocksDB).
#[test]
fn a_bulk_load_writes_what_one_thread_writes() {
    for target in engines() {
        for workload in bulk_loads() {
            let ledger = |workload: &Value, bulk: Value| {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("ledger");
                let options = json!({"write_buffer_size": "65536"});
                let mut request = json!({"save_ledger": path, "options": options});
                replace(&mut request, &bulk);
                let messages = Conversation::start(&target, workload.clone(), request).messages();
                finished(&messages);
                assert_eq!(phases(&messages)[0].1.operations, NUM);
                assert!(verified(&messages).0 > 4096 / 4);
                std::fs::read_to_string(path).unwrap()
            };
            let alone = ledger(&workload, json!({}));
            // Threads that cannot share the keys evenly.
            let bulk = json!({"bulk_load": {"threads": 3, "hold_compactions": true}});
            assert!(ledger(&workload, bulk.clone()) == alone, "{}", target.name);
            // Those of the workload do not count: its run has as many, the load is not measured.
            let mut several = workload.clone();
            let size = json!({"threads": 2, "operations": NUM, "operations_per_thread": null});
            replace(&mut several["phases"][0], &size);
            assert!(ledger(&several, bulk) == alone, "{}", target.name);
        }
    }
}

/// Writers stop at four tables in level 0, so that without a wait a compaction has six of them at
/// most: two more memtables may be on their way. With it, the first one has two thirds of all, and
/// the others have four at least.
#[test]
fn compactions_that_waited_for_a_load_run_before_it_is_settled() {
    let target = &rocksdb();
    let settle = json!({"name": "settle", "kind": "settle"});
    let mut half = sparse(vec![load(NUM / 2), settle]);
    replace(&mut half, &json!({"value_bytes": 400}));
    let compacted = |hold: bool| {
        let request = json!({
            "bulk_load": {"threads": 1, "hold_compactions": hold},
            "options": {
                "write_buffer_size": "65536", "level0_slowdown_writes_trigger": "4",
                "level0_stop_writes_trigger": "4",
            },
        });
        let messages = Conversation::start(target, half.clone(), request).messages();
        finished(&messages);
        let tree = phases(&messages)[1].1.files_per_level.clone().unwrap();
        assert!(tree[0] < 4, "{tree:?}");
        let work = messages.iter().filter_map(|message| match message {
            Message::BackgroundWork { compactions, .. } => *compactions,
            _ => None,
        });
        work.sum::<u64>()
    };
    let (held, free) = (compacted(true), compacted(false));
    assert!(held < free, "{held} {free}");
}

/// Two thirds of a load are written without memtables and compactions, and the settled tree is that
/// of any load; where a compaction would leave other tables, it is written as any other.
#[test]
fn the_first_part_of_a_bulk_load_becomes_tables_of_the_last_level() {
    let target = &rocksdb();
    let mut loads = sparse(loaded());
    replace(&mut loads, &json!({"value_bytes": 400}));
    let loaded = |(name, value): (&str, &str), bulk: Value| {
        let mut request = json!({"options": {
            "write_buffer_size": "65536", "target_file_size_base": "65536",
            "max_bytes_for_level_base": "262144",
            "level_compaction_dynamic_level_bytes": "true", name: value,
        }});
        replace(&mut request, &bulk);
        let messages = Conversation::start(target, loads.clone(), request).messages();
        finished(&messages);
        let settled = &phases(&messages)[1].1;
        let flushed = messages.iter().filter_map(|message| match message {
            Message::BackgroundWork { flush_bytes, .. } => *flush_bytes,
            _ => None,
        });
        let tree = settled.bytes_per_level.clone().unwrap();
        let last = *tree.last().unwrap() as f64;
        (
            flushed.sum::<u64>() as f64,
            last,
            settled.files_per_level.clone().unwrap(),
        )
    };
    let bulk = json!({"bulk_load": {"threads": 2, "hold_compactions": true}});
    let sorted = ("optimize_filters_for_hits", "false");
    let (plain, plain_last, plain_files) = loaded(sorted, json!({}));
    let (flushed, last, files) = loaded(sorted, bulk.clone());
    assert!(
        (0.25..0.45).contains(&(flushed / plain)),
        "{flushed} {plain}"
    );
    assert!(
        (0.8..1.25).contains(&(last / plain_last)),
        "{last} {plain_last}"
    );
    let (all, plain_all) = (files.iter().sum::<u64>(), plain_files.iter().sum::<u64>());
    assert!(
        files[0] < 4 && all.abs_diff(plain_all) <= plain_all / 4,
        "{files:?} {plain_files:?}"
    );
    for other in [
        ("optimize_filters_for_hits", "true"),
        ("compression_per_level", "kNoCompression:kNoCompression"),
        ("compression_opts.max_dict_bytes", "4096"),
        ("db_write_buffer_size", "67108864"),
    ] {
        let (flushed, ..) = loaded(other, bulk.clone());
        assert!(flushed > 0.9 * plain, "{other:?}: {flushed} {plain}");
    }
}

#[test]
fn a_bulk_load_needs_a_thread() {
    let target = &rocksdb();
    for threads in [0, 65] {
        let request = json!({"bulk_load": {"threads": threads}});
        let (outcome, message) =
            failure(&Conversation::start(target, sparse(loaded()), request).messages());
        assert_eq!(outcome, Outcome::Invalid);
        let expected = format!("bulk_load.threads: found {threads}; allowed: 1 to 64");
        assert!(message.starts_with(&expected), "{message}");
    }
}

/// Dropped from the page cache and read again, the database is the same one.
#[test]
fn a_run_that_reads_its_pages_itself_ends_as_any_other() {
    for target in engines() {
        let golden = Golden::make(&target, loaded(), json!({}));
        let own = json!({"prepared": {"ledger": golden.ledger(), "phases": 2, "own_pages": true}});
        let all: Vec<Value> = loaded().into_iter().chain(work()).collect();
        let messages = golden.run(&target, all, own);
        finished(&messages);
        assert!(verified(&messages).1 == 0);
    }
}

/// Loaded keys that a copy lacks are noticed, although its run never wrote them.
#[test]
fn the_read_back_checks_what_the_earlier_run_wrote() {
    for target in engines() {
        let golden = Golden::make(&target, loaded(), json!({}));
        let fewer = json!([
            {"name": "load", "kind": "load", "operation": "fillseq", "operations_per_thread": 10},
            {"name": "settle", "kind": "settle"}]);
        let small = Golden::make(&target, fewer.as_array().unwrap().clone(), json!({}));
        // Reads would find it out earlier.
        let writes = measure("deleterandom", json!({"operations_per_thread": 1}));
        let all: Vec<Value> = loaded().into_iter().chain([writes]).collect();
        let mixed = json!({"prepared": {"ledger": golden.ledger(), "phases": 2}});
        let messages = small.run(&target, all, mixed);
        let (outcome, message) = failure(&messages);
        assert_eq!(outcome, Outcome::DataLoss, "{message}");
        assert!(verified(&messages).1 > 1000);
    }
}

#[test]
fn what_cannot_be_prepared_is_refused_in_one_line() {
    let [rocksdb, leveldb] = engines();
    let golden = Golden::make(&rocksdb, loaded(), json!({}));
    let all = || loaded().into_iter().chain(work()).collect::<Vec<_>>();
    let refused = |more: Value| {
        let (outcome, message) = failure(&golden.run(&rocksdb, all(), more));
        assert_eq!(outcome, Outcome::Invalid, "{message}");
        assert!(!message.contains('\n'), "{message}");
        message
    };
    let part = golden.folder.path().join("part");
    let text = std::fs::read_to_string(golden.ledger()).unwrap();
    std::fs::write(&part, &text[..text.len() / 2]).unwrap();
    let message = refused(json!({"prepared": {"ledger": part, "phases": 2}}));
    assert!(message.starts_with("prepared.ledger: found "), "{message}");
    assert!(message.contains("damaged or cut off"), "{message}");
    let message = refused(json!({"prepared": {"ledger": "/nowhere/ledger", "phases": 2}}));
    assert!(message.contains("No such file"), "{message}");
    let message = refused(json!({"prepared": {"ledger": golden.ledger(), "phases": 1}}));
    assert!(message.contains("prepared.phases: found 2"), "{message}");
    let message = refused(json!({"prepared": {"ledger": golden.ledger(), "phases": 7}}));
    assert!(
        message.starts_with("prepared.phases: found 7; allowed: 1 to 6"),
        "{message}"
    );
    let message = refused(json!({"load_seed": 4}));
    assert!(
        message.contains("load_seed: found 5 in the ledger, 4"),
        "{message}"
    );
    let message = refused(json!({"verify_keys": 100_000}));
    assert!(message.contains("verify_keys: "), "{message}");
    let mut longer = sparse(all());
    longer["value_bytes"] = json!(200);
    let message = refused(json!({"workload": longer}));
    assert!(
        message.contains("workload.value_bytes: found 100 in the ledger, 200"),
        "{message}"
    );
    // A folder with no database in it, and none at all.
    for target in [&rocksdb, &leveldb] {
        let empty = tempfile::tempdir().unwrap();
        for directory in [empty.path().to_owned(), empty.path().join("none")] {
            let messages = golden.run(target, all(), json!({"directory": directory}));
            assert_eq!(failure(&messages).0, Outcome::Invalid, "{messages:?}");
            assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
        }
    }
    for engine in ["memory", "noop"] {
        let target = Target::built_in(engine);
        let (outcome, message) = failure(&golden.run(&target, all(), json!({})));
        assert_eq!(outcome, Outcome::Invalid);
        assert!(
            message.starts_with(&format!("prepared: found {engine}; ")),
            "{message}"
        );
    }
}

#[test]
fn a_ledger_that_cannot_be_saved_fails_the_run() {
    let target = &rocksdb();
    let nowhere = json!({"save_ledger": "/nowhere/ledger"});
    let (outcome, message) =
        failure(&Conversation::start(target, sparse(loaded()), nowhere).messages());
    assert_eq!(outcome, Outcome::Invalid);
    assert!(
        message.starts_with("save_ledger: /nowhere/ledger: "),
        "{message}"
    );
}

/// The read-back opens the database once more, when it exists because the run made it.
#[test]
fn error_if_exists_is_about_the_first_opening() {
    for target in engines() {
        let options = json!({"options": {"error_if_exists": "true"}});
        finished(&Conversation::start(&target, sparse(loaded()), options.clone()).messages());
        let golden = Golden::make(&target, loaded(), options.clone());
        let all: Vec<Value> = loaded().into_iter().chain(work()).collect();
        finished(&golden.run(&target, all.clone(), options.clone()));
        let unprepared = json!({"options": {"error_if_exists": "true"}, "prepared": null});
        let (outcome, message) = failure(&golden.run(&target, all, unprepared));
        assert_eq!(outcome, Outcome::Invalid, "{message}");
    }
}
