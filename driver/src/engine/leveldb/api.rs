//! LevelDB's C interface (`leveldb/c.h`), as far as the driver uses it.

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::path::Path;

use crate::engine::library::{self, c_api, opaque, status_error, take_text};
use crate::engine::Result;

opaque!(
    Db,
    DbOptions,
    ReadOptions,
    WriteOptions,
    WriteBatch,
    Iterator,
    Cache,
    FilterPolicy,
);

c_api! {
    /// Functions of a loaded LevelDB. All of them exist since LevelDB 1.20.
    pub struct Api {
        required {
            fn leveldb_open(*const DbOptions, *const c_char, *mut *mut c_char) -> *mut Db;
            fn leveldb_close(*mut Db);
            fn leveldb_options_create() -> *mut DbOptions;
            fn leveldb_options_destroy(*mut DbOptions);
            fn leveldb_options_set_create_if_missing(*mut DbOptions, c_uchar);
            fn leveldb_options_set_error_if_exists(*mut DbOptions, c_uchar);
            fn leveldb_options_set_paranoid_checks(*mut DbOptions, c_uchar);
            fn leveldb_options_set_write_buffer_size(*mut DbOptions, usize);
            fn leveldb_options_set_max_open_files(*mut DbOptions, c_int);
            fn leveldb_options_set_cache(*mut DbOptions, *mut Cache);
            fn leveldb_options_set_block_size(*mut DbOptions, usize);
            fn leveldb_options_set_block_restart_interval(*mut DbOptions, c_int);
            fn leveldb_options_set_max_file_size(*mut DbOptions, usize);
            fn leveldb_options_set_compression(*mut DbOptions, c_int);
            fn leveldb_options_set_filter_policy(*mut DbOptions, *mut FilterPolicy);
            fn leveldb_cache_create_lru(usize) -> *mut Cache;
            fn leveldb_cache_destroy(*mut Cache);
            fn leveldb_filterpolicy_create_bloom(c_int) -> *mut FilterPolicy;
            fn leveldb_filterpolicy_destroy(*mut FilterPolicy);
            fn leveldb_readoptions_create() -> *mut ReadOptions;
            fn leveldb_readoptions_destroy(*mut ReadOptions);
            fn leveldb_writeoptions_create() -> *mut WriteOptions;
            fn leveldb_writeoptions_destroy(*mut WriteOptions);
            fn leveldb_writeoptions_set_sync(*mut WriteOptions, c_uchar);
            fn leveldb_writebatch_create() -> *mut WriteBatch;
            fn leveldb_writebatch_destroy(*mut WriteBatch);
            fn leveldb_writebatch_clear(*mut WriteBatch);
            fn leveldb_writebatch_put(*mut WriteBatch, *const c_char, usize, *const c_char, usize);
            fn leveldb_writebatch_delete(*mut WriteBatch, *const c_char, usize);
            fn leveldb_write(*mut Db, *const WriteOptions, *mut WriteBatch, *mut *mut c_char);
            fn leveldb_get(*mut Db, *const ReadOptions, *const c_char, usize, *mut usize, *mut *mut c_char) -> *mut c_char;
            fn leveldb_create_iterator(*mut Db, *const ReadOptions) -> *mut Iterator;
            fn leveldb_iter_destroy(*mut Iterator);
            fn leveldb_iter_valid(*const Iterator) -> c_uchar;
            fn leveldb_iter_seek_to_first(*mut Iterator);
            fn leveldb_iter_seek(*mut Iterator, *const c_char, usize);
            fn leveldb_iter_next(*mut Iterator);
            fn leveldb_iter_key(*const Iterator, *mut usize) -> *const c_char;
            fn leveldb_iter_value(*const Iterator, *mut usize) -> *const c_char;
            fn leveldb_iter_get_error(*const Iterator, *mut *mut c_char);
            fn leveldb_compact_range(*mut Db, *const c_char, usize, *const c_char, usize);
            fn leveldb_property_value(*mut Db, *const c_char) -> *mut c_char;
            fn leveldb_major_version() -> c_int;
            fn leveldb_minor_version() -> c_int;
            fn leveldb_free(*mut c_void);
        }
        optional {}
    }
}

impl Api {
    /// Loads the library at `path` and looks up its functions. Both stay for ever.
    pub fn open(path: Option<&Path>) -> Result<&'static Self> {
        let loaded = library::open("leveldb", path)?;
        match Self::load(loaded) {
            Ok(api) => Ok(Box::leak(Box::new(api))),
            Err(missing) => Err(library::lacks(
                "leveldb",
                path.unwrap_or_else(|| Path::new("")),
                &missing,
            )),
        }
    }

    /// Copies a C string of the engine and frees it.
    ///
    /// # Safety
    /// `text` came from a function of this library that hands over a `malloc`ed string.
    pub unsafe fn take(&self, text: *mut c_char) -> String {
        // SAFETY: promised by the caller; `leveldb_free` is what the header says to free with.
        unsafe { take_text(text, |text| (self.leveldb_free)(text.cast())) }
    }

    /// The result of a call that reports failure by setting `error`.
    ///
    /// # Safety
    /// `error` is null or was set by a function of this library.
    #[inline]
    pub unsafe fn check(&self, error: *mut c_char) -> Result<()> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: promised by the caller.
        Err(status_error(&unsafe { self.take(error) }))
    }
}
