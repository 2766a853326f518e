//! One thread of a mix: draws operation, key and value outside the clock, and performs inside it.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::engine::{Result, Session};
use crate::protocol::MixOperation;
use crate::random::{mix, KeyChooser, KeyWriter};

use super::super::ledger::KeyState;
use super::super::operations::{get, Action, DataCounts, Step, Writes};
use super::super::read_check::{fingerprint, ReadSample};
use super::plan::MixPlan;

/// Mixed into the hash of a key that picks its operation, so that this choice is independent of the
/// key's position.
const BY_KEY: u64 = 0x6f70_6572_6174_696f;

/// Operations of one thread of a mix.
pub struct MixAction<'a> {
    plan: &'a MixPlan,
    session: Box<dyn Session + 'a>,
    keys: KeyWriter,
    writes: Writes<'a>,
    reads: &'a mut ReadSample,
    chooser: Option<KeyChooser>,
    random: Xoshiro256PlusPlus,
    /// The operation that comes next, and where its latency is filed.
    operation: MixOperation,
    slot: usize,
    /// Number of its key.
    number: u64,
    /// Whether it has no key left.
    exhausted: bool,
    /// Entries of a scan.
    entries: u64,
    /// The last insert that this thread claimed, until the other threads know whether it was done.
    insert: Option<u64>,
    /// Whether that insert was done.
    inserted: bool,
    /// The row that an update has read.
    row: Vec<u8>,
}

impl<'a> MixAction<'a> {
    /// The operations of `plan` for one thread, whose choices follow from `seed`. `share` is its
    /// number, from 0, among those of the mix, and their count.
    pub fn new(
        plan: &'a MixPlan,
        session: Box<dyn Session + 'a>,
        keys: KeyWriter,
        writes: Writes<'a>,
        reads: &'a mut ReadSample,
        seed: u64,
        (thread, threads): (usize, usize),
    ) -> Self {
        let chooser = plan.chooser.as_ref();
        MixAction {
            plan,
            session,
            keys,
            writes,
            reads,
            chooser: chooser.map(|chooser| chooser.for_thread(thread, threads)),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            operation: MixOperation::Get,
            slot: 0,
            number: 0,
            exhausted: false,
            entries: 0,
            insert: None,
            inserted: false,
            row: Vec::new(),
        }
    }

    #[inline]
    fn choose(&mut self) {
        match &mut self.chooser {
            Some(chooser) => {
                let records = &self.plan.records;
                let position = chooser.draw(&mut self.random, records.live());
                self.number = records.number(position);
            }
            None => self.exhausted = true,
        }
    }

    /// The random bits that pick the operation. In a share of `operation_by_key` of the draws they
    /// depend on the key alone.
    #[inline]
    fn bits_by_key(&mut self) -> u64 {
        if self.random.random::<f64>() < self.plan.operation_by_key {
            mix(self.number ^ BY_KEY)
        } else {
            self.random.random()
        }
    }

    #[inline]
    fn claim_insert(&mut self) {
        let records = &self.plan.records;
        let insert = records.claim_insert();
        (self.insert, self.inserted) = (Some(insert), false);
        self.number = records.inserted(insert);
        if let Some(written) = self.plan.written {
            self.writes.count = written + insert;
            self.number += written;
        }
    }

    #[inline]
    fn claim_oldest(&mut self) {
        match self.plan.records.claim_oldest() {
            Some(position) => self.number = self.plan.records.number(position),
            None => self.exhausted = true,
        }
    }

    #[inline]
    fn get(&mut self, counts: &mut DataCounts) -> Result<()> {
        let print = get(&mut *self.session, self.keys.current(), self.reads, counts)?;
        self.note_read(print);
        Ok(())
    }

    /// Notes the fingerprint that a read returned, if it is to be checked.
    #[inline]
    fn note_read(&mut self, print: Option<u64>) {
        if self.reads.checked() {
            let own = self.writes.ledger.last(self.number);
            self.reads.note(self.number, print, own);
        }
    }

