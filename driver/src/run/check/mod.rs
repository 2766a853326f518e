//! What a request must satisfy before anything is done. The tuner checks its user's input in its
//! own terms; these checks hold for anybody who uses the protocol.

use std::fmt::Display;
use std::fs::File;
use std::ops::RangeInclusive;
use std::path::Path;

use crate::protocol::{
    ErrorReply, Operation, Outcome, Phase, PhaseKind, Rate, Replay, RunRequest, Workload,
};
use crate::random::Version;
use crate::trace::TraceReader;

use super::failure::Failure;

mod distributions;
mod keys;
mod mix;

pub use mix::{merges, mix};

const VALUE_BYTES_MAX: usize = 64 << 20;
/// The most databases, and the most column families of each.
const PARTS_MAX: usize = 256;
type Checked = Result<(), Failure>;
/// What a request calls a field of the phase that is checked.
type Field<'a> = dyn Fn(&str) -> String + 'a;

/// Sizes, phases and their combination must make sense.
pub fn workload(workload: &Workload) -> Checked {
    keys::keys(workload)?;
    let value_bytes = workload.value_bytes;
    within(0..=VALUE_BYTES_MAX, "workload.value_bytes", value_bytes)?;
    share("workload.compression_ratio", workload.compression_ratio)?;
    require(workload.num > 0, "workload.num", workload.num, "at least 1")?;
    within(1..=PARTS_MAX, "workload.databases", workload.databases)?;
    let families = workload.column_families;
    within(1..=PARTS_MAX, "workload.column_families", families)?;
    let (count, most) = (workload.phases.len(), Version::PHASES_MAX);
    let sensible = (1..=most).contains(&count);
    let allowed = format!("1 to {most} phases");
    require(sensible, "workload.phases", count, &allowed)?;
    let mut phases = workload.phases.iter().enumerate();
    phases.try_for_each(|(index, each)| phase(index, each))
}

fn phase(index: usize, phase: &Phase) -> Checked {
    let field = |name: &str| format!("workload.phases[{index}].{name}");
    let mut given = Vec::new();
    given.extend(phase.operation.map(|_| "operation"));
    given.extend(phase.mix.as_ref().map(|_| "mix"));
    given.extend(phase.replay.as_ref().map(|_| "replay"));
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
    if let Some(replay) = &phase.replay {
        return self::replay(&field, phase, replay);
    }
    size(phase, &field)?;
    if let Some(each) = &phase.mix {
        mix(&field("mix"), each)?;
    }
    companions(phase, &field)?;
    within(1..=Version::THREADS_MAX, &field("threads"), phase.threads)?;
    positive(&field("duration_s"), phase.duration_s.unwrap_or(1.0))?;
    positive(&field("rate_ops_s"), phase.rate_ops_s.unwrap_or(1.0))?;
    phase.rate.as_ref().map_or(Ok(()), |rate| {
        let alone = phase.rate_ops_s.is_none();
        require(alone, &field("rate"), "rate_ops_s too", "one of the two")?;
        self::rate(rate, &field("rate"))
    })
}

/// What a phase that replays a trace must satisfy. It needs no size: the trace has one.
fn replay(field: &Field<'_>, phase: &Phase, replay: &Replay) -> Checked {
    let alone = "none in a phase that replays a trace";
    let others = [
        ("rate_ops_s", phase.rate_ops_s.is_none()),
        ("rate", phase.rate.is_none()),
        ("companions", phase.companions.is_empty()),
    ];
    for (name, absent) in others {
        require(absent, &field(name), "one", alone)?;
    }
    within(1..=Version::THREADS_MAX, &field("threads"), phase.threads)?;
    positive(&field("replay.speed"), replay.speed.unwrap_or(1.0))?;
    positive(&field("duration_s"), phase.duration_s.unwrap_or(1.0))?;
    let field = field("replay.path");
    let file = File::open(&replay.path)
        .map_err(|error| Failure::system(&field, &replay.path, &error, Outcome::Invalid))?;
    // A file that is no trace is refused now, not after an hour of loading.
    TraceReader::new(file)
        .map_err(|error| Failure::unreadable_trace(&field, &replay.path, &error))?;
    Ok(())
}

