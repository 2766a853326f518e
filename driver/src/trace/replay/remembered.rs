//! What the database must hold of the keys that a replay wrote: the last value's hash, of a bounded
//! sample of the keys. The counterpart of the ledger, whose keys have numbers.

use std::collections::HashMap;

use crate::engine::{Database, Result};
use crate::workload::Verification;

use super::hash;

/// Bytes of keys kept at most.
const KEY_BYTES_MAX: usize = 16 << 20;
/// Bytes of values read back at most.
const READ_BACK_BYTES: usize = 256 << 20;

/// The last thing that was done to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Put, with a value of this hash.
    Put(u64),
    /// Handed an operand: the value is the engine's business.
    Merged,
    /// Deleted.
    Deleted,
}

/// A sample of the written keys, by their hash, as the ledger's; for each the fates that may be its
/// last. There are several only where batches of several keys let workers write the same one.
#[derive(Debug, Clone)]
pub struct Remembered {
    keys_max: usize,
    mask: u64,
    key_bytes: usize,
    fates: HashMap<Box<[u8]>, Vec<Fate>>,
}

impl Remembered {
    /// Nothing yet; keeps at least `keys_min` of the written keys, or all of them, unless they are
    /// longer than 16 MiB together.
    pub fn new(keys_min: usize) -> Self {
        Remembered {
            keys_max: keys_min.saturating_mul(4).max(4096),
            mask: 0,
            key_bytes: 0,
            fates: HashMap::new(),
        }
    }

    /// Notes what was done to `key`; `fate` is asked only if the key is kept.
    #[inline]
    pub fn note(&mut self, key: &[u8], fate: impl FnOnce() -> Fate) {
        if hash(key) >> 24 & self.mask == 0 {
            self.keep(key, fate());
        }
    }

    fn keep(&mut self, key: &[u8], fate: Fate) {
        match self.fates.get_mut(key) {
            Some(fates) => *fates = vec![fate],
            None => {
                self.key_bytes += key.len();
                self.fates.insert(key.into(), vec![fate]);
                self.bound();
            }
        }
    }

    fn bound(&mut self) {
        while self.fates.len() > self.keys_max || self.key_bytes > KEY_BYTES_MAX {
            self.raise(self.mask << 1 | 1);
        }
    }

    fn raise(&mut self, mask: u64) {
        self.mask |= mask;
        let mask = self.mask;
        self.fates.retain(|key, _| hash(key) >> 24 & mask == 0);
        self.key_bytes = self.fates.keys().map(|key| key.len()).sum();
    }

    /// Adds what the workers of a later phase remember, which replaces what was before.
    pub fn add_phase(&mut self, workers: Vec<Remembered>) {
        let mut phase: HashMap<Box<[u8]>, Vec<Fate>> = HashMap::new();
        for worker in workers {
            self.mask |= worker.mask;
            for (key, fates) in worker.fates {
                phase.entry(key).or_default().extend(fates);
            }
        }
        self.fates.extend(phase);
        self.raise(self.mask);
        self.bound();
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.fates.is_empty()
    }

    /// Forgets everything: somebody else may have written since.
    pub fn clear(&mut self) {
        self.fates.clear();
        (self.mask, self.key_bytes) = (0, 0);
    }

    /// Looks the keys up in `database`.
    pub fn verify(&self, database: &dyn Database) -> Result<Verification> {
        let mut session = database.session();
        let mut verification = Verification::default();
        let mut bytes_read = 0;
        for (key, fates) in &self.fates {
            if bytes_read > READ_BACK_BYTES {
                break;
            }
            let mut found_hash = None;
            session.get(key, &mut |value| {
                bytes_read += value.len();
                found_hash = Some(hash(value));
            })?;
            verification.keys_checked += 1;
            let explains = |fate: &Fate| match (fate, found_hash) {
                (Fate::Put(hash), Some(found)) => *hash == found,
                (Fate::Merged, Some(_)) | (Fate::Deleted, None) => true,
                _ => false,
            };
            if !fates.iter().any(explains) {
                let deleted = fates.iter().all(|fate| *fate == Fate::Deleted);
                if found_hash.is_none() || deleted {
                    verification.keys_lost += 1;
                } else {
                    verification.keys_wrong += 1;
                }
            }
        }
        Ok(verification)
    }
}

/// The hash of a value, to be remembered.
#[inline]
pub fn put(value: &[u8]) -> Fate {
    Fate::Put(hash(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{load, Durability, Options};

    #[test]
    fn many_keys_are_sampled_within_the_bound() {
        let mut remembered = Remembered::new(100);
        for number in 0..100_000u32 {
            remembered.note(&number.to_be_bytes(), || put(b"value"));
        }
        let kept = remembered.fates.len();
        assert!((1024..=4096).contains(&kept), "{kept}");
        assert_eq!(remembered.key_bytes, kept * 4);
    }

    #[test]
    fn lost_and_wrong_keys_are_told_apart() {
        let engine = load("memory", None).unwrap();
        let database = engine
            .open("/nowhere".as_ref(), &Options::new(), Durability::Wal)
            .unwrap();
        let mut session = database.session();
        let mut remembered = Remembered::new(100);
        for key in [b"right", b"wrong", b"there"] {
            session.put(key, b"value").unwrap();
        }
        remembered.note(b"right", || put(b"value"));
        remembered.note(b"wrong", || put(b"other"));
        remembered.note(b"there", || Fate::Deleted);
        remembered.note(b"lost", || put(b"value"));
        remembered.note(b"gone", || Fate::Deleted);
        let mut one = Remembered::new(100);
        one.note(b"race", || put(b"value"));
        let mut two = Remembered::new(100);
        two.note(b"race", || Fate::Deleted);
        remembered.add_phase(vec![one, two]);
        let found = remembered.verify(&*database).unwrap();
        let counts = (found.keys_checked, found.keys_lost, found.keys_wrong);
        assert_eq!(counts, (6, 2, 1));
    }
}
