//! Snappy, under the names by which RocksDB calls it.
//!
//! The library of RocksDB for Java has a Snappy that was compiled without optimisation: it
//! compresses at a fourth of the speed of any other build, so that every other compression seems
//! better than it is. The driver loads this one first, where it lies beside such a library
//! (`engine/library.rs`), and the linker then takes these functions in the place of the library's.
//! The format is the same: each reads what the other has written.
//!
//! They are all that RocksDB calls and has no C++ class in its signature. RocksDB from 10.10 on
//! calls `Compress(Source*, Sink*)`, which is left to the library: its work is `CompressFragment`.
//!
//! The names are those of the C++ functions in `snappy.h` and `snappy-internal.h` (1.1.3 and later),
//! on 64 bits.

use std::cell::RefCell;

use snap::raw::{decompress_len, max_compress_len, Decoder, Encoder};

// What fails ends the process: an empty block in its place would be lost data.
const TOO_LONG: &str = "Snappy takes blocks of at most 3 GiB";

thread_local! {
    // An encoder has a table, which is made once; and room for a fragment.
    static ENCODER: RefCell<(Encoder, Vec<u8>)> = RefCell::new((Encoder::new(), Vec::new()));
}

/// `size_t snappy::MaxCompressedLength(size_t)`: at most so many bytes do `length` become.
#[export_name = "_ZN6snappy19MaxCompressedLengthEm"]
pub extern "C" fn max_compressed_length(length: usize) -> usize {
    max_compress_len(length)
}

/// `void snappy::RawCompress(const char*, size_t, char*, size_t*)`.
///
/// # Safety
/// `input` has `length` bytes, `output` the most that these can become; `written` is a number.
#[export_name = "_ZN6snappy11RawCompressEPKcmPcPm"]
pub unsafe extern "C" fn raw_compress(
    input: *const u8,
    length: usize,
    output: *mut u8,
    written: *mut usize,
) {
    // SAFETY: the caller promises what both are; neither is used beyond this call, and `to`, which
    // need not be initialised, is only written.
    let (from, to) = unsafe {
        let most = max_compress_len(length);
        (
            bytes(input, length),
            std::slice::from_raw_parts_mut(output, most),
        )
    };
    let done = ENCODER.with_borrow_mut(|(encoder, _)| encoder.compress(from, to));
    // SAFETY: the caller promises a number.
    unsafe { *written = done.expect(TOO_LONG) };
}

/// `char* snappy::internal::CompressFragment(const char*, size_t, char*, uint16_t*, int)`: at most
/// 64 KiB, without their length before them; returns the end of what it has written. The hash table
/// of the caller is not used.
///
/// # Safety
/// `input` has `length` bytes, `output` the most that these can become.
#[export_name = "_ZN6snappy8internal16CompressFragmentEPKcmPcPti"]
pub unsafe extern "C" fn compress_fragment(
    input: *const u8,
    length: usize,
    output: *mut u8,
    _table: *mut u16,
    _table_size: i32,
) -> *mut u8 {
    // SAFETY: the caller promises so many bytes.
    let from = unsafe { bytes(input, length) };
    ENCODER.with_borrow_mut(|(encoder, room)| {
        room.resize(max_compress_len(length).max(room.len()), 0);
        let written = encoder.compress(from, room).expect(TOO_LONG);
        let begins = room.iter().take_while(|&&byte| byte & 0x80 != 0).count() + 1;
        let fragment = &room[begins..written];
        // SAFETY: the caller promises room for more than this; the two do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(fragment.as_ptr(), output, fragment.len());
            output.add(fragment.len())
        }
    })
}

/// `bool snappy::GetUncompressedLength(const char*, size_t, size_t*)`: false for damaged data.
///
/// # Safety
/// `input` has `length` bytes; `found` is a number.
#[export_name = "_ZN6snappy21GetUncompressedLengthEPKcmPm"]
pub unsafe extern "C" fn uncompressed_length(
    input: *const u8,
    length: usize,
    found: *mut usize,
) -> bool {
    // SAFETY: the caller promises so many bytes.
    let from = unsafe { bytes(input, length) };
    let known = decompress_len(from).ok().filter(|_| !from.is_empty());
    if let Some(known) = known {
        // SAFETY: the caller promises a number.
        unsafe { *found = known };
    }
    known.is_some()
}

