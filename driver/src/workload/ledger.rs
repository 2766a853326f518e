//! The ledger: for a bounded sample of the written keys, what the database must hold.
//!
//! A key is in the sample if its hash ends in `level` zero bits. The level rises when the sample
//! outgrows its bound. This is the adaptive sampling of Wegman, as analysed by Flajolet ("On
//! adaptive sampling", Computing 43, 1990). So memory does not grow with the number of keys, and
//! all threads agree on the sample. `sample size * 2^level` estimates the number of distinct keys
//! with a standard error of about `1.2 / sqrt(bound)`.

use std::collections::HashMap;

use crate::random::{mix, Version};

/// The most keys that are kept, unless more must be read back. The estimate of distinct keys then
/// has a standard error of about 2 %, and the sample fits into the processor's cache.
const BOUND: usize = 4096;

/// What a thread last did to a key. In files it is a version or null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(from = "Option<Version>", into = "Option<Version>")]
pub enum KeyState {
    /// Written with this version.
    Written(Version),
    /// Deleted.
    Deleted,
}

impl From<Option<Version>> for KeyState {
    fn from(version: Option<Version>) -> Self {
        version.map_or(KeyState::Deleted, KeyState::Written)
    }
}

impl From<KeyState> for Option<Version> {
    fn from(state: KeyState) -> Self {
        match state {
            KeyState::Written(version) => Some(version),
            KeyState::Deleted => None,
        }
    }
}

/// The sampled keys that one thread wrote in one phase.
#[derive(Debug, Clone)]
pub struct ThreadLedger {
    seed: u64,
    bound: usize,
    mask: u64,
    last: HashMap<u64, KeyState>,
}

impl ThreadLedger {
    fn new(seed: u64, bound: usize) -> Self {
        ThreadLedger {
            seed,
            bound,
            mask: 0,
            last: HashMap::new(),
        }
    }

    /// Notes what was done to key number `index`.
    #[inline]
    pub fn note(&mut self, index: u64, state: KeyState) {
        if mix(index ^ self.seed) & self.mask == 0 {
            self.keep(index, state);
        }
    }

    #[cold]
    fn keep(&mut self, index: u64, state: KeyState) {
        self.last.insert(index, state);
        while self.last.len() > self.bound {
            self.raise(self.mask << 1 | 1);
        }
    }

    fn raise(&mut self, mask: u64) {
        let seed = self.seed;
        self.mask = mask;
        self.last.retain(|index, _| mix(index ^ seed) & mask == 0);
    }
}

/// The sampled keys that the run wrote, each with its possible states. A key has several only if
/// threads of one phase wrote it.
#[derive(Debug, Clone)]
pub struct Ledger {
    seed: u64,
    bound: usize,
    mask: u64,
    states: HashMap<u64, Vec<KeyState>>,
}

impl Ledger {
    /// An empty ledger that keeps at least `keys_min` of the written keys, or all of them.
    ///
    /// A sample that outgrows its bound is halved, plus or minus its square root. A bound of four
    /// times `keys_min` therefore always leaves enough keys.
    pub fn new(seed: u64, keys_min: usize) -> Self {
        Ledger {
            seed,
            bound: BOUND.max(keys_min.saturating_mul(4)),
            mask: 0,
            states: HashMap::new(),
        }
    }

    /// The ledger of an earlier run, to continue. `None` if `keys` are not those that `seed` and
    /// `mask` put into the sample, or if a key has no state.
    pub fn restored(
        seed: u64,
        keys_min: usize,
        mask: u64,
        keys: Vec<(u64, Vec<KeyState>)>,
    ) -> Option<Self> {
        let sampled = |(index, states): &(u64, Vec<KeyState>)| {
            mix(index ^ seed) & mask == 0 && !states.is_empty()
        };
        // A valid mask has only ones at its end, fewer than 64.
        let sound = mask < u64::MAX && (mask + 1).is_power_of_two() && keys.iter().all(sampled);
        sound.then(|| Ledger {
            mask,
            states: keys.into_iter().collect(),
            ..Ledger::new(seed, keys_min)
        })
    }

    /// The bits that are zero in the hashes of the sampled keys.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// An empty ledger for one thread of the next phase.
    pub fn thread(&self) -> ThreadLedger {
        ThreadLedger::new(self.seed, self.bound)
    }

