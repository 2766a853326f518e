//! Keys and values on their way through a C interface, which takes and gives pointer and length.

use std::ffi::c_char;

/// Where C finds `bytes`; it gets their length beside it.
#[inline]
pub const fn text(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// What C handed over: null is empty.
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
