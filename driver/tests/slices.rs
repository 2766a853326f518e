//! Runs in slices: the driver stops itself between them, and nothing that it reports may show it.

mod conversation;

use std::io::{BufRead, BufReader, Lines};
use std::process::ChildStdout;
use std::time::Duration;

use conversation::{
    last_phase, load, measure, replace, run_on, verified, workload, Conversation, Target,
};
use lsmtune_driver::protocol::{Interval, Message, PhaseReply};
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

fn intervals(messages: &[Message]) -> Vec<&Interval> {
    let found = messages.iter().filter_map(|message| match message {
        Message::Interval(interval) => Some(interval),
        _ => None,
    });
    found.collect()
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
                let stops = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
                let status = waitid(WaitId::Pid(self.pid()), stops).unwrap().unwrap();
                assert!(status.stopped(), "{status:?}");
                return pause;
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

fn phases(messages: &[Message]) -> Vec<&PhaseReply> {
    let found = messages.iter().filter_map(|message| match message {
        Message::PhaseFinished { phase, .. } => Some(&**phase),
        _ => None,
    });
    found.collect()
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
    let ends: Vec<u64> = pauses(&messages).iter().map(|p| p.operations).collect();
    let expected: Vec<u64> = (0..=7).map(|slice| 300_003 * slice / 7).collect();
    assert_eq!(ends, expected);
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
        let size = json!({"duration_s": 0.8, "threads": 2});
        let phases = json!([load(NUM), measure(operation, size)]);
        let messages = sliced(&memory, workload(NUM, phases), 4, json!({}));
        let ends: Vec<f64> = pauses(&messages)
            .iter()
            .filter(|pause| pause.index == 1)
            .map(|pause| pause.elapsed_s)
            .collect();
        assert_eq!(ends.len(), 5, "{operation}: {ends:?}");
        for (slice, end) in ends.iter().enumerate() {
            // A busy machine may let a thread wait; none may end early.
            let expected = 0.2 * slice as f64;
            assert!(
                (expected..expected + 0.15).contains(end),
                "{operation}: {ends:?}"
            );
        }
        assert!(last_phase(&messages).elapsed_s < 0.95);
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
    let rocksdb = Target::library("rocksdb", "LSMTUNE_TEST_ROCKSDB");
    for operation in OPERATIONS {
        same_as_unsliced(
            &rocksdb,
            operation,
            2,
            json!({"write_buffer_size": "131072"}),
        );
    }
}

#[test]
fn a_sliced_run_does_what_a_whole_one_does_leveldb() {
    let leveldb = Target::library("leveldb", "LSMTUNE_TEST_LEVELDB");
    for operation in OPERATIONS {
        same_as_unsliced(
            &leveldb,
            operation,
            2,
            json!({"write_buffer_size": "131072"}),
        );
    }
}
