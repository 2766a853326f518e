//! The operations: each is prepared outside the clock and performed inside it.

use crate::engine::{Cursor, Result, Session};
use crate::measure::OperationKind;
use crate::random::{KeyStream, KeyWriter, Version};

use super::ledger::{KeyState, ThreadLedger};
use super::read_check::{fingerprint, Notes, ReadSample};
use super::values::ThreadValues;

/// Whether an operation was performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It was performed.
    Done,
    /// Nothing was left to do; not counted as an operation.
    Exhausted,
}

/// Keys that reads found or missed, and bytes exchanged with the engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DataCounts {
    /// Reads that found their key.
    pub found: u64,
    /// Reads that did not find their key.
    pub missing: u64,
    /// Key and value bytes handed to the engine.
    pub bytes_written: u64,
    /// Key and value bytes received from the engine.
    pub bytes_read: u64,
}

impl DataCounts {
    /// Adds the counts of another thread.
    pub fn add(&mut self, other: DataCounts) {
        self.found += other.found;
        self.missing += other.missing;
        self.bytes_written += other.bytes_written;
        self.bytes_read += other.bytes_read;
    }

    /// The same bytes without the keys, for threads whose reads do not count in the phase.
    #[must_use]
    pub fn bytes(self) -> DataCounts {
        DataCounts {
            found: 0,
            missing: 0,
            ..self
        }
    }

    /// Counts a read, and its `bytes` if it found its key.
    #[inline]
    pub fn read(&mut self, found: bool, bytes: usize) {
        if found {
            self.found += 1;
            self.bytes_read += bytes as u64;
        } else {
            self.missing += 1;
        }
    }
}

/// The operations of one thread, of one type or of several.
pub trait Action {
    /// Whether [`Action::prepare`] does anything. If it does nothing, an operation starts when the
    /// previous one ends, and the clock is read once for both.
    const PREPARES: bool;

    /// The types under which latencies are filed, by slot.
    fn kinds(&self) -> Vec<OperationKind>;
    /// The slot of the operation that was performed last.
    #[inline]
    fn slot(&self) -> usize {
        0
    }

    /// The slot of a further operation, as [`Action::prepare`] would have chosen it.
    fn draw_slot(&mut self) -> usize {
        self.slot()
    }

    /// Chooses the next key and value. Not timed.
    fn prepare(&mut self);
    /// Calls the engine, and adds the keys and bytes to `counts`. Timed.
    fn perform(&mut self, counts: &mut DataCounts) -> Result<Step>;
    /// What the thread wrote and read, of the sampled keys.
    fn into_notes(self) -> Notes
    where
        Self: Sized,
    {
        Notes::default()
    }
}

/// The current key of a thread, in a buffer that every operation reuses.
#[derive(Debug)]
pub struct KeyBuffer {
    stream: KeyStream,
    index: u64,
    writer: KeyWriter,
}

impl KeyBuffer {
    /// The keys of `stream` as `writer` writes them.
    pub fn new(stream: KeyStream, writer: KeyWriter) -> Self {
        KeyBuffer {
            stream,
            index: 0,
            writer,
        }
    }

    #[inline]
    fn advance(&mut self) {
        self.index = self.stream.next_key();
        self.writer.write(self.index);
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.writer.current()
    }
}

/// A thread of a phase; part of the version of each value that it writes.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// Position of the phase in the workload.
    pub phase: usize,
    /// Position of the thread in the phase.
    pub thread: usize,
}

/// Puts values.
pub struct Put<'a> {
    session: Box<dyn Session + 'a>,
    key: KeyBuffer,
    values: ThreadValues<'a>,
    origin: Origin,
    ledger: ThreadLedger,
    version: Version,
    value: &'a [u8],
    count: u64,
}

impl<'a> Put<'a> {
    /// Puts `values`, from number `count` on, and notes them in `ledger`.
    pub fn new(
        session: Box<dyn Session + 'a>,
        key: KeyBuffer,
        values: ThreadValues<'a>,
        origin: Origin,
        count: u64,
        ledger: ThreadLedger,
    ) -> Self {
        Put {
            session,
            key,
            values,
            origin,
            ledger,
            version: Version::new(origin.phase, origin.thread, 0),
            value: &[],
            count,
        }
    }
}

