//! RocksDB's C interface (`rocksdb/c.h`), as far as the driver uses it.

use std::ffi::{c_char, c_int, c_uchar, CString};

use crate::engine::c_store::{
    Db, DbOptions, Iterator, ReadOptions, StoreApi, WriteBatch, WriteOptions,
};
use crate::engine::library::{c_api, opaque};

opaque!(
    TableOptions,
    Cache,
    HyperClockCacheOptions,
    FlushOptions,
    PinnableSlice,
    LiveFiles,
    ColumnFamily,
    PerfContext,
    EnvOptions,
    SstFileWriter,
    IngestOptions,
);

c_api! {
    /// Functions of a loaded RocksDB. The required ones exist since RocksDB 6.
    pub struct Api {
        includes store: StoreApi;
        required {
            fn get_options_from_string(*const DbOptions, *const c_char, *mut DbOptions, *mut *mut c_char);
            fn block_based_options_create() -> *mut TableOptions;
            fn block_based_options_destroy(*mut TableOptions);
            fn block_based_options_set_block_cache(*mut TableOptions, *mut Cache);
            fn options_set_block_based_table_factory(*mut DbOptions, *mut TableOptions);
            fn cache_destroy(*mut Cache);
            fn readoptions_set_total_order_seek(*mut ReadOptions, u8);
            fn writeoptions_disable_WAL(*mut WriteOptions, c_int);
            fn writeoptions_set_no_slowdown(*mut WriteOptions, c_uchar);
            fn get_pinned(*mut Db, *const ReadOptions, *const c_char, usize, *mut *mut c_char) -> *mut PinnableSlice;
            fn pinnableslice_value(*const PinnableSlice, *mut usize) -> *const c_char;
            fn pinnableslice_destroy(*mut PinnableSlice);
            fn flushoptions_create() -> *mut FlushOptions;
            fn flushoptions_destroy(*mut FlushOptions);
            fn flushoptions_set_wait(*mut FlushOptions, c_uchar);
            fn flush(*mut Db, *const FlushOptions, *mut *mut c_char);
            fn property_int(*mut Db, *const c_char, *mut u64) -> c_int;
            fn livefiles(*mut Db) -> *const LiveFiles;
            fn livefiles_count(*const LiveFiles) -> c_int;
            fn livefiles_level(*const LiveFiles, c_int) -> c_int;
            fn livefiles_size(*const LiveFiles, c_int) -> usize;
            fn livefiles_destroy(*const LiveFiles);
            fn cancel_all_background_work(*mut Db, c_uchar);
            fn set_options(*mut Db, c_int, *const *const c_char, *const *const c_char, *mut *mut c_char);
            fn writebatch_merge(*mut WriteBatch, *const c_char, usize, *const c_char, usize);
            fn open_column_families(*const DbOptions, *const c_char, c_int, *const *const c_char, *const *const DbOptions, *mut *mut ColumnFamily, *mut *mut c_char) -> *mut Db;
            fn column_family_handle_destroy(*mut ColumnFamily);
            fn options_set_create_missing_column_families(*mut DbOptions, c_uchar);
            fn writebatch_put_cf(*mut WriteBatch, *mut ColumnFamily, *const c_char, usize, *const c_char, usize);
            fn writebatch_delete_cf(*mut WriteBatch, *mut ColumnFamily, *const c_char, usize);
            fn writebatch_merge_cf(*mut WriteBatch, *mut ColumnFamily, *const c_char, usize, *const c_char, usize);
            fn get_pinned_cf(*mut Db, *const ReadOptions, *mut ColumnFamily, *const c_char, usize, *mut *mut c_char) -> *mut PinnableSlice;
            fn create_iterator_cf(*mut Db, *const ReadOptions, *mut ColumnFamily) -> *mut Iterator;
            fn flush_cf(*mut Db, *const FlushOptions, *mut ColumnFamily, *mut *mut c_char);
            fn property_int_cf(*mut Db, *mut ColumnFamily, *const c_char, *mut u64) -> c_int;
            fn perfcontext_create() -> *mut PerfContext;
            fn perfcontext_metric(*mut PerfContext, c_int) -> u64;
            fn perfcontext_destroy(*mut PerfContext);
            fn envoptions_create() -> *mut EnvOptions;
            fn envoptions_destroy(*mut EnvOptions);
            fn sstfilewriter_create(*const EnvOptions, *const DbOptions) -> *mut SstFileWriter;
            fn sstfilewriter_open(*mut SstFileWriter, *const c_char, *mut *mut c_char);
            fn sstfilewriter_put(*mut SstFileWriter, *const c_char, usize, *const c_char, usize, *mut *mut c_char);
            fn sstfilewriter_file_size(*mut SstFileWriter, *mut u64);
            fn sstfilewriter_finish(*mut SstFileWriter, *mut *mut c_char);
            fn sstfilewriter_destroy(*mut SstFileWriter);
            fn ingestexternalfileoptions_create() -> *mut IngestOptions;
            fn ingestexternalfileoptions_set_move_files(*mut IngestOptions, c_uchar);
            fn ingestexternalfileoptions_destroy(*mut IngestOptions);
            fn ingest_external_file(*mut Db, *const *const c_char, usize, *const IngestOptions, *mut *mut c_char);
        }
        optional {
            // Since RocksDB 8.1; 8.7 is the first version that needs no size of an entry.
            fn hyper_clock_cache_options_create(usize, usize) -> *mut HyperClockCacheOptions;
            fn hyper_clock_cache_options_destroy(*mut HyperClockCacheOptions);
            fn hyper_clock_cache_options_set_num_shard_bits(*mut HyperClockCacheOptions, c_int);
            fn cache_create_hyper_clock_opts(*const HyperClockCacheOptions) -> *mut Cache;
            // Since RocksDB 10.9; the older functions that do the same allocate for every value.
            fn get_into_buffer(*mut Db, *const ReadOptions, *const c_char, usize, *mut c_char, usize, *mut usize, *mut c_uchar, *mut *mut c_char) -> c_uchar;
            fn get_into_buffer_cf(*mut Db, *const ReadOptions, *mut ColumnFamily, *const c_char, usize, *mut c_char, usize, *mut usize, *mut c_uchar, *mut *mut c_char) -> c_uchar;
        }
    }
}

/// An options object of the engine.
#[derive(Debug)]
pub struct Handle {
    api: &'static Api,
    pub raw: *mut DbOptions,
}

impl Handle {
    /// The engine's defaults.
    pub fn defaults(api: &'static Api) -> Self {
        // SAFETY: no arguments; the object is destroyed once, in `drop`.
        let raw = unsafe { (api.options_create)() };
        Self { api, raw }
    }

    /// These options with `text` (`name=value`) applied to them, or the engine's refusal.
    pub fn with(&self, text: &str) -> std::result::Result<Self, String> {
        let text = CString::new(text).map_err(|_| "contains a NUL byte".to_owned())?;
        let changed = Self::defaults(self.api);
        let parse = self.api.get_options_from_string;
        // SAFETY: both objects are alive, and the text ends with NUL.
        let parsed = self
            .api
            .call(|error| unsafe { parse(self.raw, text.as_ptr(), changed.raw, error) });
        parsed.map(|()| changed).map_err(|error| error.to_string())
    }

    /// Lets `open` create the database if it does not exist.
    pub fn set_create_if_missing(&self) {
        // SAFETY: the object is alive.
        unsafe { (self.api.options_set_create_if_missing)(self.raw, 1) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: created by this library and destroyed only here.
        unsafe { (self.api.options_destroy)(self.raw) }
    }
}
