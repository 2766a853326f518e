//! One thread of a mix: draws operation, key and value outside the clock, and performs inside it.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::engine::{Result, Session};
use crate::measure::OperationKind;
use crate::protocol::MixOperation;
use crate::random::{mix, KeyChooser, KeyWriter, Version};

use super::super::ledger::{KeyState, ThreadLedger};
use super::super::operations::{Action, DataCounts, Origin, Step};
use super::super::read_check::{fingerprint, Notes, ReadSample};
use super::super::values::ThreadValues;
use super::plan::MixPlan;
use super::records::Records;

/// Mixed into the hash of a key that picks its operation, so that this choice is independent of the
/// key's position.
const BY_KEY: u64 = 0x6f70_6572_6174_696f;

/// What each thread of a mix has for itself.
pub struct MixThread<'a> {
    /// The thread's handle on the database.
    pub session: Box<dyn Session + 'a>,
    /// Makes the bytes of its keys.
    pub keys: KeyWriter,
    /// Where its values come from.
    pub values: ThreadValues<'a>,
    /// Which thread of which phase it is.
    pub origin: Origin,
    /// The thread's number, from 0, among those of the mix, and their count.
    pub share: (usize, usize),
    /// Seed of its random choices.
    pub seed: u64,
    /// Set if the value of an insert follows from its number, and not from who performs it: how
    /// many were done before the mix began.
    pub numbered: Option<u64>,
    /// Notes what the thread writes.
    pub ledger: ThreadLedger,
    /// Takes down what it reads.
    pub reads: ReadSample,
}

/// Operations of one thread of a mix.
pub struct MixAction<'a> {
    plan: &'a MixPlan,
    session: Box<dyn Session + 'a>,
    keys: KeyWriter,
    values: ThreadValues<'a>,
    origin: Origin,
    ledger: ThreadLedger,
    reads: ReadSample,
    /// Whether the coming read or scan is to be noted.
    checked: bool,
    chooser: Option<KeyChooser>,
    random: Xoshiro256PlusPlus,
    numbered: Option<u64>,
    /// Writes drawn so far.
    count: u64,
    next: Next<'a>,
    /// The row that an update has read.
    row: Vec<u8>,
}

/// The operation that comes next.
struct Next<'a> {
    operation: MixOperation,
    slot: usize,
    /// Number of its key.
    number: u64,
    version: Version,
    value: &'a [u8],
    /// Entries of a scan.
    entries: u64,
    /// The last insert that this thread claimed, until the other threads know whether it was done.
    insert: Option<u64>,
    /// Whether that insert was done.
    inserted: bool,
    records: &'a Records,
    /// Whether the operation has no key left.
    exhausted: bool,
}

impl<'a> MixAction<'a> {
    /// The operations of `plan` for one thread.
    pub fn new(plan: &'a MixPlan, thread: MixThread<'a>) -> Self {
        let (place, threads) = thread.share;
        MixAction {
            plan,
            session: thread.session,
            keys: thread.keys,
            values: thread.values,
            origin: thread.origin,
            ledger: thread.ledger,
            reads: thread.reads,
            checked: false,
            chooser: plan
                .chooser
                .as_ref()
                .map(|chooser| chooser.for_thread(place, threads)),
            random: Xoshiro256PlusPlus::seed_from_u64(thread.seed),
            numbered: thread.numbered,
            count: 0,
            next: Next {
                operation: MixOperation::Get,
                slot: 0,
                number: 0,
                version: Version::new(thread.origin.phase, thread.origin.thread, 0),
                value: &[],
                entries: 0,
                insert: None,
                inserted: false,
                records: &plan.records,
                exhausted: false,
            },
            row: Vec::new(),
        }
    }

    #[inline]
    fn choose(&mut self) {
        match &mut self.chooser {
            Some(chooser) => {
                let records = &self.plan.records;
                let position = chooser.draw(&mut self.random, records.live());
                self.next.number = records.number(position);
            }
            None => self.next.exhausted = true,
        }
    }

