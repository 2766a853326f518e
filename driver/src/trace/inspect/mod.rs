//! What a trace says about the workload from which it was recorded, in one pass and bounded memory.
//!
//! Counts are exact where that is possible. Where memory would grow with the number of keys, keys
//! are sampled by their hash, and the summary says so. It takes at most about 200 MiB for any
//! trace.

mod counts;
mod curve;
mod heavy;
mod inspector;
mod keys;
mod log_buckets;
mod numbers;
mod pass;
mod prefixes;
mod ranges;
mod reuse;
mod summarise;
mod summary;
mod windows;

pub use numbers::{KeyNumber, NumberFormat};
pub use pass::{inspect, InspectError, Progress};
pub use summary::TraceSummary;

use std::hash::{BuildHasherDefault, Hasher};

/// What an operation does with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Get = 0,
    Write = 1,
    Seek = 2,
}

impl Group {
    const ALL: [(Group, &'static str); 3] = [
        (Group::Get, "get"),
        (Group::Write, "write"),
        (Group::Seek, "seek"),
    ];
}

/// The operations on a key, whose `counts` are by group.
fn accesses(counts: &[u32; 3]) -> u64 {
    counts.iter().map(|&count| u64::from(count)).sum()
}

/// The hasher of a map whose keys are hashes already.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxhash_rust::xxh3::xxh3_64_with_seed(bytes, self.0);
    }

    #[inline]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A map from hashes of keys.
type HashOf<T> = std::collections::HashMap<u64, T, BuildHasherDefault<Hashed>>;

/// Whether a key is in a sample whose level has these bits. A map of hashes takes its buckets from
/// the lowest bits and its tags from the highest; these bits are in neither.
#[inline]
fn sampled(hash: u64, mask: u64) -> bool {
    hash >> 24 & mask == 0
}
