//! Runs in slices: the driver stops itself between them, and nothing that it reports may show it.

mod conversation;

use std::io::{BufRead, BufReader, Lines};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use conversation::{
    failure, in_time, intervals, last_phase, leveldb, load, measure, phases, replace, rocksdb,
    run_on, verified, workload, Conversation, Target,
};
use lsmtune_driver::protocol::{Message, Outcome};
use rustix::process::{kill_process, waitid, Pid, Signal, WaitId, WaitIdOptions};
use serde_json::{json, Value};

const NUM: u64 = 10_000;

/// What one `paused` said.
#[derive(Debug, Clone, Copy)]
struct Pause {
    index: usize,
    slice: usize,
    operations: u64,
    elapsed_s: f64,
}

impl Pause {
    fn of(message: &Message) -> Option<Self> {
        match *message {
            Message::Paused {
                index,
                slice,
                operations_total,
                elapsed_s,
                ..
            } => Some(Pause {
                index,
                slice,
                operations: operations_total,
                elapsed_s,
            }),
            _ => None,
        }
    }
}

fn pauses(messages: &[Message]) -> Vec<Pause> {
    messages.iter().filter_map(Pause::of).collect()
}

/// A run that stops between slices, and what it said so far.
struct Sliced {
    run: Conversation,
    lines: Lines<BufReader<ChildStdout>>,
    messages: Vec<Message>,
}

impl Sliced {
    fn start(target: &Target, workload: Value, more: Value) -> Self {
        let mut run = Conversation::start(target, workload, more);
        let lines = BufReader::new(run.child.stdout.take().unwrap()).lines();
        Sliced {
            run,
            lines,
            messages: Vec::new(),
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.run.child)
    }

    /// Listens until the run has stopped; `None` if it ends instead.
    fn stopped(&mut self) -> Option<Pause> {
        loop {
            let line = self.lines.next()?.unwrap();
            let message: Message = serde_json::from_str(&line).unwrap();
            let pause = Pause::of(&message);
            self.messages.push(message);
            if pause.is_some() {
                // A run that was cancelled meanwhile ends instead.
                let either = WaitIdOptions::STOPPED | WaitIdOptions::EXITED;
                let options = either | WaitIdOptions::NOWAIT;
                let status = waitid(WaitId::Pid(self.pid()), options).unwrap().unwrap();
                if status.stopped() {
                    return pause;
                }
            }
        }
    }

    fn go_on(&self) {
        kill_process(self.pid(), Signal::CONT).unwrap();
    }

    /// Lets it run to its end, each stop lasting `stop`.
    fn finish(mut self, stop: Duration) -> Vec<Message> {
        while self.stopped().is_some() {
            std::thread::sleep(stop);
            self.go_on();
        }
        self.run.child.wait().unwrap();
        self.messages
    }
}

fn sliced(target: &Target, workload: Value, slices: u32, more: Value) -> Vec<Message> {
    let mut request = json!({"slices": slices});
    replace(&mut request, &more);
    Sliced::start(target, workload, request).finish(Duration::ZERO)
}

/// The operations of a mix are one row of slices, whichever they are, and their types add up.
#[test]
fn a_mix_is_cut_by_its_operations() {
    let phase = json!({
        "name": "mixed", "kind": "measure", "operations": 8001, "threads": 2,
        "mix": {
            "operations": {"get": 0.5, "update": 0.3, "insert": 0.2}, "records": NUM,
            "keys": {"distribution": "latest", "theta": 0.99},
        },
    });
    let workload = workload(NUM, json!([load(NUM), phase]));
    in_time(|| {
        let messages = sliced(&Target::built_in("memory"), workload.clone(), 4, json!({}));
        let ends: Vec<u64> = pauses(&messages)
            .iter()
            .filter(|pause| pause.index == 1)
            .map(|pause| pause.operations)
            .collect();
        let phase = last_phase(&messages);
        let by_type = phase.operations_by_type.as_ref().unwrap();
        assert_eq!(by_type.values().sum::<u64>(), 8001);
        assert_eq!(phase.keys_missing, Some(0));
        assert_eq!((verified(&messages).1, verified(&messages).2), (0, 0));
        // A thread that a busy machine keeps from work is not waited for.
        ends == [0, 2000, 4000, 6000, 8001]
    });
}