    /// Adds a phase, given the ledgers of all its threads. Its states replace those of earlier
    /// phases, because the threads of these had ended.
    pub fn add_phase(&mut self, threads: Vec<ThreadLedger>) {
        let mut phase: HashMap<u64, Vec<KeyState>> = HashMap::new();
        for thread in threads {
            self.raise(thread.mask);
            for (index, state) in thread.last {
                phase.entry(index).or_default().push(state);
            }
        }
        self.states.extend(phase);
        self.raise(self.mask);
        while self.states.len() > self.bound {
            self.raise(self.mask << 1 | 1);
        }
    }

    fn raise(&mut self, mask: u64) {
        let (seed, mask) = (self.seed, self.mask | mask);
        self.mask = mask;
        self.states.retain(|index, _| mix(index ^ seed) & mask == 0);
    }

    /// The sampled keys with their possible states, in key order.
    pub fn expectations(&self) -> Vec<(u64, &[KeyState])> {
        let mut all: Vec<_> = self
            .states
            .iter()
            .map(|(index, states)| (*index, states.as_slice()))
            .collect();
        all.sort_unstable_by_key(|(index, _)| *index);
        all
    }

    /// Drops the expectations about these keys, because a replay wrote them.
    pub fn forget(&mut self, numbers: &std::collections::HashSet<u64>) {
        self.states.retain(|number, _| !numbers.contains(number));
    }

    /// Whether nothing was written or deleted.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Estimated number of keys that the database holds.
    pub fn live_keys(&self) -> f64 {
        self.estimate(|_, _| 1)
    }

    /// The estimated sum of `what` over the keys that the database holds. `what` gets the number of
    /// a key and the version of its value.
    pub fn estimate(&self, mut what: impl FnMut(u64, Version) -> usize) -> f64 {
        let live = self.states.iter().filter_map(|(index, states)| {
            states.iter().find_map(|state| match state {
                KeyState::Written(version) => Some((*index, *version)),
                KeyState::Deleted => None,
            })
        });
        let sum: usize = live.map(|(index, version)| what(index, version)).sum();
        sum as f64 * (self.mask + 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(count: u64) -> KeyState {
        KeyState::Written(Version::new(0, 0, count))
    }

    fn wrote(run: &Ledger, keys: std::ops::Range<u64>) -> ThreadLedger {
        let mut ledger = run.thread();
        for key in keys {
            ledger.note(key, written(key));
        }
        ledger
    }

    #[test]
    fn few_keys_are_all_kept() {
        let mut ledger = Ledger::new(1, 1000);
        let threads = vec![wrote(&ledger, 0..900)];
        ledger.add_phase(threads);
        assert_eq!(ledger.expectations().len(), 900);
        assert_eq!(ledger.live_keys(), 900.0);
    }

    #[test]
    fn many_keys_are_sampled_within_the_bound_and_counted() {
        let mut ledger = Ledger::new(1, 1000);
        let threads = vec![
            wrote(&ledger, 0..700_000),
            wrote(&ledger, 300_000..1_000_000),
        ];
        ledger.add_phase(threads);
        let kept = ledger.expectations().len();
        assert!((BOUND / 4..=BOUND).contains(&kept), "{kept}");
        let error = ledger.live_keys() / 1e6 - 1.0;
        assert!(error.abs() < 0.05, "{error}");
    }

    #[test]
    fn a_later_phase_decides_and_a_race_leaves_both_fates_open() {
        let mut ledger = Ledger::new(1, 1000);
        let threads = vec![wrote(&ledger, 0..3)];
        ledger.add_phase(threads);
        let mut one = ledger.thread();
        let mut two = ledger.thread();
        one.note(0, KeyState::Deleted);
        one.note(1, written(50));
        two.note(1, written(60));
        let threads = vec![one, two];
        ledger.add_phase(threads);
        let open: Vec<(u64, Vec<KeyState>)> = ledger
            .expectations()
            .into_iter()
            .map(|(index, states)| (index, states.to_vec()))
            .collect();
        assert_eq!(
            open,
            [
                (0, vec![KeyState::Deleted]),
                (1, vec![written(50), written(60)]),
                (2, vec![written(2)]),
            ]
        );
        assert_eq!(ledger.live_keys(), 2.0);
    }
}
