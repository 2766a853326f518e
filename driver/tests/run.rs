//! The driver as its users meet it: the binary, one request in, lines out. On the built-in engines,
//! so that no library is needed; `tests/engine_runs.rs` does the same on real ones.

mod conversation;

use conversation::{
    cancel_in_time, failure, in_time, intervals, last_phase, load, measure, phases, replace,
    run_on, verified, workload, Conversation, Target,
};
use lsmtune_driver::protocol::{Message, Outcome};
use rustix::process::{kill_process, Pid, Signal};
use serde_json::{json, Value};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const NUM: u64 = 10_000;

fn run(engine: &'static str, phases: Value) -> Vec<Message> {
    run_on(&Target::built_in(engine), workload(NUM, phases), json!({}))
}

fn start(engine: &'static str, workload: Value, more: Value) -> Conversation {
    Conversation::start(&Target::built_in(engine), workload, more)
}

#[test]
fn every_operation_runs_and_counts_what_it_did() {
    let reads = [
        ("readrandom", 10_000, Some((10_000, 0)), "get"),
        ("readuniquerandom", 10_000, Some((10_000, 0)), "get"),
        ("readhot", 10_000, Some((10_000, 0)), "get"),
        ("readmissing", 10_000, Some((0, 10_000)), "get"),
        ("seekrandom", 10_000, Some((10_000, 0)), "seek"),
        ("readseq", 10_000, Some((10_000, 0)), "next"),
        ("readwhilewriting", 10_000, Some((10_000, 0)), "get"),
        ("overwrite", 10_000, None, "put"),
        ("deleterandom", 10_000, None, "delete"),
        ("deleteuniquerandom", 10_000, None, "delete"),
        ("fillseq", 10_000, None, "put"),
        ("fillrandom", 10_000, None, "put"),
    ];
    for (operation, operations, keys, kind) in reads {
        let size = json!({"operations_per_thread": operations});
        let messages = run("memory", json!([load(NUM), measure(operation, size)]));
        let phase = last_phase(&messages);
        assert_eq!(phase.operations, operations, "{operation}");
        assert_eq!(
            phase.keys_found.zip(phase.keys_missing),
            keys,
            "{operation}"
        );
        assert_eq!(phase.latencies[kind].count, operations, "{operation}");
        assert_eq!(
            phase.latency.latency_us_p99,
            Some(phase.latencies[kind].statistics.latency_us_p99)
        );
        assert!(phase.throughput_ops_s > 0.0 && !phase.cut_short);
        assert!(
            matches!(messages.last(), Some(Message::Finished { .. })),
            "{operation}"
        );
    }
}

/// Each of the phases meets every key once, in an order of its own: after deleting half of them,
/// exactly the other half is found.
#[test]
fn unique_orders_meet_every_key_once_and_differ_between_phases() {
    let once = |operation: &str, share: u64, threads: u64| {
        let size = json!({"operations_per_thread": NUM / share / threads, "threads": threads});
        measure(operation, size)
    };
    let halves = json!([
        load(NUM),
        once("deleteuniquerandom", 2, 1),
        once("readuniquerandom", 1, 2),
        once("readuniquerandom", 2, 1)
    ]);
    let messages = run("memory", halves);
    let found: Vec<_> = phases(&messages)
        .iter()
        .filter_map(|phase| phase.keys_found.zip(phase.keys_missing))
        .collect();
    assert_eq!(found[0], (NUM / 2, NUM / 2));
    // The same order would find nothing at all, because it would read what was deleted first.
    assert!(
        (NUM / 5..NUM * 3 / 10).contains(&found[1].0),
        "{:?}",
        found[1]
    );
    let whole = json!([
        measure("filluniquerandom", json!({"operations_per_thread": NUM})),
        measure("readuniquerandom", json!({"operations_per_thread": NUM})),
        measure("deleteuniquerandom", json!({"operations_per_thread": NUM})),
        measure("readrandom", json!({"operations_per_thread": NUM})),
    ]);
    let messages = run("memory", whole);
    assert_eq!(last_phase(&messages).keys_found, Some(0));
    assert_eq!(verified(&messages).1, 0);
}

#[test]
fn operations_are_per_thread_as_in_db_bench() {
    let size = json!({"operations_per_thread": 3000, "threads": 2});
    let messages = run("memory", json!([load(NUM), measure("readrandom", size)]));
    assert_eq!(last_phase(&messages).operations, 6000);
}

#[test]
fn a_scan_ends_with_the_database_and_repeats_only_for_a_duration() {
    let long = measure("readseq", json!({"operations_per_thread": 25_000}));
    assert_eq!(
        last_phase(&run("memory", json!([load(NUM), long]))).operations,
        10_000
    );
    let timed = measure("readseq", json!({"duration_s": 0.2}));
    in_time(|| {
        let phases = json!([load(NUM), timed.clone()]);
        last_phase(&run("memory", phases)).operations > 10_000
    });
}

