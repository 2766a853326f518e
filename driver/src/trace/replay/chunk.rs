//! Operations on their way from the dispatcher to a worker.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::measure::OperationKind;
use crate::trace::{BatchItem, Record, WriteKind};

/// One record: its steps, which form one batch if they write.
#[derive(Debug, Clone)]
pub struct Command {
    /// Nanoseconds after the start of the phase.
    pub due_ns: u64,
    /// The range of its steps in the chunk.
    pub steps: Range<usize>,
}

/// A step, whose key and value follow one another in the chunk's bytes.
#[derive(Debug, Clone, Copy)]
struct StoredStep {
    kind: OperationKind,
    start: usize,
    key_bytes: usize,
    value_bytes: usize,
}

/// What to do with one key: a put, a merge, a delete, a get or a seek.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    pub kind: OperationKind,
    pub key: &'a [u8],
    pub value: &'a [u8],
}

/// Some records, copied from the reader's buffer. Chunks are reused.
#[derive(Debug, Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    steps: Vec<StoredStep>,
    commands: Vec<Command>,
}

/// The number of entries of batches that no engine of the driver can perform, by type.
type Skipped = BTreeMap<String, u64>;

impl Chunk {
    /// Adds a record. If no part of it can be performed, leaves it out and returns false.
    pub fn push(&mut self, due_ns: u64, record: Record<'_>, skipped: &mut Skipped) -> bool {
        let first = self.steps.len();
        match record {
            Record::Write(batch) => batch.items().for_each(|item| self.write(item, skipped)),
            Record::Get { key, .. } => self.step(OperationKind::Get, key, &[]),
            Record::MultiGet(gets) => gets
                .gets()
                .for_each(|(_, key)| self.step(OperationKind::Get, key, &[])),
            Record::Seek(seek) => self.step(OperationKind::Seek, seek.key, &[]),
        }
        let steps = first..self.steps.len();
        let something = !steps.is_empty();
        if something {
            self.commands.push(Command { due_ns, steps });
        }
        something
    }

    fn write(&mut self, item: BatchItem<'_>, skipped: &mut Skipped) {
        let mut skip = |kind: &str| *skipped.entry(kind.to_owned()).or_default() += 1;
        match item.kind {
            WriteKind::Put => self.step(OperationKind::Put, item.key, item.value),
            WriteKind::Merge => self.step(OperationKind::Merge, item.key, item.value),
            WriteKind::Delete | WriteKind::SingleDelete => {
                self.step(OperationKind::Delete, item.key, &[]);
            }
            WriteKind::DeleteRange => skip("delete_range"),
            WriteKind::PutEntity => skip("put_entity"),
            WriteKind::BlobIndex => skip("blob_index"),
        }
    }

    fn step(&mut self, kind: OperationKind, key: &[u8], value: &[u8]) {
        self.steps.push(StoredStep {
            kind,
            start: self.bytes.len(),
            key_bytes: key.len(),
            value_bytes: value.len(),
        });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    /// The records.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// The steps of one record.
    pub fn steps(&self, command: &Command) -> impl ExactSizeIterator<Item = Step<'_>> + Clone {
        self.steps[command.steps.clone()].iter().map(|stored| {
            let bytes = &self.bytes[stored.start..];
            let (key, rest) = bytes.split_at(stored.key_bytes);
            Step {
                kind: stored.kind,
                key,
                value: &rest[..stored.value_bytes],
            }
        })
    }

    /// Bytes of all keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Empties the chunk. Frees memory above `keep_bytes`, which a long record may have needed.
    pub fn clear(&mut self, keep_bytes: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(keep_bytes);
        self.steps.clear();
        self.commands.clear();
    }
}

/// The key that decides which worker performs a record.
pub fn first_key<'a>(record: &Record<'a>) -> &'a [u8] {
    match record {
        Record::Write(batch) => batch.items().next().map(|item| item.key),
        Record::Get { key, .. } => Some(*key),
        Record::MultiGet(gets) => gets.gets().next().map(|(_, key)| key),
        Record::Seek(seek) => Some(seek.key),
    }
    .unwrap_or_default()
}
