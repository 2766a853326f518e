//! LevelDB's C interface (`leveldb/c.h`), as far as the driver uses it.

use std::ffi::{c_char, c_int, c_uchar};

use crate::engine::c_store::{Db, DbOptions, ReadOptions, StoreApi};
use crate::engine::library::{c_api, opaque};

opaque!(Cache, FilterPolicy);

c_api! {
    /// Functions of a loaded LevelDB. All of them exist since LevelDB 1.20.
    pub struct Api {
        includes store: StoreApi;
        required {
            fn options_set_error_if_exists(*mut DbOptions, c_uchar);
            fn options_set_paranoid_checks(*mut DbOptions, c_uchar);
            fn options_set_write_buffer_size(*mut DbOptions, usize);
            fn options_set_max_open_files(*mut DbOptions, c_int);
            fn options_set_cache(*mut DbOptions, *mut Cache);
            fn options_set_block_size(*mut DbOptions, usize);
            fn options_set_block_restart_interval(*mut DbOptions, c_int);
            fn options_set_max_file_size(*mut DbOptions, usize);
            fn options_set_compression(*mut DbOptions, c_int);
            fn options_set_filter_policy(*mut DbOptions, *mut FilterPolicy);
            fn cache_create_lru(usize) -> *mut Cache;
            fn cache_destroy(*mut Cache);
            fn filterpolicy_create_bloom(c_int) -> *mut FilterPolicy;
            fn filterpolicy_destroy(*mut FilterPolicy);
            fn get(*mut Db, *const ReadOptions, *const c_char, usize, *mut usize, *mut *mut c_char) -> *mut c_char;
            fn compact_range(*mut Db, *const c_char, usize, *const c_char, usize);
            fn major_version() -> c_int;
            fn minor_version() -> c_int;
        }
        optional {}
    }
}
