//! What passes between tuner and driver: one JSON request in, JSON lines out.
//!
//! The same messages are described by the JSON Schemas in `protocol/` and by the golden files
//! there, which the test suites of both languages read.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::engine::{Durability, EngineError, Identity, LevelWork, OptionNotTaken, Options};
use crate::trace::inspect::{KeyNumber, TraceSummary};
use crate::trace::Damage;

/// Stated first by either side; any other version is refused.
pub const PROTOCOL_VERSION: u32 = 3;

/// What the driver is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Request {
    /// Perform one run.
    Run(RunRequest),
    /// Say what an engine library is.
    Probe(ProbeRequest),
    /// Say whether a database whose driver was killed holds what was reported done.
    Check(CheckRequest),
    /// Say what is in a trace.
    InspectTrace(InspectRequest),
}

impl Request {
    /// The request that `text` is. Its version comes first: a request of another one may well have
    /// fields that this one does not know.
    pub fn parse(text: &[u8]) -> Result<Self, Box<ErrorReply>> {
        let stated = serde_json::from_slice::<Stated>(text);
        if let Ok(Some(found)) = stated.map(|stated| stated.protocol_version) {
            if found != PROTOCOL_VERSION {
                return Err(Box::new(ErrorReply::version(&found)));
            }
        }
        serde_json::from_slice(text)
            .map_err(|error| Box::new(ErrorReply::new("request", format!("request: {error}"))))
    }
}

/// What a request of any version states.
#[derive(Deserialize)]
struct Stated {
    protocol_version: Option<serde_json::Value>,
}

/// Which engine, and the library to load it from; built-in engines need none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineRequest {
    /// A name of [`crate::engine::NAMES`].
    pub name: String,
    /// Path of the shared library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<PathBuf>,
}

/// One (config, workload, seed).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Must equal [`PROTOCOL_VERSION`].
    pub protocol_version: u32,
    /// The engine to measure.
    pub engine: EngineRequest,
    /// Folder of the database: created by the driver, never removed by it.
    pub directory: PathBuf,
    /// Options over the engine's defaults, in its own spelling.
    #[serde(default)]
    pub options: Options,
    /// What to do.
    pub workload: Workload,
    /// Seed of every random choice of the run.
    pub seed: u64,
    /// Seed of the load phases and of all values; that of the run where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_seed: Option<u64>,
    /// An earlier run executed the first phases: go on from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepared: Option<Prepared>,
    /// Where to note, once the run has worked, what was written: for runs on copies of its
    /// database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub save_ledger: Option<PathBuf>,
    /// Length of a step of the interval series, in milliseconds.
    #[serde(default = "default_interval_ms")]
    pub interval_ms: u64,
    /// The least number of written keys to read back (all of them where fewer were written).
    #[serde(default = "default_verify_keys")]
    pub verify_keys: usize,
    /// Parts into which each measure phase is cut, with a [`Message::Paused`] around each; 0 for a
    /// run that is never stopped.
    #[serde(default, skip_serializing_if = "no_slices")]
    pub slices: u32,
}

/// Ask a library what it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeRequest {
    /// Must equal [`PROTOCOL_VERSION`].
    pub protocol_version: u32,
    /// The engine to probe.
    pub engine: EngineRequest,
    /// A scratch folder for throw-away databases.
    pub directory: PathBuf,
}

fn default_interval_ms() -> u64 {
    250
}

fn default_verify_keys() -> usize {
    1000
}

impl RunRequest {
    /// The seed of load phases and of values.
    pub fn load_seed(&self) -> u64 {
        self.load_seed.unwrap_or(self.seed)
    }
}

/// A database that is there already, in the folder of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepared {
    /// What the earlier run saved as `save_ledger`.
    pub ledger: PathBuf,
    /// Phases that it executed: the first ones of the workload.
    pub phases: usize,
}

