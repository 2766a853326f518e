//! Keys and values as a C interface takes and returns them: pointer and length.

use std::ffi::c_char;

/// The pointer to `bytes` for C, which gets their length separately.
#[inline]
pub const fn text(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// The bytes that C handed over; null means empty.
///
/// # Safety
/// `data` and `length` describe memory of the engine that outlives `'a`, or `length` is zero.
#[inline]
pub unsafe fn slice<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}