#[test]
fn every_phase_begins_stopped_and_only_measure_phases_are_cut() {
    let memory = Target::built_in("memory");
    let warmup = json!({
        "name": "warmup", "kind": "warmup", "operation": "readrandom", "operations_per_thread": 100,
    });
    let settle = json!({"name": "settle", "kind": "settle"});
    let reads = measure("readrandom", json!({"operations_per_thread": 8000}));
    let workload = workload(NUM, json!([load(NUM), settle, warmup, reads]));
    let messages = sliced(&memory, workload, 4, json!({}));
    let seen: Vec<_> = pauses(&messages)
        .iter()
        .map(|pause| (pause.index, pause.slice, pause.operations))
        .collect();
    let expected = [
        (0, 0, 0),
        (1, 0, 0),
        (2, 0, 0),
        (3, 0, 0),
        (3, 1, 2000),
        (3, 2, 4000),
        (3, 3, 6000),
        (3, 4, 8000),
    ];
    assert_eq!(seen, expected);
    assert!(matches!(messages.last(), Some(Message::Finished { .. })));
}

#[test]
fn threads_share_a_slice_and_end_it_together() {
    let noop = Target::built_in("noop");
    let size = json!({"operations_per_thread": 100_001, "threads": 3});
    let messages = sliced(
        &noop,
        workload(NUM, json!([measure("fillrandom", size)])),
        7,
        json!({}),
    );
    let pauses = pauses(&messages);
    assert_eq!(pauses.len(), 8);
    for pause in pauses {
        let expected = 300_003 * pause.slice as u64 / 7;
        // A busy machine may keep a thread from work for so long that it is not waited for.
        let least = if pause.slice == 7 {
            expected
        } else {
            expected.saturating_sub(2 * 1024)
        };
        assert!((least..=expected).contains(&pause.operations), "{pause:?}");
    }
}

#[test]
fn more_slices_than_operations_leave_out_the_empty_ones() {
    let memory = Target::built_in("memory");
    let size = json!({"operations_per_thread": 3});
    let messages = sliced(
        &memory,
        workload(NUM, json!([measure("fillrandom", size)])),
        10,
        json!({}),
    );
    let ends: Vec<u64> = pauses(&messages).iter().map(|p| p.operations).collect();
    assert_eq!(ends, [0, 1, 2, 3]);
}

#[test]
fn a_phase_sized_by_time_is_cut_by_time() {
    let memory = Target::built_in("memory");
    for operation in ["readrandom", "readseq", "readwhilewriting"] {
        in_time(|| {
            let size = json!({"duration_s": 0.8, "threads": 2});
            let phases = json!([load(NUM), measure(operation, size)]);
            let messages = sliced(&memory, workload(NUM, phases), 4, json!({}));
            let ends: Vec<f64> = pauses(&messages)
                .iter()
                .filter(|pause| pause.index == 1)
                .map(|pause| pause.elapsed_s)
                .collect();
            // None may end early. One that ends later than the next should leaves that out.
            for (slice, end) in ends.iter().enumerate() {
                assert!(*end >= 0.2 * slice as f64, "{operation}: {ends:?}");
            }
            let soon = |(slice, end): (usize, &f64)| *end < 0.2 * slice as f64 + 0.15;
            ends.len() == 5
                && ends.iter().enumerate().all(soon)
                && last_phase(&messages).elapsed_s < 0.95
        });
    }
}

/// Everything that does not depend on time must be the same.
fn same_as_unsliced(target: &Target, operation: &str, threads: u64, options: Value) {
    let size = json!({"operations_per_thread": NUM / threads, "threads": threads});
    let all = || workload(NUM, json!([load(NUM), measure(operation, size.clone())]));
    let whole = run_on(target, all(), options.clone());
    let cut = sliced(target, all(), 16, json!({"options": options}));
    for (whole, cut) in phases(&whole).iter().zip(phases(&cut)) {
        assert_eq!(whole.operations, cut.operations, "{operation}");
        assert_eq!(whole.keys_found, cut.keys_found, "{operation}");
        assert_eq!(whole.keys_missing, cut.keys_missing, "{operation}");
        assert_eq!(whole.cut_short, cut.cut_short, "{operation}");
        for (kind, latency) in &whole.latencies {
            let companion = operation == "readwhilewriting" && kind == "put";
            assert!(
                companion || latency.count == cut.latencies[kind].count,
                "{operation} {kind}"
            );
        }
    }
    assert_eq!(verified(&whole), verified(&cut), "{operation}");
    assert_eq!(verified(&cut).1 + verified(&cut).2, 0, "{operation}");
    let total: u64 = intervals(&cut).iter().map(|step| step.operations).sum();
    let operations: u64 = phases(&cut).iter().map(|phase| phase.operations).sum();
    assert_eq!(total, operations, "{operation}");
}

