//! The operations of one thread, and cursors.

use std::ffi::c_void;
use std::ptr::null_mut;

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
        let (api, mut error) = (self.database.api, null_mut());
        // SAFETY: the database is open; key and value live until the call returns.
        unsafe {
            let (key, value) = (Slice::of(key), Slice::of(value));
            (api.put)(self.database.raw, key, value, &raw mut error);
            api.check(error)
        }
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let (api, mut error) = (self.database.api, null_mut());
        // SAFETY: as above.
        unsafe {
            (api.delete)(self.database.raw, Slice::of(key), &raw mut error);
            api.check(error)
        }
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
        let (api, mut error) = (self.database.api, null_mut());
        // SAFETY: the database is open; what the entries point to lives until the call returns.
        unsafe {
            (api.write)(
                self.database.raw,
                self.batch.as_ptr(),
                self.batch.len(),
                &raw mut error,
            );
            api.check(error)
        }
    }

    fn get(&mut self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        unsafe extern "C" fn found(context: *mut c_void, value: Slice) {
            // SAFETY: `context` is the reference below, and the value is there while this is called.
            unsafe { (*context.cast::<&mut dyn FnMut(&[u8])>())(value.bytes()) }
        }
        let mut context = read;
        let (api, mut error) = (self.database.api, null_mut());
        // SAFETY: the database is open; the library calls back only until it returns.
        unsafe {
            let present = (api.get)(
                self.database.raw,
                Slice::of(key),
                found,
                (&raw mut context).cast(),
                &raw mut error,
            );
            api.check(error)?;
            Ok(present != 0)
        }
    }

    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        let (api, mut error) = (self.database.api, null_mut());
        // SAFETY: the database is open, and outlives the cursor, which borrows it.
        let raw = unsafe {
            let raw = (api.cursor)(self.database.raw, &raw mut error);
            api.check(error)?;
            raw
        };
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
        let (mut key, mut value, mut error) = (Slice::NONE, Slice::NONE, null_mut());
        // SAFETY: the cursor is open; the library writes to the three places before it returns.
        let (at_entry, done) = unsafe {
            let (key, value, error_at) = (&raw mut key, &raw mut value, &raw mut error);
            let at_entry = match from {
                Some(from) => (api.cursor_seek)(self.raw, Slice::of(from), key, value, error_at),
                None => (api.cursor_next)(self.raw, key, value, error_at),
            };
            (at_entry != 0, api.check(error))
        };
        self.failed = done.err();
        self.here = (at_entry && self.failed.is_none()).then_some((key, value));
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
