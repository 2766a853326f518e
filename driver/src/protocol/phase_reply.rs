//! The observations of a phase.

use serde::{Deserialize, Serialize};

use super::latency::{LatencyReply, LatencyStatistics};
use super::workload::{Operation, PhaseKind};
use crate::trace::Damage;

/// What a phase observed. `None` means not known, never zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields))] // serde cannot: latencies are fields too
pub struct PhaseReply {
    /// Name of the phase.
    pub name: String,
    /// What it was for.
    pub kind: PhaseKind,
    /// What its threads did.
    pub operation: Option<Operation>,
    /// Worker threads.
    pub threads: usize,
    /// Operations of all threads, the background writer's excluded.
    pub operations: u64,
    /// Seconds from the first operation to the end of the last.
    pub elapsed_s: f64,
    /// Seconds of flush and compaction after the last operation, charged to the phase.
    pub drain_s: f64,
    /// `operations / elapsed_s`.
    pub throughput_ops_s: f64,
    /// `operations / (elapsed_s + drain_s)`.
    pub sustained_throughput_ops_s: f64,
    /// Whether the phase was cancelled before its size was reached.
    pub cut_short: bool,
    /// Latencies of the phase's own operations.
    #[serde(flatten)]
    pub latency: LatencyStatistics<Option<f64>>,
    /// Latencies by operation type: `put`, `get`, `delete`, `next`, `seek`, and the types of a mix.
    /// Those of a companion have its name in front.
    pub latencies: std::collections::BTreeMap<String, LatencyReply>,
    /// Gets and seeks that found their key.
    pub keys_found: Option<u64>,
    /// Gets and seeks that did not find their key.
    pub keys_missing: Option<u64>,
    /// Reads, and entries of scans, that were compared with what was written; absent where nothing
    /// was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads_checked: Option<u64>,
    /// Key and value bytes handed to the engine.
    pub user_bytes_written: u64,
    /// Key and value bytes handed out by the engine.
    pub user_bytes_read: u64,
    /// Filled in by `background_work`, when the database has been closed.
    pub write_amplification: Option<f64>,
    /// Bytes read by system calls per user byte read, in phases that only read.
    pub read_amplification: Option<f64>,
    /// `database_bytes_max` per live user byte; the number of live keys is an estimate.
    pub space_amplification: Option<f64>,
    /// Process CPU time, drain included, per operation.
    pub cpu_us_per_operation: Option<f64>,
    /// Seconds for which the engine held writers back. The engine's own clock goes on while the
    /// process is stopped between slices.
    pub stall_s: Option<f64>,
    /// Seconds stolen from the machine during the phase, all cores together; `None` where the kernel
    /// does not say.
    pub steal_s: Option<f64>,
    /// Peak resident memory in this phase.
    pub rss_bytes_max: u64,
    /// Bytes of all files of the database at the end.
    pub database_bytes: u64,
    /// The most bytes that they took during the phase, drain included, as far as the driver looked.
    pub database_bytes_max: u64,
    /// Table files of each level of the tree at the end, level 0 first; absent where not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_per_level: Option<Vec<u64>>,
    /// Bytes of the table files of each level; absent where not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_level: Option<Vec<u64>>,
    /// Share of the pages of the database's files that were in memory when a measure phase with a
    /// cold page cache began; absent in other phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub page_cache_cached_share: Option<f64>,
    /// Blocks that the phase's own reads found in the engine's block cache; absent where not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_cache_hits: Option<u64>,
    /// Blocks that these reads did not find there; absent where not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_cache_misses: Option<u64>,
    /// Operations of the phase by type, if it has several types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations_by_type: Option<std::collections::BTreeMap<String, u64>>,
    /// What a replay could not perform; absent in other phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayReply>,
    /// Wall clock at the start.
    pub started_unix_us: u64,
    /// Wall clock at the end, drain included.
    pub finished_unix_us: u64,
}

/// What a replay could not perform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReplayReply {
    /// Entries of write batches that were left out, by type: `delete_range`, `put_entity`,
    /// `blob_index`.
    pub skipped: std::collections::BTreeMap<String, u64>,
    /// Where and why the trace became unreadable. Everything before was performed.
    pub damage: Option<Damage>,
}
