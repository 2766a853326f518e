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
    /// What it had done to keys before, in this phase; the first [`EARLIER_MAX`] states.
    earlier: HashMap<u64, Vec<KeyState>>,
}

/// What one thread did to a key in one phase.
#[derive(Debug, Clone, Copy)]
pub struct ThreadStates<'a> {
    earlier: &'a [KeyState],
    last: KeyState,
    /// Whether these are all.
    pub complete: bool,
}

impl ThreadStates<'_> {
    /// The states, the last one at the end.
    pub fn all(&self) -> impl Iterator<Item = KeyState> + '_ {
        self.earlier.iter().copied().chain([self.last])
    }
}

impl ThreadLedger {
    fn new(seed: u64, bound: usize) -> Self {
        ThreadLedger {
            seed,
            bound,
            mask: 0,
            last: HashMap::new(),
            earlier: HashMap::new(),
        }
    }

    /// Bits that are zero in the hashes of its keys.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// What it did last to a key of the sample.
    pub fn last(&self, index: u64) -> Option<KeyState> {
        self.last.get(&index).copied()
    }

    /// What it did to a key of the sample; `None` if nothing.
    pub fn states(&self, index: u64) -> Option<ThreadStates<'_>> {
        let earlier = self.earlier.get(&index).map_or(&[][..], Vec::as_slice);
        Some(ThreadStates {
            last: self.last(index)?,
            complete: earlier.len() < EARLIER_MAX,
            earlier,
        })
    }

    /// Notes what was done to key number `index`.
    #[inline]
    pub fn note(&mut self, index: u64, state: KeyState) {
        if is_sampled(index, self.seed, self.mask) {
            self.keep(index, state);
        }
    }

    #[cold]
    fn keep(&mut self, index: u64, state: KeyState) {
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
        self.last.retain(|index, _| is_sampled(*index, seed, mask));
        self.earlier
            .retain(|index, _| is_sampled(*index, seed, mask));
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
        self.states
            .retain(|index, _| is_sampled(*index, seed, mask));
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
    pub fn forget(&mut self, numbers: &HashSet<u64>) {
        self.states.retain(|number, _| !numbers.contains(number));
        self.replayed = true;
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
    use proptest::prelude::*;
    use std::collections::BTreeMap;

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
        let mut ledger = Ledger::new(1, 1000, 1);
        let threads = vec![wrote(&ledger, 0..900)];
        ledger.add_phase(threads);
        assert_eq!(ledger.expectations().len(), 900);
        assert_eq!(ledger.live_keys(), 900.0);
    }

    #[test]
    fn many_keys_are_sampled_within_the_bound_and_counted() {
        let mut ledger = Ledger::new(1, 1000, 1);
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
        let mut ledger = Ledger::new(1, 1000, 1);
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

    #[test]
    fn the_sample_is_bounded_by_what_is_wanted_of_it() {
        let bound = |keys_min, num| Ledger::new(1, keys_min, num).bound;
        assert_eq!(bound(1000, 1), BOUND);
        assert_eq!(bound(1025, 1), 4100, "four times what must be read back");
        assert_eq!(bound(1, 64 * 3000), 6000, "twice the share");
        assert_eq!(bound(1, u64::MAX), LARGE_BOUND);
        assert_eq!(bound(usize::MAX, 1), usize::MAX);
    }

    #[test]
    fn a_sample_is_as_large_as_its_bound_before_it_is_halved() {
        let ledger = Ledger::new(1, 1, 1);
        let mut thread = wrote(&ledger, 0..BOUND as u64);
        assert_eq!((thread.mask(), thread.last.len()), (0, BOUND));
        thread.note(BOUND as u64, written(1));
        assert_eq!(thread.mask(), 1);
        assert!(thread.last.len() < BOUND);
        assert!(thread.last.keys().all(|key| is_sampled(*key, 1, 1)));

        // Two threads whose samples fit, and which together do not.
        let mut ledger = Ledger::new(1, 1, 1);
        let half = BOUND as u64 / 2;
        let threads = vec![wrote(&ledger, 0..half), wrote(&ledger, half..2 * half)];
        ledger.add_phase(threads);
        assert_eq!((ledger.mask(), ledger.expectations().len()), (0, BOUND));
        let one_more = vec![wrote(&ledger, 2 * half..2 * half + 1)];
        ledger.add_phase(one_more);
        assert_eq!(ledger.mask(), 1);
    }

    #[test]
    fn every_state_of_a_key_is_known_unless_it_was_written_too_often() {
        let ledger = Ledger::new(1, 1, 1);
        let mut thread = ledger.thread();
        assert!(thread.states(5).is_none() && thread.last(5).is_none());
        for count in 0..20 {
            thread.note(5, written(count));
            let states = thread.states(5).unwrap();
            let all: Vec<_> = states.all().collect();
            assert_eq!(all.last(), Some(&written(count)));
            assert_eq!(thread.last(5), Some(written(count)));
            let earlier: Vec<_> = (0..count.min(EARLIER_MAX as u64)).map(written).collect();
            assert_eq!(all[..all.len() - 1], earlier);
            assert_eq!(states.complete, count < EARLIER_MAX as u64);
        }
        (1000..20_000).for_each(|key| thread.note(key, written(key)));
        let kept = thread
            .earlier
            .keys()
            .all(|key| thread.last.contains_key(key));
        assert!(kept, "nothing is kept of keys outside the sample");
    }

    #[test]
    fn a_ledger_is_restored_only_with_the_keys_of_its_sample() {
        let restored =
            |mask, keys: Vec<(u64, Vec<KeyState>)>| Ledger::restored(1, 7, 9, mask, keys);
        let key = (0..).find(|key| is_sampled(*key, 1, 7)).unwrap();
        let other = (0..).find(|key| !is_sampled(*key, 1, 7)).unwrap();
        let states = vec![written(1), KeyState::Deleted];
        let ledger = restored(7, vec![(key, states.clone())]).unwrap();
        assert_eq!((ledger.seed(), ledger.mask(), ledger.bound), (1, 7, BOUND));
        assert_eq!(ledger.states(key), states);
        assert!(ledger.states(other).is_empty() && !ledger.is_empty() && ledger.is_whole());
        assert_eq!(ledger.live_keys(), 8.0);
        assert!(
            restored(7, vec![(key, Vec::new())]).is_none(),
            "without a state"
        );
        assert!(
            restored(7, vec![(other, states)]).is_none(),
            "outside the sample"
        );
        for mask in [2, 6, 8, u64::MAX - 1, u64::MAX] {
            assert!(restored(mask, Vec::new()).is_none(), "{mask:x}");
        }
        for mask in [0, 1, u64::MAX >> 1] {
            assert!(restored(mask, Vec::new()).unwrap().is_empty(), "{mask:x}");
        }
    }

    #[test]
    fn what_a_replay_wrote_is_no_longer_expected() {
        let mut ledger = Ledger::new(1, 1, 1);
        let threads = vec![wrote(&ledger, 0..4)];
        ledger.add_phase(threads);
        assert!(ledger.is_whole() && !ledger.is_empty());
        ledger.forget(&HashSet::from([1, 2, 9]));
        let left: Vec<u64> = ledger.expectations().iter().map(|(key, _)| *key).collect();
        assert_eq!(left, [0, 3]);
        assert!(!ledger.is_whole());
    }

    #[test]
    fn only_keys_that_may_be_there_are_estimated() {
        let mut ledger = Ledger::new(1, 1, 1);
        let mut threads = vec![wrote(&ledger, 0..4), ledger.thread()];
        threads[1].note(2, KeyState::Deleted);
        threads[1].note(7, KeyState::Deleted);
        ledger.add_phase(threads);
        let sum = ledger.estimate(|key, version| {
            assert_eq!(version, Version::new(0, 0, key));
            key as usize + 10
        });
        assert_eq!(sum, f64::from(10 + 11 + 12 + 13));
    }

    proptest! {
        #[test]
        fn the_ledger_expects_what_the_last_phase_of_each_key_left(
            phases in proptest::collection::vec(
                proptest::collection::vec((0..3_usize, 0..40_u64, any::<bool>()), 0..60), 1..4),
            seed: u64,
            bound in 4..50_usize,
        ) {
            let mut ledger = Ledger { bound, ..Ledger::new(seed, 1, 1) };
            let mut truth: BTreeMap<u64, BTreeMap<usize, KeyState>> = BTreeMap::new();
            for (number, writes) in phases.into_iter().enumerate() {
                let mut threads = vec![ledger.thread(), ledger.thread(), ledger.thread()];
                let mut phase: BTreeMap<u64, BTreeMap<usize, KeyState>> = BTreeMap::new();
                for (count, (thread, key, deleted)) in writes.into_iter().enumerate() {
                    let version = Version::new(number, thread, count as u64);
                    let state = if deleted { KeyState::Deleted } else { KeyState::Written(version) };
                    threads[thread].note(key, state);
                    phase.entry(key).or_default().insert(thread, state);
                }
                ledger.add_phase(threads);
                truth.extend(phase);
            }
            truth.retain(|key, _| is_sampled(*key, seed, ledger.mask()));
            let expected: Vec<(u64, Vec<KeyState>)> = truth
                .into_iter()
                .map(|(key, states)| (key, states.into_values().collect()))
                .collect();
            let found: Vec<_> = ledger.expectations();
            prop_assert!(found.len() <= bound);
            let found: Vec<_> = found.into_iter().map(|(key, all)| (key, all.to_vec())).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