    #[inline]
    fn put(&mut self, counts: &mut DataCounts) -> Result<()> {
        let key = self.keys.current();
        self.session.put(key, self.writes.value)?;
        self.writes.note(self.number, key, counts);
        Ok(())
    }

    #[inline]
    fn merge(&mut self, counts: &mut DataCounts) -> Result<()> {
        let key = self.keys.current();
        self.session.merge(key, self.writes.value)?;
        self.writes.note(self.number, key, counts);
        Ok(())
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
        let print = (found && self.reads.checked()).then(|| fingerprint(row));
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
        let (mut bytes, mut touched) = (0, 0);
        let mut touch = |key: &[u8], value: &[u8]| {
            bytes += key.len() + value.len();
            touched ^= ends(key) ^ ends(value);
            if self.reads.checked() {
                self.reads.note_entry(key, value, &self.keys);
            }
        };
        if cursor.valid() {
            touch(cursor.key(), cursor.value());
            for _ in 1..self.entries {
                match cursor.next_entry() {
                    Some((key, value)) => touch(key, value),
                    None => break,
                }
            }
        }
        std::hint::black_box(touched);
        cursor.status()?;
        if self.reads.checked() && !cursor.valid() {
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
        let ledger = &mut self.writes.ledger;
        match self.operation {
            MixOperation::DeleteOldest => ledger.note_gone(self.number),
            _ => ledger.note(self.number, KeyState::Deleted),
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
    #[inline]
    fn slot(&self) -> usize {
        self.slot
    }

    #[inline]
    fn draw_slot(&mut self) -> usize {
        let bits = if self.plan.operation_by_key > 0.0 {
            self.choose();
            self.bits_by_key()
        } else {
            self.random.random()
        };
        (self.operation, self.slot) = self.plan.operation(bits);
        self.slot
    }

    #[inline]
    fn prepare(&mut self) {
        // Done here, not in `perform`, so that it does not count in the insert's latency.
        self.settle_insert();
        self.draw_slot();
        if self.plan.operation_by_key == 0.0 {
            match self.operation {
                MixOperation::Insert => self.claim_insert(),
                MixOperation::DeleteOldest => self.claim_oldest(),
                _ => self.choose(),
            }
        }
        self.keys.write(self.number);
        match self.operation {
            MixOperation::Get => {
                self.reads.wants(self.number);
            }
            MixOperation::Delete | MixOperation::DeleteOldest => {}
            MixOperation::Scan => {
                self.entries = self.plan.scan_lengths.at(self.random.random());
                if self.reads.wants_scan() {
                    self.reads.begin_scan(Some(self.keys.current()));
                }
            }
            MixOperation::Update | MixOperation::ReadModifyWrite => {
                self.reads.wants(self.number);
                self.writes.draw();
            }
            MixOperation::Put | MixOperation::Insert | MixOperation::Merge => self.writes.draw(),
        }
    }

    #[inline]
    fn perform(&mut self, counts: &mut DataCounts) -> Result<Step> {
        if self.exhausted {
            return Ok(Step::Exhausted);
        }
        match self.operation {
            MixOperation::Get => self.get(counts)?,
            MixOperation::Put => self.put(counts)?,
            MixOperation::Update => self.update(counts)?,
            MixOperation::ReadModifyWrite => self.read_modify_write(counts)?,
            MixOperation::Scan => self.scan(counts)?,
            MixOperation::Delete | MixOperation::DeleteOldest => self.delete(counts)?,
            MixOperation::Merge => self.merge(counts)?,
            MixOperation::Insert => {
                self.put(counts)?;
                self.inserted = true;
            }
        }
        Ok(Step::Done)
    }
}

impl MixAction<'_> {
    /// Tells the other threads that the insert is done, or that it never will be.
    #[inline]
    fn settle_insert(&mut self) {
        match self.insert.take() {
            Some(insert) if self.inserted => self.plan.records.acknowledge(insert),
            Some(_) => self.plan.records.abandon(),
            None => {}
        }
    }
}

impl Drop for MixAction<'_> {
    fn drop(&mut self) {
        self.settle_insert();
    }
}
