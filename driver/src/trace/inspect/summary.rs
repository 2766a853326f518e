//! The summary of a trace, as messages carry it. Numbers of keys are whole if every key was kept,
//! and estimates if keys were sampled; both are written as fractions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::trace::Damage;

/// All that one pass over a trace found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TraceSummary {
    /// The file.
    pub path: PathBuf,
    /// Bytes that were understood.
    pub bytes: u64,
    /// Bytes of the file.
    pub bytes_total: u64,
    /// Version of the format.
    #[cfg_attr(test, schemars(extend("enum" = ["0.1", "0.2"])))]
    pub trace_version: String,
    /// Version of the RocksDB that recorded it.
    pub rocksdb_version: String,
    /// When it was begun.
    pub header_unix_us: u64,
    /// Whether it was ended properly.
    pub footer: bool,
    /// Where and why reading stopped before the end.
    pub damage: Option<Damage>,
    /// Records between header and footer.
    pub records: u64,
    /// Operations: entries of batches, keys got, seeks.
    pub operations: u64,
    /// Earliest record.
    pub first_unix_us: Option<u64>,
    /// Latest record.
    pub last_unix_us: Option<u64>,
    /// Between the two.
    pub duration_s: f64,
    /// Records with an earlier time stamp than the record before them.
    pub out_of_order: u64,
    /// Seconds that the pass took.
    pub elapsed_s: f64,
    /// Records per second of it.
    pub records_per_s: f64,
    /// Records by type.
    pub record_counts: BTreeMap<String, u64>,
    /// Operations by type.
    pub operation_counts: BTreeMap<String, u64>,
    /// Entries of batches that do nothing.
    pub markers: u64,
    /// Number of a column family, and operations on it.
    #[cfg_attr(test, schemars(length(max = 64)))]
    pub column_families: Vec<(u32, u64)>,
    /// Operations on families that are not listed because there are too many.
    pub column_families_other: u64,
    /// Operations per write.
    pub batch_entries: Option<Histogram>,
    /// Keys per `MultiGet`.
    pub multi_get_keys: Option<Histogram>,
    /// Bytes of keys, by group of operations: `get`, `write`, `seek`.
    pub key_sizes: BTreeMap<String, Histogram>,
    /// Bytes of values, by type of write: `put`, `merge`.
    pub value_sizes: BTreeMap<String, Histogram>,
    /// Always `None`: a trace has seeks, but not the steps after them.
    #[cfg_attr(test, schemars(with = "()"))]
    pub scan_lengths: Option<Histogram>,
    /// Which bounds seeks had.
    pub seek_bounds: SeekBounds,
    /// Microseconds between neighbouring records.
    pub inter_arrival_us: Option<Histogram>,
    /// The trace over time.
    pub windows: Windows,
    /// How keys were sampled.
    pub sampling: Sampling,
    /// Distinct keys.
    pub keys: DistinctKeys,
    /// Writes of keys that this trace had written before.
    pub overwrites: Overwrites,
    /// Gets of keys that this trace had written before, and not deleted since.
    pub gets_of_written: GetsOfWritten,
    /// Operations between a write and a later get of its key.
    pub get_after_write: Option<Histogram>,
    /// Shares of the operations whose key is greater than the one before: `get`, `write`, `seek`.
    #[cfg_attr(test, schemars(transform = shares))]
    pub ascending: BTreeMap<String, Option<f64>>,
    /// How unevenly keys are used, by group of operations: `all`, `get`, `write`, `seek`.
    pub hotness: BTreeMap<String, Curve>,
    /// What the number of a key is.
    pub key_space: KeySpace,
    /// Operations on keys without a number.
    pub keys_without_number: u64,
    /// Equal parts of the key space.
    #[cfg_attr(test, schemars(length(max = 4096)))]
    pub ranges_by_number: Vec<Range>,
    /// Parts with equally many keys.
    #[cfg_attr(test, schemars(length(max = 101)))]
    pub ranges_by_rank: Vec<Range>,
    /// Operations by the prefixes of keys.
    pub prefixes: Prefixes,
    /// What an LRU cache of keys would do, after SHARDS: of `get` and of `all`.
    pub reuse: BTreeMap<String, Reuse>,
}

/// How often which values occurred.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Histogram {
    /// Number of values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Smallest.
    pub min: u64,
    /// Largest.
    pub max: u64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Lowest and highest value of a bucket, and how many fell into it.
    #[cfg_attr(test, schemars(length(max = 4096)))]
    pub buckets: Vec<(u64, u64, u64)>,
}

/// Which bounds seeks had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SeekBounds {
    /// None.
    pub none: u64,
    /// A lower one.
    pub lower: u64,
    /// An upper one.
    pub upper: u64,
    /// Both.
    pub both: u64,
}

