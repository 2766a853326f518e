//! The numbers of the format, and the layout of its integers and strings.
//!
//! Sources: RocksDB's `include/rocksdb/trace_record.h`, `trace_replay/trace_replay.{h,cc}` (query
//! traces 0.1 in 5.16 to 6.17, 0.2 since 6.19), `db/dbformat.h` and `db/write_batch.cc`.

/// The first bytes of the header's payload.
pub const MAGIC: &[u8] = b"feedcafedeadbeef";

/// Bytes of the time stamp, the type and the length of the payload.
pub const METADATA_BYTES: usize = 8 + 1 + 4;

/// Types of records.
pub mod record {
    pub const BEGIN: u8 = 1;
    pub const END: u8 = 2;
    pub const WRITE: u8 = 3;
    pub const GET: u8 = 4;
    pub const SEEK: u8 = 5;
    pub const SEEK_FOR_PREV: u8 = 6;
    /// The first and the last type of block cache traces.
    pub const BLOCK_CACHE: std::ops::RangeInclusive<u8> = 7..=11;
    pub const IO: u8 = 12;
    pub const MULTI_GET: u8 = 13;
}

/// Bits of a payload map. They say which fields the payload has; the order of the bits is that of
/// the fields (0.2).
pub mod payload {
    pub const WRITE_BATCH: u64 = 1 << 1;
    pub const GET_CF: u64 = 1 << 2;
    pub const GET_KEY: u64 = 1 << 3;
    pub const ITERATOR_CF: u64 = 1 << 4;
    pub const ITERATOR_KEY: u64 = 1 << 5;
    pub const ITERATOR_LOWER: u64 = 1 << 6;
    pub const ITERATOR_UPPER: u64 = 1 << 7;
    pub const MULTI_GET_SIZE: u64 = 1 << 8;
    pub const MULTI_GET_CFS: u64 = 1 << 9;
    pub const MULTI_GET_KEYS: u64 = 1 << 10;
}

/// Tags of the entries of a write batch.
pub mod tag {
    pub const DELETE: u8 = 0x00;
    pub const PUT: u8 = 0x01;
    pub const MERGE: u8 = 0x02;
    pub const LOG_DATA: u8 = 0x03;
    pub const CF_DELETE: u8 = 0x04;
    pub const CF_PUT: u8 = 0x05;
    pub const CF_MERGE: u8 = 0x06;
    pub const SINGLE_DELETE: u8 = 0x07;
    pub const CF_SINGLE_DELETE: u8 = 0x08;
    pub const BEGIN_PREPARE: u8 = 0x09;
    pub const END_PREPARE: u8 = 0x0a;
    pub const COMMIT: u8 = 0x0b;
    pub const ROLLBACK: u8 = 0x0c;
    pub const NOOP: u8 = 0x0d;
    pub const CF_DELETE_RANGE: u8 = 0x0e;
    pub const DELETE_RANGE: u8 = 0x0f;
    pub const CF_BLOB_INDEX: u8 = 0x10;
    pub const BLOB_INDEX: u8 = 0x11;
    pub const BEGIN_PERSISTED_PREPARE: u8 = 0x12;
    pub const BEGIN_UNPREPARE: u8 = 0x13;
    pub const COMMIT_WITH_TIMESTAMP: u8 = 0x15;
    pub const ENTITY: u8 = 0x16;
    pub const CF_ENTITY: u8 = 0x17;
    pub const TIMED_PUT: u8 = 0x18;
    pub const CF_TIMED_PUT: u8 = 0x19;
}

/// Takes the elements of the format off the front of a slice; `None` if too few bytes are left.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    #[inline]
    pub fn fixed32(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*first))
    }

    #[inline]
    pub fn fixed64(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*first))
    }

    /// Seven bits per byte, the lowest first, in at most five bytes.
    #[inline]
    pub fn varint32(&mut self) -> Option<u32> {
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).ok();
            }
        }
        None
    }

    #[inline]
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(first)
    }

    /// A length, then that many bytes.
    #[inline]
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.varint32()?;
        self.take(length as usize)
    }
}

/// Appends a varint.
pub fn put_varint32(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends a length and the bytes of `string`, whose length fits 32 bits.
pub fn put_string(bytes: &mut Vec<u8>, string: &[u8]) {
    put_varint32(bytes, string.len() as u32);
    bytes.extend_from_slice(string);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_put_is_taken_again(number: u32, string: Vec<u8>) {
            let mut bytes = Vec::new();
            put_varint32(&mut bytes, number);
            put_string(&mut bytes, &string);
            let mut bytes = Bytes(&bytes);
            prop_assert_eq!(bytes.varint32(), Some(number));
            prop_assert_eq!(bytes.string(), Some(&string[..]));
            prop_assert_eq!(bytes.byte(), None);
        }
    }

    #[test]
    fn a_varint_of_more_than_32_bits_is_none() {
        assert_eq!(
            Bytes(&[0xff, 0xff, 0xff, 0xff, 0x0f]).varint32(),
            Some(u32::MAX)
        );
        assert_eq!(Bytes(&[0xff, 0xff, 0xff, 0xff, 0x1f]).varint32(), None);
        assert_eq!(
            Bytes(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x00]).varint32(),
            None
        );
    }
}
