//! Measured reads are checked: an engine that answers fast and wrong must not win.
//!
//! A thread notes what it read of the ledger's sampled keys, one read in [`KEPT_ONE_IN`] at most,
//! and every [`KEPT_ONE_IN`]th scan. Values are noted as fingerprints, so a note is small and a
//! read costs a few nanoseconds more. When the phase is over, the notes are compared with the
//! ledger: what was written before the phase, and what its threads wrote meanwhile.
//!
//! A read may return any state of its key that is possible at that time. Where only the reading
//! thread wrote the key, that is its own last write. Where other threads wrote it too, it is any of
//! their writes: the order of two threads is not known.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use crate::random::{DecodedKey, KeyWriter};

use super::ledger::{is_sampled, KeyState, Ledger, ThreadLedger, KEPT_ONE_IN};
use super::values::Values;

/// Different answers that a thread keeps at most: some 6 MB.
const ANSWERS_MAX: usize = 1 << 16;

/// Scans that a thread keeps at most.
const SCANS_MAX: usize = 1 << 12;

/// Entries of a long scan that are checked in a row, and sampled ones that a scan keeps at most.
const STRETCH: u64 = 32;

/// What a read returned: a key, the fingerprint of its value unless it was absent, and what the
/// reading thread itself had last done to the key in this phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Answer {
    number: u64,
    value: Option<u64>,
    own: Option<KeyState>,
}

/// What one thread read in one phase, of the sampled keys.
#[derive(Debug)]
pub struct ReadSample {
    seed: u64,
    mask: u64,
    /// Reads of sampled keys of which one is checked: more than 1 where the keys are few.
    stride: u64,
    reads: u64,
    checked: bool,
    pending: Option<Answer>,
    answers: HashMap<Answer, u64>,
    scans: u64,
    open: Option<Scanned>,
    scanned: Vec<Scanned>,
    /// Entries of the shortest scan of everything that reached its end.
    whole: Option<u64>,
}

/// A stretch of entries that a scan returned one after the other.
#[derive(Debug)]
struct Scanned {
    /// The key that was sought; the first one that was returned where none was.
    from: Vec<u8>,
    last: Vec<u8>,
    entries: u64,
    /// Entries whose key is not above the one before.
    unordered: u64,
    /// Whether the engine said that no entry is left.
    at_end: bool,
    /// The first sampled keys among them, with the fingerprints of their values.
    sampled: Vec<(Vec<u8>, u64)>,
    /// Whether there were more sampled keys than are kept.
    cut: bool,
}

impl Scanned {
    /// Whether a sampled key that came would not be among those that are kept.
    fn is_dropped(&self, key: &[u8]) -> bool {
        let kept = self.sampled.last().map_or(&[][..], |(last, _)| last);
        self.cut && key > kept && key <= &self.last[..]
    }
}

impl ReadSample {
    /// For a thread of a phase that begins with `ledger`.
    pub fn new(ledger: &Ledger) -> Self {
        ReadSample {
            seed: ledger.seed(),
            mask: ledger.mask(),
            stride: (KEPT_ONE_IN / (ledger.mask() + 1).min(KEPT_ONE_IN)).max(1),
            reads: 0,
            checked: false,
            pending: None,
            answers: HashMap::new(),
            scans: 0,
            open: None,
            scanned: Vec::new(),
            whole: None,
        }
    }

    /// For a thread whose keys were never written: all of its reads have to find nothing, and are
    /// counted.
    pub fn idle(ledger: &Ledger) -> Self {
        ReadSample {
            stride: u64::MAX,
            ..ReadSample::new(ledger)
        }
    }

    /// Whether the read or scan that was last asked about is to be checked.
    #[inline]
    pub fn checked(&self) -> bool {
        self.checked
    }

    /// Whether the coming read of key `number` is to be checked. Not timed: what was noted last is
    /// put away here.
    #[inline]
    pub fn wants(&mut self, number: u64) -> bool {
        if let Some(answer) = self.pending.take() {
            self.keep(answer);
        }
        let sampled = is_sampled(number, self.seed, self.mask);
        self.reads += u64::from(sampled);
        self.checked = sampled && self.reads.is_multiple_of(self.stride);
        self.checked
    }

