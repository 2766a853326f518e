//! What scans return.

use super::*;

#[test]
fn a_scan_without_an_end_is_seen_in_stretches() {
    let case = Case::new();
    let mut sample = ReadSample::new(&case.ledger);
    let whole = KEPT_ONE_IN * STRETCH;
    for position in 0..2 * whole + 5 {
        sample.see(position, &case.key(position + 100), b"", &case.keys());
    }
    sample.end_scan();
    let seen: Vec<_> = sample
        .scanned
        .iter()
        .map(|part| (part.from.clone(), part.last.clone(), part.entries))
        .collect();
    let stretch = |from: u64, entries| (case.key(from), case.key(from + entries - 1), entries);
    assert_eq!(
        seen,
        [
            stretch(100, STRETCH),
            stretch(100 + whole, STRETCH),
            stretch(100 + 2 * whole, 5)
        ]
    );
}

#[test]
fn a_scan_returns_every_key_in_order_with_its_value() {
    let case = Case::new();
    let truth: Vec<(u64, u64)> = (2..7).map(|key| (key, key)).collect();
    assert_eq!(
        case.scan(None, &truth),
        right(5),
        "entries, and their values"
    );
    assert_eq!(case.scan(Some(2), &truth), right(5));
    let left_out = "a scan left out key 4, which was written";
    let without: Vec<_> = truth.iter().copied().filter(|(key, _)| *key != 4).collect();
    assert_eq!(case.scan(None, &without), wrong(4, 1, left_out));
    let first = "a scan left out key 1, which was written";
    assert_eq!(case.scan(Some(1), &truth), wrong(5, 1, first));
    let value = "key 5 was read with a value that is not the one written";
    assert_eq!(
        case.scan(None, &[(4, 4), (5, 6), (6, 6)]),
        wrong(3, 1, value)
    );
    let made_up = "key 900 was never written, and a read found it";
    assert_eq!(case.scan(None, &[(900, 3)]), wrong(1, 1, made_up));
    assert_eq!(case.scan(Some(3), &[]), right(0), "nothing came");
}

#[test]
fn keys_out_of_order_are_counted() {
    let case = Case::new();
    let order = "a scan returned keys that are not in order";
    let scans = [
        (None, vec![(2, 2), (4, 4), (3, 3)], 1),
        (None, vec![(2, 2), (2, 2), (2, 2)], 2),
        (Some(5), vec![(4, 4), (6, 6)], 1),
        (Some(4), vec![(4, 4), (5, 5)], 0),
    ];
    for (sought, entries, unordered) in scans {
        let found = case.scan(sought, &entries);
        assert_eq!(found.wrong, unordered, "{entries:?}: {found:?}");
        assert_eq!(found.example.is_some_and(|why| why == order), unordered > 0);
    }
    let mut notes = [case.scanner(None, &[(4, 4), (2, 2)])];
    let several = check_reads(&mut notes, &case.ledger, &case.values, case.keys(), false);
    assert_eq!(
        several,
        right(2),
        "of several databases, each in its own order"
    );
}

#[test]
fn a_key_that_may_be_gone_may_be_left_out() {
    let case = Case::new();
    assert_eq!(
        case.scan(None, &[(9, 9), (20, 9)]).wrong,
        1,
        "20 was never written"
    );
    // Keys 10 to 19 were deleted; key 21 is new.
    let new = case.writer(21, &[written(80)]);
    let scan = case.scanner(None, &[(9, 9), (21, 80)]);
    assert_eq!(case.check(vec![scan, new]), right(2));
    let gone = case.writer(4, &[KeyState::Deleted, written(80)]);
    let scan = case.scanner(None, &[(3, 3), (5, 5)]);
    assert_eq!(case.check(vec![scan, gone]), right(2));
    let scan = case.scanner(None, &[(3, 3), (5, 5)]);
    assert_eq!(case.check(vec![scan]).wrong, 1, "nobody touched it");
}

