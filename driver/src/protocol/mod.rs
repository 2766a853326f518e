//! What passes between tuner and driver: one JSON request in, JSON lines out.
//!
//! The same messages are described by the JSON Schemas in `protocol/` and by the golden files
//! there, which the test suites of both languages read.

mod distributions;
mod error;
mod message;
mod mix;
mod phase_reply;
mod request;
mod workload;

pub use distributions::{KeyDistribution, SizeDistribution};
pub use error::ErrorReply;
pub use message::{
    EngineReply, Interval, LevelReply, Message, OptionDefault, OptionReply, Outcome,
};
pub use mix::{Mix, MixOperation};
pub use phase_reply::{LatencyReply, PhaseReply, ReplayReply};
pub use request::{
    CheckRequest, Control, EngineRequest, InspectRequest, Prepared, ProbeRequest, Request,
    RunRequest,
};
pub(crate) use workload::{is_one, one};
pub use workload::{
    Companion, KeyFormat, KeyPlacement, Operation, PageCache, Phase, PhaseKind, Rate, Replay,
    Workload,
};

/// Stated first by either side; any other version is refused.
pub const PROTOCOL_VERSION: u32 = 3;
