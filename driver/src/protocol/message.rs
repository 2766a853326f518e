//! The messages of the driver.

use serde::{Deserialize, Serialize};

use super::error::ErrorReply;
use super::phase_reply::PhaseReply;
use super::workload::PhaseKind;
#[cfg(test)]
use super::PROTOCOL_VERSION;
use crate::engine::{Identity, LevelWork, OptionNotTaken};
use crate::trace::inspect::TraceSummary;

/// The messages of lsmtune-driver: JSON lines on a pipe of their own. The first is `hello`, the
/// last is `finished` or `failed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// The first message.
    Hello {
        /// Stated first by either side; any other version is refused.
        #[cfg_attr(test, schemars(extend("const" = PROTOCOL_VERSION)))]
        protocol_version: u32,
        /// Version of the driver.
        driver_version: String,
    },
    /// The engine accepted the options.
    Opened {
        /// What was opened.
        engine: Identity,
        /// Options whose effective value is not the requested one, or is not known.
        options_not_taken: Vec<OptionNotTaken>,
    },
    /// A phase begins.
    PhaseStarted {
        /// Position of the phase in the workload.
        index: usize,
        /// Name of the phase.
        name: String,
        /// What it is for.
        kind: PhaseKind,
    },
    /// One step of the interval series.
    Interval(Interval),
    /// A slice is over, and the driver stops its whole process (SIGSTOP) until somebody continues
    /// it (SIGCONT). Only in runs with slices: at the start of every phase, and after every slice
    /// of a measure phase, including the last one. A SIGCONT sent before the process has stopped is
    /// lost. So wait for the stop first, or for the end of a cancelled run, which no longer stops.
    /// Everything counts from the start of the phase, without the time spent stopped.
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
        /// Seconds stolen from the machine so far, all cores together; `None` where the kernel does
        /// not say.
        steal_s: Option<f64>,
    },
    /// A phase ended, drain included.
    PhaseFinished {
        /// Position of the phase in the workload.
        index: usize,
        /// What it observed.
        phase: Box<PhaseReply>,
    },
    /// Flushes and compactions of a phase, known once the database is closed.
    BackgroundWork {
        /// Position of the phase in the workload.
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
        /// The compactions by output level, lowest first; levels without any are left out.
        levels: Option<Vec<LevelReply>>,
        /// Flushed and compacted bytes per user byte written.
        write_amplification: Option<f64>,
    },
    /// The written keys were read back from the reopened database: after a run, a sample of them;
    /// in answer to a check, all that were reported done.
    Verified {
        /// Keys that were checked.
        keys_checked: u64,
        /// Keys that are missing, or exist although they were deleted.
        keys_lost: u64,
        /// Keys with another value than the last one written.
        keys_wrong: u64,
        /// Only in answer to a check: keys after the reported ones that also exist, up to the first
        /// that does not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keys_beyond: Option<u64>,
        /// Only in answer to a check: keys of the load that a scan of the whole database finds. The
        /// scan counts keys that nobody wrote as wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keys_scanned: Option<u64>,
        /// Seconds that reopening took.
        reopen_s: f64,
    },
    /// Answer to a probe.
    Probed {
        /// What the library is.
        engine: Identity,
        /// Compression algorithms compiled in.
        compressions: Vec<String>,
        /// Every option that the engine knows, with its default.
        options: Vec<OptionDefault>,
    },
    /// Progress of the answer to `inspect_trace`.
    TraceProgress {
        /// Bytes read.
        bytes_read: u64,
        /// Bytes of the file.
        bytes_total: u64,
        /// Records read.
        records: u64,
        /// Seconds so far.
        elapsed_s: f64,
    },
    /// Answer to `inspect_trace`. If keys were sampled, numbers of keys are estimates; `sampling`
    /// says so.
    TraceSummary(Box<TraceSummary>),
    /// The last message of a successful run.
    Finished {
        /// Always `ok`.
        #[cfg_attr(test, schemars(extend("const" = "ok")))]
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
    /// The last message of a run that failed.
    Failed {
        /// How it ended.
        outcome: Outcome,
        /// Why it failed.
        error: ErrorReply,
    },
}

/// How a run ended, as far as the driver can tell; the runner adds the outcomes of dead drivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// Compactions of a phase into one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LevelReply {
    /// The level that they wrote to.
    pub level: u32,
    /// How many there were.
    #[cfg_attr(test, schemars(range(min = 1)))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OptionDefault {
    /// The option.
    pub name: String,
    /// Its default, as the engine writes it.
    pub default: String,
}

/// One step of the interval series; `elapsed_s` is at its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
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
    /// Bytes that compactions have yet to rewrite, by the engine's estimate at the end of this step.
    /// Absent if the engine cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_compaction_bytes: Option<u64>,
    /// Bytes that flushes and compactions wrote in this step. Absent if nobody can tell, and
    /// where an engine has neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_write_bytes: Option<u64>,
}
