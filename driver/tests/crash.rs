//! The crash test: a driver is killed in the middle of a load, and another says what is left.

mod conversation;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use conversation::{ask, failure, leveldb, load, replace, rocksdb, workload, Conversation, Target};
use lsmtune_driver::protocol::{Message, Outcome};
use serde_json::{json, Value};
use tempfile::TempDir;

const NUM: u64 = 4_000_000;

fn filling(operation: &str, durability: &str) -> Value {
    let mut load = load(NUM);
    load["operation"] = json!(operation);
    let mut workload = workload(NUM, json!([load]));
    workload["durability"] = json!(durability);
    workload
}

/// What a killed driver left behind.
struct Killed {
    folder: TempDir,
    acknowledged: u64,
    request: Value,
}

/// Kills a driver when it has reported more than `enough` operations of its load.
fn killed(target: &Target, workload: Value, options: Value, enough: u64) -> Killed {
    let more = json!({"interval_ms": 20, "seed": 3, "load_seed": 4, "options": options});
    let mut run = Conversation::start(target, workload.clone(), more);
    let mut acknowledged = 0;
    let lines = BufReader::new(run.child.stdout.take().unwrap()).lines();
    for line in lines {
        // The last line may be cut off where the driver was killed.
        let Ok(message) = serde_json::from_str::<Message>(&line.unwrap()) else {
            break;
        };
        match message {
            Message::Interval(interval) => acknowledged = interval.operations_total,
            Message::PhaseFinished { .. } => panic!("the load was over too soon"),
            _ => {}
        }
        if acknowledged > enough {
            run.child.kill().unwrap();
        }
    }
    run.child.wait().unwrap();
    let mut request = json!({
        "protocol_version": 4, "command": "check", "engine": {"name": target.name},
        "directory": run.folder.path().join("db"), "options": options, "workload": workload,
        "seed": 3, "load_seed": 4, "acknowledged": acknowledged,
    });
    if let Some(library) = &target.library {
        request["engine"]["library"] = json!(library);
    }
    Killed {
        folder: run.folder,
        acknowledged,
        request,
    }
}

impl Killed {
    fn check(&self, more: Value) -> Vec<Message> {
        let mut request = self.request.clone();
        replace(&mut request, &more);
        ask(&request)
    }
}