const OPERATIONS: [&str; 13] = [
    "fillseq",
    "fillrandom",
    "filluniquerandom",
    "overwrite",
    "readseq",
    "readrandom",
    "readuniquerandom",
    "readmissing",
    "readhot",
    "seekrandom",
    "deleterandom",
    "deleteuniquerandom",
    "readwhilewriting",
];

/// One for each kind of call, where a run takes longer.
const SOME_OPERATIONS: [&str; 5] = [
    "overwrite",
    "readseq",
    "seekrandom",
    "deleterandom",
    "readwhilewriting",
];

#[test]
fn a_sliced_run_does_what_a_whole_one_does_memory() {
    for operation in OPERATIONS {
        for threads in [1, 2] {
            same_as_unsliced(&Target::built_in("memory"), operation, threads, json!({}));
        }
    }
}

#[test]
fn a_sliced_run_does_what_a_whole_one_does_rocksdb() {
    let rocksdb = rocksdb();
    for operation in SOME_OPERATIONS {
        let options = json!({"write_buffer_size": "131072"});
        same_as_unsliced(&rocksdb, operation, 2, options);
    }
}

#[test]
fn a_sliced_run_does_what_a_whole_one_does_leveldb() {
    let leveldb = leveldb();
    for operation in SOME_OPERATIONS {
        let options = json!({"write_buffer_size": "131072"});
        same_as_unsliced(&leveldb, operation, 2, options);
    }
}

/// The process is stopped for a second three times; nothing of it shows in what it reports.
#[test]
fn the_time_spent_stopped_counts_nowhere() {
    let stop = Duration::from_secs(1);
    for size in [
        json!({"operations_per_thread": 20_000, "threads": 2}),
        json!({"duration_s": 0.2, "threads": 2}),
    ] {
        in_time(|| {
            let phases = workload(NUM, json!([measure("fillrandom", size.clone())]));
            let begun = Instant::now();
            let more = json!({"slices": 2});
            let messages = Sliced::start(&Target::built_in("memory"), phases, more).finish(stop);
            let took_s = begun.elapsed().as_secs_f64();
            if pauses(&messages).len() != 3 {
                return false; // the time of both slices was over before the first stop
            }
            assert!(took_s > 3.0, "{took_s}: {messages:?}");
            let phase = last_phase(&messages);
            let throughput_ops_s = phase.operations as f64 / phase.elapsed_s;
            assert_eq!(phase.throughput_ops_s, throughput_ops_s);
            let steps = intervals(&messages);
            let sum_s: f64 = steps.iter().map(|step| step.interval_s).sum();
            let cpu_s: f64 = steps.iter().map(|step| step.cpu_s).sum();
            let all_cpu_s = phase.cpu_us_per_operation.unwrap() * phase.operations as f64 / 1e6;
            assert!(
                cpu_s > 0.0 && cpu_s <= all_cpu_s * 1.01,
                "{cpu_s} {all_cpu_s}"
            );
            let last = pauses(&messages)[2];
            assert_eq!(last.operations, phase.operations);
            assert!((last.elapsed_s - phase.elapsed_s).abs() < 1e-6);
            let Some(Message::Finished { elapsed_s, .. }) = messages.last() else {
                panic!("{messages:?}");
            };
            assert!(elapsed_s + 3.0 <= took_s, "{elapsed_s} {took_s}");
            phase.elapsed_s < 0.8
                && phase.drain_s < 0.5
                && phase.latency.latency_us_max.unwrap() < 800_000.0
                && (phase.elapsed_s - 0.05..0.9).contains(&sum_s)
                && steps.iter().all(|step| step.interval_s < 0.5)
        });
    }
}

/// Level 0 is full most of the time, so that slices end while a write is being held back. With
/// one thread in a closed loop, all latencies together are at most the time that the phase took.
#[test]
fn a_write_that_is_held_back_across_a_stop_is_corrected() {
    let options = json!({
        "write_buffer_size": "65536", "level0_file_num_compaction_trigger": "2",
        "level0_slowdown_writes_trigger": "2", "level0_stop_writes_trigger": "2",
        "rate_limiter_bytes_per_sec": "400000", "max_write_buffer_number": "2",
    });
    let rocksdb = rocksdb();
    let fill = measure("fillrandom", json!({"duration_s": 1.5}));
    let more = json!({"slices": 10, "options": options});
    let run = Sliced::start(&rocksdb, workload(NUM, json!([fill])), more);
    let messages = run.finish(Duration::from_millis(400));
    let phase = last_phase(&messages);
    let latency = &phase.latencies["put"];
    let in_operations_s = latency.statistics.latency_us_mean * latency.count as f64 / 1e6;
    assert!(
        latency.statistics.latency_us_max > 200_000.0,
        "nothing was held back"
    );
    assert!(
        in_operations_s <= phase.elapsed_s * 1.01,
        "{in_operations_s} of {}",
        phase.elapsed_s
    );
}

