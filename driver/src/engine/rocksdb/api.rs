//! RocksDB's C interface (`rocksdb/c.h`), as far as the driver uses it.

use std::ffi::{c_char, c_int, c_uchar, CString};
use std::path::Path;
use std::ptr::null_mut;

use crate::engine::library::{self, c_api, one_line, opaque, status_error, take_text};
use crate::engine::Result;

opaque!(
    Db,
    DbOptions,
    TableOptions,
    Cache,
    HyperClockCacheOptions,
    ReadOptions,
    WriteOptions,
    FlushOptions,
    WriteBatch,
    Iterator,
    PinnableSlice,
    LiveFiles,
    ColumnFamily,
    PerfContext,
    EnvOptions,
    SstFileWriter,
    IngestOptions,
);

/// `rocksdb_slice_t`: bytes of the engine.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Slice {
    pub data: *const c_char,
    pub size: usize,
}

c_api! {
    /// Functions of a loaded RocksDB. The required ones exist since RocksDB 6.
    pub struct Api {
        required {
            fn rocksdb_open(*const DbOptions, *const c_char, *mut *mut c_char) -> *mut Db;
            fn rocksdb_close(*mut Db);
            fn rocksdb_options_create() -> *mut DbOptions;
            fn rocksdb_options_destroy(*mut DbOptions);
            fn rocksdb_options_set_create_if_missing(*mut DbOptions, c_uchar);
            fn rocksdb_get_options_from_string(*const DbOptions, *const c_char, *mut DbOptions, *mut *mut c_char);
            fn rocksdb_block_based_options_create() -> *mut TableOptions;
            fn rocksdb_block_based_options_destroy(*mut TableOptions);
            fn rocksdb_block_based_options_set_block_cache(*mut TableOptions, *mut Cache);
            fn rocksdb_options_set_block_based_table_factory(*mut DbOptions, *mut TableOptions);
            fn rocksdb_cache_destroy(*mut Cache);
            fn rocksdb_readoptions_create() -> *mut ReadOptions;
            fn rocksdb_readoptions_destroy(*mut ReadOptions);
            fn rocksdb_readoptions_set_total_order_seek(*mut ReadOptions, u8);
            fn rocksdb_writeoptions_create() -> *mut WriteOptions;
            fn rocksdb_writeoptions_destroy(*mut WriteOptions);
            fn rocksdb_writeoptions_set_sync(*mut WriteOptions, c_uchar);
            fn rocksdb_writeoptions_disable_WAL(*mut WriteOptions, c_int);
            fn rocksdb_writeoptions_set_no_slowdown(*mut WriteOptions, c_uchar);
            fn rocksdb_writebatch_create() -> *mut WriteBatch;
            fn rocksdb_writebatch_destroy(*mut WriteBatch);
            fn rocksdb_writebatch_clear(*mut WriteBatch);
            fn rocksdb_writebatch_put(*mut WriteBatch, *const c_char, usize, *const c_char, usize);
            fn rocksdb_writebatch_delete(*mut WriteBatch, *const c_char, usize);
            fn rocksdb_write(*mut Db, *const WriteOptions, *mut WriteBatch, *mut *mut c_char);
            fn rocksdb_get_pinned(*mut Db, *const ReadOptions, *const c_char, usize, *mut *mut c_char) -> *mut PinnableSlice;
            fn rocksdb_pinnableslice_value(*const PinnableSlice, *mut usize) -> *const c_char;
            fn rocksdb_pinnableslice_destroy(*mut PinnableSlice);
            fn rocksdb_create_iterator(*mut Db, *const ReadOptions) -> *mut Iterator;
            fn rocksdb_iter_destroy(*mut Iterator);
            fn rocksdb_iter_valid(*const Iterator) -> c_uchar;
            fn rocksdb_iter_seek_to_first(*mut Iterator);
            fn rocksdb_iter_seek(*mut Iterator, *const c_char, usize);
            fn rocksdb_iter_next(*mut Iterator);
            fn rocksdb_iter_key(*const Iterator, *mut usize) -> *const c_char;
            fn rocksdb_iter_value(*const Iterator, *mut usize) -> *const c_char;
            fn rocksdb_iter_get_error(*const Iterator, *mut *mut c_char);
            fn rocksdb_flushoptions_create() -> *mut FlushOptions;
            fn rocksdb_flushoptions_destroy(*mut FlushOptions);
            fn rocksdb_flushoptions_set_wait(*mut FlushOptions, c_uchar);
            fn rocksdb_flush(*mut Db, *const FlushOptions, *mut *mut c_char);
            fn rocksdb_property_value(*mut Db, *const c_char) -> *mut c_char;
            fn rocksdb_property_int(*mut Db, *const c_char, *mut u64) -> c_int;
            fn rocksdb_livefiles(*mut Db) -> *const LiveFiles;
            fn rocksdb_livefiles_count(*const LiveFiles) -> c_int;
            fn rocksdb_livefiles_level(*const LiveFiles, c_int) -> c_int;
            fn rocksdb_livefiles_size(*const LiveFiles, c_int) -> usize;
            fn rocksdb_livefiles_destroy(*const LiveFiles);
            fn rocksdb_cancel_all_background_work(*mut Db, c_uchar);
            fn rocksdb_set_options(*mut Db, c_int, *const *const c_char, *const *const c_char, *mut *mut c_char);
            fn rocksdb_writebatch_merge(*mut WriteBatch, *const c_char, usize, *const c_char, usize);
            fn rocksdb_free(*mut std::ffi::c_void);
            fn rocksdb_open_column_families(*const DbOptions, *const c_char, c_int, *const *const c_char, *const *const DbOptions, *mut *mut ColumnFamily, *mut *mut c_char) -> *mut Db;
            fn rocksdb_column_family_handle_destroy(*mut ColumnFamily);
            fn rocksdb_options_set_create_missing_column_families(*mut DbOptions, c_uchar);
            fn rocksdb_writebatch_put_cf(*mut WriteBatch, *mut ColumnFamily, *const c_char, usize, *const c_char, usize);
            fn rocksdb_writebatch_delete_cf(*mut WriteBatch, *mut ColumnFamily, *const c_char, usize);
            fn rocksdb_writebatch_merge_cf(*mut WriteBatch, *mut ColumnFamily, *const c_char, usize, *const c_char, usize);
            fn rocksdb_get_pinned_cf(*mut Db, *const ReadOptions, *mut ColumnFamily, *const c_char, usize, *mut *mut c_char) -> *mut PinnableSlice;
            fn rocksdb_create_iterator_cf(*mut Db, *const ReadOptions, *mut ColumnFamily) -> *mut Iterator;
            fn rocksdb_flush_cf(*mut Db, *const FlushOptions, *mut ColumnFamily, *mut *mut c_char);
            fn rocksdb_property_int_cf(*mut Db, *mut ColumnFamily, *const c_char, *mut u64) -> c_int;
            fn rocksdb_perfcontext_create() -> *mut PerfContext;
            fn rocksdb_perfcontext_metric(*mut PerfContext, c_int) -> u64;
            fn rocksdb_perfcontext_destroy(*mut PerfContext);
            fn rocksdb_envoptions_create() -> *mut EnvOptions;
            fn rocksdb_envoptions_destroy(*mut EnvOptions);
            fn rocksdb_sstfilewriter_create(*const EnvOptions, *const DbOptions) -> *mut SstFileWriter;
            fn rocksdb_sstfilewriter_open(*mut SstFileWriter, *const c_char, *mut *mut c_char);
            fn rocksdb_sstfilewriter_put(*mut SstFileWriter, *const c_char, usize, *const c_char, usize, *mut *mut c_char);
            fn rocksdb_sstfilewriter_file_size(*mut SstFileWriter, *mut u64);
            fn rocksdb_sstfilewriter_finish(*mut SstFileWriter, *mut *mut c_char);
            fn rocksdb_sstfilewriter_destroy(*mut SstFileWriter);
            fn rocksdb_ingestexternalfileoptions_create() -> *mut IngestOptions;
            fn rocksdb_ingestexternalfileoptions_set_move_files(*mut IngestOptions, c_uchar);
            fn rocksdb_ingestexternalfileoptions_destroy(*mut IngestOptions);
            fn rocksdb_ingest_external_file(*mut Db, *const *const c_char, usize, *const IngestOptions, *mut *mut c_char);
        }
        optional {
            // Since RocksDB 8.1; 8.7 is the first version that needs no size of an entry.
            fn rocksdb_hyper_clock_cache_options_create(usize, usize) -> *mut HyperClockCacheOptions;
            fn rocksdb_hyper_clock_cache_options_destroy(*mut HyperClockCacheOptions);
            fn rocksdb_hyper_clock_cache_options_set_num_shard_bits(*mut HyperClockCacheOptions, c_int);
            fn rocksdb_cache_create_hyper_clock_opts(*const HyperClockCacheOptions) -> *mut Cache;
            // Since RocksDB 10.9; the older functions that do the same allocate for every value, or
            // return the length through memory.
            fn rocksdb_get_into_buffer(*mut Db, *const ReadOptions, *const c_char, usize, *mut c_char, usize, *mut usize, *mut c_uchar, *mut *mut c_char) -> c_uchar;
            fn rocksdb_get_into_buffer_cf(*mut Db, *const ReadOptions, *mut ColumnFamily, *const c_char, usize, *mut c_char, usize, *mut usize, *mut c_uchar, *mut *mut c_char) -> c_uchar;
            fn rocksdb_iter_key_slice(*const Iterator) -> Slice;
            fn rocksdb_iter_value_slice(*const Iterator) -> Slice;
        }
    }
}

