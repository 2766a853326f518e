//! One thread's operations on a RocksDB, directly through the C interface.

use std::ffi::c_int;

use super::api::{Api, ColumnFamily, PerfContext};
use super::RocksDatabase;
use crate::engine::c_bytes::{slice, text};
use crate::engine::c_store::{Db, ReadOptions, StoreCursor, WriteBatch, WriteOptions};
use crate::engine::{BatchEntry, BlockCacheReads, Cursor, Durability, Result, Session};

// Metrics of `rocksdb_perfcontext_metric`: the first ones of the enumeration in `rocksdb/c.h`, with
// the same numbers in all versions.
const BLOCK_CACHE_HIT_COUNT: c_int = 1;
const BLOCK_READ_COUNT: c_int = 2;

/// Values of up to so many bytes are copied where the library can do that: this costs less than the
/// object that it allocates to pin a value. Larger ones are pinned.
const COPIED_BYTES_MAX: usize = 1024;

/// Its options and batch live as long as the thread, so that an operation allocates nothing on this
/// side of the C interface.
pub struct RocksSession<'db> {
    api: &'static Api,
    db: *mut Db,
    read: *mut ReadOptions,
    write: *mut WriteOptions,
    batch: *mut WriteBatch,
    perf: *mut PerfContext,
    /// Where values are copied to; `None` once a value was too large: then more of them will be, and
    /// each would be read twice.
    buffer: Option<Box<[u8; COPIED_BYTES_MAX]>>,
    /// Null for a database that was opened without families.
    family: *mut ColumnFamily,
    database: &'db RocksDatabase,
}

impl<'db> RocksSession<'db> {
    /// A session on the column family `family`, or on the default one if that is null.
    pub fn new(database: &'db RocksDatabase, family: *mut ColumnFamily) -> Self {
        let api = database.api;
        // SAFETY: plain constructors; what they return is destroyed in `drop`.
        unsafe {
            Self {
                api,
                db: database.db.get(),
                read: (api.readoptions_create)(),
                write: write_options(api, database.durability),
                batch: (api.writebatch_create)(),
                perf: (api.perfcontext_create)(),
                buffer: Some(Box::new([0; COPIED_BYTES_MAX])),
                family,
                database,
            }
        }
    }

    #[inline]
    fn new_cursor(&mut self) -> StoreCursor<'_> {
        // SAFETY: database and options outlive the cursor, which borrows this session.
        unsafe {
            let iterator = if self.family.is_null() {
                (self.api.create_iterator)(self.db, self.read)
            } else {
                (self.api.create_iterator_cf)(self.db, self.read, self.family)
            };
            StoreCursor::new(self.api, iterator)
        }
    }

    /// Copies the value of `key` and passes it to `read`. `None` if it was not copied: the library
    /// cannot do that, or the value is too large.
    #[inline]
    fn get_copied(&mut self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<Option<bool>> {
        let (Some(get), Some(get_cf), Some(buffer)) = (
            self.api.get_into_buffer,
            self.api.get_into_buffer_cf,
            &mut self.buffer,
        ) else {
            return Ok(None);
        };
        let (mut length, mut found) = (0, 0);
        // SAFETY: the database, the options and the family, if there is one, are alive. The buffer
        // has as many bytes as is said, and the other results are written to variables of this
        // function.
        let copied = self.api.call(|error| unsafe {
            let (db, options, family) = (self.db, self.read, self.family);
            let (key, key_bytes) = (text(key), key.len());
            let (to, to_bytes) = (buffer.as_mut_ptr().cast(), buffer.len());
            let (length, found) = (&raw mut length, &raw mut found);
            if family.is_null() {
                get(
                    db, options, key, key_bytes, to, to_bytes, length, found, error,
                )
            } else {
                get_cf(
                    db, options, family, key, key_bytes, to, to_bytes, length, found, error,
                )
            }
        })?;
        if found == 0 {
            return Ok(Some(false));
        }
        if copied == 0 {
            self.buffer = None;
            return Ok(None);
        }
        read(&buffer[..length]);
        Ok(Some(true))
    }

    /// Adds to the batch, which copies key and value.
    #[inline]
    fn add_put(&self, key: &[u8], value: &[u8]) {
        let (api, batch) = (self.api, self.batch);
        let (key, key_bytes, value, value_bytes) = (text(key), key.len(), text(value), value.len());
        // SAFETY: the batch is alive, and so is the family if there is one.
        unsafe {
            if self.family.is_null() {
                (api.writebatch_put)(batch, key, key_bytes, value, value_bytes);
            } else {
                let put = api.writebatch_put_cf;
                put(batch, self.family, key, key_bytes, value, value_bytes);
            }
        }
    }

    /// Adds to the batch, which copies the key.
    #[inline]
    fn add_delete(&self, key: &[u8]) {
        let (api, batch) = (self.api, self.batch);
        // SAFETY: as for a put.
        unsafe {
            if self.family.is_null() {
                (api.writebatch_delete)(batch, text(key), key.len());
            } else {
                (api.writebatch_delete_cf)(batch, self.family, text(key), key.len());
            }
        }
    }

    #[inline]
    fn clear(&self) {
        // SAFETY: the batch is alive.
        unsafe { (self.api.writebatch_clear)(self.batch) }
    }

    /// Writes the batch. The next call clears it.
    #[inline]
    fn commit(&self) -> Result<()> {
        let write = self.api.write;
        // SAFETY: all objects are alive, and only this thread uses the batch.
        self.api
            .call(|error| unsafe { write(self.db, self.write, self.batch, error) })
            .map_err(|error| self.database.watch.explain(error))
    }
}