#[test]
fn the_companion_writes_without_being_counted_as_an_operation() {
    let timed = measure("readwhilewriting", json!({"duration_s": 0.2}));
    in_time(|| {
        let messages = run("memory", json!([load(NUM), timed.clone()]));
        let phase = last_phase(&messages);
        assert_eq!(phase.operations, phase.latencies["get"].count);
        // On a busy machine the phase may be over before its companion begins.
        let written = phase.latencies.get("put").map_or(0, |put| put.count);
        assert_eq!(phase.user_bytes_written, written * 116);
        written > 0
    });
}

#[test]
fn written_keys_are_read_back_at_least_a_thousand() {
    for operation in ["fillrandom", "deleterandom", "overwrite"] {
        let phase = measure(
            operation,
            json!({"operations_per_thread": 20_000, "threads": 2}),
        );
        let messages = run("memory", json!([load(NUM), phase]));
        let (checked, lost, wrong) = verified(&messages);
        assert!(checked >= 1000, "{operation}: {checked}");
        assert_eq!((lost, wrong), (0, 0), "{operation}");
    }
}

#[test]
fn the_same_seed_reads_the_same_and_another_seed_does_not() {
    let bytes_found = |seed: u64| {
        let mut sparse = workload(
            NUM,
            json!([
                measure("fillrandom", json!({"operations_per_thread": 5000})),
                measure("readrandom", json!({"operations_per_thread": 5000})),
            ]),
        );
        sparse["num"] = json!(20_000);
        let messages = start("memory", sparse, json!({"seed": seed})).messages();
        last_phase(&messages).keys_found.unwrap()
    };
    assert_eq!(bytes_found(7), bytes_found(7));
    assert_ne!(bytes_found(7), bytes_found(8));
}

#[test]
fn intervals_add_up_to_the_phase() {
    in_time(|| {
        let messages = run(
            "noop",
            json!([measure("fillrandom", json!({"duration_s": 0.3}))]),
        );
        let intervals = intervals(&messages);
        let total: u64 = intervals.iter().map(|interval| interval.operations).sum();
        assert_eq!(total, last_phase(&messages).operations);
        // Of 50 ms each, in 300 ms.
        intervals.len() >= 5
    });
}

/// A closed loop on this engine does millions of operations in half a second.
#[test]
fn a_paced_phase_never_exceeds_its_rate() {
    let size = json!({"duration_s": 0.5, "rate_ops_s": 2000.0, "threads": 2});
    let paced = measure("readrandom", size);
    in_time(|| {
        let messages = run("memory", json!([load(NUM), paced.clone()]));
        let operations = last_phase(&messages).operations;
        assert!(
            operations <= 1000,
            "{operations} in half a second at 2000/s"
        );
        operations > 0
    });
}

#[test]
fn a_cancel_ends_the_run_within_300_ms_and_keeps_the_phase() {
    let endless = workload(
        NUM,
        json!([measure("fillrandom", json!({"duration_s": 60.0}))]),
    );
    cancel_in_time(|| start("noop", endless.clone(), json!({})));
}

#[test]
fn the_driver_dies_with_its_tuner() {
    let endless = workload(
        NUM,
        json!([measure("fillrandom", json!({"duration_s": 600.0}))]),
    );
    let mut conversation = start("noop", endless, json!({}));
    conversation.wait_for_work();
    drop(conversation.child.stdin.take());
    // The phase itself would take ten minutes.
    let asked = Instant::now();
    let status = conversation.child.wait().unwrap();
    assert!(asked.elapsed() < Duration::from_secs(500));
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(9)
    );
}

#[test]
fn bad_requests_name_the_field_and_what_is_allowed() {
    let seconds = json!({"duration_s": 1.0});
    let cases = [
        ("workload.num", json!({"num": 0})),
        ("workload.key_bytes", json!({"key_bytes": 4})),
        (
            "workload.compression_ratio",
            json!({"compression_ratio": 1.5}),
        ),
        (
            "workload.phases[0].threads",
            json!({"phases": [{"name": "a", "kind": "measure", "operation": "fillseq", "duration_s": 1.0, "threads": 0}]}),
        ),
        (
            "workload.phases[0].duration_s",
            json!({"phases": [{"name": "a", "kind": "measure", "operation": "fillseq", "duration_s": -1.0}]}),
        ),
        (
            "workload.phases[0].operations_per_thread",
            json!({"phases": [{"name": "a", "kind": "measure", "operation": "fillseq"}]}),
        ),
        (
            "workload.phases[0].operation",
            json!({"phases": [{"name": "a", "kind": "measure", "duration_s": 1.0}]}),
        ),
        ("workload.phases", json!({"phases": []})),
    ];
    for (field, change) in cases {
        let mut workload = workload(NUM, json!([measure("fillrandom", seconds.clone())]));
        replace(&mut workload, &change);
        let messages = start("noop", workload, json!({})).messages();
        let (outcome, message) = failure(&messages);
        assert_eq!(outcome, Outcome::Invalid, "{field}");
        assert!(
            message.starts_with(&format!("{field}: found ")),
            "{message}"
        );
        assert!(message.contains("; allowed: "), "{message}");
    }
}

