//! Engines that lie: `tests/lying/lying_engine.c` in front of a real engine. Whatever loses or
//! falsifies data ends the run as `data_loss`, before the read-back and while it is measured.

mod conversation;

use std::path::Path;
use std::process::Command;

use conversation::{failure, load, measure, verified, workload, Conversation, Target};
use lsmtune_driver::protocol::{Message, Outcome};
use serde_json::{json, Value};
use tempfile::TempDir;

const NUM: u64 = 20_000;

/// The liar in front of the library that the environment names, in `folder`.
fn liar(engine: &'static str, variable: &str, folder: &Path) -> Target {
    let real = Target::library(engine, variable).library.unwrap();
    let library = folder.join(format!("{engine}.so"));
    // The loader looks for the engine by the name that it gives itself.
    for name in [
        format!("lib{engine}.so.1"),
        real.file_name().unwrap().to_str().unwrap().into(),
    ] {
        drop(std::os::unix::fs::symlink(&real, folder.join(name)));
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lying/lying_engine.c");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", &format!("-DENGINE={engine}")])
        .arg(source)
        .arg("-o")
        .arg(&library)
        .arg("-Wl,--no-as-needed")
        .arg(&real)
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .status()
        .expect("a C compiler: run `make setup`");
    assert!(status.success());
    Target {
        name: engine,
        library: Some(library),
    }
}

fn liars() -> (TempDir, Vec<Target>) {
    let folder = tempfile::tempdir().unwrap();
    let leveldb = liar("leveldb", "LSMTUNE_TEST_LEVELDB", folder.path());
    let rocksdb = liar("rocksdb", "LSMTUNE_TEST_ROCKSDB", folder.path());
    (folder, vec![leveldb, rocksdb])
}

/// What a run of `phases` on a liar says, after a load of all keys.
fn run(target: &Target, lie: &str, phases: &Value) -> Vec<Message> {
    let mut all = vec![load(NUM), json!({"name": "settle", "kind": "settle"})];
    all.extend(phases.as_array().unwrap().iter().cloned());
    // The read-back, which opens the database once more, hears the truth.
    let environment = [
        ("LSMTUNE_LIE", lie.to_owned()),
        ("LSMTUNE_LIE_UNTIL", "1".to_owned()),
    ];
    Conversation::start_in(target, workload(NUM, json!(all)), json!({}), &environment).messages()
}

fn times(operation: &str, operations: u64) -> Value {
    measure(operation, json!({"operations_per_thread": operations}))
}

fn mix(operations: Value, threads: usize) -> Value {
    json!({
        "name": "mix", "kind": "measure", "operations_per_thread": NUM, "threads": threads,
        "mix": {"operations": operations, "keys": {"distribution": "uniform"}, "records": NUM,
                "scan_lengths": {"distribution": "constant", "size": 20}},
    })
}

fn checked(messages: &[Message]) -> Vec<u64> {
    let phases = messages.iter().filter_map(|message| match message {
        Message::PhaseFinished { phase, .. } => phase.reads_checked,
        _ => None,
    });
    phases.collect()
}

#[test]
fn a_lie_told_while_reads_are_measured_ends_the_run() {
    let reads = json!([times("readrandom", NUM)]);
    let scan = json!([times("readseq", NUM)]);
    let seeks = json!([measure(
        "seekrandom",
        json!({"operations_per_thread": NUM, "seek_nexts": 20})
    )]);
    let scans = json!([mix(json!({"scan": 1.0}), 2)]);
    let cases = [
        ("drop_puts:50", &reads, "and a read did not find it"),
        ("lose_tail:18000", &reads, "and a read did not find it"),
        ("not_found:50", &reads, "and a read did not find it"),
        (
            "neighbour:50",
            &reads,
            "a value that is not the one written",
        ),
        (
            "wrong_value:50",
            &reads,
            "a value that is not the one written",
        ),
        (
            "wrong_length:50",
            &reads,
            "a value that is not the one written",
        ),
        ("skip_in_scan:50", &scan, "left out"),
        (
            "wrong_in_scan:50",
            &scan,
            "a value that is not the one written",
        ),
        ("skip_in_scan:50", &seeks, "left out"),
        (
            "wrong_in_scan:50",
            &scans,
            "a value that is not the one written",
        ),
        ("drop_puts:50", &scans, "left out"),
    ];
    let (_folder, targets) = liars();
    for target in &targets {
        for (lie, phases, why) in &cases {
            let messages = run(target, lie, phases);
            let (outcome, message) = failure(&messages);
            assert_eq!(
                outcome,
                Outcome::DataLoss,
                "{} {lie}: {message}",
                target.name
            );
            assert!(message.contains(why), "{} {lie}: {message}", target.name);
        }
    }
}

#[test]
fn a_lie_about_what_a_measured_phase_writes_ends_the_run() {
    let all =
        json!({"get": 0.5, "put": 0.2, "update": 0.1, "read_modify_write": 0.1, "delete": 0.1});
    let deletes = json!([times("deleteuniquerandom", 5000), times("readrandom", NUM)]);
    let (_folder, targets) = liars();
    for target in &targets {
        for (lie, phases) in [
            ("forget_deletes:20", &deletes),
            ("drop_puts:20", &json!([mix(all.clone(), 1)])),
            ("wrong_value:50", &json!([mix(all.clone(), 3)])),
            ("neighbour:50", &json!([mix(all.clone(), 3)])),
        ] {
            let (outcome, message) = failure(&run(target, lie, phases));
            assert_eq!(
                outcome,
                Outcome::DataLoss,
                "{} {lie}: {message}",
                target.name
            );
        }
        let (outcome, message) = failure(&run(
            target,
            "fail_after:25000",
            &json!([mix(all.clone(), 3)]),
        ));
        assert_eq!(outcome, Outcome::Crashed, "{message}");
    }
}

#[test]
fn an_engine_that_tells_the_truth_passes_and_one_read_in_64_is_checked() {
    let all = json!({"get": 0.4, "put": 0.1, "insert": 0.1, "update": 0.1, "read_modify_write": 0.1,
                     "scan": 0.1, "delete": 0.1});
    let phases = json!([
        times("readrandom", NUM),
        times("readmissing", 1000),
        times("readseq", NUM),
        measure(
            "seekrandom",
            json!({"operations_per_thread": 1000, "seek_nexts": 20})
        ),
        measure(
            "readwhilewriting",
            json!({"operations_per_thread": NUM, "threads": 2})
        ),
        mix(all, 3),
        times("deleterandom", NUM),
        times("readrandom", NUM),
        times("fillrandom", NUM),
        times("readrandom", NUM),
    ]);
    let (_folder, targets) = liars();
    for target in &targets {
        let messages = run(target, "none:1", &phases);
        assert!(
            matches!(messages.last(), Some(Message::Finished { .. })),
            "{:?}",
            messages.last()
        );
        assert_eq!(verified(&messages).1, 0);
        let checked = checked(&messages);
        assert_eq!(checked.len(), 8);
        assert!((200..=400).contains(&checked[0]), "{checked:?}");
        assert!(checked.iter().all(|reads| *reads > 0), "{checked:?}");
    }
}