    /// The random bits that pick the operation. In a share of `operation_by_key` of the draws they
    /// depend on the key alone.
    #[inline]
    fn bits_by_key(&mut self) -> u64 {
        if self.random.random::<f64>() < self.plan.operation_by_key {
            mix(self.next.number ^ BY_KEY)
        } else {
            self.random.random()
        }
    }

    #[inline]
    fn claim_insert(&mut self) {
        let records = &self.plan.records;
        let insert = records.claim_insert();
        (self.next.insert, self.next.inserted) = (Some(insert), false);
        let place = insert + self.numbered.unwrap_or(0);
        if self.numbered.is_some() {
            self.count = place;
        }
        self.next.number = records.number(records.position(place));
    }

    #[inline]
    fn claim_oldest(&mut self) {
        match self.plan.records.claim_oldest() {
            Some(position) => self.next.number = self.plan.records.number(position),
            None => self.next.exhausted = true,
        }
    }

    #[inline]
    fn draw_value(&mut self) {
        self.next.version = Version::new(self.origin.phase, self.origin.thread, self.count);
        self.next.value = self.values.value(self.next.version);
        self.count += 1;
    }

    #[inline]
    fn get(&mut self, counts: &mut DataCounts) -> Result<()> {
        let (mut value_bytes, mut print) = (0, None);
        let key = self.keys.current();
        let found = self.session.get(key, &mut |value| {
            value_bytes = value.len();
            print = self.checked.then(|| fingerprint(value));
        })?;
        counts.read(found, key.len() + value_bytes);
        self.note_read(print);
        Ok(())
    }

    /// Notes the fingerprint that a read returned, if it is to be checked.
    #[inline]
    fn note_read(&mut self, print: Option<u64>) {
        if self.checked {
            let number = self.next.number;
            self.reads.note(number, print, self.ledger.last(number));
        }
    }

    #[inline]
    fn put(&mut self, counts: &mut DataCounts) -> Result<()> {
        self.session.put(self.keys.current(), self.next.value)?;
        self.note_written(counts);
        Ok(())
    }

    #[inline]
    fn merge(&mut self, counts: &mut DataCounts) -> Result<()> {
        self.session.merge(self.keys.current(), self.next.value)?;
        self.note_written(counts);
        Ok(())
    }

    #[inline]
    fn note_written(&mut self, counts: &mut DataCounts) {
        counts.bytes_written += (self.keys.current().len() + self.next.value.len()) as u64;
        self.ledger
            .note(self.next.number, KeyState::Written(self.next.version));
    }

    /// Reads a row into a buffer, and writes another row in its place.
    #[inline]
    fn update(&mut self, counts: &mut DataCounts) -> Result<()> {
        let (row, key) = (&mut self.row, self.keys.current());
        row.clear();
        let found = self
            .session
            .get(key, &mut |value| row.extend_from_slice(value))?;
        counts.read(found, key.len() + row.len());
        let print = (found && self.checked).then(|| fingerprint(row));
        self.note_read(print);
        if found {
            self.put(counts)?;
        }
        Ok(())
    }

    /// Reads a row, then updates it, which reads it again.
    #[inline]
    fn read_modify_write(&mut self, counts: &mut DataCounts) -> Result<()> {
        let (mut value_bytes, key) = (0, self.keys.current());
        let found = self
            .session
            .get(key, &mut |value| value_bytes = value.len())?;
        if found {
            // The update counts the row itself as found, or as missing.
            counts.bytes_read += (key.len() + value_bytes) as u64;
        }
        self.update(counts)
    }

    fn scan(&mut self, counts: &mut DataCounts) -> Result<()> {
        let key = self.keys.current();
        let mut cursor = self.session.cursor()?;
        cursor.seek(key);
        let found = cursor.valid() && cursor.key() == key;
        let mut bytes = 0;
        let mut touched = 0;
        let (reads, checked, keys) = (&mut self.reads, self.checked, &self.keys);
        let mut touch = |key: &[u8], value: &[u8]| {
            bytes += key.len() + value.len();
            touched ^= ends(key) ^ ends(value);
            if checked {
                reads.note_entry(key, value, keys);
            }
        };
        if cursor.valid() {
            touch(cursor.key(), cursor.value());
            for _ in 1..self.next.entries {
                match cursor.next_entry() {
                    Some((key, value)) => touch(key, value),
                    None => break,
                }
            }
        }
        std::hint::black_box(touched);
        cursor.status()?;
        if self.checked && !cursor.valid() {
            self.reads.note_end();
        }
        drop(cursor);
        counts.read(found, 0);
        counts.bytes_read += bytes as u64;
        Ok(())
    }

