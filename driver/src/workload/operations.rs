//! The operations themselves: prepare outside the clock, perform inside it.

use crate::engine::{Cursor, Result, Session};
use crate::measure::OperationKind;
use crate::random::{KeyStream, KeyWriter, Version};

use super::ledger::{KeyState, ThreadLedger};
use super::values::ThreadValues;

/// Whether an operation happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It did.
    Done,
    /// There was nothing left to do; not counted.
    Exhausted,
}

/// What a thread did, apart from how long it took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DataCounts {
    /// Reads that found their key.
    pub found: u64,
    /// Reads that did not.
    pub missing: u64,
    /// Key and value bytes handed to the engine.
    pub bytes_written: u64,
    /// Key and value bytes handed out by it.
    pub bytes_read: u64,
}

impl DataCounts {
    /// Adds what another thread did.
    pub fn add(&mut self, other: DataCounts) {
        self.found += other.found;
        self.missing += other.missing;
        self.bytes_written += other.bytes_written;
        self.bytes_read += other.bytes_read;
    }

    /// Only the bytes: of threads whose reads are not the phase's.
    #[must_use]
    pub fn bytes(self) -> DataCounts {
        DataCounts {
            found: 0,
            missing: 0,
            ..self
        }
    }

    /// Notes a read that handed out `bytes` if it found its key.
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

/// Operations of one thread: one kind again and again, or several.
pub trait Action {
    /// Whether [`Action::prepare`] does anything: where it does not, the end of one operation is
    /// the start of the next, and one reading of the clock serves both.
    const PREPARES: bool;

    /// What its latencies are filed under, by slot.
    fn kinds(&self) -> Vec<OperationKind>;
    /// The slot of the operation that was performed last.
    #[inline]
    fn slot(&self) -> usize {
        0
    }

    /// Chooses the next key and value; outside the clock.
    fn prepare(&mut self);
    /// Calls the engine.
    fn perform(&mut self) -> Result<Step>;
    /// What was done so far.
    fn counts(&self) -> DataCounts;
    /// What was written, when the thread is done; `None` for reads.
    fn into_ledger(self) -> Option<ThreadLedger>
    where
        Self: Sized,
    {
        None
    }
}

/// A key being reused for every operation of a thread.
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

/// Which thread of which phase, for the versions of what it writes.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// Position of the phase in the workload.
    pub phase: usize,
    /// Position of the thread in the phase.
    pub thread: usize,
}

/// Puts.
pub struct Put<'a> {
    session: Box<dyn Session + 'a>,
    key: KeyBuffer,
    values: ThreadValues<'a>,
    origin: Origin,
    ledger: ThreadLedger,
    version: Version,
    value: &'a [u8],
    count: u64,
    counts: DataCounts,
}

impl<'a> Put<'a> {
    /// Puts of `values`, noted in `ledger`.
    pub fn new(
        session: Box<dyn Session + 'a>,
        key: KeyBuffer,
        values: ThreadValues<'a>,
        origin: Origin,
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
            count: 0,
            counts: DataCounts::default(),
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
    fn perform(&mut self) -> Result<Step> {
        self.session.put(self.key.bytes(), self.value)?;
        self.counts.bytes_written += (self.key.bytes().len() + self.value.len()) as u64;
        self.ledger
            .note(self.key.index, KeyState::Written(self.version));
        Ok(Step::Done)
    }

    fn counts(&self) -> DataCounts {
        self.counts
    }

    fn into_ledger(self) -> Option<ThreadLedger> {
        Some(self.ledger)
    }
}

/// Deletes.
pub struct Delete<'a> {
    session: Box<dyn Session + 'a>,
    key: KeyBuffer,
    ledger: ThreadLedger,
    counts: DataCounts,
}