#[test]
fn a_folder_whose_parent_is_gone_is_not_made_again() {
    let any = workload(
        NUM,
        json!([measure("fillrandom", json!({"duration_s": 1.0}))]),
    );
    let folder = tempfile::tempdir().unwrap();
    let orphan = folder.path().join("absent/db");
    let messages = start("noop", any, json!({"directory": orphan})).messages();
    assert_eq!(failure(&messages).0, Outcome::Invalid);
    assert!(!orphan.parent().unwrap().exists());
}

/// The process stands still for several intervals. One step said so; the next one had lasted for
/// microseconds, so that its rate was 0 or absurd.
#[test]
fn no_step_is_shorter_than_half_an_interval_but_the_last() {
    let timed = workload(
        NUM,
        json!([measure("fillrandom", json!({"duration_s": 2.0}))]),
    );
    // The phase may be over before whoever stops it gets a processor.
    in_time(|| {
        let mut conversation = start("noop", timed.clone(), json!({}));
        conversation.wait_for_work();
        let pid = Pid::from_child(&conversation.child);
        kill_process(pid, Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        kill_process(pid, Signal::CONT).unwrap();
        let messages = conversation.messages();
        let steps = intervals(&messages).into_iter();
        let mut steps_s: Vec<f64> = steps.map(|step| step.interval_s).collect();
        let stopped = steps_s.iter().any(|step_s| *step_s >= 0.3);
        steps_s.pop();
        assert!(steps_s.iter().all(|step_s| *step_s > 0.024), "{steps_s:?}");
        stopped
    });
}

/// Says `bytes`, closes its input, and tells how the driver ended.
fn say(bytes: &[u8]) -> (Vec<Message>, Option<i32>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lsmtune-driver"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let messages = text.lines().map(|line| serde_json::from_str(line).unwrap());
    (messages.collect(), output.status.code())
}

#[test]
fn a_request_that_is_not_whole_is_invalid() {
    let request = include_bytes!("../../protocol/golden/request-run.json");
    let cases: [&[u8]; 5] = [
        b"",
        b"\n",
        &request[..200],
        b"{\"protocol_version\": 4, \"command\": \"run\"}\n",
        b"{\"protocol_version\": 4, \xff\xfe\n",
    ];
    for bytes in cases {
        let (messages, status) = say(bytes);
        let (outcome, message) = failure(&messages);
        assert_eq!(outcome, Outcome::Invalid);
        assert!(message.starts_with("request: "), "{message}");
        assert_eq!(status, Some(1));
    }
}

/// The other end of its output is gone: it ends at the next thing to say, and without a panic.
#[test]
fn a_driver_that_nobody_reads_ends() {
    let timed = workload(
        NUM,
        json!([measure("fillrandom", json!({"duration_s": 0.3}))]),
    );
    in_time(|| {
        let mut conversation = start("noop", timed.clone(), json!({}));
        drop(conversation.child.stdout.take());
        // Waiting would close its input, which ends it as well.
        let input = conversation.child.stdin.take();
        let status = conversation.child.wait().unwrap();
        drop(input);
        // It may have said all before its output was closed.
        assert!(matches!(status.code(), Some(0 | 2)), "{status}");
        status.code() == Some(2)
    });
}

#[test]
fn an_interval_without_a_sensible_length_is_refused() {
    for interval_ms in [0, u64::MAX] {
        let any = workload(
            NUM,
            json!([measure("fillrandom", json!({"duration_s": 1.0}))]),
        );
        let messages = start("noop", any, json!({"interval_ms": interval_ms})).messages();
        let message = failure(&messages).1;
        let expected = format!("interval_ms: found {interval_ms}; allowed: 1 to 86400000");
        assert_eq!(message, expected);
    }
}

#[test]
fn an_unknown_engine_or_option_is_named() {
    let any = || {
        workload(
            NUM,
            json!([measure("fillrandom", json!({"duration_s": 1.0}))]),
        )
    };
    let mut conversation = start("redis", any(), json!({}));
    assert!(failure(&conversation.messages())
        .1
        .contains("unknown engine redis"));
    let mut conversation = start("memory", any(), json!({"options": {"colour": "red"}}));
    let (outcome, message) = failure(&conversation.messages());
    assert_eq!(outcome, Outcome::Invalid);
    assert!(message.contains("unknown option colour"), "{message}");
    assert!(conversation.folder.path().exists());
}
