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

fn live_keys(ledger: &Ledger) -> f64 {
    ledger.estimate(|_, _| 1)
}

#[test]
fn few_keys_are_all_kept() {
    let mut ledger = Ledger::new(1, 1000, 1);
    let threads = vec![wrote(&ledger, 0..900)];
    ledger.add_phase(threads);
    assert_eq!(ledger.expectations().len(), 900);
    assert_eq!(live_keys(&ledger), 900.0);
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
    let error = live_keys(&ledger) / 1e6 - 1.0;
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
    assert_eq!(live_keys(&ledger), 2.0);
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
fn each_bit_halves_the_sample_whatever_the_seed() {
    for seed in [0, 1, 0xffff, u64::MAX] {
        let kept = |mask| {
            (0..10_000)
                .filter(|key| is_sampled(*key, seed, mask))
                .count()
        };
        assert!(kept(1).abs_diff(5000) < 250, "{seed:x}");
        assert!(kept(7).abs_diff(1250) < 150, "{seed:x}");
    }
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
        let (all, complete) = thread.states(5).unwrap();
        assert_eq!(all.last(), Some(&written(count)));
        assert_eq!(thread.last(5), Some(written(count)));
        let earlier: Vec<_> = (0..count.min(EARLIER_MAX as u64)).map(written).collect();
        assert_eq!(all[..all.len() - 1], earlier);
        assert_eq!(complete, count < EARLIER_MAX as u64);
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
    let restored = |mask, keys: Vec<(u64, Vec<KeyState>)>| Ledger::restored(1, 7, 9, mask, keys);
    let key = (0..).find(|key| is_sampled(*key, 1, 7)).unwrap();
    let other = (0..).find(|key| !is_sampled(*key, 1, 7)).unwrap();
    let states = vec![written(1), KeyState::Deleted];
    let ledger = restored(7, vec![(key, states.clone())]).unwrap();
    assert_eq!((ledger.seed(), ledger.mask(), ledger.bound), (1, 7, BOUND));
    assert_eq!(ledger.states(key), states);
    assert!(ledger.states(other).is_empty() && !ledger.is_empty() && ledger.is_whole());
    assert_eq!((live_keys(&ledger), ledger.certain_keys()), (4.0, 0));
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

/// Two threads of one phase, of which one put a key and the other deleted it: such keys were all
/// counted as there, so that a sound engine seemed to have lost half of them in a scan.
#[test]
fn a_key_whose_end_is_open_counts_by_the_share_of_its_states_and_is_not_certain() {
    let mut ledger = Ledger::new(1, 1, 1);
    let mut threads = vec![wrote(&ledger, 0..4), ledger.thread(), ledger.thread()];
    threads[1].note(2, KeyState::Deleted);
    threads[1].note(7, KeyState::Deleted);
    threads[2].note(2, KeyState::Deleted);
    ledger.add_phase(threads);
    let sum = ledger.estimate(|key, version| {
        assert_eq!(version, Version::new(0, 0, key));
        key as usize + 10
    });
    let near = |found: f64, due: f64| assert!((found - due).abs() < 1e-9, "{found}");
    near(sum, f64::from(10 + 11 + 13) + 12.0 / 3.0);
    near(live_keys(&ledger), 3.0 + 1.0 / 3.0);
    assert_eq!(ledger.certain_keys(), 3);
}

/// A window of records: each is inserted by one thread, and deleted as the oldest one by another.
#[test]
fn a_key_that_was_deleted_as_the_oldest_one_is_gone_until_it_is_written_again() {
    let mut ledger = Ledger::new(1, 1, 1);
    let mut threads = vec![wrote(&ledger, 0..4), ledger.thread()];
    threads[1].note_gone(0);
    threads[1].note_gone(1);
    threads[1].note(1, written(9));
    ledger.add_phase(threads);
    assert_eq!(live_keys(&ledger), 3.0, "1 was written again by the thread");
    let open = [written(0), KeyState::Deleted];
    assert_eq!(ledger.states(0), open, "a read may find a late put");
    assert_eq!(ledger.certain_keys(), 3);
    let again = vec![wrote(&ledger, 0..1)];
    ledger.add_phase(again);
    assert_eq!(live_keys(&ledger), 4.0);
    // Nothing is kept of keys outside the sample.
    let mut busy = ledger.thread();
    (0..20_000).for_each(|key| busy.note_gone(key));
    assert_eq!(busy.gone.len(), busy.last.len());
    ledger.add_phase(vec![busy]);
    assert_eq!(ledger.gone.len(), ledger.states.len());
    assert_eq!(live_keys(&ledger), 0.0);
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
