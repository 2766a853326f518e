//! Why a request is refused or a run failed.

use serde::{Deserialize, Serialize};

use super::PROTOCOL_VERSION;
use crate::engine::EngineError;

/// Why a run failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
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
    /// The kind of an error that is the disk's, whatever was asked for.
    pub const DISK_FAILED: &'static str = "io_error";

    /// An error with a kind and a message only, of which line breaks (a name in a request may have
    /// one) become blanks.
    pub fn new(kind: &str, message: impl Into<String>) -> Self {
        ErrorReply {
            kind: kind.to_owned(),
            message: message.into().replace(char::is_control, " "),
            ..ErrorReply::default()
        }
    }

    /// The other side uses another version of the protocol.
    pub fn version(found: &impl std::fmt::Display) -> Self {
        ErrorReply::field("protocol_version", found, &PROTOCOL_VERSION.to_string())
    }

    /// A field of the request has a value that is not allowed.
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
            EngineError::Library(_) => ErrorReply {
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
            EngineError::DiskFull(_) => ErrorReply::new("disk_full", message),
            EngineError::Failed(_) if error.is_of_the_disk() => {
                ErrorReply::new(ErrorReply::DISK_FAILED, message)
            }
            EngineError::Failed(_) => ErrorReply::new("engine", message),
            EngineError::Unable(_) => ErrorReply::new("unable", message),
            EngineError::Cancelled => ErrorReply::new("cancelled", message),
        }
    }
}
