//! The keys that exist while a mix runs: those that existed at the beginning and those inserted
//! since, without the oldest ones, which were deleted.
//!
//! A key has a *position* in the order of insertion, from 0. Its number follows from its position.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::protocol::Mix;
use crate::random::Span;

/// How many inserts may be in progress at once. YCSB-cpp has a window of the same size. It fails if
/// the window is full; here the thread that is ahead waits.
const WINDOW: u64 = 1 << 16;

/// A counter alone on its cache line and on the next line, which the processor also fetches.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

/// The keys of a mix, shared by its threads.
#[derive(Debug)]
pub struct Records {
    first: u64,
    records: u64,
    insert_from: u64,
    /// Position of the oldest key that is not deleted.
    begin: Counter,
    /// Inserts that threads have claimed.
    claimed: Counter,
    /// Inserts that are done, counted up to the first one that is not done.
    acknowledged: Counter,
    /// For each insert of the window, its number plus one once it is done. Empty if no thread needs
    /// to know.
    window: Vec<AtomicU64>,
    /// Whether a thread left without doing an insert that it had claimed. Then no more are
    /// acknowledged.
    abandoned: AtomicBool,
}

impl Records {
    /// The keys of `mix`; `watched` if threads must know which inserts are done.
    pub fn new(mix: &Mix, watched: bool) -> Self {
        let slots = if watched { WINDOW } else { 0 };
        Records {
            first: mix.first,
            records: mix.records,
            insert_from: mix.insert_from.unwrap_or(mix.first + mix.records),
            begin: Counter::default(),
            claimed: Counter::default(),
            acknowledged: Counter::default(),
            window: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            abandoned: AtomicBool::new(false),
        }
    }

    /// The number of the key at `position`.
    #[inline]
    pub fn number(&self, position: u64) -> u64 {
        match position.checked_sub(self.records) {
            None => self.first + position,
            Some(insert) => self.inserted(insert),
        }
    }

    /// The positions of the keys that exist.
    #[inline]
    pub fn live(&self) -> Span {
        // Read the beginning first: the end only moves away from it.
        let begin = self.begin.0.load(Ordering::Acquire);
        Span {
            begin,
            end: self.records + self.acknowledged.0.load(Ordering::Acquire),
        }
    }

    /// Claims the next insert. The caller must call [`Records::acknowledge`] when it is done, or
    /// [`Records::abandon`].
    #[inline]
    pub fn claim_insert(&self) -> u64 {
        let insert = self.claimed.0.fetch_add(1, Ordering::Relaxed);
        if !self.window.is_empty() {
            while insert - self.acknowledged.0.load(Ordering::Acquire) >= WINDOW
                && !self.abandoned.load(Ordering::Relaxed)
            {
                std::thread::yield_now();
            }
        }
        insert
    }

    /// The number of the key of an insert.
    #[inline]
    pub fn inserted(&self, insert: u64) -> u64 {
        self.insert_from + insert
    }

    /// Insert number `insert` is done. Its key exists once all earlier inserts are done, too.
    #[inline]
    pub fn acknowledge(&self, insert: u64) {
        if self.window.is_empty() {
            return;
        }
        // If two threads finish at the same time, one of them sees both inserts: each writes its
        // own slot before it reads the other's, and the order is sequentially consistent.
        let (order, acknowledged) = (Ordering::SeqCst, &self.acknowledged.0);
        self.slot(insert).store(insert + 1, order);
        let mut next = acknowledged.load(order);
        while self.slot(next).load(order) == next + 1 {
            let advanced = acknowledged.compare_exchange(next, next + 1, order, order);
            next = advanced.map_or_else(|current| current, |_| next + 1);
        }
    }

    /// A thread leaves without doing an insert that it has claimed.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// The position of the oldest key, which the caller has to delete; `None` if it is the only
    /// key.
    #[inline]
    pub fn claim_oldest(&self) -> Option<u64> {
        let end = self.live().end;
        let next = |begin| (begin + 1 < end).then_some(begin + 1);
        let begin = &self.begin.0;
        let claimed = begin.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        claimed.ok()
    }

    fn slot(&self, insert: u64) -> &AtomicU64 {
        &self.window[(insert % WINDOW) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn records(first: u64, records: u64, insert_from: Option<u64>) -> Records {
        let mut mix = json!({
            "operations": {"insert": 1.0}, "keys": {"distribution": "uniform"},
            "first": first, "records": records,
        });
        if let Some(number) = insert_from {
            mix["insert_from"] = json!(number);
        }
        Records::new(&serde_json::from_value(mix).unwrap(), true)
    }

    #[test]
    fn inserts_go_on_where_the_records_end_or_elsewhere() {
        let near = records(5, 3, None);
        let numbers: Vec<u64> = (0..5).map(|position| near.number(position)).collect();
        assert_eq!(numbers, [5, 6, 7, 8, 9]);
        let far = records(5, 3, Some(100));
        let numbers: Vec<u64> = (0..5).map(|position| far.number(position)).collect();
        assert_eq!(numbers, [5, 6, 7, 100, 101]);
    }

    #[test]
    fn the_oldest_are_deleted_until_one_is_left() {
        let records = records(0, 3, None);
        assert_eq!(records.claim_oldest(), Some(0));
        assert_eq!(records.claim_oldest(), Some(1));
        assert_eq!(records.claim_oldest(), None);
        let insert = records.claim_insert();
        assert_eq!(records.claim_oldest(), None);
        records.acknowledge(insert);
        assert_eq!(records.live(), Span { begin: 2, end: 4 });
        assert_eq!(records.claim_oldest(), Some(2));
    }

    proptest! {
        /// In whatever order inserts finish, an insert is visible exactly when all earlier ones are
        /// done.
        #[test]
        fn an_insert_is_seen_when_all_before_it_are_in(
            order in Just((0..40u64).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let records = records(0, 10, None);
            for expected in 0..40 {
                prop_assert_eq!(records.claim_insert(), expected);
            }
            let mut inside = BTreeSet::new();
            for insert in order {
                records.acknowledge(insert);
                inside.insert(insert);
                let visible = (0..40).take_while(|insert| inside.contains(insert)).count() as u64;
                prop_assert_eq!(records.live().end, 10 + visible);
            }
        }
    }

    /// Four threads insert far more keys than the window holds: none is lost, and none is visible
    /// early.
    #[test]
    fn threads_insert_side_by_side() {
        let records = records(0, 1, None);
        let (threads, each) = (4, 50_000);
        let done: Vec<AtomicBool> = (0..threads * each)
            .map(|_| AtomicBool::new(false))
            .collect();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..each {
                        let insert = records.claim_insert();
                        done[insert as usize].store(true, Ordering::Release);
                        records.acknowledge(insert);
                        let visible = records.live().end - 1;
                        if visible > 0 {
                            assert!(done[visible as usize - 1].load(Ordering::Acquire));
                        }
                    }
                });
            }
        });
        assert_eq!(records.live().end, 1 + threads * each);
    }
}
