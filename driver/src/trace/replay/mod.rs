//! Performs a trace again: at the recorded speed, faster, or as fast as possible.
//!
//! A dispatcher reads the trace ahead of time and distributes its records over worker threads by
//! the hash of their (first) key, so operations on one key keep their order. Workers perform a
//! record when it is due, or at once. They note what they wrote for a sample of the keys.

mod chunk;
mod dispatcher;
mod replayed_keys;
mod run;
mod worker;

pub use replayed_keys::ReplayedKeys;
pub use run::{run_replay, ReplayContext, ReplayError, ReplayObservation};