/// What is left of a run whose driver was killed in the middle of its first phase?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// Must equal [`PROTOCOL_VERSION`].
    pub protocol_version: u32,
    /// The engine of that run.
    pub engine: EngineRequest,
    /// Folder of its database.
    pub directory: PathBuf,
    /// Its options.
    #[serde(default)]
    pub options: Options,
    /// Its workload, the first phase of which one thread performed: `fillseq` or
    /// `filluniquerandom`, of no more operations than there are keys.
    pub workload: Workload,
    /// Its seed.
    pub seed: u64,
    /// Its seed of load phases and of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_seed: Option<u64>,
    /// Operations of the first phase that it had reported done.
    pub acknowledged: u64,
}

/// A list of phases over one database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Bytes of a key: an 8-byte big-endian number, then `0` characters.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Compressed size of a value divided by its size.
    pub compression_ratio: f64,
    /// Number of keys in the key space.
    pub num: u64,
    /// What a crash may cost.
    pub durability: Durability,
    /// What the kernel holds of the database when a measure phase begins.
    #[serde(default, skip_serializing_if = "is_warm")]
    pub page_cache: PageCache,
    /// What keys look like; db_bench's numbers where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<KeyFormat>,
    /// Bytes of a key as a function of its number, at most `key_bytes`; only of db_bench's numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_sizes: Option<SizeDistribution>,
    /// Databases open in this process; a key belongs to one of them.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub databases: usize,
    /// Column families of each database; a key belongs to one of them.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub column_families: usize,
    /// What happens, in order.
    pub phases: Vec<Phase>,
}

/// What the kernel holds of the database's files when a measure phase begins. An engine that reads
/// past the kernel's cache is told so by its own options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageCache {
    /// What the phases before left there.
    #[default]
    Warm,
    /// As little as can be: the database is closed, dropped from the cache, and opened again.
    Cold,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
fn is_warm(page_cache: &PageCache) -> bool {
    *page_cache == PageCache::Warm
}

/// What a phase is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// One phase; `docs/measuring.md` says how it is executed and measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Unique within the workload.
    pub name: String,
    /// What it is for.
    pub kind: PhaseKind,
    /// What each thread does: one of this, `mix` and `replay`; none of them in `settle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// Several operations, drawn again and again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<Mix>,
    /// The operations of a recorded trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// Operations of each thread, as in db_bench.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations_per_thread: Option<u64>,
    /// Operations of all threads together, as in YCSB; in place of `operations_per_thread`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// Seconds after which every thread stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// Worker threads.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub threads: usize,
    /// Open loop: operations started per second over all threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_ops_s: Option<f64>,
    /// Open loop at a rate that changes with time; in place of `rate_ops_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Threads that work beside those of the phase, for as long as it lasts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<Companion>,
    /// Steps after each seek of `seekrandom`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seek_nexts: u64,
}

impl Phase {
    /// Whether the database is changed.
    pub fn writes(&self) -> bool {
        self.operation.is_some_and(Operation::writes)
            || self.mix.as_ref().is_some_and(Mix::writes)
            || self.companions.iter().any(Companion::writes)
    }

    /// Operations of all threads together; `None` where something else ends the phase.
    pub fn operations_whole(&self) -> Option<u64> {
        let each = self.operations_per_thread;
        let whole = each.map(|each| each.saturating_mul(self.threads as u64));
        self.operations.or(whole)
    }

    /// Operations of one thread: of those of all together the first threads do one more where they
    /// cannot be divided.
    pub fn operations_of(&self, thread: usize) -> Option<u64> {
        let (thread, threads) = (thread as u64, self.threads as u64);
        let share = |whole: u64| whole / threads + u64::from(thread < whole % threads);
        self.operations.map(share).or(self.operations_per_thread)
    }
}

/// What keys look like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "format", rename_all = "snake_case", deny_unknown_fields)]
pub enum KeyFormat {
    /// As YCSB builds them: `prefix`, then the number in decimal digits.
    Ycsb {
        /// What every key begins with.
        prefix: String,
        /// Digits at least, zeros before.
        zero_padding: usize,
        /// Whether the number is hashed first.
        order: KeyPlacement,
    },
}

/// Whether records that are inserted one after another are neighbours in key order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyPlacement {
    /// They are.
    Ordered,
    /// They are not: the key holds a hash of the number.
    Hashed,
}

