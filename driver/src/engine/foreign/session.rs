//! The operations of one thread, and cursors.

use std::ffi::c_void;

use super::api::{Entry, RawCursor};
use super::ForeignDatabase;
use crate::engine::c_bytes::Slice;
use crate::engine::{BatchEntry, Cursor, EngineError, Result, Session};

pub struct ForeignSession<'db> {
    database: &'db ForeignDatabase,
    /// Kept from batch to batch, so that no call allocates.
    batch: Vec<Entry>,
}

impl<'db> ForeignSession<'db> {
    pub fn new(database: &'db ForeignDatabase) -> Self {
        Self {
            database,
            batch: Vec::new(),
        }
    }
}

impl Session for ForeignSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (api, db) = (self.database.api, self.database.raw);
        // SAFETY: the database is open; key and value live until the call returns.
        api.call(|error| unsafe { (api.put)(db, Slice::of(key), Slice::of(value), error) })
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let (api, db) = (self.database.api, self.database.raw);
        // SAFETY: as above.
        api.call(|error| unsafe { (api.delete)(db, Slice::of(key), error) })
    }

    fn write(&mut self, batch: &[BatchEntry<'_>]) -> Result<()> {
        self.batch.clear();
        self.batch.extend(batch.iter().map(|entry| match *entry {
            BatchEntry::Put(key, value) => Entry {
                key: Slice::of(key),
                value: Slice::of(value),
            },
            BatchEntry::Delete(key) => Entry {
                key: Slice::of(key),
                value: Slice::NONE,
            },
        }));
        let (api, db, batch) = (self.database.api, self.database.raw, &self.batch);
        // SAFETY: the database is open; what the entries point to lives until the call returns.
        api.call(|error| unsafe { (api.write)(db, batch.as_ptr(), batch.len(), error) })
    }

    fn get(&mut self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        unsafe extern "C" fn found(context: *mut c_void, value: Slice) {
            // SAFETY: `context` is the reference below, and the value is there while this is called.
            unsafe { (*context.cast::<&mut dyn FnMut(&[u8])>())(value.bytes()) }
        }
        let mut context = read;
        let context = (&raw mut context).cast();
        let (api, db) = (self.database.api, self.database.raw);
        // SAFETY: the database is open; the library calls back only until it returns.
        let present =
            api.call(|error| unsafe { (api.get)(db, Slice::of(key), found, context, error) })?;
        Ok(present != 0)
    }

    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        let (api, db) = (self.database.api, self.database.raw);
        // SAFETY: the database is open, and outlives the cursor, which borrows it.
        let raw = api.call(|error| unsafe { (api.cursor)(db, error) })?;
        if raw.is_null() {
            return Err(EngineError::failed("no cursor, and no error given"));
        }
        Ok(Box::new(ForeignCursor {
            database: self.database,
            raw,
            here: None,
            failed: None,
        }))
    }
}

struct ForeignCursor<'db> {
    database: &'db ForeignDatabase,
    raw: *mut RawCursor,
    /// Key and value, which the library keeps until the cursor moves.
    here: Option<(Slice, Slice)>,
    failed: Option<EngineError>,
}

impl ForeignCursor<'_> {
    /// Moves to the first entry at or after `from`, or to the next one.
    fn go(&mut self, from: Option<&[u8]>) {
        let api = self.database.api;
        let (mut key, mut value) = (Slice::NONE, Slice::NONE);
        // SAFETY: the cursor is open; the library writes to the three places before it returns.
        let moved = api.call(|error| unsafe {
            let (key, value) = (&raw mut key, &raw mut value);
            match from {
                Some(from) => (api.cursor_seek)(self.raw, Slice::of(from), key, value, error),
                None => (api.cursor_next)(self.raw, key, value, error),
            }
        });
        self.here = matches!(moved, Ok(at_entry) if at_entry != 0).then_some((key, value));
        self.failed = moved.err();
    }
}

impl Cursor for ForeignCursor<'_> {
    fn seek_to_first(&mut self) {
        self.go(Some(&[]));
    }

    fn seek(&mut self, key: &[u8]) {
        self.go(Some(key));
    }

    fn next(&mut self) {
        self.go(None);
    }

    fn valid(&self) -> bool {
        self.here.is_some()
    }

    fn key(&self) -> &[u8] {
        // SAFETY: the bytes stay until the cursor moves, which takes it by a mutable reference.
        self.here.map_or(&[], |(key, _)| unsafe { key.bytes() })
    }

    fn value(&self) -> &[u8] {
        // SAFETY: as above.
        self.here.map_or(&[], |(_, value)| unsafe { value.bytes() })
    }

    fn status(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }
}

impl Drop for ForeignCursor<'_> {
    fn drop(&mut self) {
        // SAFETY: the cursor is closed once, before its database.
        unsafe { (self.database.api.cursor_close)(self.raw) }
    }
}
