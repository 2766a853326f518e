//! What was done to each key: to all keys, or to the keys of a sample by hash.

use super::numbers::shifted;
use super::{sampled, Group, HashOf};

/// The most keys that are kept: about 90 MB, and 130 MB while the table grows.
pub const KEYS_MAX: usize = 1 << 20;

/// What was done to one key.
#[derive(Debug, Clone, Copy, Default)]
pub struct Key {
    /// Its number, if it has one.
    pub number: Option<u64>,
    /// Operations by group.
    pub counts: [u32; 3],
    /// The number of the operation that last wrote it; 0 if none did, or if it was deleted since.
    written: u64,
}

/// Adaptive sampling (Wegman; Flajolet, Computing 43, 1990), as in the driver's ledger. A key is
/// kept if its hash ends in `level` zero bits. The level rises when there are too many keys. So a
/// key that is kept was kept from its first operation on.
#[derive(Debug, Default)]
pub struct Keys {
    kept: HashOf<Key>,
    keys_max: usize,
    mask: u64,
}

impl Keys {
    /// Keeps at most `keys_max` keys.
    pub fn new(keys_max: usize) -> Self {
        Keys {
            keys_max,
            ..Keys::default()
        }
    }

    /// Whether the key with this hash is kept.
    #[inline]
    pub fn keeps(&self, hash: u64) -> bool {
        sampled(hash, self.mask)
    }

    /// Notes operation `operation` (counted from 1) on a key that is kept. For a get of a written
    /// key, returns the number of operations since the write.
    #[inline]
    pub fn note(
        &mut self,
        hash: u64,
        number: Option<u64>,
        group: Group,
        deletes: bool,
        operation: u64,
    ) -> Option<u64> {
        let key = self.kept.entry(hash).or_default();
        key.number = number;
        let count = &mut key.counts[group as usize];
        *count = count.saturating_add(1);
        match group {
            Group::Write => key.written = if deletes { 0 } else { operation },
            Group::Get if key.written > 0 => return Some(operation - key.written),
            Group::Get | Group::Seek => {}
        }
        None
    }

    /// Whether there are more keys than may be kept.
    #[inline]
    pub fn too_many(&self) -> bool {
        self.kept.len() > self.keys_max
    }

    /// Halves the sample until it is small enough.
    pub fn shrink(&mut self) {
        while self.too_many() {
            self.mask = self.mask << 1 | 1;
            let mask = self.mask;
            self.kept.retain(|hash, _| sampled(*hash, mask));
        }
    }

    /// Changes the numbers of all keys: the common prefix has lost `cut`.
    pub fn shift(&mut self, cut: &[u8]) {
        for key in self.kept.values_mut() {
            key.number = key.number.map(|number| shifted(number, cut));
        }
    }

    /// The number of keys that each kept key represents.
    pub fn weight(&self) -> u64 {
        self.mask + 1
    }

    /// Estimated number of distinct keys.
    pub fn distinct(&self) -> f64 {
        self.kept.len() as f64 * self.weight() as f64
    }

    /// The kept keys by hash.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Key)> {
        self.kept.iter().map(|(hash, key)| (*hash, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::mix;

    #[test]
    fn a_sample_stands_for_all_keys() {
        let mut keys = Keys::new(4096);
        for operation in 1..=600_000u64 {
            let hash = mix(operation % 200_000);
            if keys.keeps(hash) {
                keys.note(hash, None, Group::Get, false, operation);
                keys.shrink();
            }
        }
        assert!(keys.kept.len() <= 4096 && keys.weight() > 1);
        assert!(
            (keys.distinct() / 200_000.0 - 1.0).abs() < 0.06,
            "{}",
            keys.distinct()
        );
        assert!(keys.iter().all(|(_, key)| key.counts == [3, 0, 0]));
    }

    #[test]
    fn a_get_knows_the_write_before_it() {
        let mut keys = Keys::new(10);
        let mut note = |group, deletes, operation| keys.note(7, None, group, deletes, operation);
        assert_eq!(note(Group::Get, false, 1), None);
        assert_eq!(note(Group::Write, false, 2), None);
        assert_eq!(note(Group::Get, false, 5), Some(3));
        assert_eq!(note(Group::Get, false, 6), Some(4));
        assert_eq!(note(Group::Write, true, 7), None);
        assert_eq!(note(Group::Get, false, 8), None);
    }
}