#[test]
fn keys_beside_a_stretch_are_not_missed_in_it() {
    let case = Case::new();
    assert_eq!(case.scan(Some(4), &[(4, 4)]), right(1));
    assert_eq!(case.scan(None, &[(0, 0), (1, 1)]), right(2));
    assert_eq!(case.scan(Some(15), &[]), right(0));
}

#[test]
fn a_key_that_none_wrote_is_told() {
    let case = Case::new();
    let mut sample = ReadSample::new(&case.ledger);
    sample.begin_scan(None);
    sample.note_entry(b"foreign", b"", &case.keys());
    let why = "a scan returned a key that none wrote: \"foreign\"";
    assert_eq!(case.check(vec![sample.into()]), wrong(1, 1, why));
}

/// A trace has keys of its own form: the first scan after its replay called a sound engine wrong.
#[test]
fn after_a_replay_a_key_of_another_form_may_be_there() {
    let mut case = Case::new();
    case.ledger.forget(&HashSet::new());
    let mut sample = ReadSample::new(&case.ledger);
    sample.begin_scan(None);
    sample.note_entry(b"foreign", b"", &case.keys());
    assert_eq!(case.check(vec![sample.into()]), right(1));
}

#[test]
fn keys_that_show_a_hash_are_found_by_their_bytes() {
    let keys = serde_json::json!({"keys": {
        "format": "ycsb", "prefix": "user", "zero_padding": 1, "order": "hashed",
    }});
    let case = Case::of(workload(keys));
    let mut numbers: Vec<u64> = (0..10).collect();
    numbers.sort_by_key(|number| case.key(*number));
    let truth: Vec<(u64, u64)> = numbers.iter().map(|number| (*number, *number)).collect();
    assert_eq!(case.scan(None, &truth), right(10));
    let mut lie = truth.clone();
    lie[3].1 += 1;
    assert_eq!(case.scan(None, &lie).wrong, 1);
    lie.remove(3);
    assert_eq!(case.scan(None, &lie).wrong, 1, "left out");
    assert_eq!(case.scan(None, &[(900, 5)]), right(1), "of no sampled key");
}

#[test]
fn only_sampled_entries_are_kept() {
    let case = Case::new();
    let ledger = Ledger::restored(SEED, 1, 1, 7, Vec::new()).unwrap();
    let mut sample = ReadSample::new(&ledger);
    sample.begin_scan(None);
    (0..100).for_each(|number| sample.note_entry(&case.key(number), b"", &case.keys()));
    sample.end_scan();
    let kept = sample.scanned[0].sampled.len();
    let sampled = (0..100).filter(|key| is_sampled(*key, SEED, 7)).count();
    assert!(kept == sampled && kept > 0, "{kept} {sampled}");
    assert_eq!(sample.scanned[0].entries, 100);
    sample.note_entry(&case.key(1), b"", &case.keys());
    sample.end_scan();
    assert_eq!(sample.scanned.len(), 1, "no stretch was begun");
}

/// A key that shows a hash may be any: a scan kept all of its entries, and 4,096 scans of a thread a
/// gigabyte.
#[test]
fn a_scan_keeps_its_first_entries_and_says_nothing_of_those_that_it_dropped() {
    let keys = serde_json::json!({"keys": {
        "format": "ycsb", "prefix": "user", "zero_padding": 1, "order": "hashed",
    }});
    let mut case = Case::of(workload(keys));
    let mut thread = case.ledger.thread();
    (0..200).for_each(|key| thread.note(key, written(key)));
    case.ledger.add_phase(vec![thread]);
    let mut numbers: Vec<u64> = (0..200).collect();
    numbers.sort_by_key(|number| case.key(*number));
    let truth: Vec<(u64, u64)> = numbers.iter().map(|number| (*number, *number)).collect();
    let ended = |entries: &[(u64, u64)]| {
        let mut notes = case.scanner(None, entries);
        notes.read.as_mut().unwrap().note_end();
        let read = notes.read.as_mut().unwrap();
        read.end_scan();
        assert_eq!(read.scanned[0].sampled.len(), STRETCH as usize);
        case.check(vec![notes])
    };
    assert_eq!(ended(&truth), right(200));
    let mut early = truth.clone();
    early.remove(5);
    assert_eq!(ended(&early).wrong, 1, "one of those that are kept");
    let mut late = truth.clone();
    late.remove(100);
    assert_eq!(ended(&late).wrong, 0, "one of those that are dropped");
    assert_eq!(ended(&truth[..150]).wrong, 1, "it ended before the last");
    late.swap(100, 101);
    assert_eq!(ended(&late).wrong, 1, "the order of all is seen");
}

