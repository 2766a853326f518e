//! What a run does: phases over one database.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::distributions::SizeDistribution;
use super::mix::Mix;
use super::{is_default, is_one, one};
use crate::engine::Durability;

/// A list of phases over one database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Bytes of a key: an 8-byte big-endian number, then `0` characters.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Compressed size of a value divided by its size.
    #[cfg_attr(test, schemars(range(max = 1), extend("exclusiveMinimum" = 0)))]
    pub compression_ratio: f64,
    /// Number of keys in the key space.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub num: u64,
    /// What a crash may cost.
    pub durability: Durability,
    /// What the kernel holds of the database when a measure phase begins: `warm` where absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub page_cache: PageCache,
    /// What keys look like; db_bench's numbers where absent.
    pub keys: Option<KeyFormat>,
    /// Bytes of a key as a function of its number, at most `key_bytes`; only of db_bench's numbers.
    pub key_sizes: Option<SizeDistribution>,
    /// Databases open in this process; a key belongs to one of them. 1 where absent.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub databases: usize,
    /// Column families of each database; a key belongs to one of them. 1 where absent.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub column_families: usize,
    /// What happens, in order.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub phases: Vec<Phase>,
}

/// What the kernel holds of the database's files when a measure phase begins. Options of the engine
/// decide whether it reads past the kernel's cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PageCache {
    /// What the phases before left there.
    #[default]
    Warm,
    /// As little as possible: the database is closed, dropped from the cache, and opened again.
    Cold,
}

/// What a phase is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// Fill the database.
    Load,
    /// Flush, and wait for compactions.
    Settle,
    /// Run without being judged.
    Warmup,
    /// Run and be judged; writes are charged with their drain.
    Measure,
}

/// One phase; `docs/measuring.md` says how it is executed and measured. A settle phase has nothing
/// to do; any other does one of `operation`, `mix` and `replay`, and has a size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = rules::of_a_phase))]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Unique within the workload.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub name: String,
    /// What it is for.
    pub kind: PhaseKind,
    /// What each thread does: one of this, `mix` and `replay`; none of them in `settle`.
    pub operation: Option<Operation>,
    /// Several operations, drawn at random.
    pub mix: Option<Mix>,
    /// The operations of a recorded trace.
    pub replay: Option<Replay>,
    /// Operations of each thread, as in db_bench.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub operations_per_thread: Option<u64>,
    /// Operations of all threads together, as in YCSB; in place of `operations_per_thread`.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub operations: Option<u64>,
    /// Seconds after which every thread stops.
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
    pub duration_s: Option<f64>,
    /// Worker threads; 1 where absent.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub threads: usize,
    /// Open loop: operations started per second over all threads.
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
    pub rate_ops_s: Option<f64>,
    /// Open loop at a rate that changes with time; in place of `rate_ops_s`.
    pub rate: Option<Rate>,
    /// Threads that work beside those of the phase, for as long as it lasts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<Companion>,
    /// Steps after each seek of `seekrandom`; 0 where absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seek_nexts: u64,
}

impl Phase {
    /// Whether the database is changed; a replay may change it.
    pub fn writes(&self) -> bool {
        self.operation.is_some_and(Operation::writes)
            || self.mix.as_ref().is_some_and(Mix::writes)
            || self.replay.is_some()
            || self.companions.iter().any(Companion::writes)
    }

    /// Operations of all threads together; `None` if something else ends the phase.
    pub fn operations_whole(&self) -> Option<u64> {
        let each = self.operations_per_thread;
        let whole = each.map(|each| each.saturating_mul(self.threads as u64));
        self.operations.or(whole)
    }

    /// Operations of one thread. If the operations of all threads cannot be divided evenly, the
    /// first threads do one more.
    pub fn operations_of(&self, thread: usize) -> Option<u64> {
        let (thread, threads) = (thread as u64, self.threads as u64);
        let share = |whole: u64| whole / threads + u64::from(thread < whole % threads);
        self.operations.map(share).or(self.operations_per_thread)
    }
}

/// What keys look like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "format", rename_all = "snake_case", deny_unknown_fields)]
pub enum KeyFormat {
    /// As YCSB builds them: `prefix`, then the number in decimal digits.
    Ycsb {
        /// The prefix of every key.
        prefix: String,
        /// The least number of digits; shorter numbers get zeros in front.
        zero_padding: usize,
        /// Whether the number is hashed first.
        order: KeyPlacement,
    },
}

/// Whether records that are inserted one after another are neighbours in key order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum KeyPlacement {
    /// They are neighbours.
    Ordered,
    /// They are scattered: the key holds a hash of the number.
    Hashed,
}

