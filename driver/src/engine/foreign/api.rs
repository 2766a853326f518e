//! What crosses the border: the functions of `include/lsmtune_engine.h`, and bytes.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use crate::engine::c_bytes::Slice;
use crate::engine::library::{c_api, opaque, status_error, take_text};
use crate::engine::Result;

opaque!(RawDatabase, RawCursor);

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
            fn open(*const c_char, *const *const c_char, *const *const c_char, usize, u32, c_int, Error) -> *mut RawDatabase;
            fn close(*mut RawDatabase);
            fn put(*mut RawDatabase, Slice, Slice, Error);
            fn delete(*mut RawDatabase, Slice, Error);
            fn write(*mut RawDatabase, *const Entry, usize, Error);
            fn get(*mut RawDatabase, Slice, Read, *mut c_void, Error) -> c_int;
            fn cursor(*mut RawDatabase, Error) -> *mut RawCursor;
            fn cursor_close(*mut RawCursor);
            fn cursor_seek(*mut RawCursor, Slice, *mut Slice, *mut Slice, Error) -> c_int;
            fn cursor_next(*mut RawCursor, *mut Slice, *mut Slice, Error) -> c_int;
            fn drain(*mut RawDatabase, Cancelled, *mut c_void, Error);
            fn stats(*mut RawDatabase) -> *mut c_char;
            fn free(*mut c_char);
        }
        optional {}
    }
}

impl Api {
    /// What `call` returns. It hands a function of this library the place where that sets an error.
    #[inline]
    pub fn call<T>(&self, call: impl FnOnce(Error) -> T) -> Result<T> {
        let mut error = null_mut();
        let returned = call(&raw mut error);
        if error.is_null() {
            return Ok(returned);
        }
        // SAFETY: a function of this library has set it; the header says what frees it.
        let said = unsafe { take_text(error, |text| (self.free)(text)) };
        Err(status_error(&said))
    }
}