/// `bool snappy::RawUncompress(const char*, size_t, char*)`: false for damaged data.
///
/// # Safety
/// `input` has `length` bytes, `output` as many as `uncompressed_length` tells.
#[export_name = "_ZN6snappy13RawUncompressEPKcmPc"]
pub unsafe extern "C" fn raw_uncompress(input: *const u8, length: usize, output: *mut u8) -> bool {
    // SAFETY: the caller promises so many bytes.
    let from = unsafe { bytes(input, length) };
    let Ok(known) = decompress_len(from) else {
        return false;
    };
    if known == 0 {
        return !from.is_empty();
    }
    // SAFETY: the caller promises room for what the data say of themselves. It need not be
    // initialised: it is only written.
    let to = unsafe { std::slice::from_raw_parts_mut(output, known) };
    Decoder::new().decompress(from, to).is_ok()
}

/// # Safety
/// There are `length` bytes at `start`, which may be null where it is 0.
unsafe fn bytes<'a>(start: *const u8, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller promises them.
    unsafe { std::slice::from_raw_parts(start, length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `engine/workload` makes values: a piece that is said twice, and one that is not.
    fn text(length: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let mut found = Vec::with_capacity(length + 100);
        while found.len() < length {
            let piece: Vec<u8> = (0..50)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    b' ' + (state >> 24) as u8 % 95
                })
                .collect();
            found.extend(piece.iter().chain(&piece));
        }
        found.truncate(length);
        found
    }

    fn compressed(from: &[u8]) -> Vec<u8> {
        let mut to = vec![0; max_compressed_length(from.len())];
        let mut written = 0;
        // SAFETY: as long as is said.
        unsafe { raw_compress(from.as_ptr(), from.len(), to.as_mut_ptr(), &mut written) };
        to.truncate(written);
        to
    }

    fn uncompressed(from: &[u8]) -> Option<Vec<u8>> {
        let mut length = 0;
        // SAFETY: as long as is said, and as it tells.
        unsafe {
            if !uncompressed_length(from.as_ptr(), from.len(), &mut length) {
                return None;
            }
            let mut to = vec![0; length];
            raw_uncompress(from.as_ptr(), from.len(), to.as_mut_ptr()).then_some(to)
        }
    }

    #[test]
    fn what_is_compressed_comes_back() {
        for length in [0, 1, 50, 4096, 65_536, 200_000] {
            let from = text(length);
            let to = compressed(&from);
            assert_eq!(uncompressed(&to), Some(from));
            assert!(
                length < 4096 || to.len() < length * 6 / 10,
                "{length}: {}",
                to.len()
            );
        }
    }

    #[test]
    fn a_fragment_is_what_follows_the_length() {
        for length in [1, 50, 127, 128, 4096, 16_384, 65_536] {
            let from = text(length);
            let mut to = vec![0; max_compressed_length(length)];
            let begins = to.as_mut_ptr();
            // SAFETY: as long as is said; the table is not used.
            let ends = unsafe {
                compress_fragment(from.as_ptr(), length, begins, std::ptr::null_mut(), 0)
            };
            to.truncate(ends as usize - begins as usize);
            let whole = compressed(&from);
            assert_eq!(&whole[whole.len() - to.len()..], &to);
            assert!((1..=3).contains(&(whole.len() - to.len())));
        }
    }

    #[test]
    fn damaged_data_are_refused() {
        assert_eq!(uncompressed(&[]), None);
        let mut damaged = compressed(&text(4096));
        damaged.truncate(1000);
        assert_eq!(uncompressed(&damaged), None);
        assert_eq!(uncompressed(&[0xff; 12]), None);
    }
}
