//! Why a trace cannot be read any further.

use serde::{Deserialize, Serialize};

/// Where a trace stops making sense, and why. Everything before `offset_bytes` was understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Damage {
    /// Offset of the first byte of the damaged record.
    pub offset_bytes: u64,
    /// Number of the damaged record; the header is number 0.
    pub record: u64,
    /// Why, in one line.
    pub reason: String,
}

/// Why a trace cannot be read, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file is no trace of queries.
    #[error("offset 0: found {found}; allowed: {}", TraceError::ALLOWED)]
    Foreign {
        /// What the file looks like.
        found: String,
    },
    /// The file is a trace, and was read up to the damage.
    #[error("offset {}: record {}: {}", .0.offset_bytes, .0.record, .0.reason)]
    Damaged(Damage),
    /// The file cannot be read.
    #[error("offset {offset_bytes}: {source}")]
    Io {
        /// Offset at which reading failed.
        offset_bytes: u64,
        /// What the operating system says.
        source: std::io::Error,
    },
}

impl TraceError {
    /// What a file must be.
    pub const ALLOWED: &'static str = "a query trace of RocksDB (DB::StartTrace)";
}
