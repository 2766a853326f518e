//! One thread's operations on a store that is made of parts (databases or column families). A hash
//! of a key's bytes decides to which part the key belongs.

use super::{BatchEntry, BlockCacheReads, Cursor, EngineError, Result, Session};
use crate::random::mix;

/// The part, of `parts` parts, to which `key` belongs.
///
/// The hash is FNV-1a (Fowler, Noll, Vo; draft-eastlake-fnv), then mixed, because its low bits are
/// weak.
#[inline]
pub fn part_of(key: &[u8], parts: usize) -> usize {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (mix(hash) % parts as u64) as usize
}

/// Passes each operation to the session of the key's part.
pub struct PartsSession<'a> {
    parts: Vec<Box<dyn Session + 'a>>,
}

impl<'a> PartsSession<'a> {
    /// Takes the sessions of all parts, in their order.
    pub fn new(parts: Vec<Box<dyn Session + 'a>>) -> Self {
        PartsSession { parts }
    }

    #[inline]
    fn of(&mut self, key: &[u8]) -> &mut (dyn Session + 'a) {
        let part = part_of(key, self.parts.len());
        &mut *self.parts[part]
    }
}

impl Session for PartsSession<'_> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.of(key).put(key, value)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.of(key).delete(key)
    }

    fn merge(&mut self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.of(key).merge(key, operand)
    }

    /// Works within one part only: nothing is atomic over several databases.
    fn write(&mut self, batch: &[BatchEntry<'_>]) -> Result<()> {
        let parts = self.parts.len();
        let mut of = batch.iter().map(|entry| match entry {
            BatchEntry::Put(key, _) | BatchEntry::Delete(key) => part_of(key, parts),
        });
        let Some(first) = of.next() else {
            return Ok(());
        };
        if of.any(|part| part != first) {
            return Err(EngineError::Unable(
                "a batch cannot be over several databases or column families",
            ));
        }
        self.parts[first].write(batch)
    }

    #[inline]
    fn get(&mut self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.of(key).get(key, read)
    }

    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        let parts = self.parts.iter_mut().map(|session| Part {
            session: Some(&mut **session),
            cursor: None,
        });
        Ok(Box::new(PartsCursor {
            parts: parts.collect(),
            at: 0,
            through: false,
            failed: None,
        }))
    }

    fn block_cache(&mut self) -> Option<BlockCacheReads> {
        // The counters are those of the thread, whichever part it reads.
        self.parts.first_mut()?.block_cache()
    }
}

/// A part in a scan: its session until the scan reaches it, and then its cursor.
struct Part<'a> {
    session: Option<&'a mut (dyn Session + 'a)>,
    /// `None`, too, if it could not be opened.
    cursor: Option<Box<dyn Cursor + 'a>>,
}

/// A scan. After a seek it stays in the part of the key; from the first entry on, it goes through
/// one part after another.
struct PartsCursor<'a> {
    parts: Vec<Part<'a>>,
    at: usize,
    through: bool,
    failed: Option<EngineError>,
}

impl<'a> PartsCursor<'a> {
    /// Moves to `part` and positions its cursor.
    fn enter(&mut self, part: usize, position: impl FnOnce(&mut (dyn Cursor + 'a))) {
        self.at = part;
        let part = &mut self.parts[part];
        match part.session.take().map(|session| session.cursor()) {
            Some(Ok(cursor)) => part.cursor = Some(cursor),
            Some(Err(error)) => self.failed = Some(error),
            None => {}
        }
        if let Some(cursor) = &mut part.cursor {
            position(&mut **cursor);
        }
    }

    fn here(&self) -> Option<&(dyn Cursor + 'a)> {
        self.parts[self.at].cursor.as_deref()
    }

    /// Continues in the next part that has entries, if the scan goes through all parts.
    fn go_on(&mut self) {
        while self.through && !self.valid() && self.at + 1 < self.parts.len() {
            // An error ends the scan here, so that `status` reports it.
            if self.status().is_err() {
                return;
            }
            self.enter(self.at + 1, |cursor| cursor.seek_to_first());
        }
    }
}

impl Cursor for PartsCursor<'_> {
    fn seek_to_first(&mut self) {
        self.through = true;
        self.enter(0, |cursor| cursor.seek_to_first());
        self.go_on();
    }

    fn seek(&mut self, key: &[u8]) {
        self.through = false;
        let part = part_of(key, self.parts.len());
        self.enter(part, |cursor| cursor.seek(key));
    }

    fn next(&mut self) {
        if let Some(cursor) = &mut self.parts[self.at].cursor {
            cursor.next();
        }
        self.go_on();
    }

    fn valid(&self) -> bool {
        self.here().is_some_and(Cursor::valid)
    }

    fn key(&self) -> &[u8] {
        self.here().map_or(&[], Cursor::key)
    }

    fn value(&self) -> &[u8] {
        self.here().map_or(&[], Cursor::value)
    }

    fn status(&self) -> Result<()> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => self.here().map_or(Ok(()), Cursor::status),
        }
    }
}