/// Write options for a durability. The caller must destroy them.
pub fn write_options(api: &Api, durability: Durability) -> *mut WriteOptions {
    // SAFETY: the object is new and alive.
    unsafe {
        let options = (api.writeoptions_create)();
        match durability {
            Durability::Sync => (api.writeoptions_set_sync)(options, 1),
            Durability::Wal => {}
            Durability::None => (api.writeoptions_disable_WAL)(options, 1),
        }
        options
    }
}

impl Session for RocksSession<'_> {
    // The batch is reused; `rocksdb_put` would make and free one for each call.
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.clear();
        self.add_put(key, value);
        self.commit()
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.clear();
        self.add_delete(key);
        self.commit()
    }

    fn write(&mut self, batch: &[BatchEntry<'_>]) -> Result<()> {
        self.clear();
        for entry in batch {
            match *entry {
                BatchEntry::Put(key, value) => self.add_put(key, value),
                BatchEntry::Delete(key) => self.add_delete(key),
            }
        }
        self.commit()
    }

    #[inline]
    fn merge(&mut self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.clear();
        let (api, batch) = (self.api, self.batch);
        let (key, key_bytes) = (text(key), key.len());
        let (operand, operand_bytes) = (text(operand), operand.len());
        // SAFETY: as for a put.
        unsafe {
            if self.family.is_null() {
                (api.writebatch_merge)(batch, key, key_bytes, operand, operand_bytes);
            } else {
                let merge = api.writebatch_merge_cf;
                merge(batch, self.family, key, key_bytes, operand, operand_bytes);
            }
        }
        self.commit()
    }

    #[inline]
    fn get(&mut self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        if let Some(found) = self.get_copied(key, read)? {
            return Ok(found);
        }
        // SAFETY: the database and the options are alive; null means absent.
        let handle = self.api.call(|error| unsafe {
            let (api, db, read) = (self.api, self.db, self.read);
            let (key, key_bytes) = (text(key), key.len());
            if self.family.is_null() {
                (api.get_pinned)(db, read, key, key_bytes, error)
            } else {
                (api.get_pinned_cf)(db, read, self.family, key, key_bytes, error)
            }
        })?;
        if handle.is_null() {
            return Ok(false);
        }
        let mut length = 0;
        // SAFETY: the slice stays pinned until it is destroyed, once, after `read` has returned.
        unsafe {
            let data = (self.api.pinnableslice_value)(handle, &raw mut length);
            read(slice(data, length));
            (self.api.pinnableslice_destroy)(handle);
        }
        Ok(true)
    }

    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        Ok(Box::new(self.new_cursor()))
    }

    #[inline]
    fn with_cursor(&mut self, scan: &mut dyn FnMut(&mut dyn Cursor) -> Result<()>) -> Result<()> {
        scan(&mut self.new_cursor())
    }

    fn whole_cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        // SAFETY: the options are this session's own, and alive.
        unsafe { (self.api.readoptions_set_total_order_seek)(self.read, 1) };
        self.cursor()
    }

    // At its default level (`kEnableCount`) RocksDB counts on each thread without being asked.
    fn block_cache(&mut self) -> Option<BlockCacheReads> {
        // SAFETY: the object is alive. It gives the counters of the thread that made it, which is
        // the thread that has the session.
        let metric = |which| unsafe { (self.api.perfcontext_metric)(self.perf, which) };
        Some(BlockCacheReads {
            hits: metric(BLOCK_CACHE_HIT_COUNT),
            misses: metric(BLOCK_READ_COUNT),
        })
    }
}

impl Drop for RocksSession<'_> {
    fn drop(&mut self) {
        // SAFETY: made in `new`, destroyed once.
        unsafe {
            (self.api.perfcontext_destroy)(self.perf);
            (self.api.writebatch_destroy)(self.batch);
            (self.api.writeoptions_destroy)(self.write);
            (self.api.readoptions_destroy)(self.read);
        }
    }
}