/// What each thread draws again and again: an operation, a key, a size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Weights by operation.
    pub operations: std::collections::BTreeMap<MixOperation, f64>,
    /// Which of the existing keys.
    pub keys: KeyDistribution,
    /// Number of the first key that exists when the phase begins.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first: u64,
    /// How many exist.
    pub records: u64,
    /// Number of the first key that is inserted; `first + records` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insert_from: Option<u64>,
    /// Entries of a scan; must be given where there are scans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan_lengths: Option<SizeDistribution>,
    /// Bytes of a value; `value_bytes` of the workload where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_sizes: Option<SizeDistribution>,
}

impl Mix {
    /// Whether the database is changed.
    pub fn writes(&self) -> bool {
        self.operations
            .keys()
            .any(|operation| !matches!(operation, MixOperation::Get | MixOperation::Scan))
    }

    /// Whether any operation takes a key that exists, of its own choice.
    pub fn chooses_keys(&self) -> bool {
        let none = [MixOperation::Insert, MixOperation::DeleteOldest];
        self.operations.keys().any(|each| !none.contains(each))
    }
}

/// One operation of a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MixOperation {
    /// Look a key up.
    Get,
    /// Write a key without looking.
    Put,
    /// Write the next new key.
    Insert,
    /// Look a row up and write it again; nothing is written where it is not there.
    Update,
    /// Look a row up, then update it.
    ReadModifyWrite,
    /// Open a cursor, seek, read entries.
    Scan,
    /// Delete a key.
    Delete,
    /// Delete the oldest key that no `delete_oldest` has deleted yet.
    DeleteOldest,
    /// Hand a key a merge operand: a whole new value. RocksDB, with `merge_operator=put`.
    Merge,
}

/// How keys are chosen among those that exist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "distribution", rename_all = "snake_case", deny_unknown_fields)]
pub enum KeyDistribution {
    /// All alike.
    Uniform,
    /// One after another, in the order of their numbers, and again.
    Sequential,
    /// The k-th key with a share of `1 / k^theta`.
    Zipfian {
        /// Exponent, above 0 and not 1.
        theta: f64,
    },
    /// As YCSB scatters a Zipfian over the keys.
    ScrambledZipfian {
        /// Exponent, above 0 and not 1.
        theta: f64,
        /// Keys over which it is scattered; those not there yet are drawn again. `records` where
        /// absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        items: Option<u64>,
    },
    /// The k-th newest key with a share of `1 / k^theta`.
    Latest {
        /// Exponent, above 0 and not 1.
        theta: f64,
    },
    /// A share of the operations on a share of the keys, uniformly on either side.
    Hotspot {
        /// Share of the keys that are hot.
        hot_data: f64,
        /// Share of the operations that go there.
        hot_operations: f64,
    },
    /// YCSB's exponential: `percentile` per cent of the operations on the newest `fraction` of keys.
    Exponential {
        /// Per cent of the operations.
        percentile: f64,
        /// Share of the keys.
        fraction: f64,
    },
    /// The share of the first x ranks is `a x^b`, and a hash sends ranks to keys, however many there
    /// are of either: db_bench's `key_dist_a`, `key_dist_b`.
    Power {
        /// Factor.
        a: f64,
        /// Exponent.
        b: f64,
        /// How many different random numbers ranks are made of: in db_bench, as many as there are
        /// keys. Absent: as many as floats have digits for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grains: Option<u64>,
    },
    /// Key ranges, the hotness of which is the sum of two exponentials of their rank.
    Ranges {
        /// Ranges of equal width.
        ranges: u64,
        /// Of `a exp(b x) + c exp(d x)`.
        a: f64,
        /// See `a`.
        b: f64,
        /// See `a`.
        c: f64,
        /// See `a`.
        d: f64,
        /// Hotness within a range, as [`KeyDistribution::Power`]; uniform where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_a: Option<f64>,
        /// See `key_a`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_b: Option<f64>,
        /// As `grains` of [`KeyDistribution::Power`]: in db_bench, as many as a range has keys.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_grains: Option<u64>,
    },
}

