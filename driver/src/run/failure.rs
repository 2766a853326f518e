//! Why a run ended early.

use std::io::ErrorKind;
use std::path::Path;

use crate::engine::EngineError;
use crate::protocol::{ErrorReply, Outcome};
use crate::trace::TraceError;

/// Why a run ended early.
#[derive(Debug)]
pub enum Failure {
    /// To be reported to the tuner.
    Reported(Outcome, Box<ErrorReply>),
    /// The tuner is gone.
    TunerGone(std::io::Error),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::TunerGone(error)
    }
}

impl Failure {
    /// A failure to be reported to the tuner.
    pub fn reported(outcome: Outcome, error: ErrorReply) -> Self {
        Failure::Reported(outcome, Box::new(error))
    }

    /// The tuner cancelled the run while `phase` ran.
    pub fn cancelled(phase: &str) -> Self {
        let message = format!("cancelled in phase {phase}");
        Failure::reported(Outcome::Cancelled, ErrorReply::new("cancelled", message))
    }

    /// The database does not hold what was written.
    pub fn data_loss(message: String) -> Self {
        Failure::reported(Outcome::DataLoss, ErrorReply::new("data_loss", message))
    }

    /// The request cannot be carried out.
    pub fn invalid(error: ErrorReply) -> Self {
        Failure::reported(Outcome::Invalid, error)
    }

    /// A system call for `field` of the request failed. The outcome is `disk_full` if the device is
    /// full, else `otherwise`.
    pub fn system(field: &str, path: &Path, error: &std::io::Error, otherwise: Outcome) -> Self {
        let outcome = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Outcome::DiskFull,
            _ => otherwise,
        };
        let path = path.display().to_string();
        let message = format!("{field}: {path}: {error}");
        let failed = EngineError::failed(message.clone());
        let kind = match outcome {
            Outcome::DiskFull => "disk_full",
            _ if failed.is_of_the_disk() => ErrorReply::DISK_FAILED,
            _ => field,
        };
        Failure::reported(
            outcome,
            ErrorReply {
                field: Some(field.to_owned()),
                found: Some(path),
                ..ErrorReply::new(kind, message)
            },
        )
    }

    /// The file at `path`, which `field` of the request names, is no trace or cannot be read.
    pub fn unreadable_trace(field: &str, path: &Path, error: &TraceError) -> Self {
        let (found, allowed) = match error {
            TraceError::Foreign { found } => {
                (Some(found.clone()), Some(TraceError::ALLOWED.to_owned()))
            }
            TraceError::Damaged(damage) => (Some(damage.reason.clone()), None),
            TraceError::Io { source, .. } => (Some(source.to_string()), None),
        };
        Failure::invalid(ErrorReply {
            field: Some(field.to_owned()),
            found,
            allowed,
            ..ErrorReply::new("trace", format!("{field}: {}: {error}", path.display()))
        })
    }

    /// An engine did not open. Without another reason from the engine, the request asked for
    /// something that it cannot do.
    pub fn opening(error: EngineError) -> Self {
        match error {
            EngineError::Failed(_) => Failure::invalid(ErrorReply::from(&error)),
            other => Failure::running(other),
        }
    }

    /// An engine failed during the run.
    pub fn running(error: EngineError) -> Self {
        let outcome = match error {
            EngineError::DiskFull(_) => Outcome::DiskFull,
            EngineError::Cancelled => Outcome::Cancelled,
            EngineError::Failed(_) => Outcome::Crashed,
            EngineError::Library(_)
            | EngineError::Unable(_)
            | EngineError::UnknownOption { .. }
            | EngineError::BadOptionValue { .. } => Outcome::Invalid,
        };
        Failure::reported(outcome, ErrorReply::from(&error))
    }
}
