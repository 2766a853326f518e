//! Talking to the driver's binary: requests in, messages out.

#![allow(dead_code)] // each test crate uses a part

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lsmtune_driver::protocol::{Interval, LevelReply, Message, Outcome, PhaseReply};
use serde_json::{json, Value};
use tempfile::TempDir;

/// An engine, and the library to load it from.
pub struct Target {
    pub name: &'static str,
    pub library: Option<PathBuf>,
}

impl Target {
    pub fn built_in(name: &'static str) -> Self {
        Target {
            name,
            library: None,
        }
    }

    /// The library that the environment names; without it the test fails and says what to do.
    pub fn library(name: &'static str, variable: &str) -> Self {
        let library = std::env::var_os(variable).unwrap_or_else(|| {
            panic!("{variable} is not set: run `make setup`, then `make test`, which sets it")
        });
        Target {
            name,
            library: Some(library.into()),
        }
    }
}

pub fn rocksdb() -> Target {
    Target::library("rocksdb", "LSMTUNE_TEST_ROCKSDB")
}

pub fn leveldb() -> Target {
    Target::library("leveldb", "LSMTUNE_TEST_LEVELDB")
}

/// The engines that keep their data on disk.
pub fn engines() -> [Target; 2] {
    [rocksdb(), leveldb()]
}

/// A driver that was told `request`.
pub fn told(request: &Value, environment: &[(&str, String)]) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lsmtune-driver"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .envs(environment.iter().cloned())
        .spawn()
        .unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "{request}").unwrap();
    child
}

/// A driver process with its request sent.
pub struct Conversation {
    pub child: Child,
    pub folder: TempDir,
}

impl Conversation {
    /// Starts a run of `workload`; `more` replaces or adds fields of the request.
    pub fn start(target: &Target, workload: Value, more: Value) -> Self {
        Self::start_in(target, workload, more, &[])
    }

    /// The same, with more variables in its environment.
    pub fn start_in(
        target: &Target,
        workload: Value,
        more: Value,
        environment: &[(&str, String)],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut request = json!({
            "protocol_version": 4, "command": "run",
            "engine": {"name": target.name}, "directory": folder.path().join("db"),
            "workload": workload, "seed": 1, "interval_ms": 50,
        });
        if let Some(library) = &target.library {
            request["engine"]["library"] = json!(library);
        }
        replace(&mut request, &more);
        Conversation {
            child: told(&request, environment),
            folder,
        }
    }

    /// Cancels the run: what it had said, and how long it took until the process was gone.
    pub fn cancel(&mut self) -> (Vec<Message>, Duration) {
        let asked = Instant::now();
        self.say_cancel();
        let messages = self.messages();
        self.child.wait().unwrap();
        (messages, asked.elapsed())
    }

    /// Waits until a phase is at work: its first interval was reported. What the driver says later
    /// is for [`Conversation::messages`].
    pub fn wait_for_work(&mut self) {
        let stdout = self.child.stdout.as_mut().unwrap();
        let mut line = String::new();
        // Byte by byte, so that nothing is read ahead.
        for byte in std::io::Read::bytes(stdout) {
            line.push(char::from(byte.unwrap()));
            if !line.ends_with('\n') {
                continue;
            }
            if matches!(serde_json::from_str(&line), Ok(Message::Interval(_))) {
                return;
            }
            line.clear();
        }
        panic!("the driver ended before it had begun");
    }

    /// Asks the driver to cancel the run.
    pub fn say_cancel(&mut self) {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{}", json!({"command": "cancel"})).unwrap();
    }

    pub fn messages(&mut self) -> Vec<Message> {
        let lines = BufReader::new(self.child.stdout.take().unwrap()).lines();
        lines
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect()
    }
}

/// Repeats `attempt`, which says whether it was in time, until it was: on a busy machine the
/// processors may belong to somebody else for a while, but hardly each of fifty times.
pub fn in_time(mut attempt: impl FnMut() -> bool) {
    assert!((0..50).any(|_| attempt()), "late fifty times in a row");
}