    /// Notes what a read of key `number` returned: the fingerprint of a value, or that it is absent.
    #[inline]
    pub fn note(&mut self, number: u64, value: Option<u64>, own: Option<KeyState>) {
        self.pending = Some(Answer { number, value, own });
    }

    #[cold]
    fn keep(&mut self, answer: Answer) {
        if self.answers.len() < ANSWERS_MAX || self.answers.contains_key(&answer) {
            *self.answers.entry(answer).or_default() += 1;
        }
    }

    /// Whether the coming scan is to be checked.
    #[inline]
    pub fn wants_scan(&mut self) -> bool {
        self.scans += 1;
        self.checked = self.scans % KEPT_ONE_IN == 1 && self.scanned.len() < SCANS_MAX;
        self.checked
    }

    /// Notes entry `position` of a scan without an end where that is to be checked: stretches of 32
    /// entries, so that their order can be seen.
    #[inline]
    pub fn see(&mut self, position: u64, key: &[u8], value: &[u8], keys: &KeyWriter) {
        if position % (KEPT_ONE_IN * STRETCH) <= STRETCH {
            self.see_stretch(position, key, value, keys);
        }
    }

    #[cold]
    fn see_stretch(&mut self, position: u64, key: &[u8], value: &[u8], keys: &KeyWriter) {
        let place = position % (KEPT_ONE_IN * STRETCH);
        if place == STRETCH {
            self.end_scan();
        } else if place == 0 && self.scanned.len() < SCANS_MAX {
            self.begin_scan(None);
        }
        if self.open.is_some() {
            self.note_entry(key, value, keys);
        }
    }

    /// Begins a stretch: at the key that is sought, if one is.
    pub fn begin_scan(&mut self, sought: Option<&[u8]>) {
        self.end_scan();
        let from = sought.unwrap_or_default().to_vec();
        self.open = Some(Scanned {
            last: from.clone(),
            from,
            entries: 0,
            unordered: 0,
            at_end: false,
            sampled: Vec::new(),
            cut: false,
        });
    }

    /// Notes that a stretch was cut short, because no entry is left.
    pub fn note_end(&mut self) {
        if let Some(scanned) = &mut self.open {
            scanned.at_end = true;
        }
    }

    /// Notes that a scan of everything returned `entries` and no more.
    pub fn note_whole(&mut self, entries: u64) {
        self.whole = Some(self.whole.map_or(entries, |least| least.min(entries)));
    }

    /// Notes the next entry of a stretch that has begun.
    pub fn note_entry(&mut self, key: &[u8], value: &[u8], keys: &KeyWriter) {
        let Some(scanned) = &mut self.open else {
            return;
        };
        let first = scanned.entries == 0;
        if first && scanned.from.is_empty() {
            scanned.from = key.to_vec();
        }
        // The first entry may be the key that was sought.
        let ordered = key > &scanned.last[..] || first && key == scanned.last;
        scanned.unordered += u64::from(!ordered);
        scanned.entries += 1;
        scanned.last.clear();
        scanned.last.extend_from_slice(key);
        let sampled = match keys.decode(key) {
            DecodedKey::Known(number) => is_sampled(number, self.seed, self.mask),
            // Which of them are sampled is found out later.
            DecodedKey::Hashed | DecodedKey::Foreign => true,
        };
        if sampled && scanned.sampled.len() < STRETCH as usize {
            scanned.sampled.push((key.to_vec(), fingerprint(value)));
        } else {
            scanned.cut |= sampled;
        }
    }

    /// Ends a stretch.
    pub fn end_scan(&mut self) {
        self.scanned.extend(self.open.take());
    }
}

/// What a value is noted as.
#[inline]
pub fn fingerprint(value: &[u8]) -> u64 {
    xxh3_64(value)
}

/// What became of the reads that were checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckedReads {
    /// Reads, and entries of scans, that were compared with the ledger.
    pub checked: u64,
    /// Those of them that were wrong.
    pub wrong: u64,
    /// The first that was wrong, in words.
    pub example: Option<String>,
}

