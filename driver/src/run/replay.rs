//! Phases that replay a trace: what may be asked of them, and what they have to tell.

use std::fs::File;

use crate::protocol::{Outcome, Phase, PhaseReply, Replay, ReplayReply};
use crate::random::Version;
use crate::trace::replay::{ReplayError, ReplayObservation};
use crate::trace::TraceReader;

use super::check::require;
use super::failure::Failure;
use super::inspect::unreadable;
use super::report::{add_latency, ratio, PhaseStart};

/// What a phase that replays a trace must satisfy. It needs no size: the trace has one.
pub fn check(index: usize, phase: &Phase, replay: &Replay) -> Result<(), Failure> {
    let field = |name: &str| format!("workload.phases[{index}].{name}");
    let alone = "none in a phase that replays a trace";
    let others = [
        ("operation", phase.operation.is_none()),
        ("mix", phase.mix.is_none()),
        ("rate_ops_s", phase.rate_ops_s.is_none()),
        ("rate", phase.rate.is_none()),
        ("companions", phase.companions.is_empty()),
    ];
    for (name, absent) in others {
        require(absent, &field(name), "one", alone)?;
    }
    let threads = format!("1 to {}", Version::THREADS_MAX);
    let sensible = (1..=Version::THREADS_MAX).contains(&phase.threads);
    require(sensible, &field("threads"), phase.threads, &threads)?;
    let numbers = [
        ("replay.speed", replay.speed),
        ("duration_s", phase.duration_s),
    ];
    for (name, value) in numbers {
        let value = value.unwrap_or(1.0);
        let sensible = value.is_finite() && value > 0.0;
        require(sensible, &field(name), value, "a number above 0")?;
    }
    let field = field("replay.path");
    let file = File::open(&replay.path)
        .map_err(|error| Failure::system(&field, &replay.path, &error, Outcome::Invalid))?;
    // What is no trace is refused now, and not after an hour of loading.
    TraceReader::new(file).map_err(|error| unreadable(&field, &replay.path, &error))?;
    Ok(())
}

/// Why phase `index` failed.
pub fn failed(index: usize, replay: &Replay, error: ReplayError) -> Failure {
    let field = format!("workload.phases[{index}].replay.path");
    match error {
        ReplayError::Engine(error) => Failure::running(error),
        ReplayError::Trace(error) => unreadable(&field, &replay.path, &error),
    }
}

/// Puts what a replay observed into the reply of its phase, which began at `start`.
pub fn add(reply: &mut PhaseReply, start: &PhaseStart, seen: ReplayObservation) {
    let operations = seen.operations as f64;
    reply.operations = seen.operations;
    reply.elapsed_s = seen.elapsed_s;
    reply.throughput_ops_s = ratio(operations, seen.elapsed_s).unwrap_or(0.0);
    reply.sustained_throughput_ops_s =
        ratio(operations, seen.elapsed_s + reply.drain_s).unwrap_or(0.0);
    reply.cut_short = seen.cut_short;
    reply.latencies = seen.recorders.replies();
    if let Some(all) = seen.all.reply() {
        add_latency(reply, &all);
    }
    reply.keys_found = Some(seen.tally.found);
    reply.keys_missing = Some(seen.tally.missing);
    reply.user_bytes_written = seen.tally.bytes_written;
    reply.user_bytes_read = seen.tally.bytes_read;
    reply.cpu_us_per_operation = ratio(start.cpu_s() * 1e6, operations);
    reply.block_cache_hits = seen.block_cache.map(|reads| reads.hits);
    reply.block_cache_misses = seen.block_cache.map(|reads| reads.misses);
    reply.operations_by_type = Some(seen.operations_by_type);
    reply.replay = Some(ReplayReply {
        skipped: seen.skipped,
        damage: seen.damage,
    });
}