    #[inline]
    fn delete(&mut self, counts: &mut DataCounts) -> Result<()> {
        self.session.delete(self.keys.current())?;
        counts.bytes_written += self.keys.current().len() as u64;
        match self.next.operation {
            MixOperation::DeleteOldest => self.ledger.note_gone(self.next.number),
            _ => self.ledger.note(self.next.number, KeyState::Deleted),
        }
        Ok(())
    }
}

/// The first and the last byte: reading them makes sure that the cursor's entry is in memory.
#[inline]
fn ends(bytes: &[u8]) -> u8 {
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => first ^ last,
        _ => 0,
    }
}

impl Action for MixAction<'_> {
    const PREPARES: bool = true;

    fn kinds(&self) -> Vec<OperationKind> {
        self.plan.kinds().to_vec()
    }

    #[inline]
    fn slot(&self) -> usize {
        self.next.slot
    }

    #[inline]
    fn draw_slot(&mut self) -> usize {
        let bits = if self.plan.operation_by_key > 0.0 {
            self.choose();
            self.bits_by_key()
        } else {
            self.random.random()
        };
        (self.next.operation, self.next.slot) = self.plan.operation(bits);
        self.next.slot
    }

    #[inline]
    fn prepare(&mut self) {
        // Done here, not in `perform`, so that it does not count in the insert's latency.
        self.next.settle_insert();
        self.draw_slot();
        if self.plan.operation_by_key == 0.0 {
            match self.next.operation {
                MixOperation::Insert => self.claim_insert(),
                MixOperation::DeleteOldest => self.claim_oldest(),
                _ => self.choose(),
            }
        }
        self.keys.write(self.next.number);
        match self.next.operation {
            MixOperation::Get => self.checked = self.reads.wants(self.next.number),
            MixOperation::Delete | MixOperation::DeleteOldest => {}
            MixOperation::Scan => {
                self.next.entries = self.plan.scan_lengths.at(self.random.random());
                self.checked = self.reads.wants_scan();
                if self.checked {
                    self.reads.begin_scan(Some(self.keys.current()));
                }
            }
            MixOperation::Update | MixOperation::ReadModifyWrite => {
                self.checked = self.reads.wants(self.next.number);
                self.draw_value();
            }
            MixOperation::Put | MixOperation::Insert | MixOperation::Merge => self.draw_value(),
        }
    }

    #[inline]
    fn perform(&mut self, counts: &mut DataCounts) -> Result<Step> {
        if self.next.exhausted {
            return Ok(Step::Exhausted);
        }
        match self.next.operation {
            MixOperation::Get => self.get(counts)?,
            MixOperation::Put => self.put(counts)?,
            MixOperation::Update => self.update(counts)?,
            MixOperation::ReadModifyWrite => self.read_modify_write(counts)?,
            MixOperation::Scan => self.scan(counts)?,
            MixOperation::Delete | MixOperation::DeleteOldest => self.delete(counts)?,
            MixOperation::Merge => self.merge(counts)?,
            MixOperation::Insert => {
                self.put(counts)?;
                self.next.inserted = true;
            }
        }
        Ok(Step::Done)
    }

    fn into_notes(self) -> Notes {
        Notes {
            written: Some(self.ledger),
            read: Some(self.reads),
        }
    }
}

impl Next<'_> {
    /// Tells the other threads that the insert is done, or that it never will be.
    #[inline]
    fn settle_insert(&mut self) {
        match self.insert.take() {
            Some(insert) if self.inserted => self.records.acknowledge(insert),
            Some(_) => self.records.abandon(),
            None => {}
        }
    }
}

impl Drop for Next<'_> {
    fn drop(&mut self) {
        self.settle_insert();
    }
}
