//! The hottest keys, most of which a sample of keys would miss.

use std::cmp::Reverse;

use super::keys::Key;
use super::numbers::shifted;
use super::{accesses, Group, HashOf};

/// The most keys that are watched.
pub const COUNTERS: usize = 1 << 14;

/// A watched key.
#[derive(Debug, Clone, Copy)]
pub struct Watched {
    /// Its number, if it has one.
    pub number: Option<u64>,
    /// Operations while it was watched, by group.
    pub counts: [u32; 3],
    /// The most operations that it can have had before it was watched.
    pub missed_max: u64,
}

/// Counters for keys that may be hot. Every key is watched from its first operation on. When too
/// many keys are watched, the cooler half is dropped. The highest count among the dropped keys
/// bounds the operations that a key can have had while it was not watched. This is the algorithm of
/// Anderson, Bevin, Lang, Liberty, Rhodes and Thaler ("A high-performance algorithm for identifying
/// frequent items in data streams", IMC 2017): no key with more than about `2 / COUNTERS` of all
/// accesses is lost.
#[derive(Debug)]
pub struct Heavy {
    watched: HashOf<Watched>,
    unseen_max: u64,
}

impl Heavy {
    /// Begins with the hottest keys of `keys`.
    pub fn after<'a>(keys: impl Iterator<Item = (u64, &'a Key)>) -> Self {
        let mut all: Vec<(u64, &Key)> = keys.collect();
        let half = COUNTERS / 2;
        let mut unseen_max = 0;
        if all.len() > half {
            let coldness = |(_, key): &(u64, &Key)| Reverse(accesses(&key.counts));
            unseen_max = coldness(all.select_nth_unstable_by_key(half, coldness).1).0;
            all.truncate(half);
        }
        let watch = |(hash, key): (u64, &Key)| {
            let watched = Watched {
                number: key.number,
                counts: key.counts,
                missed_max: 0,
            };
            (hash, watched)
        };
        Heavy {
            watched: all.into_iter().map(watch).collect(),
            unseen_max,
        }
    }

    /// Notes an operation.
    #[inline]
    pub fn note(&mut self, hash: u64, number: Option<u64>, group: Group) {
        let missed_max = self.unseen_max;
        let watched = self.watched.entry(hash).or_insert(Watched {
            number,
            counts: [0; 3],
            missed_max,
        });
        let count = &mut watched.counts[group as usize];
        *count = count.saturating_add(1);
        if self.watched.len() > COUNTERS {
            self.give_up();
        }
    }

    #[cold]
    fn give_up(&mut self) {
        let most = |watched: &Watched| accesses(&watched.counts) + watched.missed_max;
        let mut all: Vec<u64> = self.watched.values().map(most).collect();
        let middle = all.len() / 2;
        self.unseen_max = *all.select_nth_unstable(middle).1;
        let unseen_max = self.unseen_max;
        self.watched.retain(|_, watched| most(watched) > unseen_max);
    }

    /// Changes the numbers of all keys: the common prefix has lost `cut`.
    pub fn shift(&mut self, cut: &[u8]) {
        for key in self.watched.values_mut() {
            key.number = key.number.map(|number| shifted(number, cut));
        }
    }

    /// The most accesses that a key can have had without being watched.
    pub fn unseen_max(&self) -> u64 {
        self.unseen_max
    }

    /// The keys for which at most a twentieth of the accesses was missed.
    pub fn certain(&self) -> impl Iterator<Item = (u64, &Watched)> {
        self.watched
            .iter()
            .filter(|(_, key)| key.missed_max * 20 <= accesses(&key.counts))
            .map(|(hash, key)| (*hash, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::mix;

    #[test]
    fn a_hot_key_among_a_million_cold_ones_is_counted() {
        let mut heavy = Heavy::after(std::iter::empty());
        for number in 0..1_000_000u64 {
            heavy.note(mix(number), None, Group::Get);
            if number % 100 == 0 {
                heavy.note(mix(u64::MAX), None, Group::Write);
            }
        }
        let certain: Vec<_> = heavy.certain().collect();
        let hot = certain.iter().find(|(hash, _)| *hash == mix(u64::MAX));
        assert_eq!(hot.unwrap().1.counts, [0, 10_000, 0]);
        assert!(heavy.unseen_max() <= 1_010_000 * 2 / COUNTERS as u64 + 1);
    }
}
