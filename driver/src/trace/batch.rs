//! Write batches: each is one atomic call of `DB::Write`.

use super::format::{tag, Bytes};

/// Bytes of the write time after the value of a timed put.
const WRITE_TIME_BYTES: usize = 8;

/// What an entry of a batch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteKind {
    /// Sets a key.
    Put,
    /// Gives a key a merge operand.
    Merge,
    /// Removes a key.
    Delete,
    /// Removes a key that was put once.
    SingleDelete,
    /// Removes the keys from `key` to `value`; `value` itself is not removed.
    DeleteRange,
    /// Sets a key to columns.
    PutEntity,
    /// Sets a key to a place in a blob file.
    BlobIndex,
}

/// One entry of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchItem<'a> {
    /// What it does.
    pub kind: WriteKind,
    /// Number of the column family; 0 is the default one.
    pub column_family: u32,
    /// The key.
    pub key: &'a [u8],
    /// The value, the operand, or the end of a range; empty for deletes.
    pub value: &'a [u8],
}

/// A batch that has been checked from its beginning to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch<'a> {
    entries: &'a [u8],
    count: u32,
    markers: u32,
}

impl<'a> Batch<'a> {
    /// The batch in `bytes`; the error says in one line what is wrong with it.
    #[inline]
    pub(super) fn check(bytes: &'a [u8]) -> Result<Self, String> {
        let short = || {
            format!(
                "write batch of {} bytes, shorter than its header",
                bytes.len()
            )
        };
        let mut rest = Bytes(bytes);
        // The sequence number comes first.
        let stated = rest.fixed64().and_then(|_| rest.fixed32());
        let stated = stated.ok_or_else(short)?;
        let entries = rest.0;
        let (mut count, mut markers) = (0, 0);
        while !rest.0.is_empty() {
            match read_item(&mut rest)? {
                Some(_) => count += 1,
                None => markers += 1,
            }
        }
        if count != stated {
            return Err(format!(
                "write batch of {count} operations that states {stated}"
            ));
        }
        Ok(Batch {
            entries,
            count,
            markers,
        })
    }

    /// The entries, in order.
    #[inline]
    pub fn items(&self) -> impl Iterator<Item = BatchItem<'a>> + use<'a> {
        let mut rest = Bytes(self.entries);
        std::iter::from_fn(move || {
            while !rest.0.is_empty() {
                // The batch was checked, so this cannot fail.
                if let Some(item) = read_item(&mut rest).ok()? {
                    return Some(item);
                }
            }
            None
        })
    }

    /// The number of entries.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The number of entries that do nothing: log data and marks of two-phase commits.
    pub fn markers(&self) -> u32 {
        self.markers
    }
}

/// Takes one entry off the front of `rest`; `None` for a marker.
#[inline]
fn read_item<'a>(rest: &mut Bytes<'a>) -> Result<Option<BatchItem<'a>>, String> {
    let tag = rest.byte().unwrap_or_default();
    let cut = || format!("write batch ends in the middle of an entry with tag 0x{tag:02x}");
    if let Some((kind, in_family)) = operation(tag) {
        let column_family = match in_family {
            true => rest.varint32().ok_or_else(cut)?,
            false => 0,
        };
        let key = rest.string().ok_or_else(cut)?;
        let value = match kind {
            WriteKind::Delete | WriteKind::SingleDelete => &[],
            _ => rest.string().ok_or_else(cut)?,
        };
        let value = match tag {
            tag::TIMED_PUT | tag::CF_TIMED_PUT => {
                let length = value.len().checked_sub(WRITE_TIME_BYTES).ok_or_else(cut)?;
                &value[..length]
            }
            _ => value,
        };
        return Ok(Some(BatchItem {
            kind,
            column_family,
            key,
            value,
        }));
    }
    let strings = match tag {
        tag::NOOP | tag::BEGIN_PREPARE | tag::BEGIN_PERSISTED_PREPARE | tag::BEGIN_UNPREPARE => 0,
        tag::LOG_DATA | tag::END_PREPARE | tag::COMMIT | tag::ROLLBACK => 1,
        tag::COMMIT_WITH_TIMESTAMP => 2,
        _ => return Err(format!("write batch with the unknown tag 0x{tag:02x}")),
    };
    for _ in 0..strings {
        rest.string().ok_or_else(cut)?;
    }
    Ok(None)
}

/// The operation of a tag, and whether a column family follows it.
#[inline]
fn operation(tag: u8) -> Option<(WriteKind, bool)> {
    Some(match tag {
        tag::PUT | tag::TIMED_PUT => (WriteKind::Put, false),
        tag::CF_PUT | tag::CF_TIMED_PUT => (WriteKind::Put, true),
        tag::MERGE => (WriteKind::Merge, false),
        tag::CF_MERGE => (WriteKind::Merge, true),
        tag::DELETE => (WriteKind::Delete, false),
        tag::CF_DELETE => (WriteKind::Delete, true),
        tag::SINGLE_DELETE => (WriteKind::SingleDelete, false),
        tag::CF_SINGLE_DELETE => (WriteKind::SingleDelete, true),
        tag::DELETE_RANGE => (WriteKind::DeleteRange, false),
        tag::CF_DELETE_RANGE => (WriteKind::DeleteRange, true),
        tag::ENTITY => (WriteKind::PutEntity, false),
        tag::CF_ENTITY => (WriteKind::PutEntity, true),
        tag::BLOB_INDEX => (WriteKind::BlobIndex, false),
        tag::CF_BLOB_INDEX => (WriteKind::BlobIndex, true),
        _ => return None,
    })
}
