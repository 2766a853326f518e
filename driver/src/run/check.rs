//! What a request must satisfy before anything is done. The tuner checks its user's words in its
//! own terms; these checks hold for whoever speaks the protocol.

use std::fmt::Display;
use std::path::Path;

use crate::protocol::{
    ErrorReply, Outcome, Phase, PhaseKind, RunRequest, Workload, PROTOCOL_VERSION,
};
use crate::random::{Version, KEY_NUMBER_BYTES};

use super::failure::Failure;

const KEY_BYTES_MAX: usize = 65_535;
const VALUE_BYTES_MAX: usize = 64 << 20;
const SLICES_MAX: u32 = 1000;
const INTERVAL_MS_MAX: u64 = 86_400_000;
type Checked = Result<(), Failure>;

/// The protocol version must be ours.
pub fn version(found: u32) -> Checked {
    if found == PROTOCOL_VERSION {
        return Ok(());
    }
    Err(Failure::invalid(ErrorReply::version(&found)))
}

/// Sizes, phases and their combination must make sense.
pub fn workload(workload: &Workload) -> Checked {
    let keys = format!("{KEY_NUMBER_BYTES} to {KEY_BYTES_MAX}");
    let key_bytes = workload.key_bytes;
    let in_range = (KEY_NUMBER_BYTES..=KEY_BYTES_MAX).contains(&key_bytes);
    require(in_range, "workload.key_bytes", key_bytes, &keys)?;
    let values = format!("0 to {VALUE_BYTES_MAX}");
    let value_bytes = workload.value_bytes;
    require(
        value_bytes <= VALUE_BYTES_MAX,
        "workload.value_bytes",
        value_bytes,
        &values,
    )?;
    let ratio = workload.compression_ratio;
    let sensible = ratio > 0.0 && ratio <= 1.0;
    require(
        sensible,
        "workload.compression_ratio",
        ratio,
        "above 0, at most 1",
    )?;
    require(workload.num > 0, "workload.num", workload.num, "at least 1")?;
    let count = workload.phases.len();
    let phases = format!("1 to {} phases", Version::PHASES_MAX);
    require(
        (1..=Version::PHASES_MAX).contains(&count),
        "workload.phases",
        count,
        &phases,
    )?;
    workload
        .phases
        .iter()
        .enumerate()
        .try_for_each(|(index, each)| phase(index, each))
}

fn phase(index: usize, phase: &Phase) -> Checked {
    let field = |name: &str| format!("workload.phases[{index}].{name}");
    if phase.kind == PhaseKind::Settle {
        let absent = phase.operation.is_none();
        return require(
            absent,
            &field("operation"),
            "an operation",
            "none in a settle phase",
        );
    }
    if let Some(replay) = &phase.replay {
        return super::replay::check(index, phase, replay);
    }
    require(
        phase.operation.is_some(),
        &field("operation"),
        "nothing",
        "an operation",
    )?;
    let sized = phase.operations_per_thread.is_some() || phase.duration_s.is_some();
    let sizes = "operations_per_thread, duration_s, or both";
    require(sized, &field("operations_per_thread"), "nothing", sizes)?;
    let threads = format!("1 to {}", Version::THREADS_MAX);
    let count = phase.threads;
    require(
        (1..=Version::THREADS_MAX).contains(&count),
        &field("threads"),
        count,
        &threads,
    )?;
    for (name, value) in [
        ("duration_s", phase.duration_s),
        ("rate_ops_s", phase.rate_ops_s),
    ] {
        let value = value.unwrap_or(1.0);
        let sensible = value.is_finite() && value > 0.0;
        require(sensible, &field(name), value, "a number above 0")?;
    }
    Ok(())
}

/// A step of the interval series must have a length, and end some day.
pub fn interval(request: &RunRequest) -> Checked {
    let (found, allowed) = (request.interval_ms, format!("1 to {INTERVAL_MS_MAX}"));
    let sensible = (1..=INTERVAL_MS_MAX).contains(&found);
    require(sensible, "interval_ms", found, &allowed)
}

/// A run in slices must have no clock that goes on while it is stopped: operations that are due at
/// a given time are.
pub fn slices(request: &RunRequest) -> Checked {
    let slices = request.slices;
    let allowed = format!("0 to {SLICES_MAX}");
    require(slices <= SLICES_MAX, "slices", slices, &allowed)?;
    let replays = |phase: &&Phase| phase.replay.is_some();
    if let Some(phase) = request.workload.phases.iter().find(replays) {
        let allowed = format!("0, because phase {} replays a trace", phase.name);
        require(slices == 0, "slices", slices, &allowed)?;
    }
    let paced = |phase: &&Phase| phase.rate_ops_s.is_some();
    match request.workload.phases.iter().find(paced) {
        Some(phase) => require(
            slices == 0,
            "slices",
            slices,
            &format!("0, because phase {} has rate_ops_s", phase.name),
        ),
        None => Ok(()),
    }
}

/// The database's folder must exist or be creatable. Only the folder itself: when its parent is
/// gone, so is the tuner that made it, and nobody would remove what is created here.
pub fn create(directory: &Path) -> Checked {
    if directory.is_dir() {
        return Ok(());
    }
    std::fs::create_dir(directory)
        .map_err(|error| Failure::system("directory", directory, &error, Outcome::Invalid))
}

/// `invalid` for `field` unless the condition holds.
pub fn require(holds: bool, field: &str, found: impl Display, allowed: &str) -> Checked {
    if holds {
        return Ok(());
    }
    Err(refusal(field, found, allowed))
}

/// `invalid` for `field`.
pub fn refusal(field: &str, found: impl Display, allowed: &str) -> Failure {
    Failure::invalid(ErrorReply::field(field, &found, allowed))
}
