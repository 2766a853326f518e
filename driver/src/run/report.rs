//! What a phase observed, put into the words of the protocol.

use std::path::Path;

use crate::engine::{BackgroundWork, Database, LevelSize};
use crate::measure::{directory_bytes, process_cpu_s, unix_us, ProcessCounters};
use crate::protocol::{LatencyReply, Phase, PhaseReply};
use crate::workload::PhaseObservation;

/// Counters at the start of a phase.
pub struct PhaseStart {
    counters: ProcessCounters,
    stall_s: Option<f64>,
    stolen_s: Option<f64>,
    unix_us: u64,
}

impl PhaseStart {
    /// Takes the counters now, and starts a new peak of resident memory. `stolen_s` are the
    /// seconds stolen from the machine so far, while the process was not stopped.
    pub fn now(database: &dyn Database, stolen_s: Option<f64>) -> Self {
        ProcessCounters::reset_rss_peak();
        PhaseStart {
            counters: ProcessCounters::now(),
            stall_s: database.stall_s(),
            stolen_s,
            unix_us: unix_us(),
        }
    }

    /// CPU seconds of the process since then.
    pub fn cpu_s(&self) -> f64 {
        process_cpu_s() - self.counters.cpu_s
    }

    /// Seconds stolen from the machine since then, of `stolen_s` so far.
    pub fn steal_s(&self, stolen_s: Option<f64>) -> Option<f64> {
        Some((stolen_s? - self.stolen_s?).max(0.0))
    }
}

/// The reply for a phase that began at `start` and has been drained; a settle phase, which has
/// no `observation`, did nothing but drain. `live_bytes` are the estimated key and value bytes
/// that the database must hold.
pub fn phase_reply(
    phase: &Phase,
    start: &PhaseStart,
    observation: Option<PhaseObservation>,
    drain_s: f64,
    database: &dyn Database,
    directory: &Path,
    live_bytes: f64,
) -> PhaseReply {
    let end = ProcessCounters::now();
    let mut reply = skeleton(phase, start, drain_s);
    reply.stall_s = database
        .stall_s()
        .zip(start.stall_s)
        .map(|(now, before)| (now - before).max(0.0));
    reply.database_bytes = directory_bytes(directory);
    let held = live_bytes > 0.0 && database.keeps_data() && reply.database_bytes > 0;
    reply.space_amplification = held.then(|| reply.database_bytes as f64 / live_bytes);
    let levels = database.levels();
    let per_level = |what: fn(&LevelSize) -> u64| Some(levels.as_ref()?.iter().map(what).collect());
    reply.files_per_level = per_level(|level| level.files);
    reply.bytes_per_level = per_level(|level| level.bytes);
    if let Some(observation) = observation {
        add_observation(&mut reply, observation);
        let cpu_us = (end.cpu_s - start.counters.cpu_s) * 1e6;
        reply.cpu_us_per_operation = ratio(cpu_us, reply.operations as f64);
        reply.read_amplification = read_amplification(phase, &reply, database, start, &end);
    }
    reply
}

fn skeleton(phase: &Phase, start: &PhaseStart, drain_s: f64) -> PhaseReply {
    PhaseReply {
        name: phase.name.clone(),
        kind: phase.kind,
        operation: phase.operation,
        threads: phase.threads,
        operations: 0,
        elapsed_s: 0.0,
        drain_s,
        throughput_ops_s: 0.0,
        sustained_throughput_ops_s: 0.0,
        cut_short: false,
        latency_us_mean: None,
        latency_us_p50: None,
        latency_us_p95: None,
        latency_us_p99: None,
        latency_us_p999: None,
        latency_us_max: None,
        latencies: std::collections::BTreeMap::new(),
        keys_found: None,
        keys_missing: None,
        user_bytes_written: 0,
        user_bytes_read: 0,
        write_amplification: None,
        read_amplification: None,
        space_amplification: None,
        cpu_us_per_operation: None,
        stall_s: None,
        steal_s: None,
        rss_bytes_max: ProcessCounters::rss_bytes_max(),
        database_bytes: 0,
        files_per_level: None,
        bytes_per_level: None,
        page_cache_cached_share: None,
        block_cache_hits: None,
        block_cache_misses: None,
        operations_by_type: None,
        replay: None,
        started_unix_us: start.unix_us,
        finished_unix_us: unix_us(),
    }
}

fn add_observation(reply: &mut PhaseReply, observation: PhaseObservation) {
    let operations = observation.operations as f64;
    reply.operations = observation.operations;
    reply.elapsed_s = observation.elapsed_s;
    reply.throughput_ops_s = ratio(operations, observation.elapsed_s).unwrap_or(0.0);
    reply.sustained_throughput_ops_s =
        ratio(operations, observation.elapsed_s + reply.drain_s).unwrap_or(0.0);
    reply.cut_short = observation.cut_short;
    reply.latencies = observation.recorders.replies();
    for (name, recorders) in observation.companions {
        let named = |(kind, latency)| (format!("{name}.{kind}"), latency);
        reply
            .latencies
            .extend(recorders.replies().into_iter().map(named));
    }
    reply.block_cache_hits = observation.block_cache.map(|reads| reads.hits);
    reply.block_cache_misses = observation.block_cache.map(|reads| reads.misses);
    if let Some(own) = observation.own.reply() {
        add_latency(reply, &own);
    }
    let tally = observation.tally;
    let reads = observation.kinds.iter().any(|(kind, _)| kind.reads());
    let by_type = observation.kinds.iter();
    let by_type = by_type.map(|(kind, count)| (kind.name().to_owned(), *count));
    reply.operations_by_type = reply.operation.is_none().then(|| by_type.collect());
    reply.keys_found = reads.then_some(tally.found);
    reply.keys_missing = reads.then_some(tally.missing);
    reply.user_bytes_written = tally.bytes_written;
    reply.user_bytes_read = tally.bytes_read;
}

/// Files `own` as the latencies of the phase's own operations.
pub fn add_latency(reply: &mut PhaseReply, own: &LatencyReply) {
    reply.latency_us_mean = Some(own.latency_us_mean);
    reply.latency_us_p50 = Some(own.latency_us_p50);
    reply.latency_us_p95 = Some(own.latency_us_p95);
    reply.latency_us_p99 = Some(own.latency_us_p99);
    reply.latency_us_p999 = Some(own.latency_us_p999);
    reply.latency_us_max = Some(own.latency_us_max);
}

/// Bytes that read system calls returned per byte handed to the user. Unknown where the engine
/// maps its files, and where the phase also wrote: compactions read as well.
fn read_amplification(
    phase: &Phase,
    reply: &PhaseReply,
    database: &dyn Database,
    start: &PhaseStart,
    end: &ProcessCounters,
) -> Option<f64> {
    if !database.reads_by_system_call() || phase.writes() {
        return None;
    }
    let read_bytes = end.read_bytes?.checked_sub(start.counters.read_bytes?)?;
    ratio(read_bytes as f64, reply.user_bytes_read as f64)
}

/// Bytes written by flushes and compactions per user byte written. The write-ahead log, one more
/// byte per byte, is not counted, as in RocksDB's own statistics.
pub fn write_amplification(work: &BackgroundWork, user_bytes_written: u64) -> Option<f64> {
    let written = work.flush_bytes? + work.compaction_write_bytes?;
    ratio(written as f64, user_bytes_written as f64)
}

/// A ratio; `None` where there is nothing to divide by.
pub fn ratio(numerator: f64, denominator: f64) -> Option<f64> {
    (denominator > 0.0).then(|| numerator / denominator)
}