#[test]
fn a_key_outside_the_sample_is_not_missed_in_a_scan() {
    let mut case = Case::new();
    let mut busy = case.ledger.thread();
    (1000..20_000).for_each(|key| busy.note(key, written(key)));
    let mask = busy.mask();
    let missed = (1..9).filter(|key| is_sampled(*key, SEED, mask)).count() as u64;
    let scan = case.scanner(Some(0), &[(9, 9)]);
    let found = case.check(vec![scan, busy.into()]);
    let zero = u64::from(is_sampled(0, SEED, mask));
    assert_eq!(found.wrong, missed + zero);
    case.ledger.forget(&(0..1000).collect());
    assert_eq!(case.scan(Some(0), &[(9, 9)]), right(1));
}

#[test]
fn a_scan_that_says_it_is_over_has_left_nothing_behind() {
    let case = Case::new();
    let ended = |sought, entries: &[(u64, u64)]| {
        let mut notes = case.scanner(sought, entries);
        notes.read.as_mut().unwrap().note_end();
        case.check(vec![notes])
    };
    assert_eq!(ended(Some(8), &[(8, 8), (9, 9)]), right(2));
    assert_eq!(
        ended(Some(15), &[]),
        right(0),
        "only deleted keys are there"
    );
    let behind = "a scan left out key 7, which was written";
    assert_eq!(
        ended(Some(5), &[(5, 5), (6, 6)]),
        wrong(2, 1, behind),
        "it ended once, however many keys are behind"
    );
    let sought = "a scan left out key 3, which was written";
    let found = ended(Some(3), &[]);
    assert_eq!(found, wrong(0, 2, sought), "itself, and what is behind");
    let mut none = ReadSample::new(&case.ledger);
    none.note_end();
    assert_eq!(case.check(vec![none.into()]), right(0));
}

#[test]
fn a_scan_of_everything_returns_as_many_keys_as_there_are() {
    let mut case = Case::new();
    let whole = |case: &Case, entries: &[u64]| {
        let mut sample = ReadSample::new(&case.ledger);
        entries.iter().for_each(|each| sample.note_whole(*each));
        Notes::from(sample)
    };
    let nine = "a scan of everything ended after 9 of about 10 keys";
    for (entries, result) in [
        (&[10][..], right(0)),
        (&[9], wrong(0, 1, nine)),
        (&[12, 9, 11], wrong(0, 1, nine)),
    ] {
        assert_eq!(case.check(vec![whole(&case, entries)]), result);
    }
    let new = case.writer(21, &[written(80)]);
    let meanwhile = case.check(vec![whole(&case, &[9]), new]);
    assert_eq!(meanwhile, right(0), "keys may have gone");
    let mut notes = [whole(&case, &[9])];
    let several = check_reads(&mut notes, &case.ledger, &case.values, case.keys(), false);
    assert_eq!(several, right(0), "one of several databases");
    case.ledger.forget(&HashSet::new());
    assert_eq!(
        case.check(vec![whole(&case, &[9])]),
        right(0),
        "after a replay"
    );

    // 100 keys in a sample of one in four: 400, give or take six standard errors of 10 x 4.
    let sampled = (0..).filter(|key| is_sampled(*key, SEED, 3));
    let keys = sampled.take(100).map(|key| (key, vec![written(key)]));
    case.ledger = Ledger::restored(SEED, 1, 1, 3, keys.collect()).unwrap();
    assert_eq!(case.check(vec![whole(&case, &[160])]), right(0));
    let few = "a scan of everything ended after 159 of about 400 keys";
    assert_eq!(case.check(vec![whole(&case, &[159])]), wrong(0, 1, few));
}