/// The trace over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Windows {
    /// Length of a window.
    pub window_s: f64,
    /// Start of the first window.
    pub started_unix_us: Option<u64>,
    /// Gets, writes, seeks, distinct keys of the window, distinct keys so far.
    #[cfg_attr(test, schemars(length(max = 512)))]
    pub steps: Vec<(u64, u64, u64, f64, f64)>,
}

/// How keys were sampled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// `exact` or `sampled`.
    #[cfg_attr(test, schemars(extend("enum" = ["exact", "sampled"])))]
    pub method: String,
    /// Keys that were kept.
    pub keys_kept: u64,
    /// Share of all keys that were kept.
    #[cfg_attr(test, schemars(range(max = 1)))]
    pub share: f64,
    /// Relative standard error of the number of distinct keys.
    pub standard_error: f64,
    /// Counters for the hottest keys; 0 where every key was kept.
    pub heavy_counters: u64,
    /// The largest share of all accesses that such a counter may have missed.
    pub heavy_error: f64,
    /// All this in words.
    pub text: String,
}

/// Distinct keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DistinctKeys {
    /// All distinct keys.
    pub distinct: f64,
    /// Keys that were read.
    pub read: f64,
    /// Keys that were written or deleted.
    pub written: f64,
    /// Keys that were sought.
    pub sought: f64,
    /// Keys that were read and written.
    pub read_and_written: f64,
}

/// Writes of keys that this trace had written before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Overwrites {
    /// Writes of a key.
    pub writes: u64,
    /// Writes of a key that this trace had written before.
    pub repeated: f64,
    /// Share of the repeated writes.
    #[cfg_attr(test, schemars(range(max = 1)))]
    pub share: Option<f64>,
}

/// Gets of keys that this trace had written before, and not deleted since.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GetsOfWritten {
    /// Number of such gets.
    pub gets: f64,
    /// Share of all gets.
    #[cfg_attr(test, schemars(range(max = 1)))]
    pub share: Option<f64>,
}

/// How unevenly keys are used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// All accesses.
    pub accesses: u64,
    /// Distinct keys.
    pub keys: f64,
    /// Rank of a key by its accesses, hottest first; those accesses; the share of all accesses that
    /// the keys up to that rank have.
    #[cfg_attr(test, schemars(length(max = 400)))]
    pub points: Vec<(f64, f64, f64)>,
}

/// What the number of a key is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KeySpace {
    /// The common prefix of all keys, in hexadecimal digits.
    pub common_prefix_hex: String,
    /// Bytes of the common prefix.
    pub common_prefix_bytes: u64,
    /// `window`, `big_endian` or `decimal`.
    #[cfg_attr(test, schemars(extend("enum" = ["window", "big_endian", "decimal"])))]
    pub number: String,
    /// First byte of a key that counts for its number.
    pub window_offset_bytes: u64,
    /// Smallest number, in decimal digits.
    #[cfg_attr(test, schemars(regex(pattern = "^[0-9]+$")))]
    pub min: String,
    /// Largest.
    #[cfg_attr(test, schemars(regex(pattern = "^[0-9]+$")))]
    pub max: String,
}

/// First number (in decimal digits), distinct keys, gets, writes, seeks.
pub type Range = (String, f64, f64, f64, f64);

/// Operations by the prefixes of keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Prefixes {
    /// Bytes of a prefix.
    pub prefix_bytes: u64,
    /// Number of prefixes that were counted separately.
    pub distinct: u64,
    /// The hottest: prefix in hexadecimal digits, gets, writes, seeks.
    #[cfg_attr(test, schemars(length(max = 256)))]
    pub top: Vec<(String, u64, u64, u64)>,
    /// Gets, writes and seeks of all other prefixes.
    pub other: (u64, u64, u64),
    /// Whether every prefix was counted separately.
    pub exact: bool,
}

/// What an LRU cache of keys would do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reuse {
    /// Accesses.
    pub accesses: u64,
    /// Share of the keys that was followed.
    #[cfg_attr(test, schemars(range(max = 1)))]
    pub share: f64,
    /// Accesses to keys that had not been accessed before.
    pub first_accesses: f64,
    /// Lowest and highest number of other keys between two accesses to one key, and accesses.
    pub distances: Vec<(u64, u64, f64)>,
    /// Keys in the cache, and the share of accesses that miss it.
    #[cfg_attr(test, schemars(length(max = 256)))]
    pub miss_ratio: Vec<(u64, f64)>,
}

#[cfg(test)]
fn shares(schema: &mut schemars::Schema) {
    schema.insert(
        "additionalProperties".into(),
        serde_json::json!({"type": ["number", "null"], "minimum": 0, "maximum": 1}),
    );
}