/// Cancels what `start` began, once it works: the run is over within 300 ms and keeps its phase.
pub fn cancel_in_time(mut start: impl FnMut() -> Conversation) {
    in_time(|| {
        let mut conversation = start();
        conversation.wait_for_work();
        let (messages, took) = conversation.cancel();
        let (outcome, message) = failure(&messages);
        assert_eq!(outcome, Outcome::Cancelled);
        if message.contains("before its engine could be closed") {
            return false;
        }
        assert!(last_phase(&messages).cut_short);
        took < Duration::from_millis(300)
    });
}

/// What the driver answers to a request that is not a run.
pub fn ask(request: &Value) -> Vec<Message> {
    let mut child = told(request, &[]);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let messages = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap());
    let messages = messages.collect();
    child.wait().unwrap();
    messages
}

/// A whole run with `options`.
pub fn run_on(target: &Target, workload: Value, options: Value) -> Vec<Message> {
    Conversation::start(target, workload, json!({"options": options})).messages()
}

pub fn workload(num: u64, phases: Value) -> Value {
    json!({
        "key_bytes": 16, "value_bytes": 100, "compression_ratio": 0.5, "num": num,
        "durability": "wal", "phases": phases,
    })
}

/// A measure phase named after its operation.
pub fn measure(operation: &str, size: Value) -> Value {
    let mut phase = json!({"name": operation, "kind": "measure", "operation": operation});
    replace(&mut phase, &size);
    phase
}

/// A load phase that writes each of `num` keys once.
pub fn load(num: u64) -> Value {
    json!({
        "name": "load", "kind": "load", "operation": "filluniquerandom",
        "operations_per_thread": num,
    })
}

/// Sets the fields of `changes` in `object`.
pub fn replace(object: &mut Value, changes: &Value) {
    for (key, value) in changes.as_object().unwrap() {
        object[key] = value.clone();
    }
}

pub fn phases(messages: &[Message]) -> Vec<&PhaseReply> {
    let found = messages.iter().filter_map(|message| match message {
        Message::PhaseFinished { phase, .. } => Some(&**phase),
        _ => None,
    });
    found.collect()
}

pub fn intervals(messages: &[Message]) -> Vec<&Interval> {
    let found = messages.iter().filter_map(|message| match message {
        Message::Interval(interval) => Some(interval),
        _ => None,
    });
    found.collect()
}

pub fn last_phase(messages: &[Message]) -> &PhaseReply {
    let last = phases(messages).pop();
    last.unwrap_or_else(|| panic!("no phase finished: {messages:?}"))
}

pub fn failure(messages: &[Message]) -> (Outcome, String) {
    match messages.last() {
        Some(Message::Failed { outcome, error }) => (*outcome, error.message.clone()),
        other => panic!("expected a failure, found {other:?}"),
    }
}

/// Bytes of the database when the run had finished.
pub fn finished(messages: &[Message]) -> u64 {
    match messages.last() {
        Some(Message::Finished { database_bytes, .. }) => *database_bytes,
        other => panic!("expected the run to finish, found {other:?}"),
    }
}

/// Keys checked, lost, wrong.
pub fn verified(messages: &[Message]) -> (u64, u64, u64) {
    let found = messages.iter().find_map(|message| match message {
        Message::Verified {
            keys_checked,
            keys_lost,
            keys_wrong,
            ..
        } => Some((*keys_checked, *keys_lost, *keys_wrong)),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("nothing was read back: {messages:?}"))
}

#[derive(Debug)]
pub struct Work {
    pub flushes: Option<u64>,
    pub compactions: Option<u64>,
    pub write_amplification: Option<f64>,
    pub levels: Option<Vec<LevelReply>>,
}

/// Flushes and compactions of the last phase.
pub fn background_work(messages: &[Message]) -> Work {
    let mut work = messages.iter().filter_map(|message| match message {
        Message::BackgroundWork {
            flushes,
            compactions,
            write_amplification,
            levels,
            ..
        } => Some(Work {
            flushes: *flushes,
            compactions: *compactions,
            write_amplification: *write_amplification,
            levels: levels.clone(),
        }),
        _ => None,
    });
    work.next_back()
        .unwrap_or_else(|| panic!("no background work reported: {messages:?}"))
}
