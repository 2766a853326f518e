//! Lies about any engine: a wrapper that answers falsely, and what the checks say of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lsmtune_driver::engine::{
    BatchEntry, Cursor, Database, Identity, OptionNotTaken, Result, Session,
};
use lsmtune_driver::protocol::{Interval, Workload};
use lsmtune_driver::random::KeyWriter;
use lsmtune_driver::workload::{
    check_reads, run_phase, verify, Ledger, PhaseContext, SliceOver, Values, Watcher,
};
use serde_json::json;

use super::{DatabaseFolder, Fixture};

const KEYS: u64 = 2000;

/// What is told of one call in 50.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    None,
    DropPut,
    ForgetDelete,
    WrongValue,
    NotFound,
    SkipInScan,
    ShortScan,
}

struct Liar {
    database: Box<dyn Database>,
    lie: Lie,
    calls: AtomicU64,
}

impl Liar {
    /// Whether this call is the one in 50 of which `lie` is told.
    fn tells(&self, lie: Lie) -> bool {
        self.lie == lie && self.calls.fetch_add(1, Ordering::Relaxed) % 50 == 49
    }
}

impl Database for Liar {
    fn identity(&self) -> Identity {
        self.database.identity()
    }
    fn options_not_taken(&self) -> Vec<OptionNotTaken> {
        self.database.options_not_taken()
    }
    fn session(&self) -> Box<dyn Session + '_> {
        Box::new(LyingSession(self, self.database.session()))
    }
    fn drain(&self, cancelled: &dyn Fn() -> bool) -> Result<Duration> {
        self.database.drain(cancelled)
    }
    fn stall_s(&self) -> Option<f64> {
        self.database.stall_s()
    }
    fn property(&self, name: &str) -> Option<String> {
        self.database.property(name)
    }
}

struct LyingSession<'a>(&'a Liar, Box<dyn Session + 'a>);

impl Session for LyingSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        match self.0.tells(Lie::DropPut) {
            true => Ok(()),
            false => self.1.put(key, value),
        }
    }
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        match self.0.tells(Lie::ForgetDelete) {
            true => Ok(()),
            false => self.1.delete(key),
        }
    }
    fn write(&mut self, batch: &[BatchEntry<'_>]) -> Result<()> {
        self.1.write(batch)
    }
    fn get(&mut self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        if self.0.tells(Lie::NotFound) {
            return Ok(false);
        }
        if self.0.tells(Lie::WrongValue) {
            return self.1.get(key, &mut |_| read(b"xxx"));
        }
        self.1.get(key, read)
    }
    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        Ok(Box::new(LyingCursor(self.0, self.1.cursor()?, 0)))
    }
}

/// With the entries since the last seek.
struct LyingCursor<'a>(&'a Liar, Box<dyn Cursor + 'a>, u64);

impl Cursor for LyingCursor<'_> {
    fn seek_to_first(&mut self) {
        self.2 = 0;
        self.1.seek_to_first();
    }
    fn seek(&mut self, key: &[u8]) {
        self.2 = 0;
        self.1.seek(key);
    }
    fn next(&mut self) {
        self.2 += 1;
        self.1.next();
        if self.1.valid() && self.0.tells(Lie::SkipInScan) {
            self.1.next();
        }
    }
    fn valid(&self) -> bool {
        self.1.valid() && !(self.0.lie == Lie::ShortScan && self.2 >= 7)
    }
    fn key(&self) -> &[u8] {
        self.1.key()
    }
    fn value(&self) -> &[u8] {
        self.1.value()
    }
    fn status(&self) -> Result<()> {
        self.1.status()
    }
}

struct Nobody;

impl Watcher for Nobody {
    fn interval(&mut self, _: Interval) {}
    fn slice_over(&mut self, _: SliceOver) -> f64 {
        0.0
    }
}

/// Reads that were wrong while the phases were measured, and keys that were wrong after them.
fn found(fixture: &Fixture, lie: Lie, phases: &[serde_json::Value]) -> (u64, u64) {
    let folder = DatabaseFolder::new(fixture);
    let liar = Liar {
        database: folder.open(),
        lie,
        calls: AtomicU64::new(0),
    };
    let workload: Workload = serde_json::from_value(json!({
        "key_bytes": 16, "value_bytes": 100, "compression_ratio": 0.5, "num": KEYS,
        "durability": "wal", "phases": phases,
    }))
    .unwrap();
    let values = Values::new(&workload, 1);
    let mut ledger = Ledger::new(1, 1, KEYS);
    let mut wrong = 0;
    for (index, phase) in workload.phases.iter().enumerate() {
        let context = PhaseContext {
            database: &liar,
            workload: &workload,
            ledger: &ledger,
            values: &values,
            seed: 1,
            interval: Duration::from_secs(1),
            cancelled: &AtomicBool::new(false),
            slices: 1,
            holds_compactions: false,
            as_one: None,
        };
        let mut notes = run_phase(&context, index, phase, &mut Nobody)
            .unwrap()
            .notes;
        let keys = KeyWriter::new(&workload);
        wrong += check_reads(&mut notes, &ledger, &values, keys, true).wrong;
        let written = notes.into_iter().filter_map(|thread| thread.written);
        ledger.add_phase(written.collect());
    }
    // What is read back is the truth.
    let keys = KeyWriter::new(&workload);
    let after = verify(&*liar.database, &ledger, &values, keys, 1).unwrap();
    (wrong, after.keys_lost + after.keys_wrong)
}

fn times(kind: &str, operation: &str) -> serde_json::Value {
    json!({"name": operation, "kind": kind, "operation": operation, "operations_per_thread": KEYS,
           "seek_nexts": 20})
}

/// Every lie of the list is found, while reads are measured or when they are read back, and the
/// truth is not called a lie.
pub fn lies_are_found_and_the_truth_is_believed(fixture: &Fixture) {
    let load = times("load", "filluniquerandom");
    let phase = |operation: &str| vec![load.clone(), times("measure", operation)];
    let all = [
        "readrandom",
        "seekrandom",
        "readseq",
        "overwrite",
        "deleterandom",
    ];
    for operation in all {
        let told = found(fixture, Lie::None, &phase(operation));
        assert_eq!(told, (0, 0), "{operation}");
    }
    for (lie, operation, is_read) in [
        (Lie::DropPut, "readrandom", true),
        (Lie::DropPut, "overwrite", false),
        (Lie::ForgetDelete, "deleterandom", false),
        (Lie::WrongValue, "readrandom", true),
        (Lie::NotFound, "readrandom", true),
        (Lie::SkipInScan, "readseq", true),
        (Lie::SkipInScan, "seekrandom", true),
        (Lie::ShortScan, "readseq", true),
        (Lie::ShortScan, "seekrandom", true),
    ] {
        let (wrong, after) = found(fixture, lie, &phase(operation));
        let seen = if is_read { wrong } else { after };
        assert!(seen > 0, "{lie:?} {operation}");
    }
}