/// How sizes and lengths are drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "distribution", rename_all = "snake_case", deny_unknown_fields)]
pub enum SizeDistribution {
    /// Always the same.
    Constant {
        /// That.
        size: u64,
    },
    /// All alike.
    Uniform {
        /// Smallest.
        low: u64,
        /// Largest.
        high: u64,
    },
    /// `low` most often, by YCSB's Zipfian.
    Zipfian {
        /// Smallest.
        low: u64,
        /// Largest.
        high: u64,
        /// Exponent, above 0 and not 1.
        theta: f64,
    },
    /// Normal, conditioned on the bounds, rounded.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        sd: f64,
        /// Smallest.
        low: u64,
        /// Largest.
        high: u64,
    },
    /// Generalised Pareto, conditioned on the bounds, rounded down.
    Pareto {
        /// Location.
        theta: f64,
        /// Shape.
        k: f64,
        /// Scale.
        sigma: f64,
        /// Smallest.
        low: u64,
        /// Largest.
        high: u64,
    },
    /// A row of fields as YCSB-cpp writes it: before name and value of each their length, 4 bytes.
    Row {
        /// How many.
        fields: u64,
        /// Bytes of the names of all fields together.
        names_bytes: u64,
        /// Bytes of the value of a field.
        length: Box<SizeDistribution>,
    },
    /// Sizes with weights.
    Table {
        /// Pairs of size and weight.
        sizes: Vec<(u64, f64)>,
    },
}

/// A rate that changes with time, over all threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "snake_case", deny_unknown_fields)]
pub enum Rate {
    /// `mean + amplitude sin(2 pi (t + offset) / period)`, never below 0.
    Sine {
        /// Operations per second.
        mean_ops_s: f64,
        /// At most the mean.
        amplitude_ops_s: f64,
        /// Seconds of a whole wave.
        period_s: f64,
        /// Seconds of the wave that are over when the phase begins.
        #[serde(default)]
        offset_s: f64,
    },
    /// One rate after another, and again from the first.
    Steps {
        /// Pairs of seconds and operations per second.
        steps: Vec<(f64, f64)>,
    },
}

/// A trace to perform.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// File of the trace.
    pub path: PathBuf,
    /// Times its own pace; as fast as it goes where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
}

/// Threads that work beside a phase, for as long as it lasts; not counted in its operations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Companion {
    /// Unique within the phase; its latencies are filed as `name.type`.
    pub name: String,
    /// What each thread does: one of this and `mix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// Several operations, drawn again and again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<Mix>,
    /// Its threads.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub threads: usize,
    /// Open loop: operations started per second over its threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_ops_s: Option<f64>,
}

impl Companion {
    /// Whether the database is changed.
    pub fn writes(&self) -> bool {
        self.operation.is_some_and(Operation::writes) || self.mix.as_ref().is_some_and(Mix::writes)
    }
}

