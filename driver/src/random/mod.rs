//! Randomness with a seed: which key comes next, and what its value is.
//!
//! Every generator takes its seed as an argument. None keeps state per key, so a key space of any
//! size needs the same memory.

mod distributions;
mod fnv;
mod key_format;
mod keys;
mod permutation;
mod values;
mod version;

pub use distributions::{range_weights, KeyChooser, Shares, Sizes, Span};
pub use fnv::fnv1a;
pub use key_format::{DecodedKey, KeyWriter};
pub use keys::{encode_key, KeyStream, KEY_NUMBER_BYTES};
pub use permutation::Permutation;
pub use values::ValuePool;
pub use version::Version;

/// Mixes 64 bits so that every input bit affects every output bit.
///
/// This is the finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, OOPSLA 2014, with the constants of Stafford's variant 13).
#[inline]
pub fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A seed for one thread of one phase, unrelated to those of other threads and phases.
pub fn stream_seed(seed: u64, phase: usize, thread: usize) -> u64 {
    mix(mix(mix(seed) ^ phase as u64) ^ ((thread as u64) << 32))
}
