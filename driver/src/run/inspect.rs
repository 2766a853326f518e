//! The answer to `inspect_trace`: a summary of a trace.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::protocol::{ErrorReply, InspectRequest, Message, Outcome};
use crate::trace::inspect::{inspect, InspectError, Progress};

use super::check::within;
use super::failure::Failure;
use super::{Sink, Usage};

/// Seconds between two messages of progress.
const PROGRESS_EVERY_S: f64 = 0.5;

/// Reads the trace and sends its summary. A file that is no trace is an invalid request.
pub fn inspect_trace(
    request: &InspectRequest,
    cancelled: &AtomicBool,
    sink: &mut dyn Sink,
) -> Result<Usage, Failure> {
    check_fields(request)?;
    let (file, bytes_total) = open(&request.path)?;
    let mut sent = Ok(());
    let mut next_s = PROGRESS_EVERY_S;
    let mut report = |progress: Progress| {
        if cancelled.load(Ordering::Relaxed) || progress.elapsed_s < next_s {
            return !cancelled.load(Ordering::Relaxed);
        }
        next_s = progress.elapsed_s + PROGRESS_EVERY_S;
        sent = sink.send(&Message::TraceProgress {
            bytes_read: progress.bytes_read,
            bytes_total,
            records: progress.records,
            elapsed_s: progress.elapsed_s,
        });
        sent.is_ok()
    };
    let summary = inspect(file, bytes_total, request, &mut report);
    sent?;
    let summary = summary.map_err(|error| match error {
        InspectError::Trace(error) => Failure::unreadable_trace("path", &request.path, &error),
        InspectError::Stopped => Failure::reported(
            Outcome::Cancelled,
            ErrorReply::new("cancelled", "cancelled while the trace was read"),
        ),
    })?;
    sink.send(&Message::TraceSummary(Box::new(summary)))?;
    Ok(Usage::default())
}

fn check_fields(request: &InspectRequest) -> Result<(), Failure> {
    within(1..=InspectRequest::RANGES_MAX, "ranges", request.ranges)?;
    let bytes = request.prefix_bytes.unwrap_or(1);
    within(1..=InspectRequest::PREFIX_BYTES_MAX, "prefix_bytes", bytes)?;
    request.key_number.map_or(Ok(()), |number| {
        let most = number.format.bytes_max();
        within(1..=most, "key_number.bytes", number.bytes)
    })
}

/// Opens the trace at `path`; also returns its size.
fn open(path: &Path) -> Result<(File, u64), Failure> {
    let opened = File::open(path).and_then(|file| {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(std::io::ErrorKind::IsADirectory.into());
        }
        Ok((file, metadata.len()))
    });
    opened.map_err(|error| Failure::system("path", path, &error, Outcome::Invalid))
}
