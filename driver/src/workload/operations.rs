//! The operations: each is prepared outside the clock and performed inside it.

use crate::engine::{Cursor, Result, Session};
use crate::random::{KeyStream, KeyWriter, Version};

use super::ledger::{KeyState, ThreadLedger};
use super::read_check::{fingerprint, ReadSample};
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
    const PREPARES: bool = true;

    /// The slot, among those of the thread's types, of the operation that was performed last.
    #[inline]
    fn slot(&self) -> usize {
        0
    }

    /// The slot of a further operation, as [`Action::prepare`] would have chosen it.
    fn draw_slot(&mut self) -> usize {
        self.slot()
    }

    /// Chooses the next key and value. Not timed.
    fn prepare(&mut self) {}

    /// Calls the engine, and adds the keys and bytes to `counts`. Timed.
    fn perform(&mut self, counts: &mut DataCounts) -> Result<Step>;
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

/// What a thread writes: one value after another, each noted when it is written.
pub struct Writes<'a> {
    /// Where the values come from.
    pub values: ThreadValues<'a>,
    /// Of the value that was drawn last; before the first, any of the thread.
    pub version: Version,
    /// The value that was drawn last.
    pub value: &'a [u8],
    /// Number of the value that is drawn next.
    pub count: u64,
    /// Notes what is written.
    pub ledger: &'a mut ThreadLedger,
}

impl Writes<'_> {
    /// Draws the next value.
    #[inline]
    pub fn draw(&mut self) {
        self.version = self.version.with_count(self.count);
        self.value = self.values.value(self.version);
        self.count += 1;
    }

    /// Notes that the value was written to `key`, which has this number.
    #[inline]
    pub fn note(&mut self, number: u64, key: &[u8], counts: &mut DataCounts) {
        counts.bytes_written += (key.len() + self.value.len()) as u64;
        self.ledger.note(number, KeyState::Written(self.version));
    }
}

/// Puts values.
pub struct Put<'a> {
    pub session: Box<dyn Session + 'a>,
    pub key: KeyBuffer,
    pub writes: Writes<'a>,
}

impl Action for Put<'_> {
    #[inline]
    fn prepare(&mut self) {
        self.key.advance();
        self.writes.draw();
    }

    #[inline]
    fn perform(&mut self, counts: &mut DataCounts) -> Result<Step> {
        let key = self.key.bytes();
        self.session.put(key, self.writes.value)?;
        self.writes.note(self.key.index, key, counts);
        Ok(Step::Done)
    }
}

/// Deletes keys.
pub struct Delete<'a> {
    pub session: Box<dyn Session + 'a>,
    pub key: KeyBuffer,
    pub ledger: &'a mut ThreadLedger,
}

impl Action for Delete<'_> {
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
}

/// Gets values; some are noted in `reads`.
pub struct Get<'a> {
    pub session: Box<dyn Session + 'a>,
    pub key: KeyBuffer,
    pub reads: &'a mut ReadSample,
}

impl Action for Get<'_> {
    #[inline]
    fn prepare(&mut self) {
        self.key.advance();
        self.reads.wants(self.key.index);
    }

    #[inline]
    fn perform(&mut self, counts: &mut DataCounts) -> Result<Step> {
        let print = get(&mut *self.session, self.key.bytes(), self.reads, counts)?;
        if self.reads.checked() {
            self.reads.note(self.key.index, print, None);
        }
        Ok(Step::Done)
    }
}

/// Gets `key`. Returns the fingerprint of its value if the read is to be checked.
#[inline]
pub fn get(
    session: &mut dyn Session,
    key: &[u8],
    reads: &ReadSample,
    counts: &mut DataCounts,
) -> Result<Option<u64>> {
    let (mut value_bytes, mut print) = (0, None);
    let found = session.get(key, &mut |value| {
        value_bytes = value.len();
        print = reads.checked().then(|| fingerprint(value));
    })?;
    counts.read(found, key.len() + value_bytes);
    Ok(print)
}

/// Opens a cursor, seeks, and steps `nexts` times; some of the entries are noted in `reads`.
pub struct Seek<'a> {
    pub session: Box<dyn Session + 'a>,
    pub key: KeyBuffer,
    pub nexts: u64,
    pub reads: &'a mut ReadSample,
}

impl Action for Seek<'_> {
    #[inline]
    fn prepare(&mut self) {
        self.key.advance();
        if self.reads.wants_scan() {
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
                if self.reads.checked() {
                    self.reads.note_entry(key, value, &self.key.writer);
                }
                if step < self.nexts {
                    entry = cursor.next_entry();
                }
            }
            if self.reads.checked() && entry.is_none() {
                self.reads.note_end();
            }
            cursor.status()
        })?;
        counts.read(found, 0);
        counts.bytes_read += bytes as u64;
        Ok(Step::Done)
    }
}

/// Steps of a scan in key order, from the first entry on; some of them are noted in `reads`.
pub struct Scan<'a> {
    pub cursor: Box<dyn Cursor + 'a>,
    /// Whether it begins again at the end.
    pub wraps: bool,
    /// Writes keys as those of the database.
    pub keys: KeyWriter,
    pub reads: &'a mut ReadSample,
    /// Entries since the first one; `None` before it.
    pub position: Option<u64>,
}

impl Scan<'_> {
    /// Moves to the first entry: at the start and, if the scan wraps, again at its end.
    #[cold]
    fn begin(&mut self, counts: &mut DataCounts) -> Result<Step> {
        self.cursor.status()?;
        if let Some(position) = self.position {
            self.reads.note_end();
            self.reads.note_whole(position + 1);
            if !self.wraps {
                return Ok(Step::Exhausted);
            }
        }
        self.cursor.seek_to_first();
        self.position = Some(0);
        if !self.cursor.valid() {
            self.cursor.status()?;
            self.reads.note_whole(0);
            return Ok(Step::Exhausted);
        }
        self.reads.end_scan();
        let (key, value) = (self.cursor.key(), self.cursor.value());
        self.reads.see(0, key, value, &self.keys);
        counts.read(true, key.len() + value.len());
        Ok(Step::Done)
    }
}

impl Action for Scan<'_> {
    const PREPARES: bool = false;

    #[inline]
    fn perform(&mut self, counts: &mut DataCounts) -> Result<Step> {
        if let Some(position) = &mut self.position {
            if let Some((key, value)) = self.cursor.next_entry() {
                *position += 1;
                self.reads.see(*position, key, value, &self.keys);
                counts.read(true, key.len() + value.len());
                return Ok(Step::Done);
            }
        }
        self.begin(counts)
    }
}