fn one() -> usize {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
fn is_one(threads: &usize) -> bool {
    *threads == 1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
fn no_slices(slices: &u32) -> bool {
    *slices == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
fn is_zero(nexts: &u64) -> bool {
    *nexts == 0
}

/// What one thread of a phase repeats. Names and meaning are those of db_bench, which has
/// `filluniquerandom` and no counterparts of it for reads and deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// A line that the tuner may send after the request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Control {
    /// Stop within 300 ms, wherever the run is, and report `cancelled`.
    Cancel,
}

/// What the driver says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// Always first.
    Hello {
        /// [`PROTOCOL_VERSION`].
        protocol_version: u32,
        /// Version of the driver.
        driver_version: String,
    },
    /// The engine accepted the options.
    Opened {
        /// What was opened.
        engine: EngineReply,
        /// Options whose effective value is not the requested one, or is not known.
        options_not_taken: Vec<OptionReply>,
    },
    /// A phase begins.
    PhaseStarted {
        /// Position in the workload.
        index: usize,
        /// Name of the phase.
        name: String,
        /// What it is for.
        kind: PhaseKind,
    },
    /// One step of the interval series.
    Interval(Interval),
    /// A slice is over, and the driver stops its whole process (SIGSTOP) until somebody continues
    /// it (SIGCONT): only in runs with slices. A SIGCONT sent before the process has stopped is
    /// lost, so wait for the stop first, or for the end of a run that was cancelled: it does not
    /// stop any more. Everything counts from the start of the phase, without the time spent
    /// stopped.
    Paused {
        /// Position of the phase in the workload.
        index: usize,
        /// Slices of the phase that are over; 0 when it has not begun.
        slice: usize,
        /// Operations so far, of the phase's own threads.
        operations_total: u64,
        /// Seconds so far.
        elapsed_s: f64,
        /// CPU seconds of the process so far.
        cpu_s: f64,
        /// Seconds stolen from the machine so far; `None` where the kernel does not say.
        steal_s: Option<f64>,
    },
    /// A phase ended, drain included.
    PhaseFinished {
        /// Position in the workload.
        index: usize,
        /// What it observed.
        phase: Box<PhaseReply>,
    },
    /// Flushes and compactions of a phase, known once the database is closed.
    BackgroundWork {
        /// Position in the workload.
        index: usize,
        /// Memtables written out.
        flushes: Option<u64>,
        /// Bytes they took.
        flush_bytes: Option<u64>,
        /// Compactions that rewrote data.
        compactions: Option<u64>,
        /// Bytes read by them.
        compaction_read_bytes: Option<u64>,
        /// Bytes written by them.
        compaction_write_bytes: Option<u64>,
        /// The compactions again, by output level, lowest first; levels without any are left out.
        levels: Option<Vec<LevelReply>>,
        /// Flushed and compacted bytes per user byte written.
        write_amplification: Option<f64>,
    },
    /// The written keys were read back from the reopened database: after a run, a sample of them;
    /// in answer to a check, all that were reported done.
    Verified {
        /// How many were checked.
        keys_checked: u64,
        /// Not there, or there although deleted.
        keys_lost: u64,
        /// There, with bytes that nobody wrote last.
        keys_wrong: u64,
        /// Only in answer to a check: keys after the reported ones that are there too, up to the
        /// first that is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keys_beyond: Option<u64>,
        /// Seconds that reopening took.
        reopen_s: f64,
    },
    /// Answer to a probe.
    Probed {
        /// What the library is.
        engine: EngineReply,
        /// Compression algorithms compiled in.
        compressions: Vec<String>,
        /// Every option that the engine knows, with its default.
        options: Vec<OptionDefault>,
    },
    /// How far the answer to `inspect_trace` has come.
    TraceProgress {
        /// Bytes read.
        bytes_read: u64,
        /// Bytes of the file.
        bytes_total: u64,
        /// Records seen.
        records: u64,
        /// Seconds so far.
        elapsed_s: f64,
    },
    /// Answer to `inspect_trace`.
    TraceSummary(Box<TraceSummary>),
    /// The last message of a run that worked.
    Finished {
        /// Always `ok`.
        outcome: String,
        /// Seconds from request to here.
        elapsed_s: f64,
        /// CPU seconds of the process.
        cpu_s: f64,
        /// Peak resident memory.
        rss_bytes_max: u64,
        /// Bytes of all files of the database.
        database_bytes: u64,
    },
    /// The last message of a run that did not.
    Failed {
        /// How it ended.
        outcome: Outcome,
        /// Why.
        error: ErrorReply,
    },
}

/// How a run ended, as far as the driver can tell; the runner adds the outcomes of dead drivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The request cannot be carried out.
    Invalid,
    /// The engine failed.
    Crashed,
    /// No space left on the device.
    DiskFull,
    /// The read-back found lost or wrong values.
    DataLoss,
    /// The tuner asked for it.
    Cancelled,
}

/// Name, version and library of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineReply {
    /// Name of the engine.
    pub name: String,
    /// As the engine states it.
    pub version: Option<String>,
    /// What was loaded.
    pub library: Option<PathBuf>,
}

impl From<Identity> for EngineReply {
    fn from(identity: Identity) -> Self {
        EngineReply {
            name: identity.name,
            version: identity.version,
            library: identity.library,
        }
    }
}

/// An option that did not take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionReply {
    /// The option.
    pub name: String,
    /// What was asked for.
    pub requested: String,
    /// What is in force; `None` where the engine does not say.
    pub effective: Option<String>,
}

impl From<OptionNotTaken> for OptionReply {
    fn from(option: OptionNotTaken) -> Self {
        OptionReply {
            name: option.name,
            requested: option.requested,
            effective: option.effective,
        }
    }
}

