mod scans;

use super::*;
use crate::protocol::Workload;
use crate::random::Version;
use proptest::prelude::*;
use std::collections::HashSet;
use std::sync::LazyLock;

const SEED: u64 = 7;

fn workload(more: serde_json::Value) -> Workload {
    let mut all = serde_json::json!({
        "key_bytes": 16, "value_bytes": 20, "compression_ratio": 0.5, "num": 1000,
        "durability": "wal", "phases": [{"name": "a", "kind": "measure", "threads": 9}],
    });
    let more = more.as_object().unwrap().clone();
    all.as_object_mut().unwrap().extend(more);
    serde_json::from_value(all).unwrap()
}

impl From<ThreadLedger> for Notes {
    fn from(written: ThreadLedger) -> Self {
        Notes {
            written: Some(written),
            read: None,
        }
    }
}

impl From<ReadSample> for Notes {
    fn from(read: ReadSample) -> Self {
        Notes {
            written: None,
            read: Some(read),
        }
    }
}

fn version(count: u64) -> Version {
    Version::new(0, 0, count)
}

fn written(count: u64) -> KeyState {
    KeyState::Written(version(count))
}

/// A database of which the ledger keeps every key: 0 to 9 are written as `written(key)`, 10 to 19
/// are deleted, and no other key was ever there.
struct Case {
    workload: Workload,
    values: Values,
    ledger: Ledger,
}

impl Case {
    fn new() -> Self {
        Self::of(workload(serde_json::json!({})))
    }

    fn of(workload: Workload) -> Self {
        let mut ledger = Ledger::new(SEED, 1000, 1);
        let mut thread = ledger.thread();
        (0..10).for_each(|key| thread.note(key, written(key)));
        (10..20).for_each(|key| thread.note(key, KeyState::Deleted));
        ledger.add_phase(vec![thread]);
        Case {
            values: Values::new(&workload, SEED),
            workload,
            ledger,
        }
    }

    fn value(&self, count: u64) -> &[u8] {
        self.values.value(version(count))
    }

    fn shown(&self, count: u64) -> Option<u64> {
        Some(fingerprint(self.value(count)))
    }

    fn keys(&self) -> KeyWriter {
        KeyWriter::new(&self.workload)
    }

    fn key(&self, number: u64) -> Vec<u8> {
        self.keys().write(number).to_vec()
    }

    fn check(&self, mut notes: Vec<Notes>) -> CheckedReads {
        check_reads(&mut notes, &self.ledger, &self.values, self.keys(), true)
    }

    /// What becomes of one read.
    fn read(&self, number: u64, value: Option<u64>, own: Option<KeyState>) -> CheckedReads {
        self.check(vec![self.reader(number, value, own)])
    }

    fn reader(&self, number: u64, value: Option<u64>, own: Option<KeyState>) -> Notes {
        let mut sample = ReadSample::new(&self.ledger);
        sample.note(number, value, own);
        sample.into()
    }

    /// A thread that did this to a key, one state after the other.
    fn writer(&self, number: u64, states: &[KeyState]) -> Notes {
        let mut thread = self.ledger.thread();
        states.iter().for_each(|state| thread.note(number, *state));
        thread.into()
    }

    /// What becomes of a scan from the key `sought`, if any, that returned these entries.
    fn scan(&self, sought: Option<u64>, entries: &[(u64, u64)]) -> CheckedReads {
        self.check(vec![self.scanner(sought, entries)])
    }

    fn scanner(&self, sought: Option<u64>, entries: &[(u64, u64)]) -> Notes {
        let mut sample = ReadSample::new(&self.ledger);
        sample.begin_scan(sought.map(|number| self.key(number)).as_deref());
        for (number, count) in entries {
            sample.note_entry(&self.key(*number), self.value(*count), &self.keys());
        }
        sample.into()
    }
}

fn right(checked: u64) -> CheckedReads {
    CheckedReads {
        checked,
        ..CheckedReads::default()
    }
}

fn wrong(checked: u64, wrong: u64, example: &str) -> CheckedReads {
    CheckedReads {
        checked,
        wrong,
        example: Some(example.to_owned()),
    }
}

