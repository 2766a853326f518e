//! Engines that lie: `tests/lying/lying_engine.c` in front of a real engine. Whatever loses or
//! falsifies data ends the run as `data_loss`, before the read-back and while it is measured.

mod conversation;

use std::path::Path;
use std::process::Command;

use conversation::{
    failure, last_phase, load, measure, phases, verified, workload, Conversation, Target,
};
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
    tell(target, &format!("{lie} opens=1-1"), &all, json!({}))
}

/// What a run of `phases` says while `lie` is told; `more` replaces fields of the request.
fn tell(target: &Target, lie: &str, phases: &[Value], more: Value) -> Vec<Message> {
    let environment = [("LSMTUNE_LIE", lie.to_owned())];
    Conversation::start_in(target, workload(NUM, json!(phases)), more, &environment).messages()
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
    let read = phases(messages).into_iter();
    read.filter_map(|phase| phase.reads_checked).collect()
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
    let rewritten = json!([times("overwrite", NUM), times("readrandom", NUM)]);
    let updates = json!([mix(json!({"get": 0.5, "update": 0.5}), 1)]);
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
        // It ends too early: after some entries, after none, in the middle of everything.
        ("short_scan:5", &seeks, "left out"),
        ("short_scan:0", &seeks, "left out"),
        ("short_scan:5", &scans, "left out"),
        ("short_scan:0", &scan, "ended after 0"),
        ("short_scan:10000", &scan, "ended after 10000"),
        // Whoever answers without looking is fast.
        ("constant:1", &reads, "a value that is not the one written"),
        (
            "wrong_after:15000",
            &reads,
            "a value that is not the one written",
        ),
        ("stale:3", &rewritten, "a value that is not the one written"),
        ("stale:3", &updates, "a value that is not the one written"),
    ];
    let (_folder, targets) = liars();
    for target in &targets {
        for (lie, phases, why) in &cases {
            eprintln!("{} {lie} {phases}", target.name);
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

#[test]
fn work_that_an_engine_puts_off_is_charged_to_the_phase_that_caused_it() {
    // A thousand writes, each of which is owed 100 microseconds: at least 0.1 s in all.
    let phases = [times("fillrandom", 1000)];
    let (_folder, targets) = liars();
    for target in &targets {
        for lie in ["defer_to_drain:100", "defer_to_close:100"] {
            let messages = tell(target, lie, &phases, json!({}));
            let phase = last_phase(&messages);
            assert!(phase.drain_s >= 0.1, "{} {lie}: {phase:?}", target.name);
            let whole_s = phase.elapsed_s + phase.drain_s;
            let sustained = phase.sustained_throughput_ops_s * whole_s / 1000.0;
            assert!((sustained - 1.0).abs() < 1e-9, "{sustained}");
            // The time of closing was charged, and neither its processor time nor its end.
            assert!(phase.cpu_us_per_operation.unwrap() >= 100.0, "{phase:?}");
            let lasted_us = phase.finished_unix_us - phase.started_unix_us;
            assert!(lasted_us >= 100_000, "{phase:?}");
        }
        let held = tell(target, "hold_flushes:1", &phases, json!({}));
        let (outcome, message) = failure(&held);
        assert_eq!(outcome, Outcome::Crashed, "{}: {message}", target.name);
        let told = "the engine was told to flush and did not";
        assert!(message.contains(told), "{}: {message}", target.name);
    }
}

#[test]
fn a_lie_told_only_when_the_database_is_opened_again_ends_the_run() {
    let (_folder, targets) = liars();
    for target in &targets {
        for lie in ["wrong_value:50 opens=2-2", "not_found:50 opens=2-2"] {
            let phases = [load(NUM), times("readrandom", 1000)];
            let (outcome, message) = failure(&tell(target, lie, &phases, json!({})));
            assert_eq!(
                outcome,
                Outcome::DataLoss,
                "{} {lie}: {message}",
                target.name
            );
        }
    }
}

#[test]
fn one_lost_key_is_found_where_it_is_sampled_and_each_seed_samples_other_keys() {
    let (_folder, targets) = liars();
    for target in &targets {
        // Of 20,000 keys the read-back looks up an eighth.
        let found = (1..=12).filter(|seed| {
            let phases = [times("filluniquerandom", NUM)];
            let messages = tell(target, "drop_key:17", &phases, json!({"seed": seed}));
            !matches!(messages.last(), Some(Message::Finished { .. }))
        });
        let found = found.count();
        assert!((1..=6).contains(&found), "{}: {found}", target.name);
    }
}
