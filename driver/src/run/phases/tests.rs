//! What a phase is charged for. `tests/lying_engines.rs` has engines that put work off.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::*;
use crate::engine::{self, Durability, Identity, OpenResult, OptionNotTaken, Options, Session};
use crate::protocol::Request;

type Moment = Arc<Mutex<Option<Instant>>>;

/// The engine in memory, which notes when it is told to drain.
struct Noting(Box<dyn Engine>, Moment);

impl Engine for Noting {
    fn open(&self, directory: &Path, options: &Options, durability: Durability) -> OpenResult {
        let database = self.0.open(directory, options, durability)?;
        Ok(Box::new(NotingDatabase(database, Arc::clone(&self.1))))
    }

    fn reopen(&self, directory: &Path, options: &Options, durability: Durability) -> OpenResult {
        self.open(directory, options, durability)
    }

    fn keeps_files(&self) -> bool {
        false
    }
}

struct NotingDatabase(Box<dyn Database>, Moment);

impl Database for NotingDatabase {
    fn identity(&self) -> Identity {
        self.0.identity()
    }

    fn options_not_taken(&self) -> Vec<OptionNotTaken> {
        self.0.options_not_taken()
    }

    fn session(&self) -> Box<dyn Session + '_> {
        self.0.session()
    }

    fn drain(&self, cancelled: &dyn Fn() -> bool) -> engine::Result<Duration> {
        *self.1.lock().unwrap() = Some(Instant::now());
        self.0.drain(cancelled)
    }

    fn stall_s(&self) -> Option<f64> {
        self.0.stall_s()
    }

    fn property(&self, name: &str) -> Option<String> {
        self.0.property(name)
    }
}

/// Notes when the last step of the interval series was over: all threads had ended.
struct LastInterval(Option<Instant>);

impl Sink for LastInterval {
    fn send(&mut self, message: &Message) -> std::io::Result<()> {
        if matches!(message, Message::Interval(_)) {
            self.0 = Some(Instant::now());
        }
        Ok(())
    }

    fn stop_process(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Reads were compared and the ledger was written before the clock of the drain began. Compactions
/// went on meanwhile, and nobody paid for them.
#[test]
fn the_drain_begins_when_the_threads_have_ended() {
    let keys = 60_000; // the ledger keeps all of them, of so large a key space
    let folder = tempfile::tempdir().unwrap();
    let request = json!({
        "protocol_version": crate::protocol::PROTOCOL_VERSION, "command": "run",
        "engine": {"name": "memory"}, "directory": folder.path().join("db"),
        "workload": {
            "key_bytes": 16, "value_bytes": 20, "compression_ratio": 0.5, "num": 1 << 22,
            "durability": "wal", "phases": [{
                "name": "fill", "kind": "measure", "operation": "filluniquerandom",
                "operations_per_thread": keys,
            }],
        },
        "seed": 1, "interval_ms": 50,
    });
    let Ok(Request::Run(request)) = Request::parse(request.to_string().as_bytes()) else {
        panic!("no run: {request}");
    };
    let waited = || {
        let moment = Moment::default();
        let memory = engine::load("memory", None).unwrap();
        let engine = Noting(memory, Arc::clone(&moment));
        let cancelled = AtomicBool::new(false);
        let turns = Turns::new(0, &cancelled).unwrap();
        let ledger = Ledger::new(1, 1, request.workload.num);
        let mut sink = LastInterval(None);
        let mut phases = Phases::new(&request, ledger, &cancelled, turns);
        assert!(phases.execute(&engine, &mut sink).is_ok());
        assert_eq!(phases.ledger.expectations().len(), keys);
        let drained = moment.lock().unwrap().unwrap();
        drained - sink.0.unwrap()
    };
    // Some 10 ms are what it takes to write so many keys into the ledger.
    assert!((0..50).any(|_| waited() < Duration::from_millis(3)));
}