#[test]
fn a_read_returns_what_was_written_before_the_phase() {
    let case = Case::new();
    assert_eq!(case.read(3, case.shown(3), None), right(1));
    assert_eq!(case.read(10, None, None), right(1), "deleted");
    assert_eq!(case.read(900, None, None), right(1), "never written");
    let not_found = "key 3 was written, and a read did not find it";
    assert_eq!(case.read(3, None, None), wrong(1, 1, not_found));
    let other = "key 3 was read with a value that is not the one written";
    assert_eq!(case.read(3, case.shown(4), None), wrong(1, 1, other));
    let back = "key 10 was read with a value that is not the one written";
    assert_eq!(case.read(10, case.shown(10), None), wrong(1, 1, back));
    let made_up = "key 900 was never written, and a read found it";
    assert_eq!(case.read(900, case.shown(900), None), wrong(1, 1, made_up));
}

#[test]
fn a_thread_reads_its_own_last_write_and_nothing_older() {
    let case = Case::new();
    let own = Some(written(50));
    assert_eq!(case.read(3, case.shown(50), own), right(1));
    assert_eq!(case.read(3, case.shown(3), own).wrong, 1, "a stale value");
    assert_eq!(case.read(3, None, Some(KeyState::Deleted)), right(1));
    assert_eq!(
        case.read(3, case.shown(3), Some(KeyState::Deleted)).wrong,
        1
    );
    assert_eq!(case.read(900, case.shown(50), own), right(1), "a new key");
    assert_eq!(case.read(900, None, own).wrong, 1);
}

#[test]
fn what_another_thread_writes_may_come_at_any_time() {
    let case = Case::new();
    let states = [written(50), KeyState::Deleted, written(51)];
    let read = |value, own| {
        case.check(vec![
            case.writer(3, &states),
            case.reader(3, value, own),
            case.writer(4, &[written(60)]),
        ])
    };
    for count in [3, 50, 51] {
        assert_eq!(read(case.shown(count), None), right(1), "{count}");
    }
    assert_eq!(read(None, None), right(1));
    assert_eq!(read(case.shown(60), None).wrong, 1, "another key's");
    assert_eq!(read(case.shown(70), Some(written(70))), right(1));
    assert_eq!(
        read(case.shown(3), Some(written(70))),
        right(1),
        "order is not known"
    );
}

#[test]
fn the_states_of_the_reading_thread_itself_are_no_others() {
    let case = Case::new();
    let mut both = case.reader(3, case.shown(50), Some(written(51)));
    both.written = case.writer(3, &[written(50), written(51)]).written;
    assert_eq!(case.check(vec![both]).wrong, 1, "it had written 51 since");
}

#[test]
fn a_key_that_was_written_too_often_to_remember_is_not_judged() {
    let case = Case::new();
    let states: Vec<KeyState> = (50..70).map(written).collect();
    let often = |writes| {
        case.check(vec![
            case.writer(3, &states[..writes]),
            case.reader(3, case.shown(4), None),
        ])
    };
    assert_eq!(often(8).wrong, 1, "all of its states are known");
    assert_eq!(often(9), right(0));
    assert_eq!(often(20), right(0));
}

#[test]
fn a_key_that_a_replay_may_have_written_is_not_judged() {
    let mut case = Case::new();
    case.ledger.forget(&HashSet::from([3]));
    assert_eq!(case.read(3, case.shown(4), None), right(0));
    assert_eq!(case.read(900, case.shown(4), None), right(0));
    assert_eq!(case.read(4, None, None).wrong, 1, "it touched others only");
    assert_eq!(
        case.read(3, None, Some(written(4))).wrong,
        1,
        "then written"
    );
}

#[test]
fn a_key_that_one_of_the_threads_has_dropped_is_not_judged() {
    let case = Case::new();
    let mut busy = case.ledger.thread();
    (1000..20_000).for_each(|key| busy.note(key, written(key)));
    let mask = busy.mask();
    assert!(mask > 0);
    let sampled = |kept| (0..10).find(|key| is_sampled(*key, SEED, mask) == kept);
    let dropped = sampled(false).unwrap();
    let read = |key: u64| {
        let lie = case.reader(key, None, None);
        case.check(vec![busy.clone().into(), lie]).wrong
    };
    assert_eq!(read(dropped), 0);
    let kept = (0..10).filter(|key| is_sampled(*key, SEED, mask));
    kept.for_each(|key| assert_eq!(read(key), 1, "key {key}"));
}