/// Compactions of a phase into one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelReply {
    /// The level that they wrote to.
    pub level: u32,
    /// How many there were.
    pub compactions: u64,
    /// Bytes written by them.
    pub compaction_write_bytes: u64,
}

impl From<(u32, LevelWork)> for LevelReply {
    fn from((level, work): (u32, LevelWork)) -> Self {
        LevelReply {
            level,
            compactions: work.compactions,
            compaction_write_bytes: work.compaction_write_bytes,
        }
    }
}

/// An option and its default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionDefault {
    /// The option.
    pub name: String,
    /// Its default, as the engine writes it.
    pub default: String,
}

/// One step of the interval series; `elapsed_s` is at its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Position of the phase in the workload.
    pub index: usize,
    /// Seconds since the phase began.
    pub elapsed_s: f64,
    /// Seconds since the previous step.
    pub interval_s: f64,
    /// Operations in this step.
    pub operations: u64,
    /// Operations since the phase began.
    pub operations_total: u64,
    /// Operations per second in this step.
    pub throughput_ops_s: f64,
    /// Resident memory at its end.
    pub rss_bytes: u64,
    /// CPU seconds of the process in this step.
    pub cpu_s: f64,
    /// Seconds stolen from the machine in this step, all cores together; `None` where the kernel
    /// does not say.
    pub steal_s: Option<f64>,
}

/// Latency of one operation type. Times in microseconds; the histogram counts nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyReply {
    /// Operations recorded.
    pub count: u64,
    /// Mean.
    pub latency_us_mean: f64,
    /// Median.
    pub latency_us_p50: f64,
    /// 95th percentile.
    pub latency_us_p95: f64,
    /// 99th percentile.
    pub latency_us_p99: f64,
    /// 99.9th percentile.
    pub latency_us_p999: f64,
    /// Largest.
    pub latency_us_max: f64,
    /// The whole histogram, HDR V2 compressed, in base64.
    pub histogram_ns_base64: String,
}

/// What a phase observed. `None` means not known, never zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Seconds of flush and compaction after that, charged to the phase.
    pub drain_s: f64,
    /// `operations / elapsed_s`.
    pub throughput_ops_s: f64,
    /// `operations / (elapsed_s + drain_s)`.
    pub sustained_throughput_ops_s: f64,
    /// Whether the phase was cancelled before its size was reached.
    pub cut_short: bool,
    /// Mean latency of the phase's own operation type.
    pub latency_us_mean: Option<f64>,
    /// Median.
    pub latency_us_p50: Option<f64>,
    /// 95th percentile.
    pub latency_us_p95: Option<f64>,
    /// 99th percentile.
    pub latency_us_p99: Option<f64>,
    /// 99.9th percentile.
    pub latency_us_p999: Option<f64>,
    /// Largest.
    pub latency_us_max: Option<f64>,
    /// By operation type: `put`, `get`, `delete`, `next`, `seek`, those of a mix; of companions
    /// with their name before.
    pub latencies: std::collections::BTreeMap<String, LatencyReply>,
    /// Gets and seeks that found their key.
    pub keys_found: Option<u64>,
    /// Gets and seeks that did not.
    pub keys_missing: Option<u64>,
    /// Key and value bytes handed to the engine.
    pub user_bytes_written: u64,
    /// Key and value bytes handed out by the engine.
    pub user_bytes_read: u64,
    /// Filled in by `background_work`, when the database has been closed.
    pub write_amplification: Option<f64>,
    /// Bytes read by system calls per user byte read, in phases that only read.
    pub read_amplification: Option<f64>,
    /// Bytes on disk per live user byte, the number of live keys being estimated.
    pub space_amplification: Option<f64>,
    /// Process CPU time, drain included, per operation.
    pub cpu_us_per_operation: Option<f64>,
    /// Seconds for which the engine held writers back. The engine's own clock goes on while the
    /// process is stopped between slices.
    pub stall_s: Option<f64>,
    /// Seconds stolen from the machine during the phase, all cores together.
    pub steal_s: Option<f64>,
    /// Peak resident memory in this phase.
    pub rss_bytes_max: u64,
    /// Bytes of all files of the database at the end.
    pub database_bytes: u64,
    /// Table files of each level at the end, level 0 first; absent where not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_per_level: Option<Vec<u64>>,
    /// Their bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_level: Option<Vec<u64>>,
    /// Share of the pages of the database's files that the kernel held in memory when a measure
    /// phase began that was to begin cold; absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_cached_share: Option<f64>,
    /// Blocks that the phase's own reads found in the engine's block cache; absent where not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_cache_hits: Option<u64>,
    /// Blocks that they had to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_cache_misses: Option<u64>,
    /// How many of the phase's operations were of which type, where it has several.
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
#[serde(deny_unknown_fields)]
pub struct ReplayReply {
    /// Entries of write batches that were left out, by type: `delete_range`, `put_entity`,
    /// `blob_index`.
    pub skipped: std::collections::BTreeMap<String, u64>,
    /// Where and why the trace could not be read on. What came before was performed.
    pub damage: Option<Damage>,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReply {
    /// A stable word.
    pub kind: String,
    /// One line.
    pub message: String,
    /// Field of the request at fault.
    pub field: Option<String>,
    /// What was there.
    pub found: Option<String>,
    /// What is allowed.
    pub allowed: Option<String>,
    /// Known names near a mistyped one.
    pub nearest: Vec<String>,
}

impl ErrorReply {
    /// An error with a kind and a message only.
    pub fn new(kind: &str, message: impl Into<String>) -> Self {
        ErrorReply {
            kind: kind.to_owned(),
            message: message.into(),
            field: None,
            found: None,
            allowed: None,
            nearest: Vec::new(),
        }
    }
}

impl ErrorReply {
    /// The other side speaks another version of the protocol.
    pub fn version(found: &impl std::fmt::Display) -> Self {
        ErrorReply::field("protocol_version", found, &PROTOCOL_VERSION.to_string())
    }

