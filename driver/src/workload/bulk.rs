//! Load phases that nobody measures: several threads write what one would have written, and
//! compactions wait for most of it. What they would make of the first part, `sorted` writes.

use crate::engine::{Database, Result};
use crate::protocol::{
    KeyFormat, KeyPlacement, MixOperation, Operation, Phase, PhaseKind, Workload,
};

/// The share of a load after which compactions wait no longer. What follows is several times what
/// the levels above the last one hold, each of which is some ten times smaller than the next. So
/// these levels come about as in any load.
pub const HELD: f64 = 2.0 / 3.0;

/// Tables of level 0 after which compactions run, too: to merge many more at once is slow.
const WAITING_MANY: u64 = 128;

/// So few that these compactions are over.
const WAITING_FEW: u64 = 16;

/// Whether `phase` writes new keys in random order. Then nobody can tell from the database which of
/// them were written first. Keys that are written in their own order make tables that do not
/// overlap, and other trees.
pub fn is_bulk(phase: &Phase, workload: &Workload) -> bool {
    let hashed = matches!(
        workload.keys,
        Some(KeyFormat::Ycsb {
            order: KeyPlacement::Hashed,
            ..
        })
    );
    let new_keys = match (&phase.mix, phase.operation) {
        (None, Some(Operation::FillUniqueRandom)) => {
            let whole = phase.operations_whole();
            whole.is_some_and(|whole| whole <= workload.num)
        }
        (Some(mix), None) => hashed && mix.operations.keys().eq([&MixOperation::Insert]),
        _ => false,
    };
    let paced = phase.rate_ops_s.is_some() || phase.rate.is_some() || phase.duration_s.is_some();
    phase.kind == PhaseKind::Load && new_keys && !paced && phase.companions.is_empty()
}

/// `phase`, which [`is_bulk`], as `threads` perform it, however many it has itself: together they
/// write what one thread would write.
pub fn shared(phase: &Phase, threads: usize) -> Option<Phase> {
    let operations = phase.operations_whole()?;
    Some(Phase {
        threads: threads.min(usize::try_from(operations).unwrap_or(usize::MAX)),
        operations: Some(operations),
        operations_per_thread: None,
        ..phase.clone()
    })
}

/// Compactions that wait while most of a database is loaded. Otherwise the engine compacts again and
/// again what it has just compacted.
pub struct HeldCompactions<'a> {
    database: &'a dyn Database,
    /// Operations after which they wait no longer.
    until: u64,
    holding: bool,
}

impl<'a> HeldCompactions<'a> {
    /// Lets them wait in a load of `whole` operations, of which so many are `written`; `None` if
    /// the engine cannot do that.
    pub fn begin(database: &'a dyn Database, whole: u64, written: u64) -> Result<Option<Self>> {
        let held = HeldCompactions {
            database,
            until: ((whole as f64 * HELD) as u64).saturating_sub(written),
            holding: true,
        };
        Ok(database.hold_compactions(true)?.then_some(held))
    }

    /// Looks after so many further `operations` whether they have to run, or may wait again.
    pub fn look(&mut self, operations: u64) -> Result<()> {
        let waiting = self.database.property("rocksdb.num-files-at-level0");
        let waiting = waiting.and_then(|text| text.parse().ok()).unwrap_or(0);
        let limit = match self.holding {
            true => WAITING_MANY,
            false => WAITING_FEW,
        };
        self.hold(operations < self.until && waiting < limit)
    }

    /// Lets them run.
    pub fn end(mut self) -> Result<()> {
        self.hold(false)
    }