impl Api {
    /// Loads the library at `path` and looks up its functions. Both stay for ever.
    pub fn open(path: Option<&Path>) -> Result<&'static Self> {
        let loaded = library::open("rocksdb", path)?;
        match Self::load(loaded) {
            Ok(api) => Ok(Box::leak(Box::new(api))),
            Err(missing) => Err(library::lacks(
                "rocksdb",
                path.unwrap_or_else(|| Path::new("")),
                &missing,
            )),
        }
    }

    /// Whether it can copy a value into a buffer of ours.
    pub fn copies_values(&self) -> bool {
        self.rocksdb_get_into_buffer.is_some() && self.rocksdb_get_into_buffer_cf.is_some()
    }

    /// Copies a C string of the engine and frees it.
    ///
    /// # Safety
    /// `text` came from a function of this library that hands over a `malloc`ed string.
    pub unsafe fn take(&self, text: *mut c_char) -> String {
        // SAFETY: promised by the caller; `rocksdb_free` is what the header says to free with.
        unsafe { take_text(text, |text| (self.rocksdb_free)(text.cast())) }
    }

    /// The result of a call that reports a failure by setting `error`.
    ///
    /// # Safety `error` is null or was set by a function of this library.
    #[inline]
    pub unsafe fn check(&self, error: *mut c_char) -> Result<()> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: promised by the caller.
        Err(status_error(&unsafe { self.take(error) }))
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
        let raw = unsafe { (api.rocksdb_options_create)() };
        Self { api, raw }
    }

    /// These options with `text` (`name=value`) applied to them, or the engine's refusal.
    pub fn with(&self, text: &str) -> std::result::Result<Self, String> {
        let text = CString::new(text).map_err(|_| "contains a NUL byte".to_owned())?;
        let changed = Self::defaults(self.api);
        let mut error = null_mut();
        // SAFETY: both objects are alive, the text ends with NUL, and the error is checked.
        unsafe {
            (self.api.rocksdb_get_options_from_string)(
                self.raw,
                text.as_ptr(),
                changed.raw,
                &raw mut error,
            );
            if error.is_null() {
                return Ok(changed);
            }
            Err(one_line(&self.api.take(error)))
        }
    }

    /// Lets `open` create the database if it does not exist.
    pub fn set_create_if_missing(&self) {
        // SAFETY: the object is alive.
        unsafe { (self.api.rocksdb_options_set_create_if_missing)(self.raw, 1) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: created by this library and destroyed only here.
        unsafe { (self.api.rocksdb_options_destroy)(self.raw) }
    }
}
