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

/// Pointer and length as one value. It belongs to whoever made it.
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

    #[inline]
    pub const fn of(bytes: &[u8]) -> Self {
        Slice {
            data: text(bytes),
            size: bytes.len(),
        }
    }

    /// # Safety
    /// As for [`slice`].
    #[inline]
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: promised by the caller.
        unsafe { slice(self.data, self.size) }
    }
}