#[test]
fn one_read_in_64_is_checked_however_many_keys_are_sampled() {
    for mask in [0, 1, 7, 63, 255] {
        let ledger = Ledger::restored(SEED, 1, 1, mask, Vec::new()).unwrap();
        let mut sample = ReadSample::new(&ledger);
        let mut checked = 0_u64;
        for key in 0..64_000 {
            let wanted = sample.wants(key);
            assert!(!wanted || is_sampled(key, SEED, mask));
            checked += u64::from(wanted);
        }
        let expected = 64_000 / (mask + 1).max(64);
        assert!(
            checked.abs_diff(expected) <= expected / 5,
            "{mask}: {checked}"
        );
        let mut idle = ReadSample::idle(&ledger);
        assert!(!(0..1000).any(|key| idle.wants(key)));
    }
}

#[test]
fn equal_answers_are_one_note_and_all_are_counted() {
    let case = Case::new();
    let mut sample = ReadSample::new(&case.ledger);
    for _ in 0..5 {
        sample.wants(3);
        sample.note(3, case.shown(4), None);
    }
    assert_eq!(case.check(vec![sample.into()]).wrong, 5);
}

#[test]
fn answers_and_scans_are_kept_within_bounds() {
    let case = Case::new();
    let mut sample = ReadSample::new(&case.ledger);
    let many = ANSWERS_MAX as u64 + 10;
    for key in (0..many).chain([5]) {
        sample.wants(key);
        sample.note(key, None, None);
    }
    sample.wants(0);
    assert_eq!(sample.answers.len(), ANSWERS_MAX);
    assert_eq!(
        case.check(vec![sample.into()]).wrong,
        11,
        "0 to 9, and 5 again"
    );

    let mut sample = ReadSample::new(&case.ledger);
    let begun = (0..KEPT_ONE_IN * 10)
        .filter(|_| sample.wants_scan())
        .count();
    assert_eq!(begun, 10);
    let mut first = ReadSample::new(&case.ledger);
    assert!(first.wants_scan(), "the first of them");
    for _ in 0..SCANS_MAX {
        sample.begin_scan(None);
    }
    sample.end_scan();
    assert_eq!(sample.scanned.len(), SCANS_MAX);
    assert!(!(0..KEPT_ONE_IN).any(|_| sample.wants_scan()));
    // One scan without an end is cut into stretches, which are bounded too.
    for position in 0..KEPT_ONE_IN * STRETCH {
        sample.see(position, &case.key(0), b"", &case.keys());
    }
    sample.end_scan();
    assert_eq!(sample.scanned.len(), SCANS_MAX);
}

#[test]
fn reads_of_keys_that_were_never_written_find_nothing() {
    let mut found = CheckedReads::default();
    found.found_missing(0);
    assert_eq!(found, CheckedReads::default());
    found.found_missing(2);
    found.found_missing(1);
    assert_eq!(
        found,
        wrong(0, 3, "a read found a key that was never written")
    );
}

/// Made once, since many cases are tried on it.
static CASE: LazyLock<Case> = LazyLock::new(Case::new);

proptest! {
    /// Threads take turns on one map, in any order; what they read is what the map has.
    #[test]
    fn no_true_answer_is_called_wrong_and_a_value_of_none_always_is(
        steps in proptest::collection::vec((0..3_usize, 0..12_u64, 0..3_u8), 1..80),
        lie in any::<proptest::sample::Index>(),
    ) {
        let case = &*CASE;
        let mut map: HashMap<u64, u64> = (0..10).map(|key| (key, key)).collect();
        let mut threads = [(); 3].map(|()| (case.ledger.thread(), ReadSample::new(&case.ledger)));
        let lie = lie.index(steps.len());
        let mut lies = 0;
        for (count, (thread, key, what)) in steps.into_iter().enumerate() {
            let (writes, reads) = &mut threads[thread];
            match what {
                0 => {
                    map.insert(key, 100 + count as u64);
                    writes.note(key, written(100 + count as u64));
                }
                1 => {
                    map.remove(&key);
                    writes.note(key, KeyState::Deleted);
                }
                _ => {
                    reads.wants(key);
                    let truth = map.get(&key).map(|count| fingerprint(case.value(*count)));
                    lies += u64::from(count == lie);
                    let told = if count == lie { Some(1) } else { truth };
                    reads.note(key, told, writes.last(key));
                }
            }
        }
        let often = threads.iter().any(|(writes, _)| {
            (0..12).any(|key| writes.states(key).is_some_and(|(_, complete)| !complete))
        });
        let notes = threads.into_iter().map(|(writes, reads)| Notes {
            written: Some(writes),
            read: Some(reads),
        });
        let found = case.check(notes.collect());
        prop_assert!(found.wrong <= lies, "{found:?}");
        prop_assert!(often || found.wrong == lies, "{found:?}");
    }
}
