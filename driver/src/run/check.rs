//! What a request must satisfy before anything is done. The tuner checks its user's words in its
//! own terms; these checks hold for whoever speaks the protocol.

use std::fmt::Display;
use std::path::Path;

use crate::protocol::{
    ErrorReply, KeyFormat, Outcome, Phase, PhaseKind, RunRequest, Workload, PROTOCOL_VERSION,
};
use crate::random::{Version, KEY_NUMBER_BYTES};

use super::failure::Failure;

mod distributions;
mod mix;

pub use mix::mix;

const KEY_BYTES_MAX: usize = 65_535;
const ZERO_PADDING_MAX: usize = 1000;
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
    keys(workload)?;
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

/// Keys must have room for their numbers.
fn keys(workload: &Workload) -> Checked {
    // Keys of YCSB are as long as their prefix and digits make them.
    let least = match workload.keys {
        None => KEY_NUMBER_BYTES,
        Some(_) => 1,
    };
    let allowed = format!("{least} to {KEY_BYTES_MAX}");
    let key_bytes = workload.key_bytes;
    let in_range = (least..=KEY_BYTES_MAX).contains(&key_bytes);
    require(in_range, "workload.key_bytes", key_bytes, &allowed)?;
    if let Some(KeyFormat::Ycsb {
        prefix,
        zero_padding,
        ..
    }) = &workload.keys
    {
        let length = format!("{} bytes", prefix.len());
        let longest = KEY_BYTES_MAX - ZERO_PADDING_MAX;
        let allowed = format!("at most {longest} bytes");
        let sensible = prefix.len() <= longest;
        require(sensible, "workload.keys.prefix", length, &allowed)?;
        let sensible = *zero_padding <= ZERO_PADDING_MAX;
        let allowed = format!("0 to {ZERO_PADDING_MAX}");
        require(
            sensible,
            "workload.keys.zero_padding",
            zero_padding,
            &allowed,
        )?;
    }
    let Some(sizes) = &workload.key_sizes else {
        return Ok(());
    };
    let field = "workload.key_sizes";
    let numbers = workload.keys.is_none();
    require(numbers, field, "sizes", "none where keys has a format")?;
    let (least, most) = (KEY_NUMBER_BYTES as u64, key_bytes as u64);
    distributions::size_distribution(field, sizes, least, most)
}

fn phase(index: usize, phase: &Phase) -> Checked {
    let field = |name: &str| format!("workload.phases[{index}].{name}");
    let does = [
        ("operation", phase.operation.is_some()),
        ("mix", phase.mix.is_some()),
        ("replay", phase.replay.is_some()),
    ];
    let given: Vec<&str> = does
        .iter()
        .filter_map(|(name, given)| given.then_some(*name))
        .collect();
    if phase.kind == PhaseKind::Settle {
        let name = *given.first().unwrap_or(&"operation");
        let allowed = "none in a settle phase";
        return require(given.is_empty(), &field(name), "one", allowed);
    }
    let allowed = "one of operation, mix and replay";
    let found = given.join(" and ");
    let found = if found.is_empty() { "nothing" } else { &found };
    let name = *given.get(1).unwrap_or(&"operation");
    require(given.len() == 1, &field(name), found, allowed)?;
    size(phase, &field)?;
    if let Some(each) = &phase.mix {
        mix(&field("mix"), each)?;
    }
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

/// A phase ends some day; a trace has an end of its own.
fn size(phase: &Phase, field: &dyn Fn(&str) -> String) -> Checked {
    let twice = phase.operations_per_thread.is_some() && phase.operations.is_some();
    let allowed = "one of operations and operations_per_thread";
    require(!twice, &field("operations"), "both", allowed)?;
    for (name, operations) in [
        ("operations", phase.operations),
        ("operations_per_thread", phase.operations_per_thread),
    ] {
        let sensible = operations != Some(0);
        require(sensible, &field(name), 0, "at least 1")?;
    }
    let sized = phase.operations_whole().is_some() || phase.duration_s.is_some();
    let sizes = "operations_per_thread or operations, duration_s, or both";
    let found = sized || phase.replay.is_some();
    require(found, &field("operations_per_thread"), "nothing", sizes)
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