    fn hold(&mut self, hold: bool) -> Result<()> {
        if hold != self.holding {
            self.database.hold_compactions(hold)?;
            self.holding = hold;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Identity, OptionNotTaken, Session};
    use serde_json::{json, Value};
    use std::cell::RefCell;
    use std::sync::Mutex;
    use std::time::Duration;

    fn is_bulk_with(phase: Value, changes: &[(&str, Value)]) -> bool {
        let mut workload = json!({
            "key_bytes": 16, "value_bytes": 100, "compression_ratio": 0.5, "num": 1000,
            "durability": "wal", "phases": [phase],
        });
        for (name, value) in changes {
            workload[*name] = value.clone();
        }
        let workload: Workload = serde_json::from_value(workload).unwrap();
        is_bulk(&workload.phases[0], &workload)
    }

    fn load(changes: &[(&str, Value)]) -> Value {
        let mut phase = json!({"name": "load", "kind": "load", "operations_per_thread": 1000});
        for (name, value) in changes {
            phase[*name] = value.clone();
        }
        phase
    }

    #[test]
    fn new_keys_in_random_order_are_bulk_and_nothing_else_is() {
        let (unique, threads) = (json!("filluniquerandom"), json!(2));
        let operation = |name: &str| ("operation", json!(name));
        assert!(is_bulk_with(load(&[("operation", unique.clone())]), &[]));
        assert!(is_bulk_with(
            load(&[("operation", unique.clone()), ("threads", threads)]),
            &[("num", json!(2000))]
        ));
        // Keys in their own order, keys that are written twice, a pace, a phase that is measured.
        assert!(!is_bulk_with(load(&[operation("fillseq")]), &[]));
        assert!(!is_bulk_with(load(&[operation("fillrandom")]), &[]));
        assert!(!is_bulk_with(
            load(&[("operation", unique.clone())]),
            &[("num", json!(999))]
        ));
        for change in [("rate_ops_s", json!(9.0)), ("kind", json!("measure"))] {
            assert!(!is_bulk_with(
                load(&[("operation", unique.clone()), change]),
                &[]
            ));
        }
        let mix = |operations: Value| {
            let keys = json!({"distribution": "uniform"});
            (
                "mix",
                json!({"operations": operations, "records": 500, "keys": keys}),
            )
        };
        let ycsb = |order: &str| {
            let keys = json!({"format": "ycsb", "prefix": "u", "zero_padding": 1, "order": order});
            [("keys", keys), ("key_bytes", json!(24))]
        };
        let inserts = load(&[mix(json!({"insert": 1.0}))]);
        assert!(is_bulk_with(inserts.clone(), &ycsb("hashed")));
        assert!(!is_bulk_with(inserts.clone(), &ycsb("ordered")));
        assert!(!is_bulk_with(inserts, &[]));
        let updates = load(&[mix(json!({"insert": 0.5, "update": 0.5}))]);
        assert!(!is_bulk_with(updates, &ycsb("hashed")));
    }

    #[test]
    fn threads_share_the_work_of_one_or_of_several() {
        let phase =
            |changes: &[(&str, Value)]| -> Phase { serde_json::from_value(load(changes)).unwrap() };
        let done = shared(&phase(&[]), 3).unwrap();
        let shares: Vec<_> = (0..3).map(|thread| done.operations_of(thread)).collect();
        assert_eq!(shares, [Some(334), Some(333), Some(333)]);
        let few = phase(&[("operations_per_thread", json!(2))]);
        assert_eq!(shared(&few, 3).unwrap().threads, 2);
        let several = shared(&phase(&[("threads", json!(16))]), 3).unwrap();
        assert_eq!(several.threads, 3);
        assert_eq!(several.operations_whole(), Some(16_000));
    }

    /// A database with tables in level 0, of which somebody else decides how many there are.
    struct Tables<'a> {
        waiting: &'a Mutex<u64>,
        held: &'a Mutex<Vec<bool>>,
    }

    impl Database for Tables<'_> {
        fn identity(&self) -> Identity {
            unreachable!()
        }
        fn options_not_taken(&self) -> Vec<OptionNotTaken> {
            Vec::new()
        }
        fn session(&self) -> Box<dyn Session + '_> {
            unreachable!()
        }
        fn drain(&self, _cancelled: &dyn Fn() -> bool) -> Result<Duration> {
            Ok(Duration::ZERO)
        }
        fn stall_s(&self) -> Option<f64> {
            None
        }
        fn property(&self, _name: &str) -> Option<String> {
            Some(self.waiting.lock().unwrap().to_string())
        }
        fn hold_compactions(&self, hold: bool) -> Result<bool> {
            self.held.lock().unwrap().push(hold);
            Ok(true)
        }
    }

    #[test]
    fn compactions_wait_for_two_thirds_of_a_load_unless_there_are_many_tables() {
        let (waiting, held) = (Mutex::new(0), Mutex::new(Vec::new()));
        let database = Tables {
            waiting: &waiting,
            held: &held,
        };
        let compactions = RefCell::new(
            HeldCompactions::begin(&database, 1000, 66)
                .unwrap()
                .unwrap(),
        );
        let look = |operations, tables| {
            *waiting.lock().unwrap() = tables;
            compactions.borrow_mut().look(operations).unwrap();
            held.lock().unwrap().clone()
        };
        assert_eq!(look(100, 127), [true]);
        assert_eq!(look(200, 128), [true, false]);
        assert_eq!(look(300, 16), [true, false]);
        assert_eq!(look(400, 15), [true, false, true]);
        assert_eq!(look(599, 20), [true, false, true]);
        assert_eq!(look(600, 20), [true, false, true, false]);
        assert_eq!(look(601, 3), [true, false, true, false]);
        compactions.into_inner().end().unwrap();
        let again = HeldCompactions::begin(&database, 9, 0).unwrap().unwrap();
        again.end().unwrap();
        assert_eq!(held.lock().unwrap()[4..], [true, false]);
    }
}