impl CheckedReads {
    /// Adds `reads` that found a key that was never written.
    pub fn found_missing(&mut self, reads: u64) {
        self.wrong(reads, || {
            "a read found a key that was never written".to_owned()
        });
    }

    fn wrong(&mut self, reads: u64, example: impl FnOnce() -> String) {
        self.wrong += reads;
        if self.example.is_none() && reads > 0 {
            self.example = Some(example());
        }
    }
}

/// What one thread of a phase wrote and read, of the sampled keys.
#[derive(Debug, Default)]
pub struct Notes {
    /// Of a thread that writes.
    pub written: Option<ThreadLedger>,
    /// Of a thread that reads.
    pub read: Option<ReadSample>,
}

/// Compares what the threads of a phase read with the `ledger` of before it, and with what they
/// wrote meanwhile. `in_order`: a scan returns all keys in order, as one of a single database does.
pub fn check_reads(
    notes: &mut [Notes],
    ledger: &Ledger,
    values: &Values,
    keys: KeyWriter,
    in_order: bool,
) -> CheckedReads {
    let samples: Vec<_> = notes.iter_mut().map(|thread| thread.read.take()).collect();
    let mut mask = ledger.mask();
    for thread in notes.iter().filter_map(|thread| thread.written.as_ref()) {
        mask |= thread.mask();
    }
    let mut check = Check {
        ledger,
        notes,
        values,
        keys,
        mask,
        in_order,
        sorted: Vec::new(),
        result: CheckedReads::default(),
    };
    for (thread, sample) in samples.into_iter().enumerate() {
        let Some(mut sample) = sample else { continue };
        if let Some(answer) = sample.pending.take() {
            sample.keep(answer);
        }
        sample.end_scan();
        let mut answers: Vec<_> = sample.answers.into_iter().collect();
        answers.sort_unstable_by_key(|(answer, _)| (answer.number, answer.value));
        for (answer, reads) in answers {
            if check.answer(thread, answer, reads) {
                check.result.checked += reads;
            }
        }
        for scanned in &sample.scanned {
            check.scan(scanned);
        }
        if let Some(entries) = sample.whole {
            check.whole(entries);
        }
    }
    check.result
}

struct Check<'a> {
    ledger: &'a Ledger,
    notes: &'a [Notes],
    values: &'a Values,
    keys: KeyWriter,
    /// Of all threads: a key that one of them has dropped is known to none.
    mask: u64,
    in_order: bool,
    /// The ledger's keys in the order of their bytes; made when the first scan needs them.
    sorted: Vec<(Vec<u8>, u64)>,
    result: CheckedReads,
}

