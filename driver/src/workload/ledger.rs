//! The ledger: for a bounded sample of the written keys, what the database must hold.
//!
//! A key is in the sample if its hash ends in `level` zero bits. The level rises when the sample
//! outgrows its bound. This is the adaptive sampling of Wegman, as analysed by Flajolet ("On
//! adaptive sampling", Computing 43, 1990). So memory does not grow with the number of keys, and
//! all threads agree on the sample. `sample size * 2^level` estimates the number of distinct keys
//! with a standard error of about `1.2 / sqrt(bound)`.

use std::collections::{HashMap, HashSet};

use crate::random::{mix, Version};

/// The most keys that are kept of a small key space, unless more must be read back. The estimate of
/// distinct keys then has a standard error of about 2 %.
pub const BOUND: usize = 4096;

/// One key in so many is kept of a larger key space, up to [`LARGE_BOUND`] keys. Reads of kept keys
/// are checked, so that this is also the share of reads that are.
pub const KEPT_ONE_IN: u64 = 64;

/// Keys kept at most of a large key space: some 6 MB.
const LARGE_BOUND: usize = 1 << 16;

/// Writes of one key by one thread of a phase that are kept beside its last.
const EARLIER_MAX: usize = 8;

/// Whether key number `index` is in the sample of `seed`: the bits of `mask` are zero in its hash.
#[inline]
pub fn is_sampled(index: u64, seed: u64, mask: u64) -> bool {
    mix(index ^ seed) & mask == 0
}

/// What a thread last did to a key. In files it is a version or null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
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
    /// Keys that it deleted as the oldest ones.
    gone: HashSet<u64>,
    /// What it had done to keys before, in this phase; the first [`EARLIER_MAX`] states.
    earlier: HashMap<u64, Vec<KeyState>>,
}

impl ThreadLedger {
    /// Bits that are zero in the hashes of its keys.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// What it did last to a key of the sample.
    pub fn last(&self, index: u64) -> Option<KeyState> {
        self.last.get(&index).copied()
    }

    /// What it did to a key of the sample, the last state at the end, and whether that is all;
    /// `None` if nothing.
    pub fn states(&self, index: u64) -> Option<(Vec<KeyState>, bool)> {
        let last = self.last(index)?;
        let mut states = self.earlier.get(&index).cloned().unwrap_or_default();
        let complete = states.len() < EARLIER_MAX;
        states.push(last);
        Some((states, complete))
    }

    /// Notes what was done to key number `index`.
    #[inline]
    pub fn note(&mut self, index: u64, state: KeyState) {
        if is_sampled(index, self.seed, self.mask) {
            self.keep(index, state);
        }
    }

    /// Notes that key number `index` was deleted as the oldest one. No thread draws it any more, so
    /// this came after what the others did to it. A put that was under way may come later still,
    /// and a read may find that one.
    #[inline]
    pub fn note_gone(&mut self, index: u64) {
        self.note(index, KeyState::Deleted);
        if is_sampled(index, self.seed, self.mask) {
            self.gone.insert(index);
        }
    }

    #[cold]
    fn keep(&mut self, index: u64, state: KeyState) {
        self.gone.remove(&index);
        if let Some(before) = self.last.insert(index, state) {
            let earlier = self.earlier.entry(index).or_default();
            if earlier.len() < EARLIER_MAX {
                earlier.push(before);
            }
        }
        while self.last.len() > self.bound {
            self.raise(self.mask << 1 | 1);
        }
    }

    fn raise(&mut self, mask: u64) {
        let seed = self.seed;
        self.mask = mask;
        let sampled = |index: &u64| is_sampled(*index, seed, mask);
        self.last.retain(|index, _| sampled(index));
        self.gone.retain(sampled);
        self.earlier.retain(|index, _| sampled(index));
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
    /// Keys that were deleted as the oldest ones. Files, which hold what a load left, do not name
    /// them.
    gone: HashSet<u64>,
    /// Whether a replay wrote keys, too: of a key without states nothing is known then.
    replayed: bool,
}

impl Ledger {
    /// An empty ledger that keeps at least `keys_min` of the written keys, or all of them; of a key
    /// space of `num` keys one in 64, up to 65,536.
    ///
    /// A sample that outgrows its bound is halved, give or take its square root. So a bound of four
    /// times `keys_min` always leaves enough keys, and twice the wanted share leaves that share.
    pub fn new(seed: u64, keys_min: usize, num: u64) -> Self {
        let share = usize::try_from(num / KEPT_ONE_IN).unwrap_or(usize::MAX);
        let bound = share.saturating_mul(2).clamp(BOUND, LARGE_BOUND);
        Ledger {
            seed,
            bound: bound.max(keys_min.saturating_mul(4)),
            mask: 0,
            states: HashMap::new(),
            gone: HashSet::new(),
            replayed: false,
        }
    }

