//! One thread's operations on a RocksDB, with nothing between them and the C interface.

use std::marker::PhantomData;
use std::ptr::null_mut;

use super::api::{Api, Db, Iterator, PinnableSlice, ReadOptions, WriteBatch, WriteOptions};
use super::RocksDatabase;
use crate::engine::c_bytes::{slice, text};
use crate::engine::{BatchEntry, Cursor, Durability, Result, Session};

/// Options and a batch that live as long as the thread, so that an operation allocates nothing
/// on this side of the C interface.
pub struct RocksSession<'db> {
    api: &'static Api,
    db: *mut Db,
    read: *mut ReadOptions,
    write: *mut WriteOptions,
    batch: *mut WriteBatch,
    database: &'db RocksDatabase,
}

impl<'db> RocksSession<'db> {
    pub fn new(database: &'db RocksDatabase) -> Self {
        let api = database.api;
        // SAFETY: plain constructors; what they return is destroyed in `drop`.
        unsafe {
            Self {
                api,
                db: database.handle.get(),
                read: (api.rocksdb_readoptions_create)(),
                write: write_options(api, database.durability),
                batch: (api.rocksdb_writebatch_create)(),
                database,
            }
        }
    }

    /// Writes what is in the batch and leaves it for the next call to clear.
    #[inline]
    fn commit(&self) -> Result<()> {
        let mut error = null_mut();
        // SAFETY: all objects are alive, and only this thread uses the batch.
        unsafe {
            (self.api.rocksdb_write)(self.db, self.write, self.batch, &raw mut error);
            self.api.check(error)
        }
        .map_err(|error| self.database.explain(error))
    }
}

/// Write options for a durability. The caller destroys them.
pub fn write_options(api: &Api, durability: Durability) -> *mut WriteOptions {
    // SAFETY: the object is new and alive.
    unsafe {
        let options = (api.rocksdb_writeoptions_create)();
        match durability {
            Durability::Sync => (api.rocksdb_writeoptions_set_sync)(options, 1),
            Durability::Wal => {}
            Durability::None => (api.rocksdb_writeoptions_disable_WAL)(options, 1),
        }
        options
    }
}

impl Session for RocksSession<'_> {
    // A reused batch spares the one that `rocksdb_put` makes and frees for each call.
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        // SAFETY: the batch is alive and copies key and value.
        unsafe {
            (self.api.rocksdb_writebatch_clear)(self.batch);
            (self.api.rocksdb_writebatch_put)(
                self.batch,
                text(key),
                key.len(),
                text(value),
                value.len(),
            );
        }
        self.commit()
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        // SAFETY: the batch is alive and copies the key.
        unsafe {
            (self.api.rocksdb_writebatch_clear)(self.batch);
            (self.api.rocksdb_writebatch_delete)(self.batch, text(key), key.len());
        }
        self.commit()
    }

    fn write(&mut self, batch: &[BatchEntry<'_>]) -> Result<()> {
        // SAFETY: the batch is alive and copies keys and values.
        unsafe {
            (self.api.rocksdb_writebatch_clear)(self.batch);
            for entry in batch {
                match *entry {
                    BatchEntry::Put(key, value) => (self.api.rocksdb_writebatch_put)(
                        self.batch,
                        text(key),
                        key.len(),
                        text(value),
                        value.len(),
                    ),
                    BatchEntry::Delete(key) => {
                        (self.api.rocksdb_writebatch_delete)(self.batch, text(key), key.len());
                    }
                }
            }
        }
        self.commit()
    }

    #[inline]
    fn get(&mut self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let mut error = null_mut();
        // SAFETY: the database and the options are alive; null means absent or failed.
        let found = unsafe {
            let found = (self.api.rocksdb_get_pinned)(
                self.db,
                self.read,
                text(key),
                key.len(),
                &raw mut error,
            );
            self.api.check(error)?;
            found
        };
        if found.is_null() {
            return Ok(false);
        }
        let pinned = Pinned(self.api, found);
        let mut length = 0;
        // SAFETY: the slice stays pinned until `pinned` is dropped, after `read` has returned.
        unsafe {
            let data = (self.api.rocksdb_pinnableslice_value)(found, &raw mut length);
            read(slice(data, length));
        }
        drop(pinned);
        Ok(true)
    }

    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        // SAFETY: database and options outlive the cursor, which borrows this session.
        let iterator = unsafe { (self.api.rocksdb_create_iterator)(self.db, self.read) };
        Ok(Box::new(RocksCursor {
            api: self.api,
            iterator,
            session: PhantomData,
        }))
    }
}

impl Drop for RocksSession<'_> {
    fn drop(&mut self) {
        // SAFETY: made in `new`, destroyed once.
        unsafe {
            (self.api.rocksdb_writebatch_destroy)(self.batch);
            (self.api.rocksdb_writeoptions_destroy)(self.write);
            (self.api.rocksdb_readoptions_destroy)(self.read);
        }
    }
}

/// Releases a value even when the reader panics.
struct Pinned(&'static Api, *mut PinnableSlice);

impl Drop for Pinned {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: handed over by `rocksdb_get_pinned`, destroyed once.
        unsafe { (self.0.rocksdb_pinnableslice_destroy)(self.1) }
    }
}

/// RocksDB's iterators read from a snapshot that they take when they are made.
struct RocksCursor<'session> {
    api: &'static Api,
    iterator: *mut Iterator,
    session: PhantomData<&'session ()>,
}

impl Cursor for RocksCursor<'_> {
    fn seek_to_first(&mut self) {
        // SAFETY: the iterator is alive.
        unsafe { (self.api.rocksdb_iter_seek_to_first)(self.iterator) }
    }

    fn seek(&mut self, key: &[u8]) {
        // SAFETY: the iterator is alive and copies the key.
        unsafe { (self.api.rocksdb_iter_seek)(self.iterator, text(key), key.len()) }
    }

    #[inline]
    fn next(&mut self) {
        debug_assert!(self.valid(), "next() of a cursor that is not valid");
        // SAFETY: the iterator is alive and, as the caller promises, valid.
        unsafe { (self.api.rocksdb_iter_next)(self.iterator) }
    }

    #[inline]
    fn valid(&self) -> bool {
        // SAFETY: the iterator is alive.
        unsafe { (self.api.rocksdb_iter_valid)(self.iterator) != 0 }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        let mut length = 0;
        // SAFETY: the key stays until the iterator moves, for which it would have to be borrowed
        // mutably.
        unsafe {
            let data = (self.api.rocksdb_iter_key)(self.iterator, &raw mut length);
            slice(data, length)
        }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        let mut length = 0;
        // SAFETY: as for the key.
        unsafe {
            let data = (self.api.rocksdb_iter_value)(self.iterator, &raw mut length);
            slice(data, length)
        }
    }

    fn status(&self) -> Result<()> {
        let mut error = null_mut();
        // SAFETY: the iterator is alive.
        unsafe {
            (self.api.rocksdb_iter_get_error)(self.iterator, &raw mut error);
            self.api.check(error)
        }
    }
}

impl Drop for RocksCursor<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `rocksdb_create_iterator`, destroyed once.
        unsafe { (self.api.rocksdb_iter_destroy)(self.iterator) }
    }
}