impl Check<'_> {
    /// What threads other than `thread` did to a key in this phase, and whether that is all.
    fn others(&self, thread: usize, number: u64) -> (Vec<KeyState>, bool) {
        let (mut all, mut complete) = (Vec::new(), true);
        for (other, notes) in self.notes.iter().enumerate() {
            let written = notes.written.as_ref().filter(|_| other != thread);
            if let Some((states, these)) = written.and_then(|ledger| ledger.states(number)) {
                all.extend(states);
                complete &= these;
            }
        }
        (all, complete)
    }

    /// Compares what `reads` reads of `thread` returned; false if nothing can be said of the key.
    fn answer(&mut self, thread: usize, answer: Answer, reads: u64) -> bool {
        let number = answer.number;
        let before = self.ledger.states(number);
        let (others, complete) = self.others(thread, number);
        let written_by_none = before.is_empty() && answer.own.is_none();
        if !is_sampled(number, self.ledger.seed(), self.mask)
            || written_by_none && !self.ledger.is_whole()
            || !complete
        {
            return false;
        }
        // Its own last write hides what was before; what other threads write may come at any time.
        let mut states: Vec<_> = answer.own.map_or_else(|| before.to_vec(), |own| vec![own]);
        if !others.is_empty() {
            states.extend(before);
            states.extend(others);
        }
        let possible = match answer.value {
            None => written_by_none || states.contains(&KeyState::Deleted),
            Some(found) => states.iter().any(|state| match state {
                KeyState::Written(version) => fingerprint(self.values.value(*version)) == found,
                KeyState::Deleted => false,
            }),
        };
        if !possible {
            let why = match answer.value {
                None => "was written, and a read did not find it",
                Some(_) if states.is_empty() => "was never written, and a read found it",
                Some(_) => "was read with a value that is not the one written",
            };
            self.result.wrong(reads, || format!("key {number} {why}"));
        }
        true
    }

    fn scan(&mut self, scanned: &Scanned) {
        self.result.checked += scanned.entries;
        if self.in_order {
            self.result.wrong(scanned.unordered, || {
                "a scan returned keys that are not in order".to_owned()
            });
        }
        if self.sorted.is_empty() {
            let expected = self.ledger.expectations().into_iter();
            let key = |(number, _)| (self.keys.write(number).to_vec(), number);
            self.sorted = expected.map(key).collect();
            self.sorted.sort_unstable();
        }
        for (key, value) in &scanned.sampled {
            self.entry(key, *value);
        }
        if self.in_order && scanned.unordered == 0 && (scanned.entries > 0 || scanned.at_end) {
            self.left_out(scanned);
        }
    }

    /// A scan of everything that ended after so many `entries`, while nobody wrote. The number of
    /// sampled keys that are there for certain gives that of all such keys, with the standard error
    /// of a binomial count; six of them are never reached by chance. Where all keys are sampled,
    /// the number is exact.
    fn whole(&mut self, entries: u64) {
        let written = self.notes.iter().any(|notes| notes.written.is_some());
        if written || !self.in_order || !self.ledger.is_whole() {
            return;
        }
        let sampled = self.ledger.certain_keys() as f64;
        let each = (self.ledger.mask() + 1) as f64;
        let keys = sampled * each;
        let error = match self.ledger.mask() {
            0 => 0.0,
            _ => 6.0 * sampled.sqrt() * each,
        };
        if (entries as f64) < keys - error {
            self.result.wrong(1, || {
                format!("a scan of everything ended after {entries} of about {keys:.0} keys")
            });
        }
    }

    /// One entry of a scan.
    fn entry(&mut self, key: &[u8], value: u64) {
        let number = match self.keys.decode(key) {
            DecodedKey::Known(number) => Some(number),
            DecodedKey::Hashed => {
                let sorted = &self.sorted;
                let at = sorted.binary_search_by(|(known, _)| known[..].cmp(key));
                at.ok().map(|at| sorted[at].1)
            }
            // A replay has written keys of whatever form.
            DecodedKey::Foreign if !self.ledger.is_whole() => None,
            DecodedKey::Foreign => {
                let shown = String::from_utf8_lossy(key).into_owned();
                self.result.wrong(1, || {
                    format!("a scan returned a key that none wrote: {shown:?}")
                });
                None
            }
        };
        if let Some(number) = number {
            // A scan may have begun before the thread's own last write: any of its states will do.
            let (own, value) = (None, Some(value));
            self.answer(usize::MAX, Answer { number, value, own }, 1);
        }
    }

    /// Keys between the first and the last of a stretch that nobody touched in this phase, and that
    /// are not in it, as far as its sampled keys were kept. If the scan came to the end, none is behind.
    fn left_out(&mut self, scanned: &Scanned) {
        let begin = self.sorted.partition_point(|(key, _)| key < &scanned.from);
        for (key, number) in &self.sorted[begin..] {
            if key > &scanned.last && !scanned.at_end {
                break;
            }
            let there = self.ledger.states(*number);
            let certain = !there.is_empty() && !there.contains(&KeyState::Deleted);
            let touched = !self.others(usize::MAX, *number).0.is_empty();
            let sampled = is_sampled(*number, self.ledger.seed(), self.mask);
            if !certain || touched || !sampled || scanned.is_dropped(key) {
                continue;
            }
            if !scanned.sampled.iter().any(|(returned, _)| returned == key) {
                let why = || format!("a scan left out key {number}, which was written");
                self.result.wrong(1, why);
                if key > &scanned.last {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