    /// Seed of the hash by which keys are sampled.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The states in which a key of the sample may be; none if it was never written.
    pub fn states(&self, index: u64) -> &[KeyState] {
        self.states.get(&index).map_or(&[], Vec::as_slice)
    }

    /// Whether a key of the sample without states was never written.
    pub fn is_whole(&self) -> bool {
        !self.replayed
    }

    /// The ledger of an earlier run, to continue. `None` if `keys` are not those that `seed` and
    /// `mask` put into the sample, or if a key has no state.
    pub fn restored(
        seed: u64,
        keys_min: usize,
        num: u64,
        mask: u64,
        keys: Vec<(u64, Vec<KeyState>)>,
    ) -> Option<Self> {
        let sampled = |(index, states): &(u64, Vec<KeyState>)| {
            is_sampled(*index, seed, mask) && !states.is_empty()
        };
        // A valid mask has only ones at its end, fewer than 64.
        let sound = mask < u64::MAX && (mask + 1).is_power_of_two() && keys.iter().all(sampled);
        sound.then(|| Ledger {
            mask,
            states: keys.into_iter().collect(),
            ..Ledger::new(seed, keys_min, num)
        })
    }

    /// The bits that are zero in the hashes of the sampled keys.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// An empty ledger for one thread of the next phase.
    pub fn thread(&self) -> ThreadLedger {
        ThreadLedger {
            seed: self.seed,
            bound: self.bound,
            // What the ledger leaves out costs the thread nothing within its measured operations.
            mask: self.mask,
            last: HashMap::new(),
            gone: HashSet::new(),
            earlier: HashMap::new(),
        }
    }

    /// Adds a phase, given the ledgers of all its threads. Its states replace those of earlier
    /// phases, because the threads of these had ended.
    pub fn add_phase(&mut self, threads: Vec<ThreadLedger>) {
        let mut phase: HashMap<u64, Vec<KeyState>> = HashMap::new();
        let mut gone = HashSet::new();
        for thread in threads {
            self.raise(thread.mask);
            for (index, state) in thread.last {
                phase.entry(index).or_default().push(state);
            }
            gone.extend(thread.gone);
        }
        self.gone.retain(|index| !phase.contains_key(index));
        self.gone.extend(gone);
        self.states.extend(phase);
        self.raise(self.mask);
        while self.states.len() > self.bound {
            self.raise(self.mask << 1 | 1);
        }
    }

    fn raise(&mut self, mask: u64) {
        let (seed, mask) = (self.seed, self.mask | mask);
        self.mask = mask;
        let sampled = |index: &u64| is_sampled(*index, seed, mask);
        self.states.retain(|index, _| sampled(index));
        self.gone.retain(sampled);
    }

    /// The sampled keys with their possible states, in key order.
    pub fn expectations(&self) -> Vec<(u64, &[KeyState])> {
        let each = self.states.iter();
        let mut all: Vec<_> = each.map(|(index, states)| (*index, &states[..])).collect();
        all.sort_unstable_by_key(|(index, _)| *index);
        all
    }

    /// Drops the expectations about these keys, because a replay wrote them.
    pub fn forget(&mut self, numbers: &HashSet<u64>) {
        self.states.retain(|number, _| !numbers.contains(number));
        self.replayed = true;
    }

    /// Whether nothing was written or deleted.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// How many keys of the sample are there whatever the order in which threads wrote them: nobody
    /// deleted these.
    pub fn certain_keys(&self) -> usize {
        let certain = |states: &&Vec<KeyState>| !states.contains(&KeyState::Deleted);
        self.states.values().filter(certain).count()
    }

    /// The estimated sum of `what` over the keys that the database holds. `what` gets the number of
    /// a key and the version of its value. Each of the states of a key is as likely as the others;
    /// a key that was deleted as the oldest one is gone.
    pub fn estimate(&self, mut what: impl FnMut(u64, Version) -> usize) -> f64 {
        let mut sum = 0.0;
        for (index, states) in &self.states {
            if self.gone.contains(index) {
                continue;
            }
            let written = states.iter().filter_map(|state| (*state).into());
            let whole: usize = written.map(|version| what(*index, version)).sum();
            sum += whole as f64 / states.len() as f64;
        }
        sum * (self.mask + 1) as f64
    }
}

#[cfg(test)]
mod tests;