/// Its input stays open and its request came from a file: only its parent's death can reach it.
#[test]
fn a_stopped_driver_dies_with_its_parent() {
    let folder = tempfile::tempdir().unwrap();
    let request = folder.path().join("request.json");
    let phases = json!([measure(
        "fillrandom",
        json!({"operations_per_thread": 1000})
    )]);
    let text = json!({
        "protocol_version": 4, "command": "run", "engine": {"name": "memory"},
        "directory": folder.path().join("db"), "workload": workload(NUM, phases),
        "seed": 1, "slices": 2,
    });
    std::fs::write(&request, text.to_string()).unwrap();
    let mut parent = Command::new("sh")
        .args(["-c", "\"$0\" --request \"$1\"; exit $?"])
        .arg(env!("CARGO_BIN_EXE_lsmtune-driver"))
        .arg(&request)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let paused = lines.find(|line| line.as_ref().unwrap().contains("\"paused\""));
    assert!(paused.is_some());
    parent.kill().unwrap();
    // The driver holds the other end until it is gone, and nobody continues it.
    assert!(lines.next().is_none());
    parent.wait().unwrap();
}

/// Whether it is stopped before a phase, between slices or before a drain.
#[test]
fn a_cancel_while_stopped_ends_the_run_within_300_ms() {
    for target in [Target::built_in("noop"), rocksdb(), leveldb()] {
        for stops in [0, 1, 2, 30, 101] {
            in_time(|| {
                let fill = measure("fillrandom", json!({"operations_per_thread": 50_000}));
                let phases = workload(NUM, json!([load(NUM), fill]));
                let mut sliced = Sliced::start(&target, phases, json!({"slices": 100}));
                for _ in 0..stops {
                    sliced.stopped().unwrap();
                    sliced.go_on();
                }
                sliced.stopped().unwrap();
                let asked = Instant::now();
                sliced.run.say_cancel();
                sliced.go_on();
                assert!(sliced.stopped().is_none(), "stopped again after {stops}");
                sliced.run.child.wait().unwrap();
                let last = sliced.messages.last();
                if stops == 101 && matches!(last, Some(Message::Finished { .. })) {
                    return false; // it stops no more, and ended before it had read the cancel
                }
                assert_eq!(failure(&sliced.messages).0, Outcome::Cancelled);
                asked.elapsed() < Duration::from_millis(300)
            });
        }
    }
}

/// The end of the input is seen before the next stop.
#[test]
fn a_driver_whose_input_ends_does_not_stop_again() {
    let fill = measure("fillrandom", json!({"operations_per_thread": 50_000_000}));
    let phases = workload(NUM, json!([fill]));
    let mut sliced = Sliced::start(&Target::built_in("noop"), phases, json!({"slices": 1000}));
    sliced.stopped().unwrap();
    drop(sliced.run.child.stdin.take());
    sliced.go_on();
    let status = sliced.run.child.wait().unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(9)
    );
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let paced = json!({"duration_s": 1.0, "rate_ops_s": 100.0});
    let plain = json!({"duration_s": 1.0});
    // It left at the end of the first slice, and the phase went on without it.
    let beside = json!({"name": "beside", "operation": "readrandom", "rate_ops_s": 100.0});
    let beside = json!({"duration_s": 1.0, "companions": [beside]});
    for (size, slices, allowed) in [
        (paced, 2, "0, because phase fillrandom has a rate"),
        (beside, 2, "0, because phase fillrandom has a rate"),
        (plain, 1001, "0 to 1000"),
    ] {
        let phases = workload(NUM, json!([measure("fillrandom", size)]));
        let messages = sliced(&Target::built_in("noop"), phases, slices, json!({}));
        let (outcome, message) = failure(&messages);
        assert_eq!(outcome, Outcome::Invalid);
        assert_eq!(
            message,
            format!("slices: found {slices}; allowed: {allowed}")
        );
    }
}
