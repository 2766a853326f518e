//! What crosses the border: the functions of `include/lsmtune_engine.h`, and bytes.

use std::ffi::{c_char, c_int, c_void};

use crate::engine::library::{c_api, opaque, status_error, take_text};
use crate::engine::Result;

opaque!(RawDatabase, RawCursor);

/// Bytes that belong to whoever made it; see the header for how long they stay.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Slice {
    data: *const c_char,
    size: usize,
}

impl Slice {
    pub const NONE: Slice = Slice {
        data: std::ptr::null(),
        size: 0,
    };

    pub fn of(bytes: &[u8]) -> Self {
        Slice {
            data: bytes.as_ptr().cast(),
            size: bytes.len(),
        }
    }

    /// # Safety
    /// The bytes are there for as long as `'a`.
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.data.is_null() {
            return &[];
        }
        // SAFETY: promised by the caller.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.size) }
    }
}

/// One entry of a batch; without `value.data` the key is removed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub key: Slice,
    pub value: Slice,
}

type Read = unsafe extern "C" fn(*mut c_void, Slice);
type Cancelled = unsafe extern "C" fn(*mut c_void) -> c_int;
type Error = *mut *mut c_char;

c_api! {
    /// Functions of a loaded library, as the header has them.
    pub struct Api {
        required {
            fn lsmtune_engine_open(*const c_char, *const *const c_char, *const *const c_char, usize, u32, c_int, Error) -> *mut RawDatabase;
            fn lsmtune_engine_close(*mut RawDatabase);
            fn lsmtune_engine_put(*mut RawDatabase, Slice, Slice, Error);
            fn lsmtune_engine_delete(*mut RawDatabase, Slice, Error);
            fn lsmtune_engine_write(*mut RawDatabase, *const Entry, usize, Error);
            fn lsmtune_engine_get(*mut RawDatabase, Slice, Read, *mut c_void, Error) -> c_int;
            fn lsmtune_engine_cursor(*mut RawDatabase, Error) -> *mut RawCursor;
            fn lsmtune_engine_cursor_close(*mut RawCursor);
            fn lsmtune_engine_cursor_seek(*mut RawCursor, Slice, *mut Slice, *mut Slice, Error) -> c_int;
            fn lsmtune_engine_cursor_next(*mut RawCursor, *mut Slice, *mut Slice, Error) -> c_int;
            fn lsmtune_engine_drain(*mut RawDatabase, Cancelled, *mut c_void, Error);
            fn lsmtune_engine_stats(*mut RawDatabase) -> *mut c_char;
            fn lsmtune_engine_free(*mut c_char);
        }
        optional {}
    }
}

impl Api {
    /// # Safety
    /// `error` is null or was set by a function of this library.
    pub unsafe fn check(&self, error: *mut c_char) -> Result<()> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: promised by the caller; the header says what frees it.
        let said = unsafe { take_text(error, |text| (self.lsmtune_engine_free)(text)) };
        Err(status_error(&said))
    }
}
