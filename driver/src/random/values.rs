//! Values: windows into one pool of text that compresses to a chosen ratio.
//!
//! A value is a function of its *version* alone, so that any value can be checked later without
//! storing it. The pool consists of pieces of 100 bytes; each piece repeats a random part until it
//! is full. Both db_bench programs make compressible values in this way. As in these, windows begin
//! at a piece.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{mix, Version};

const POOL_BYTES: usize = 1 << 20;
const PIECE_BYTES: usize = 100;

/// The pool; all values of a run are windows of it.
#[derive(Debug)]
pub struct ValuePool {
    bytes: Vec<u8>,
    piece_bytes: usize,
    /// Pieces at which a value may begin; a power of two, which saves a division per value.
    pieces: u64,
    /// Pieces from one value to the next: as many as a value has, or one more. An odd number, so that
    /// all pieces have their turn before one comes again.
    stride: u64,
}

impl ValuePool {
    /// A pool for values of at most `value_bytes`. They compress to `compression_ratio` of their
    /// size if they are longer than a piece of 100 bytes or as long as the longest value.
    pub fn new(value_bytes: usize, compression_ratio: f64, seed: u64) -> Self {
        let piece_bytes = PIECE_BYTES.min(value_bytes).max(1);
        let random_bytes = ((piece_bytes as f64 * compression_ratio) as usize).max(1);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut bytes = Vec::with_capacity(POOL_BYTES + value_bytes + piece_bytes);
        while bytes.len() < POOL_BYTES + value_bytes {
            let part: Vec<u8> = (0..random_bytes)
                .map(|_| random.random_range(b' '..=b'~'))
                .collect();
            bytes.extend(part.iter().cycle().take(piece_bytes));
        }
        ValuePool {
            bytes,
            piece_bytes,
            pieces: 1 << (POOL_BYTES / piece_bytes).ilog2(),
            stride: value_bytes.div_ceil(piece_bytes) as u64 | 1,
        }
    }

    /// The value of `version`, `value_bytes` long (at most what the pool is for). Successive counts
    /// take successive windows, which the processor can prefetch. Random windows would charge the
    /// engine with the driver's own cache misses.
    #[inline]
    pub fn window(&self, version: Version, value_bytes: usize) -> &[u8] {
        let first = mix(version.origin());
        let piece = first.wrapping_add(version.count() * self.stride) & (self.pieces - 1);
        let start = piece as usize * self.piece_bytes;
        &self.bytes[start..start + value_bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_version_has_a_value_of_the_right_size(
            place: (u8, u8, u32), value_bytes in 0usize..5000, more in 0usize..5000,
        ) {
            let version = Version::new(place.0.into(), place.1.into(), place.2.into());
            let pool = ValuePool::new(value_bytes + more, 0.5, 1);
            let value = pool.window(version, value_bytes);
            prop_assert_eq!(value.len(), value_bytes);
            prop_assert_eq!(value, pool.window(version, value_bytes));
        }
    }

    #[test]
    fn versions_differ_by_count_and_by_origin() {
        let pool = ValuePool::new(100, 0.5, 1);
        let value = |thread, count| pool.window(Version::new(0, thread, count), 100);
        let same = (0..1000)
            .filter(|&count| {
                value(0, count) == value(0, count + 1) || value(0, count) == value(1, count)
            })
            .count();
        assert!(
            same < 5,
            "{same} of 1000 neighbouring versions share a value"
        );
    }

    /// The stride of values of 1,600 bytes was 16 of 8,192 pieces: 512 different values, which an
    /// engine that compresses or deduplicates makes less of than of any other size.
    #[test]
    fn a_thread_uses_every_window_before_one_comes_again() {
        for value_bytes in [0, 20, 100, 150, 400, 1024, 1600, 819_200] {
            let pool = ValuePool::new(value_bytes, 0.5, 1);
            let start = |count| {
                let window = pool.window(Version::new(0, 0, count), value_bytes);
                window.as_ptr() as usize - pool.bytes.as_ptr() as usize
            };
            let starts: std::collections::HashSet<_> = (0..pool.pieces).map(start).collect();
            assert_eq!(starts.len() as u64, pool.pieces, "{value_bytes}");
        }
    }

    #[test]
    fn half_of_a_value_repeats_at_ratio_one_half() {
        for value_bytes in [20, 100, 300] {
            let pool = ValuePool::new(value_bytes, 0.5, 9);
            let piece = value_bytes.min(100);
            for count in 0..100 {
                for part in pool
                    .window(Version::new(0, 0, count), value_bytes)
                    .chunks(piece)
                {
                    assert_eq!(part[..piece / 2], part[piece / 2..]);
                }
            }
        }
    }
}
