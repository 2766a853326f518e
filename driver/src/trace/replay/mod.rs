//! Performing a trace again: as recorded, faster, or as fast as it goes.
//!
//! A dispatcher reads the trace ahead of time and hands its records to worker threads, by the hash
//! of their (first) key: operations on one key keep their order. Workers perform them when they are
//! due, or at once. What they wrote is noted for a sample of the keys.

mod chunk;
mod dispatcher;
mod pace;
mod replayed_keys;
mod run;
mod worker;

pub use replayed_keys::ReplayedKeys;
pub use run::{run_replay, ReplayContext, ReplayError, ReplayObservation};

use xxhash_rust::xxh3::xxh3_64;

/// Hash of a key, which picks its worker, or of a value, which the sample keeps in its place.
#[inline]
fn hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}
