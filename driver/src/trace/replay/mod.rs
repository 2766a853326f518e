//! Performing a trace again: as recorded, faster, or as fast as it goes.
//!
//! A dispatcher reads the trace ahead of time and hands its records to worker threads, by the hash
//! of their (first) key: operations on one key keep their order. Workers perform them when they are
//! due, or at once. What they wrote is remembered for a sample of the keys.

mod chunk;
mod dispatcher;
mod pace;
mod remembered;
mod run;
mod worker;

pub use remembered::Remembered;
pub use run::{run_replay, ReplayContext, ReplayError, ReplayObservation};

use xxhash_rust::xxh3::xxh3_64;

/// By which keys find their workers, and values are remembered.
#[inline]
fn hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}