/// A rate that changes with time, over all threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "shape", rename_all = "snake_case", deny_unknown_fields)]
pub enum Rate {
    /// `mean + amplitude sin(2 pi (t + offset) / period)`, never below 0.
    Sine {
        /// Operations per second.
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        mean_ops_s: f64,
        /// Amplitude of the wave, at most the mean.
        #[cfg_attr(test, schemars(range(min = 0)))]
        amplitude_ops_s: f64,
        /// Seconds of a whole wave.
        #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
        period_s: f64,
        /// Seconds of the wave that are over when the phase begins.
        #[serde(default)]
        offset_s: f64,
    },
    /// One rate after another, and again from the first.
    Steps {
        /// Pairs of seconds and operations per second.
        #[cfg_attr(test, schemars(length(min = 1)))]
        steps: Vec<(f64, f64)>,
    },
}

/// A trace to perform.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// File of the trace.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub path: PathBuf,
    /// Factor on the recorded pace; as fast as possible where absent.
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
    pub speed: Option<f64>,
}

/// Threads that work beside a phase, for as long as it lasts; not counted in its operations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = rules::of_a_companion))]
#[serde(deny_unknown_fields)]
pub struct Companion {
    /// Unique within the phase; its latencies are filed as `name.type`.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub name: String,
    /// What each thread does: one of this and `mix`.
    pub operation: Option<Operation>,
    /// Several operations, drawn at random.
    pub mix: Option<Mix>,
    /// Its threads; 1 where absent.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub threads: usize,
    /// Open loop: operations started per second over its threads.
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
    pub rate_ops_s: Option<f64>,
}

impl Companion {
    /// Whether the database is changed.
    pub fn writes(&self) -> bool {
        self.operation.is_some_and(Operation::writes) || self.mix.as_ref().is_some_and(Mix::writes)
    }
}

/// What one thread of a phase repeats. Names and meaning are those of db_bench, which has
/// `filluniquerandom` and no counterparts of it for reads and deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Put keys 0, 1, 2 ...
    FillSeq,
    /// Put uniformly drawn keys.
    FillRandom,
    /// Put every key once, in random order.
    FillUniqueRandom,
    /// Put uniformly drawn keys into a loaded database.
    Overwrite,
    /// Step through the database in key order.
    ReadSeq,
    /// Get uniformly drawn keys.
    ReadRandom,
    /// Get every key once, in random order.
    ReadUniqueRandom,
    /// Get keys that were never written.
    ReadMissing,
    /// Get keys out of the first hundredth of the key space.
    ReadHot,
    /// Open a cursor, seek a uniformly drawn key, step `seek_nexts` times.
    SeekRandom,
    /// Delete uniformly drawn keys.
    DeleteRandom,
    /// Delete every key once, in random order.
    DeleteUniqueRandom,
    /// `ReadRandom` by the phase's threads while one more thread overwrites.
    ReadWhileWriting,
}

impl Operation {
    /// Whether the database is changed.
    pub fn writes(self) -> bool {
        matches!(
            self,
            Operation::FillSeq
                | Operation::FillRandom
                | Operation::FillUniqueRandom
                | Operation::Overwrite
                | Operation::DeleteRandom
                | Operation::DeleteUniqueRandom
                | Operation::ReadWhileWriting
        )
    }
}

/// Rules of the schema that concern several fields.
#[cfg(test)]
mod rules {
    use schemars::Schema;
    use serde_json::{json, Value};

    pub fn of_a_phase(schema: &mut Schema) {
        let rules = json!({
            "if": {"properties": {"kind": {"const": "settle"}}},
            "then": {"properties": {
                "operation": false, "mix": false, "replay": false, "operations_per_thread": false,
                "operations": false, "duration_s": false, "companions": false,
            }},
            "else": {
                "oneOf": given(&["operation", "mix", "replay"]),
                "anyOf": given(&["operations_per_thread", "operations", "duration_s", "replay"]),
                "not": {"required": ["operations_per_thread", "operations"]},
            },
        });
        for (key, rule) in rules.as_object().into_iter().flatten() {
            schema.insert(key.clone(), rule.clone());
        }
    }

    pub fn of_a_companion(schema: &mut Schema) {
        schema.insert("oneOf".to_owned(), given(&["operation", "mix"]).into());
    }

    /// One alternative for each field, in which this field is given.
    fn given(fields: &[&str]) -> Vec<Value> {
        let each = fields.iter();
        each.map(|field| json!({"required": [field]})).collect()
    }
}
