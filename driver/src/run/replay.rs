//! Phases that replay a trace: what they have to tell.

use crate::protocol::{PhaseReply, Replay, ReplayReply};
use crate::trace::replay::{ReplayError, ReplayObservation};

use super::failure::Failure;
use super::report::{add_latency, ratio, PhaseStart};

/// Why phase `index` failed.
pub fn failed(index: usize, replay: &Replay, error: ReplayError) -> Failure {
    let field = format!("workload.phases[{index}].replay.path");
    match error {
        ReplayError::Engine(error) => Failure::running(error),
        ReplayError::Trace(error) => Failure::unreadable_trace(&field, &replay.path, &error),
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