/// Companions must have names of their own and something to do for as long as the phase lasts.
fn companions(phase: &Phase, field: &Field<'_>) -> Checked {
    let companions = &phase.companions;
    let writer = phase.operation == Some(Operation::ReadWhileWriting);
    let alone = companions.is_empty() || !writer;
    let allowed = "none: readwhilewriting has its writer";
    require(alone, &field("companions"), companions.len(), allowed)?;
    let most = Version::THREADS_MAX;
    let beside = companions.iter().map(|companion| companion.threads);
    let threads = beside.fold(phase.threads, usize::saturating_add);
    let allowed = format!("1 to {most} with those of the phase");
    require(threads <= most, &field("companions"), threads, &allowed)?;
    for (number, companion) in companions.iter().enumerate() {
        let part = |name: &str| field(&format!("companions[{number}].{name}"));
        let name = &companion.name;
        let twice = companions[..number].iter().any(|other| other.name == *name);
        let unique = !twice && !name.is_empty();
        let allowed = "a name that no other companion has";
        require(unique, &part("name"), name, allowed)?;
        let one = companion.operation.is_some() != companion.mix.is_some();
        let allowed = "one of operation and mix";
        require(one, &part("operation"), "none or two", allowed)?;
        require(companion.threads > 0, &part("threads"), 0, "at least 1")?;
        positive(&part("rate_ops_s"), companion.rate_ops_s.unwrap_or(1.0))?;
        // `readwhilewriting` would need a writer of its own.
        let pair = companion.operation == Some(Operation::ReadWhileWriting);
        let allowed = "an operation of one kind";
        require(!pair, &part("operation"), "readwhilewriting", allowed)?;
        if let Some(each) = &companion.mix {
            mix(&part("mix"), each)?;
        }
    }
    Ok(())
}

/// A rate that changes must produce operations at some time.
fn rate(rate: &Rate, field: &str) -> Checked {
    match rate {
        Rate::Sine {
            mean_ops_s,
            amplitude_ops_s,
            period_s,
            offset_s,
        } => {
            let part = |name: &str| format!("{field}.{name}");
            positive(&part("mean_ops_s"), *mean_ops_s)?;
            positive(&part("period_s"), *period_s)?;
            let finite = offset_s.is_finite();
            require(finite, &part("offset_s"), offset_s, "a number")?;
            let sensible = (0.0..=*mean_ops_s).contains(amplitude_ops_s);
            let allowed = "0 to mean_ops_s";
            require(sensible, &part("amplitude_ops_s"), amplitude_ops_s, allowed)
        }
        Rate::Steps { steps } => {
            let field = format!("{field}.steps");
            for (duration_s, ops_s) in steps {
                let finite = duration_s.is_finite() && ops_s.is_finite();
                let sensible = finite && *duration_s > 0.0 && *ops_s >= 0.0;
                let found = format!("[{duration_s}, {ops_s}]");
                let allowed = "seconds above 0 and operations per second of at least 0";
                require(sensible, &field, found, allowed)?;
            }
            let moves = steps.iter().any(|(_, ops_s)| *ops_s > 0.0);
            require(moves, &field, "no operations", "a step with operations")
        }
    }
}

/// A phase must end at some time; a replay ends with its trace.
fn size(phase: &Phase, field: &Field<'_>) -> Checked {
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
    require(sized, &field("operations_per_thread"), "nothing", sizes)
}

/// A step of the interval series must have a length, and must end at some time.
pub fn interval(request: &RunRequest) -> Checked {
    let most = RunRequest::INTERVAL_MS_MAX;
    within(1..=most, "interval_ms", request.interval_ms)
}

/// A run in slices must not depend on a clock that continues while the process is stopped, such as
/// a rate, by which operations become due.
pub fn slices(request: &RunRequest) -> Checked {
    let slices = request.slices;
    within(0..=RunRequest::SLICES_MAX, "slices", slices)?;
    for phase in &request.workload.phases {
        let beside = phase.companions.iter().any(|c| c.rate_ops_s.is_some());
        let paced = phase.rate_ops_s.is_some() || phase.rate.is_some() || beside;
        let why = match (&phase.replay, paced) {
            (Some(_), _) => "replays a trace",
            (None, true) => "has a rate",
            (None, false) => continue,
        };
        let allowed = format!("0, because phase {} {why}", phase.name);
        require(slices == 0, "slices", slices, &allowed)?;
    }
    Ok(())
}

/// Creates the database's folder if it does not exist. Only the folder itself: if its parent is
/// gone, so is the tuner that made the parent, and nobody would remove what is created here.
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

/// `invalid` for `field` unless `found` is in `range`.
pub fn within<T: PartialOrd + Display>(range: RangeInclusive<T>, field: &str, found: T) -> Checked {
    let allowed = format!("{} to {}", range.start(), range.end());
    require(range.contains(&found), field, found, &allowed)
}

/// `invalid` for `field` unless `found` is a share that is not empty.
pub fn share(field: &str, found: f64) -> Checked {
    let sensible = found > 0.0 && found <= 1.0;
    require(sensible, field, found, "above 0, at most 1")
}

/// `invalid` for `field` unless `found` is a number above 0.
pub fn positive(field: &str, found: f64) -> Checked {
    let sensible = found.is_finite() && found > 0.0;
    require(sensible, field, found, "a number above 0")
}

/// `invalid` for `field`.
pub fn refusal(field: &str, found: impl Display, allowed: &str) -> Failure {
    Failure::invalid(ErrorReply::field(field, &found, allowed))
}