impl Action for Put<'_> {
    const PREPARES: bool = true;

    fn kinds(&self) -> Vec<OperationKind> {
        vec![OperationKind::Put]
    }

    #[inline]
    fn prepare(&mut self) {
        self.key.advance();
        self.version = Version::new(self.origin.phase, self.origin.thread, self.count);
        self.value = self.values.value(self.version);
        self.count += 1;
    }

    #[inline]
    fn perform(&mut self, counts: &mut DataCounts) -> Result<Step> {
        self.session.put(self.key.bytes(), self.value)?;
        counts.bytes_written += (self.key.bytes().len() + self.value.len()) as u64;
        self.ledger
            .note(self.key.index, KeyState::Written(self.version));
        Ok(Step::Done)
    }

    fn into_notes(self) -> Notes {
        self.ledger.into()
    }
}

/// Deletes keys.
pub struct Delete<'a> {
    session: Box<dyn Session + 'a>,
    key: KeyBuffer,
    ledger: ThreadLedger,
}

impl<'a> Delete<'a> {
    /// Deletes keys and notes them in `ledger`.
    pub fn new(session: Box<dyn Session + 'a>, key: KeyBuffer, ledger: ThreadLedger) -> Self {
        Delete {
            session,
            key,
            ledger,
        }
    }
}

impl Action for Delete<'_> {
    const PREPARES: bool = true;

    fn kinds(&self) -> Vec<OperationKind> {
        vec![OperationKind::Delete]
    }

    #[inline]
    fn prepare(&mut self) {
        self.key.advance();
    }

    #[inline]
    fn perform(&mut self, counts: &mut DataCounts) -> Result<Step> {
        self.session.delete(self.key.bytes())?;
        counts.bytes_written += self.key.bytes().len() as u64;
        self.ledger.note(self.key.index, KeyState::Deleted);
        Ok(Step::Done)
    }

    fn into_notes(self) -> Notes {
        self.ledger.into()
    }
}

/// Gets values.
pub struct Get<'a> {
    session: Box<dyn Session + 'a>,
    key: KeyBuffer,
    reads: ReadSample,
    checked: bool,
}

impl<'a> Get<'a> {
    /// Gets of the keys of `key`, of which some are noted in `reads`.
    pub fn new(session: Box<dyn Session + 'a>, key: KeyBuffer, reads: ReadSample) -> Self {
        Get {
            session,
            key,
            reads,
            checked: false,
        }
    }
}

impl Action for Get<'_> {
    const PREPARES: bool = true;

    fn kinds(&self) -> Vec<OperationKind> {
        vec![OperationKind::Get]
    }

    #[inline]
    fn prepare(&mut self) {
        self.key.advance();
        self.checked = self.reads.wants(self.key.index);
    }

    #[inline]
    fn perform(&mut self, counts: &mut DataCounts) -> Result<Step> {
        let (mut value_bytes, mut print) = (0, None);
        let key = self.key.bytes();
        let found = self.session.get(key, &mut |value| {
            value_bytes = value.len();
            print = self.checked.then(|| fingerprint(value));
        })?;
        if self.checked {
            self.reads.note(self.key.index, print, None);
        }
        counts.read(found, key.len() + value_bytes);
        Ok(Step::Done)
    }

    fn into_notes(self) -> Notes {
        self.reads.into()
    }
}

/// Opens a cursor, seeks, and steps.
pub struct Seek<'a> {
    session: Box<dyn Session + 'a>,
    key: KeyBuffer,
    nexts: u64,
    reads: ReadSample,
    checked: bool,
}

impl<'a> Seek<'a> {
    /// Seeks to the keys of `key`, each followed by `nexts` steps; some are noted in `reads`.
    pub fn new(
        session: Box<dyn Session + 'a>,
        key: KeyBuffer,
        nexts: u64,
        reads: ReadSample,
    ) -> Self {
        Seek {
            session,
            key,
            nexts,
            reads,
            checked: false,
        }
    }
}

