//! Reuse distances, and the miss-ratio curve of an LRU cache that follows from them.
//!
//! SHARDS of fixed size (Waldspurger, Park, Garthwaite, Ahmad: "Efficient MRC construction with
//! SHARDS", FAST'15): only keys whose hash is in the sample are followed, and distances among them
//! are scaled up. The accesses that came and the sample does not stand for go to distance 0 (the
//! paper's SHARDS-adj); those of which it has too many, because its keys are hot, are taken from the
//! shortest distances. The sample is halved when it outgrows its bound.

use super::log_buckets::LogBuckets;
use super::summary::Reuse;
use super::{sampled, HashOf};

/// The most keys that are followed.
const KEYS_MAX: usize = 1 << 15;
/// Accesses between two renumberings.
const SLOTS: usize = 4 * KEYS_MAX;
/// The most points of a curve.
const POINTS_MAX: usize = 256;

/// Follows a stream of accesses.
#[derive(Debug)]
pub struct ReuseDistances {
    mask: u64,
    keys_max: usize,
    accesses: u64,
    first: f64,
    distances: LogBuckets,
    /// The slot of the last access to each key.
    last: HashOf<u32>,
    slots: Marks,
    next: usize,
}

impl Default for ReuseDistances {
    fn default() -> Self {
        ReuseDistances::of(KEYS_MAX)
    }
}

impl ReuseDistances {
    fn of(keys_max: usize) -> Self {
        ReuseDistances {
            mask: 0,
            keys_max,
            accesses: 0,
            first: 0.0,
            distances: LogBuckets::default(),
            last: HashOf::default(),
            slots: Marks::new(SLOTS),
            next: 0,
        }
    }

    /// Notes an access to the key with this hash.
    #[inline]
    pub fn note(&mut self, hash: u64) {
        self.accesses += 1;
        if sampled(hash, self.mask) {
            self.follow(hash);
        }
    }

    fn follow(&mut self, hash: u64) {
        if self.next == SLOTS {
            self.renumber();
        }
        let weight = (self.mask + 1) as f64;
        let slot = self.next as u32;
        self.next += 1;
        match self.last.insert(hash, slot) {
            Some(before) => {
                let between = self.last.len() - self.slots.up_to(before as usize);
                self.slots.change(before as usize, -1);
                self.slots.change(slot as usize, 1);
                self.distances.add(between as u64 * (self.mask + 1), weight);
            }
            None => {
                self.slots.change(slot as usize, 1);
                self.first += weight;
                while self.last.len() > self.keys_max {
                    self.mask = self.mask << 1 | 1;
                    let mask = self.mask;
                    self.last.retain(|hash, _| sampled(*hash, mask));
                    self.renumber();
                }
            }
        }
    }

    /// Moves the slots in use to the front, in order.
    #[cold]
    fn renumber(&mut self) {
        let mut slots: Vec<&mut u32> = self.last.values_mut().collect();
        slots.sort_unstable();
        self.next = slots.len();
        for (number, slot) in slots.into_iter().enumerate() {
            *slot = number as u32;
        }
        self.slots.fill(self.next);
    }

    /// The summary; `None` without accesses.
    pub fn summary(mut self) -> Option<Reuse> {
        if self.accesses == 0 {
            return None;
        }
        let accesses = self.accesses as f64;
        self.distances
            .correct(accesses - self.distances.total() - self.first);
        let mut hits = 0.0;
        let mut miss_ratio: Vec<(u64, f64)> = Vec::new();
        for (_, high, weight) in self.distances.buckets() {
            hits += weight;
            miss_ratio.push((high + 1, (1.0 - hits / accesses).clamp(0.0, 1.0)));
        }
        Some(Reuse {
            accesses: self.accesses,
            share: 1.0 / (self.mask + 1) as f64,
            first_accesses: self.first,
            distances: self.distances.buckets().collect(),
            miss_ratio: thinned(miss_ratio, POINTS_MAX),
        })
    }
}

/// Every n-th point, counted from the last one, so that at most `most` are left.
fn thinned<T>(points: Vec<T>, most: usize) -> Vec<T> {
    let (each, last) = (points.len().div_ceil(most).max(1), points.len().max(1) - 1);
    let kept = |index: &usize| (last - index).is_multiple_of(each);
    let numbered = points.into_iter().enumerate();
    numbered
        .filter(|(index, _)| kept(index))
        .map(|(_, point)| point)
        .collect()
}