/// Keys checked, lost, wrong, beyond.
fn verified(messages: &[Message]) -> (u64, u64, u64, u64) {
    let found = messages.iter().find_map(|message| match message {
        Message::Verified {
            keys_checked,
            keys_lost,
            keys_wrong,
            keys_beyond,
            ..
        } => Some((*keys_checked, *keys_lost, *keys_wrong, keys_beyond.unwrap())),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("nothing was checked: {messages:?}"))
}

/// The log of a killed process is with the kernel: every write that returned must be there.
#[test]
fn what_was_acknowledged_survives_the_kill_where_there_is_a_log() {
    for target in [rocksdb(), leveldb()] {
        for (operation, durability, enough) in [
            ("filluniquerandom", "wal", 100_000),
            ("fillseq", "wal", 50_000),
            ("filluniquerandom", "sync", 20),
        ] {
            let options = json!({"write_buffer_size": "1048576"});
            let killed = killed(&target, filling(operation, durability), options, enough);
            let messages = killed.check(json!({}));
            let (checked, lost, wrong, _) = verified(&messages);
            assert_eq!(
                (checked, lost, wrong),
                (killed.acknowledged, 0, 0),
                "{} {operation} {durability}",
                target.name
            );
            assert!(checked > enough);
            assert!(matches!(messages.last(), Some(Message::Finished { .. })));
        }
    }
}

/// Without a log, what was in the memtable is gone; and a check that found nothing lost here
/// would find nothing anywhere.
#[test]
fn what_was_in_memory_only_is_said_to_be_lost() {
    // Room for the whole load: a memtable that is full would be written out before a late kill.
    let options = json!({"write_buffer_size": "1073741824"});
    let killed = killed(&rocksdb(), filling("fillseq", "none"), options, 5_000);
    let messages = killed.check(json!({}));
    let (checked, lost, wrong, beyond) = verified(&messages);
    let (outcome, message) = failure(&messages);
    assert_eq!(outcome, Outcome::DataLoss);
    assert!(lost > 0 && wrong == 0 && beyond == 0, "{messages:?}");
    assert_eq!(
        message,
        format!("{lost} of {checked} acknowledged keys lost, 0 keys wrong")
    );
}

/// A scan finds what nobody wrote: here all keys after the end of a load that says it is shorter.
#[test]
fn a_key_that_was_never_written_is_wrong() {
    for target in [rocksdb(), leveldb()] {
        let killed = killed(&target, filling("fillseq", "wal"), json!({}), 5_000);
        let (checked, lost, wrong, beyond) = verified(&killed.check(json!({})));
        assert_eq!((lost, wrong), (0, 0), "{}", target.name);
        let mut shorter = filling("fillseq", "wal");
        shorter["phases"][0]["operations_per_thread"] = json!(1000);
        let messages = killed.check(json!({"workload": shorter, "acknowledged": 1000}));
        let never = checked + beyond - 1000;
        assert_eq!(verified(&messages), (1000, 0, never, 0), "{}", target.name);
        assert_eq!(failure(&messages).0, Outcome::DataLoss);
    }
}

#[test]
fn keys_follow_from_their_number_and_their_seeds() {
    let killed = killed(
        &rocksdb(),
        filling("filluniquerandom", "wal"),
        json!({}),
        20_000,
    );
    // One that was acknowledged less is one beyond more.
    let (_, _, _, beyond) = verified(&killed.check(json!({})));
    let fewer = json!({"acknowledged": killed.acknowledged - 100});
    assert_eq!(verified(&killed.check(fewer)).3, beyond + 100);
    // All keys that were never written are lost.
    let all = killed.acknowledged + beyond;
    let more = json!({"acknowledged": all + 7});
    assert_eq!(verified(&killed.check(more)), (all + 7, 7, 0, 0));
    // With another load seed, keys are others.
    let (checked, lost, wrong, _) = verified(&killed.check(json!({"load_seed": 9})));
    assert!(
        lost + wrong > checked * 9 / 10,
        "{lost} and {wrong} of {checked}"
    );
    // A run whose first phase is measured follows its own seed.
    let mut measured = filling("filluniquerandom", "wal");
    measured["phases"][0]["kind"] = json!("measure");
    let (checked, lost, ..) = verified(&killed.check(json!({"workload": measured})));
    // Some of its keys were written, the more the later a busy machine killed the load.
    let due = checked as f64 * (NUM - all) as f64 / NUM as f64;
    assert!(lost as f64 > 0.9 * due, "{lost} of {checked}, {due} due");
}

#[test]
fn a_database_that_cannot_be_opened_any_more_is_told_in_the_engines_words() {
    for target in [rocksdb(), leveldb()] {
        let killed = killed(&target, filling("fillseq", "wal"), json!({}), 1_000);
        let directory: PathBuf = killed.folder.path().join("db");
        std::fs::write(directory.join("CURRENT"), "MANIFEST-999999\n").unwrap();
        let (outcome, message) = failure(&killed.check(json!({})));
        assert_eq!(outcome, Outcome::Crashed, "{message}");
        assert!(message.contains("MANIFEST-999999"), "{message}");
        std::fs::remove_file(directory.join("CURRENT")).unwrap();
        let (outcome, message) = failure(&killed.check(json!({})));
        assert_eq!(outcome, Outcome::Crashed, "{message}");
        assert!(message.contains("no file CURRENT"), "{message}");
    }
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let request = |change: &Value| {
        let mut workload = workload(1000, json!([load(1000)]));
        replace(&mut workload["phases"][0], change);
        json!({
            "protocol_version": 4, "command": "check", "engine": {"name": "memory"},
            "directory": folder.path(), "workload": workload, "seed": 1, "acknowledged": 10,
        })
    };
    for (field, change) in [
        (
            "workload.phases[0].operation",
            json!({"operation": "fillrandom"}),
        ),
        (
            "workload.phases[0].operation",
            json!({"operation": "readseq"}),
        ),
        ("workload.phases[0].threads", json!({"threads": 2})),
        (
            "workload.phases[0].operations_per_thread",
            json!({"operations_per_thread": 1001}),
        ),
        (
            "workload.phases[0].operations_per_thread",
            json!({"operations_per_thread": null, "duration_s": 1.0}),
        ),
        ("acknowledged", json!({"operations_per_thread": 9})),
        ("engine.name", json!({})),
    ] {
        let (outcome, message) = failure(&ask(&request(&change)));
        assert_eq!(outcome, Outcome::Invalid, "{message}");
        assert!(
            message.starts_with(&format!("{field}: found ")),
            "{message}"
        );
    }
    let mut several = request(&json!({}));
    several["workload"]["databases"] = json!(2);
    let (outcome, message) = failure(&ask(&several));
    assert_eq!(outcome, Outcome::Invalid, "{message}");
    assert!(
        message.starts_with("workload.databases: found "),
        "{message}"
    );
}
