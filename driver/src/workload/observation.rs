//! The observations of a phase's threads, combined.

use std::collections::BTreeMap;

use crate::engine::BlockCacheReads;
use crate::measure::Recorders;

use super::operations::DataCounts;

/// What one thread observed.
#[derive(Debug, Default)]
pub struct ThreadObservation {
    /// Operations finished.
    pub operations: u64,
    /// Whether a cancel ended it.
    pub cut_short: bool,
    /// Latencies by operation type.
    pub latencies: Recorders,
    /// Bytes and keys.
    pub counts: DataCounts,
    /// Reads of the thread in the engine's block cache, if they are known.
    pub block_cache: Option<BlockCacheReads>,
}

/// The combined observations of a phase's threads, for operations or for a replay.
#[derive(Debug, Default)]
pub struct Observation {
    /// Operations of the phase's own threads.
    pub operations: u64,
    /// Seconds from their start to the end of their last operation.
    pub elapsed_s: f64,
    /// Whether a cancel ended one of them.
    pub cut_short: bool,
    /// Their latencies by operation type.
    pub own: Recorders,
    /// Their reads in the engine's block cache, if they are known.
    pub block_cache: Option<BlockCacheReads>,
    /// Latencies of the writer of `readwhilewriting`.
    pub writer: Recorders,
    /// Latencies of companions, by name.
    pub companions: BTreeMap<String, Recorders>,
    /// Bytes of all threads; keys of all threads except companions.
    pub counts: DataCounts,
}

impl Observation {
    /// What the phase's own threads observed in `elapsed_s` seconds.
    pub fn new(own: &[ThreadObservation], elapsed_s: f64) -> Self {
        let mut sum = Observation {
            elapsed_s,
            block_cache: own.iter().map(|thread| thread.block_cache).sum(),
            ..Observation::default()
        };
        for thread in own {
            sum.operations += thread.operations;
            sum.cut_short |= thread.cut_short;
            sum.own.add(&thread.latencies);
            sum.counts.add(thread.counts);
        }
        sum
    }

    /// Adds the writer of `readwhilewriting`.
    pub fn add_writer(&mut self, thread: &ThreadObservation) {
        self.writer.add(&thread.latencies);
        self.counts.add(thread.counts);
    }

    /// Adds a thread of the companion `name`.
    pub fn add_companion(&mut self, name: &str, thread: &ThreadObservation) {
        let companion = self.companions.entry(name.to_owned()).or_default();
        companion.add(&thread.latencies);
        self.counts.bytes_written += thread.counts.bytes_written;
        self.counts.bytes_read += thread.counts.bytes_read;
    }
}
