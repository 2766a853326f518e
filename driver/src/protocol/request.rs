//! The requests to the driver.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::error::ErrorReply;
use super::workload::Workload;
use super::{is_default, PROTOCOL_VERSION};
use crate::engine::Options;
use crate::trace::inspect::KeyNumber;

/// The tuner's request to lsmtune-driver: one JSON document on one line of its stdin. A line
/// `{"command":"cancel"}` may follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Request {
    /// Perform one run.
    Run(RunRequest),
    /// Say what an engine library is.
    Probe(ProbeRequest),
    /// Check the database of a run whose driver was killed in its first phase: it must hold
    /// everything that was reported as done.
    Check(CheckRequest),
    /// Say what is in a trace.
    InspectTrace(InspectRequest),
}

impl Request {
    /// Parses the request in `text`. Its version is checked first, because a request of another
    /// version may have fields that this version does not know.
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EngineRequest {
    /// Name of the engine.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub name: String,
    /// Path of the shared library; built-in engines need none.
    #[serde(default)]
    pub library: Option<PathBuf>,
}

/// Perform one run: one configuration, one workload, one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Stated first by either side; any other version is refused.
    #[cfg_attr(test, schemars(extend("const" = PROTOCOL_VERSION)))]
    pub protocol_version: u32,
    /// The engine to measure.
    pub engine: EngineRequest,
    /// Folder of the database: created by the driver, never removed by it.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub directory: PathBuf,
    /// Options over the engine's defaults, in its own spelling.
    #[serde(default)]
    pub options: Options,
    /// A list of phases over one database.
    pub workload: Workload,
    /// Seed of every random choice of the run.
    #[cfg_attr(test, schemars(range(max = u64::MAX)))]
    pub seed: u64,
    /// Seed of the load phases and of all values; that of the run where absent.
    #[cfg_attr(test, schemars(range(max = u64::MAX)))]
    pub load_seed: Option<u64>,
    /// The database is in the folder already: an earlier run executed the first phases.
    pub prepared: Option<Prepared>,
    /// File to which a successful run saves what it wrote, for runs on copies of its database.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub save_ledger: Option<PathBuf>,
    /// How load phases are made fast that nobody measures; absent where they are as the workload
    /// says.
    pub bulk_load: Option<BulkLoad>,
    /// Length of a step of the interval series, in milliseconds.
    #[serde(default = "default_interval_ms")]
    #[cfg_attr(test, schemars(range(min = 1, max = RunRequest::INTERVAL_MS_MAX)))]
    pub interval_ms: u64,
    /// The least number of written keys to read back (all of them if fewer were written).
    #[serde(default = "default_verify_keys")]
    pub verify_keys: usize,
    /// Parts into which each measure phase is cut, with a message `paused` and a stop (SIGSTOP) of
    /// the whole process around each; 0 or absent for a run that is never stopped. Not with a rate.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, schemars(range(max = RunRequest::SLICES_MAX)))]
    pub slices: u32,
}

/// Ask a library what it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProbeRequest {
    /// Stated first by either side; any other version is refused.
    #[cfg_attr(test, schemars(extend("const" = PROTOCOL_VERSION)))]
    pub protocol_version: u32,
    /// The engine to probe.
    pub engine: EngineRequest,
    /// A scratch folder for throw-away databases.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub directory: PathBuf,
}

fn default_interval_ms() -> u64 {
    250
}

fn default_verify_keys() -> usize {
    1000
}

impl RunRequest {
    /// Most slices of a phase.
    pub const SLICES_MAX: u32 = 1000;
    /// Longest step of the interval series: a day.
    pub const INTERVAL_MS_MAX: u64 = 86_400_000;

    /// The seed of load phases and of values.
    pub fn load_seed(&self) -> u64 {
        self.load_seed.unwrap_or(self.seed)
    }
}

/// A database that an earlier run made in the folder of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Prepared {
    /// What the earlier run saved as `save_ledger`.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub ledger: PathBuf,
    /// Phases that it executed: the first ones of the workload.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub phases: usize,
    /// Whether the run drops its pages from the page cache and reads them again: the kernel charges
    /// a page to the memory of whoever read it first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub own_pages: bool,
}

/// How load phases are made fast that nobody measures. What is written is the same: each key has the
/// value that one thread would have given it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BulkLoad {
    /// Threads that share the work of one that writes new keys in random order.
    #[cfg_attr(test, schemars(range(min = 1, max = BulkLoad::THREADS_MAX)))]
    pub threads: usize,
    /// Whether most of a load may be written as sorted tables, or while compactions wait, where the
    /// engine can do that.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hold_compactions: bool,
}

impl BulkLoad {
    /// Most threads.
    pub const THREADS_MAX: usize = 64;
}

/// Check what is left of a run whose driver was killed in the middle of its first phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// Stated first by either side; any other version is refused.
    #[cfg_attr(test, schemars(extend("const" = PROTOCOL_VERSION)))]
    pub protocol_version: u32,
    /// The engine of that run.
    pub engine: EngineRequest,
    /// Folder of its database.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub directory: PathBuf,
    /// Options of the run that was killed.
    #[serde(default)]
    pub options: Options,
    /// Its workload. One thread performed the first phase: `fillseq` or `filluniquerandom`, with no
    /// more operations than there are keys.
    pub workload: Workload,
    /// Its seed.
    #[cfg_attr(test, schemars(range(max = u64::MAX)))]
    pub seed: u64,
    /// Its seed of load phases and of values.
    #[cfg_attr(test, schemars(range(max = u64::MAX)))]
    pub load_seed: Option<u64>,
    /// Operations of the first phase that the run had reported as done.
    pub acknowledged: u64,
}

/// A line that the tuner may send after the request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Control {
    /// Stop within 300 ms, wherever the run is, and report `cancelled`.
    Cancel,
}

/// Summarise a query trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct InspectRequest {
    /// Stated first by either side; any other version is refused.
    #[cfg_attr(test, schemars(extend("const" = PROTOCOL_VERSION)))]
    pub protocol_version: u32,
    /// File of the trace.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub path: PathBuf,
    /// Where the number of a key is; where absent, it is the eight bytes after the common prefix of
    /// all keys.
    pub key_number: Option<KeyNumber>,
    /// Bytes of the prefixes to count by; where absent, one byte more than the common prefix of all
    /// keys.
    #[cfg_attr(test, schemars(range(min = 1, max = InspectRequest::PREFIX_BYTES_MAX)))]
    pub prefix_bytes: Option<usize>,
    /// Equal parts of the key space to count by; 1024 where absent.
    #[serde(default = "default_ranges", skip_serializing_if = "is_default_ranges")]
    #[cfg_attr(test, schemars(range(min = 1, max = InspectRequest::RANGES_MAX)))]
    pub ranges: usize,
    /// Seed of the hash by which keys are sampled; 0 where absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seed: u64,
}

impl InspectRequest {
    /// Most bytes of a prefix.
    pub const PREFIX_BYTES_MAX: usize = 64;
    /// Most parts of the key space.
    pub const RANGES_MAX: usize = 4096;
}

fn default_ranges() -> usize {
    1024
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
fn is_default_ranges(ranges: &usize) -> bool {
    *ranges == default_ranges()
}