/// Marks that can be counted from the front, in a Fenwick tree.
#[derive(Debug)]
struct Marks {
    tree: Vec<u32>,
}

impl Marks {
    fn new(slots: usize) -> Self {
        Marks {
            tree: vec![0; slots + 1],
        }
    }

    /// The number of marks in slots `0..=slot`.
    fn up_to(&self, slot: usize) -> usize {
        let (mut at, mut sum) = (slot + 1, 0);
        while at > 0 {
            sum += self.tree[at] as usize;
            at &= at - 1;
        }
        sum
    }

    /// Sets a mark (1) or takes it away (-1).
    fn change(&mut self, slot: usize, by: i32) {
        let mut at = slot + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add_signed(by);
            at += at & at.wrapping_neg();
        }
    }

    /// Marks the first `count` slots and no other.
    fn fill(&mut self, count: usize) {
        for at in 1..self.tree.len() {
            let lowest = at & at.wrapping_neg();
            // Node `at` holds the sum of the slots `at - lowest .. at`.
            self.tree[at] = count.saturating_sub(at - lowest).min(lowest) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::mix;
    use proptest::prelude::*;

    /// Distances by definition: a list of keys with the last accessed one in front.
    fn by_list(keys: &[u64]) -> (f64, Vec<u64>) {
        let (mut list, mut first, mut distances) = (Vec::new(), 0.0, Vec::new());
        for key in keys {
            match list.iter().position(|other| other == key) {
                Some(position) => {
                    list.remove(position);
                    distances.push(position as u64);
                }
                None => first += 1.0,
            }
            list.insert(0, *key);
        }
        distances.sort_unstable();
        (first, distances)
    }

    proptest! {
        #[test]
        fn few_keys_are_followed_exactly(keys in proptest::collection::vec(0u64..15, 1..200)) {
            let mut reuse = ReuseDistances::default();
            keys.iter().for_each(|key| reuse.note(mix(*key)));
            let summary = reuse.summary().unwrap();
            let (first, distances) = by_list(&keys);
            prop_assert_eq!(summary.first_accesses, first);
            let counted: Vec<u64> = summary
                .distances
                .iter()
                .flat_map(|(low, _, weight)| vec![*low; *weight as usize])
                .collect();
            prop_assert_eq!(counted, distances);
        }
    }

    /// Two hot keys in the sample, which is of one key in 16: a negative number of accesses was said
    /// to have distance 0, which the schema of the message does not allow.
    #[test]
    fn hot_keys_in_the_sample_make_no_distance_negative() {
        let mut reuse = ReuseDistances::of(10);
        (0..100u64).for_each(|cold| reuse.note(cold << 24));
        (0..1000).for_each(|access| reuse.note(access % 2));
        let summary = reuse.summary().unwrap();
        assert!(summary.share < 1.0);
        let weights = summary.distances.iter().map(|(_, _, weight)| *weight);
        assert!(weights.clone().all(|weight| weight > 0.0), "{summary:?}");
        assert_eq!(weights.sum::<f64>() + summary.first_accesses, 1100.0);
        let mut misses = summary.miss_ratio.iter().map(|(_, share)| *share);
        assert!(misses.all(|share| (0.0..1.0).contains(&share)));
    }

    /// Keys 0..n in turn, again and again: a cache of n keys always hits, a smaller one never does.
    #[test]
    fn a_loop_fits_or_does_not_in_the_sample_too() {
        let keys = 200_000u64;
        let mut reuse = ReuseDistances::of(4096);
        for access in 0..keys * 5 {
            reuse.note(mix(access % keys));
        }
        let summary = reuse.summary().unwrap();
        assert!(summary.share < 1.0);
        for (cache_keys, miss_ratio) in summary.miss_ratio {
            if (cache_keys as f64) < keys as f64 * 0.9 {
                assert!(miss_ratio > 0.95, "{cache_keys} {miss_ratio}");
            }
            if cache_keys as f64 > keys as f64 * 1.2 {
                assert!((miss_ratio - 0.2).abs() < 0.05, "{cache_keys} {miss_ratio}");
            }
        }
        assert!((summary.first_accesses / keys as f64 - 1.0).abs() < 0.1);
    }
}