impl Action for Seek<'_> {
    const PREPARES: bool = true;

    fn kinds(&self) -> Vec<OperationKind> {
        vec![OperationKind::Seek]
    }

    #[inline]
    fn prepare(&mut self) {
        self.key.advance();
        self.checked = self.reads.wants_scan();
        if self.checked {
            self.reads.begin_scan(Some(self.key.bytes()));
        }
    }

    #[inline]
    fn perform(&mut self, counts: &mut DataCounts) -> Result<Step> {
        let (mut found, mut bytes) = (false, 0);
        self.session.with_cursor(&mut |cursor| {
            let mut entry = cursor.seek_entry(self.key.bytes());
            for step in 0..=self.nexts {
                let Some((key, value)) = entry else {
                    break;
                };
                // Where the key itself is missing, its neighbour was not asked for.
                found |= step == 0 && key == self.key.bytes();
                if found || step > 0 {
                    bytes += key.len() + value.len();
                }
                if self.checked {
                    self.reads.note_entry(key, value, &self.key.writer);
                }
                if step < self.nexts {
                    entry = cursor.next_entry();
                }
            }
            if self.checked && entry.is_none() {
                self.reads.note_end();
            }
            cursor.status()
        })?;
        counts.read(found, 0);
        counts.bytes_read += bytes as u64;
        Ok(Step::Done)
    }

    fn into_notes(self) -> Notes {
        self.reads.into()
    }
}

#[inline]
fn entry_bytes(cursor: &dyn Cursor) -> usize {
    cursor.key().len() + cursor.value().len()
}

/// A scan in key order.
pub struct Scan<'a> {
    cursor: Box<dyn Cursor + 'a>,
    positioned: bool,
    wraps: bool,
    keys: KeyWriter,
    reads: ReadSample,
    /// Entries since the first one.
    position: u64,
}

impl<'a> Scan<'a> {
    /// Steps of `cursor` from the first entry on; begins again at the end if `wraps`. Some of its
    /// entries are noted in `reads`, whose keys are those of `keys`.
    pub fn new(
        cursor: Box<dyn Cursor + 'a>,
        wraps: bool,
        keys: KeyWriter,
        reads: ReadSample,
    ) -> Self {
        Scan {
            cursor,
            positioned: false,
            wraps,
            keys,
            reads,
            position: 0,
        }
    }

    /// Moves to the first entry: at the start and, if the scan wraps, again at its end.
    #[cold]
    fn begin(&mut self, counts: &mut DataCounts) -> Result<Step> {
        self.cursor.status()?;
        if self.positioned {
            self.reads.note_end();
            self.reads.note_whole(self.position + 1);
            if !self.wraps {
                return Ok(Step::Exhausted);
            }
        }
        self.cursor.seek_to_first();
        self.positioned = true;
        if !self.cursor.valid() {
            self.cursor.status()?;
            self.reads.note_whole(0);
            return Ok(Step::Exhausted);
        }
        self.position = 0;
        self.reads.end_scan();
        let (key, value) = (self.cursor.key(), self.cursor.value());
        self.reads.see(0, key, value, &self.keys);
        counts.read(true, entry_bytes(&*self.cursor));
        Ok(Step::Done)
    }
}

impl Action for Scan<'_> {
    const PREPARES: bool = false;

    fn kinds(&self) -> Vec<OperationKind> {
        vec![OperationKind::Next]
    }

    fn prepare(&mut self) {}

    #[inline]
    fn perform(&mut self, counts: &mut DataCounts) -> Result<Step> {
        if self.positioned {
            if let Some((key, value)) = self.cursor.next_entry() {
                self.position += 1;
                self.reads.see(self.position, key, value, &self.keys);
                counts.read(true, key.len() + value.len());
                return Ok(Step::Done);
            }
        }
        self.begin(counts)
    }

    fn into_notes(self) -> Notes {
        self.reads.into()
    }
}
