//! What the driver is asked to do.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::error::ErrorReply;
use super::workload::Workload;
use super::{is_default, PROTOCOL_VERSION};
use crate::engine::Options;
use crate::trace::inspect::KeyNumber;

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
    #[serde(default, skip_serializing_if = "is_default")]
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

/// A line that the tuner may send after the request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Control {
    /// Stop within 300 ms, wherever the run is, and report `cancelled`.
    Cancel,
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
    #[serde(default, skip_serializing_if = "is_default")]
    pub seed: u64,
}

fn default_ranges() -> usize {
    1024
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
fn is_default_ranges(ranges: &usize) -> bool {
    *ranges == default_ranges()
}
