//! The protocol between tuner and driver: one JSON request in, JSON lines out.
//!
//! These types are its only source: the JSON Schemas in `protocol/` are made from them
//! (`schema.rs`). The test suites of both languages read the schemas, and the golden files beside
//! them.

mod distributions;
mod error;
mod latency;
mod message;
mod mix;
mod phase_reply;
mod request;
#[cfg(test)]
mod schema;
mod workload;

pub use distributions::{KeyDistribution, SizeDistribution};
pub use error::ErrorReply;
pub use latency::{LatencyReply, LatencyStatistics};
pub use message::{Interval, LevelReply, Message, OptionDefault, Outcome};
pub use mix::{Mix, MixOperation};
pub use phase_reply::{PhaseReply, ReplayReply};
pub use request::{
    BulkLoad, CheckRequest, Control, EngineRequest, InspectRequest, Prepared, ProbeRequest,
    Request, RunRequest,
};
pub use workload::{
    Companion, KeyFormat, KeyPlacement, Operation, PageCache, Phase, PhaseKind, Rate, Replay,
    Workload,
};

/// Stated first by either side; any other version is refused.
pub const PROTOCOL_VERSION: u32 = 4;

/// Whether a field holds its default, so that a message need not state it.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The default of fields that count something of which there is at least one.
pub(crate) fn one() -> usize {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
pub(crate) fn is_one(count: &usize) -> bool {
    *count == 1
}
