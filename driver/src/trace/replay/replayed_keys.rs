//! What the database must hold of the keys that a replay wrote: the hash of the last value, for a
//! bounded sample of the keys. The ledger does the same for keys that have numbers.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64 as hash;

use crate::engine::{Database, Result};
use crate::workload::Verification;

/// The most bytes of keys that are kept.
const KEY_BYTES_MAX: usize = 16 << 20;
/// The most bytes of values that are read back.
const READ_BACK_BYTES: usize = 256 << 20;

/// What was last done to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// Put, with a value that has this hash.
    Put(u64),
    /// Merged: the driver does not know the value.
    Merged,
    /// Deleted.
    Deleted,
}

/// A sample of the written keys, by their hash as in the ledger, each with its possible states. A
/// key has several only if several workers wrote it, through batches of several keys.
#[derive(Debug, Clone)]
pub struct ReplayedKeys {
    keys_max: usize,
    mask: u64,
    key_bytes: usize,
    states: HashMap<Box<[u8]>, Vec<KeyState>>,
}

impl ReplayedKeys {
    /// An empty sample. It keeps at least `keys_min` of the written keys (all if fewer were
    /// written), unless these are longer than 16 MiB together.
    pub fn new(keys_min: usize) -> Self {
        ReplayedKeys {
            keys_max: keys_min.saturating_mul(4).max(4096),
            mask: 0,
            key_bytes: 0,
            states: HashMap::new(),
        }
    }

    /// Notes what was done to `key`; `state` is called only if the key is in the sample.
    #[inline]
    pub fn note(&mut self, key: &[u8], state: impl FnOnce() -> KeyState) {
        if hash(key) >> 24 & self.mask == 0 {
            self.keep(key, state());
        }
    }

    fn keep(&mut self, key: &[u8], state: KeyState) {
        match self.states.get_mut(key) {
            Some(states) => *states = vec![state],
            None => {
                self.key_bytes += key.len();
                self.states.insert(key.into(), vec![state]);
                self.bound();
            }
        }
    }

    fn bound(&mut self) {
        while self.states.len() > self.keys_max || self.key_bytes > KEY_BYTES_MAX {
            self.raise(self.mask << 1 | 1);
        }
    }

    fn raise(&mut self, mask: u64) {
        self.mask |= mask;
        let mask = self.mask;
        self.states.retain(|key, _| hash(key) >> 24 & mask == 0);
        self.key_bytes = self.states.keys().map(|key| key.len()).sum();
    }

    /// Adds the samples of all workers of a later phase. Their states replace earlier ones.
    pub fn add_phase(&mut self, workers: Vec<ReplayedKeys>) {
        let mut phase: HashMap<Box<[u8]>, Vec<KeyState>> = HashMap::new();
        for worker in workers {
            self.mask |= worker.mask;
            for (key, states) in worker.states {
                phase.entry(key).or_default().extend(states);
            }
        }
        self.states.extend(phase);
        self.raise(self.mask);
        self.bound();
    }

    /// Whether no key was written.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Forgets everything, because somebody else may have written since.
    pub fn clear(&mut self) {
        self.states.clear();
        (self.mask, self.key_bytes) = (0, 0);
    }

    /// Looks up the keys in `database`.
    pub fn verify(&self, database: &dyn Database) -> Result<Verification> {
        let mut session = database.session();
        let mut verification = Verification::default();
        let mut bytes_read = 0;
        for (key, states) in &self.states {
            if bytes_read > READ_BACK_BYTES {
                break;
            }
            let mut found_hash = None;
            session.get(key, &mut |value| {
                bytes_read += value.len();
                found_hash = Some(hash(value));
            })?;
            verification.keys_checked += 1;
            let explains = |state: &KeyState| match (state, found_hash) {
                (KeyState::Put(hash), Some(in_database)) => *hash == in_database,
                (KeyState::Merged, Some(_)) | (KeyState::Deleted, None) => true,
                _ => false,
            };
            if !states.iter().any(explains) {
                let deleted = states.iter().all(|state| *state == KeyState::Deleted);
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

/// The state of a key that was put: it has the hash of the value.
#[inline]
pub fn put(value: &[u8]) -> KeyState {
    KeyState::Put(hash(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{load, Durability, Options};

    #[test]
    fn many_keys_are_sampled_within_the_bound() {
        let mut replayed_keys = ReplayedKeys::new(100);
        for number in 0..100_000u32 {
            replayed_keys.note(&number.to_be_bytes(), || put(b"value"));
        }
        let kept = replayed_keys.states.len();
        assert!((1024..=4096).contains(&kept), "{kept}");
        assert_eq!(replayed_keys.key_bytes, kept * 4);
    }

    #[test]
    fn lost_and_wrong_keys_are_told_apart() {
        let engine = load("memory", None).unwrap();
        let database = engine
            .open("/nowhere".as_ref(), &Options::new(), Durability::Wal)
            .unwrap();
        let mut session = database.session();
        let mut replayed_keys = ReplayedKeys::new(100);
        for key in [b"right", b"wrong", b"there"] {
            session.put(key, b"value").unwrap();
        }
        replayed_keys.note(b"right", || put(b"value"));
        replayed_keys.note(b"wrong", || put(b"other"));
        replayed_keys.note(b"there", || KeyState::Deleted);
        replayed_keys.note(b"lost", || put(b"value"));
        replayed_keys.note(b"gone", || KeyState::Deleted);
        let mut one = ReplayedKeys::new(100);
        one.note(b"race", || put(b"value"));
        let mut two = ReplayedKeys::new(100);
        two.note(b"race", || KeyState::Deleted);
        replayed_keys.add_phase(vec![one, two]);
        let read_back = replayed_keys.verify(&*database).unwrap();
        let counts = (
            read_back.keys_checked,
            read_back.keys_lost,
            read_back.keys_wrong,
        );
        assert_eq!(counts, (6, 2, 1));
    }
}