impl<'a> Delete<'a> {
    /// Deletes, noted in `ledger`.
    pub fn new(session: Box<dyn Session + 'a>, key: KeyBuffer, ledger: ThreadLedger) -> Self {
        Delete {
            session,
            key,
            ledger,
            counts: DataCounts::default(),
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
    fn perform(&mut self) -> Result<Step> {
        self.session.delete(self.key.bytes())?;
        self.counts.bytes_written += self.key.bytes().len() as u64;
        self.ledger.note(self.key.index, KeyState::Deleted);
        Ok(Step::Done)
    }

    fn counts(&self) -> DataCounts {
        self.counts
    }

    fn into_ledger(self) -> Option<ThreadLedger> {
        Some(self.ledger)
    }
}

/// Gets.
pub struct Get<'a> {
    session: Box<dyn Session + 'a>,
    key: KeyBuffer,
    counts: DataCounts,
}

impl<'a> Get<'a> {
    /// Gets of the keys of `key`.
    pub fn new(session: Box<dyn Session + 'a>, key: KeyBuffer) -> Self {
        Get {
            session,
            key,
            counts: DataCounts::default(),
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
    }

    #[inline]
    fn perform(&mut self) -> Result<Step> {
        let mut value_bytes = 0;
        let key = self.key.bytes();
        let found = self
            .session
            .get(key, &mut |value| value_bytes = value.len())?;
        self.counts.read(found, key.len() + value_bytes);
        Ok(Step::Done)
    }

    fn counts(&self) -> DataCounts {
        self.counts
    }
}

/// Cursors opened, sought and stepped.
pub struct Seek<'a> {
    session: Box<dyn Session + 'a>,
    key: KeyBuffer,
    nexts: u64,
    counts: DataCounts,
}

impl<'a> Seek<'a> {
    /// Seeks to the keys of `key`, each followed by `nexts` steps.
    pub fn new(session: Box<dyn Session + 'a>, key: KeyBuffer, nexts: u64) -> Self {
        Seek {
            session,
            key,
            nexts,
            counts: DataCounts::default(),
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
    }

    #[inline]
    fn perform(&mut self) -> Result<Step> {
        let mut cursor = self.session.cursor()?;
        cursor.seek(self.key.bytes());
        let found = cursor.valid() && cursor.key() == self.key.bytes();
        let mut bytes = if found { entry_bytes(&*cursor) } else { 0 };
        for _ in 0..self.nexts {
            if !cursor.valid() {
                break;
            }
            cursor.next();
            bytes += if cursor.valid() {
                entry_bytes(&*cursor)
            } else {
                0
            };
        }
        cursor.status()?;
        drop(cursor);
        self.counts.read(found, 0);
        self.counts.bytes_read += bytes as u64;
        Ok(Step::Done)
    }

    fn counts(&self) -> DataCounts {
        self.counts
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
    counts: DataCounts,
}

impl<'a> Scan<'a> {
    /// Steps of `cursor` from the first entry on; begins again at the end if `wraps`.
    pub fn new(cursor: Box<dyn Cursor + 'a>, wraps: bool) -> Self {
        Scan {
            cursor,
            positioned: false,
            wraps,
            counts: DataCounts::default(),
        }
    }

    /// Stands on the first entry: at the start, and again at the end if the scan wraps.
    #[cold]
    fn begin(&mut self) -> Result<Step> {
        self.cursor.status()?;
        if self.positioned && !self.wraps {
            return Ok(Step::Exhausted);
        }
        self.cursor.seek_to_first();
        self.positioned = true;
        if !self.cursor.valid() {
            self.cursor.status()?;
            return Ok(Step::Exhausted);
        }
        self.counts.read(true, entry_bytes(&*self.cursor));
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
    fn perform(&mut self) -> Result<Step> {
        if self.positioned {
            if let Some((key, value)) = self.cursor.next_entry() {
                self.counts.read(true, key.len() + value.len());
                return Ok(Step::Done);
            }
        }
        self.begin()
    }

    fn counts(&self) -> DataCounts {
        self.counts
    }
}