    /// A field of the request holds what is not allowed.
    pub fn field(field: &str, found: &impl std::fmt::Display, allowed: &str) -> Self {
        let message = format!("{field}: found {found}; allowed: {allowed}");
        ErrorReply {
            field: Some(field.to_owned()),
            found: Some(found.to_string()),
            allowed: Some(allowed.to_owned()),
            ..ErrorReply::new("request", message)
        }
    }
}

impl From<&EngineError> for ErrorReply {
    fn from(error: &EngineError) -> Self {
        let message = error.to_string();
        match error {
            EngineError::Library { .. } => ErrorReply {
                field: Some("engine.library".to_owned()),
                ..ErrorReply::new("library", message)
            },
            EngineError::UnknownOption { name, nearest } => ErrorReply {
                field: Some(format!("options.{name}")),
                found: Some(name.clone()),
                nearest: nearest.clone(),
                ..ErrorReply::new("unknown_option", message)
            },
            EngineError::BadOptionValue {
                name,
                found,
                allowed,
            } => ErrorReply {
                field: Some(format!("options.{name}")),
                found: Some(found.clone()),
                allowed: Some(allowed.clone()),
                ..ErrorReply::new("bad_option_value", message)
            },
            EngineError::DiskFull { .. } => ErrorReply::new("disk_full", message),
            EngineError::Failed { .. } => ErrorReply::new("engine", message),
            EngineError::Cancelled => ErrorReply::new("cancelled", message),
        }
    }
}

/// What is in a trace of queries?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InspectRequest {
    /// Must equal [`PROTOCOL_VERSION`].
    pub protocol_version: u32,
    /// The file.
    pub path: PathBuf,
    /// Where the number of a key is; the eight bytes after what all keys begin with where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_number: Option<KeyNumber>,
    /// Bytes of the prefixes to count by; one more than what all keys begin with where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_bytes: Option<usize>,
    /// Equal parts of the key space to count by.
    #[serde(default = "default_ranges", skip_serializing_if = "is_default_ranges")]
    pub ranges: usize,
    /// Of the hash by which keys are sampled.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seed: u64,
}

fn default_ranges() -> usize {
    1024
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
fn is_default_ranges(ranges: &usize) -> bool {
    *ranges == default_ranges()
}
