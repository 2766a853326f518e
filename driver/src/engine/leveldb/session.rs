//! One thread's operations on a LevelDB, directly through the C interface.

use std::marker::PhantomData;

use super::api::Api;
use super::LevelDatabase;
use crate::engine::c_bytes::{slice, text};
use crate::engine::c_store::{Db, ReadOptions, StoreCursor, WriteBatch, WriteOptions};
use crate::engine::{BatchEntry, Cursor, Durability, Result, Session};

/// Its options and batch live as long as the thread, so that an operation allocates nothing on this
/// side of the C interface.
pub struct LevelSession<'db> {
    api: &'static Api,
    db: *mut Db,
    read: *mut ReadOptions,
    write: *mut WriteOptions,
    batch: *mut WriteBatch,
    database: PhantomData<&'db LevelDatabase>,
}

impl<'db> LevelSession<'db> {
    pub fn new(database: &'db LevelDatabase) -> Self {
        let api = database.api;
        // SAFETY: plain constructors; what they return is destroyed in `drop`.
        unsafe {
            let write = (api.writeoptions_create)();
            let sync = database.durability == Durability::Sync;
            (api.writeoptions_set_sync)(write, sync.into());
            Self {
                api,
                db: database.db.get(),
                read: (api.readoptions_create)(),
                write,
                batch: (api.writebatch_create)(),
                database: PhantomData,
            }
        }
    }
}

impl Session for LevelSession<'_> {
    // The batch is reused; `leveldb_put` would make and grow one for each call.
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(&[BatchEntry::Put(key, value)])
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.write(&[BatchEntry::Delete(key)])
    }

    #[inline]
    fn write(&mut self, entries: &[BatchEntry<'_>]) -> Result<()> {
        let (api, batch) = (self.api, self.batch);
        // SAFETY: all objects are alive, only this thread uses the batch, and that copies keys and
        // values.
        unsafe {
            (api.writebatch_clear)(batch);
            for entry in entries {
                match *entry {
                    BatchEntry::Put(key, value) => {
                        let (key, key_bytes) = (text(key), key.len());
                        (api.writebatch_put)(batch, key, key_bytes, text(value), value.len());
                    }
                    BatchEntry::Delete(key) => {
                        (api.writebatch_delete)(batch, text(key), key.len());
                    }
                }
            }
            api.call(|error| (api.write)(self.db, self.write, batch, error))
        }
    }

    #[inline]
    fn get(&mut self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let (get, mut length) = (self.api.get, 0);
        // SAFETY: the database and the options are alive; null means absent. LevelDB has no way to
        // look at a value in place: it hands over a copy.
        let value = self.api.call(|error| unsafe {
            let (key, key_bytes, length) = (text(key), key.len(), &raw mut length);
            get(self.db, self.read, key, key_bytes, length, error)
        })?;
        if value.is_null() {
            return Ok(false);
        }
        // SAFETY: the copy lives until it is freed, once, after `read` has returned.
        unsafe {
            read(slice(value, length));
            (self.api.free)(value.cast());
        }
        Ok(true)
    }

    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        // SAFETY: database and options outlive the cursor, which borrows this session.
        let cursor = unsafe {
            let iterator = (self.api.create_iterator)(self.db, self.read);
            StoreCursor::new(self.api, iterator)
        };
        Ok(Box::new(cursor))
    }
}

impl Drop for LevelSession<'_> {
    fn drop(&mut self) {
        // SAFETY: made in `new`, destroyed once.
        unsafe {
            (self.api.writebatch_destroy)(self.batch);
            (self.api.writeoptions_destroy)(self.write);
            (self.api.readoptions_destroy)(self.read);
        }
    }
}
