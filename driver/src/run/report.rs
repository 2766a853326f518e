//! Puts the observation of a phase into the protocol's terms.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use crate::engine::{BackgroundWork, Database, LevelSize};
use crate::measure::{process_cpu_s, unix_us, ProcessCounters, Recorders, SpaceWatch};
use crate::protocol::{LatencyReply, LatencyStatistics, Phase, PhaseReply};
use crate::workload::Observation;

/// Counters at the start of a phase.
pub struct PhaseStart {
    counters: ProcessCounters,
    stall_s: Option<f64>,
    stolen_s: Option<f64>,
    /// Bytes of the files in level 0; `None` if the engine does not say.
    pub level0_bytes: Option<u64>,
    unix_us: u64,
    /// Of the database's files, from then on.
    pub space: SpaceWatch,
}

impl PhaseStart {
    /// Reads the counters now, and starts a new peak of resident memory. `stolen_s` are the seconds
    /// stolen from the machine so far, without those while the process was stopped.
    pub fn now(database: &dyn Database, directory: &Path, stolen_s: Option<f64>) -> Self {
        ProcessCounters::reset_rss_peak();
        PhaseStart {
            counters: ProcessCounters::now(),
            stall_s: database.stall_s(),
            stolen_s,
            level0_bytes: database.levels().and_then(|l| Some(l.first()?.bytes)),
            unix_us: unix_us(),
            space: SpaceWatch::new(directory),
        }
    }

    /// CPU seconds of the process since then.
    pub fn cpu_s(&self) -> f64 {
        process_cpu_s() - self.counters.cpu_s
    }

    /// Seconds stolen from the machine since then; `stolen_s` is the total so far.
    pub fn steal_s(&self, stolen_s: Option<f64>) -> Option<f64> {
        Some((stolen_s? - self.stolen_s?).max(0.0))
    }
}

/// Counters at the end of a phase, and what its database said then.
pub struct PhaseEnd {
    reads_by_system_call: bool,
    stall_s: Option<f64>,
    levels: Option<Vec<LevelSize>>,
    drain_s: f64,
    counters: ProcessCounters,
    unix_us: u64,
    rss_bytes_max: u64,
    database_bytes: u64,
}

impl PhaseEnd {
    /// Reads the counters of a phase that was drained for `drain_s`, after the database was closed
    /// if the phase `closes` it: all that this takes is the phase's, too. Returns a database that
    /// is still open.
    pub fn of(
        database: Box<dyn Database>,
        start: &PhaseStart,
        drain_s: f64,
        closes: bool,
    ) -> (Self, Option<Box<dyn Database>>) {
        let reads_by_system_call = database.reads_by_system_call();
        let (stall_s, levels) = (database.stall_s(), database.levels());
        let closing = Instant::now();
        let (open, closed_s) = if closes {
            drop(database);
            (None, closing.elapsed().as_secs_f64())
        } else {
            (Some(database), 0.0)
        };
        let end = PhaseEnd {
            reads_by_system_call,
            stall_s,
            levels,
            drain_s: drain_s + closed_s,
            counters: ProcessCounters::now(),
            unix_us: unix_us(),
            rss_bytes_max: ProcessCounters::rss_bytes_max(),
            database_bytes: start.space.bytes_now(),
        };
        (end, open)
    }
}

/// The reply for a phase from `start` to `end`. A settle phase has no `observation`: it only
/// drains. `live_bytes` are the estimated key and value bytes that the database must hold; `None`
/// if they are not known.
pub fn phase_reply(
    phase: &Phase,
    start: &PhaseStart,
    end: &PhaseEnd,
    observation: Option<Observation>,
    live_bytes: Option<f64>,
) -> PhaseReply {
    let (drain_s, levels) = (end.drain_s, end.levels.as_ref());
    let stall_s = end.stall_s.zip(start.stall_s);
    let cpu_s = end.counters.cpu_s - start.counters.cpu_s;
    let database_bytes_max = start.space.bytes_max();
    let per_level = |what: fn(&LevelSize) -> u64| Some(levels?.iter().map(what).collect());
    let several = observation.is_some() && phase.operation.is_none();
    let observed = observation.unwrap_or_default();
    let operations = observed.operations as f64;
    let own = observed.own.total().reply();
    let counts = observed.counts;
    // A trace may read keys, even if this part of it did not.
    let reads = observed.own.reads() || phase.replay.is_some();
    PhaseReply {
        name: phase.name.clone(),
        kind: phase.kind,
        operation: phase.operation,
        threads: phase.threads,
        operations: observed.operations,
        elapsed_s: observed.elapsed_s,
        drain_s,
        throughput_ops_s: ratio(operations, observed.elapsed_s).unwrap_or(0.0),
        sustained_throughput_ops_s: ratio(operations, observed.elapsed_s + drain_s).unwrap_or(0.0),
        cut_short: observed.cut_short,
        latency: LatencyStatistics::known(own.as_ref()),
        latencies: latencies(&observed),
        keys_found: reads.then_some(counts.found),
        keys_missing: reads.then_some(counts.missing),
        reads_checked: None,
        user_bytes_written: counts.bytes_written,
        user_bytes_read: counts.bytes_read,
        write_amplification: None,
        read_amplification: read_amplification(phase, counts.bytes_read, start, end),
        space_amplification: live_bytes
            .filter(|_| database_bytes_max > 0)
            .and_then(|live_bytes| ratio(database_bytes_max as f64, live_bytes)),
        cpu_us_per_operation: ratio(cpu_s * 1e6, operations),
        stall_s: stall_s.map(|(now, before)| (now - before).max(0.0)),
        steal_s: None,
        rss_bytes_max: end.rss_bytes_max,
        database_bytes: end.database_bytes,
        database_bytes_max,
        files_per_level: per_level(|level| level.files),
        bytes_per_level: per_level(|level| level.bytes),
        page_cache_cached_share: None,
        block_cache_hits: observed.block_cache.map(|reads| reads.hits),
        block_cache_misses: observed.block_cache.map(|reads| reads.misses),
        operations_by_type: several.then(|| observed.own.counts()),
        replay: None,
        started_unix_us: start.unix_us,
        finished_unix_us: end.unix_us,
    }
}

/// Latencies by operation type; those of a companion have its name in front.
fn latencies(observed: &Observation) -> BTreeMap<String, LatencyReply> {
    let mut types = Recorders::default();
    types.add(&observed.own);
    types.add(&observed.writer);
    let mut latencies = types.replies();
    for (name, recorders) in &observed.companions {
        let replies = recorders.replies().into_iter();
        latencies.extend(replies.map(|(kind, latency)| (format!("{name}.{kind}"), latency)));
    }
    latencies
}

/// Bytes that read system calls returned per byte handed to the user. Unknown if the engine maps
/// its files, or if the phase also wrote, because compactions read, too.
fn read_amplification(
    phase: &Phase,
    user_bytes_read: u64,
    start: &PhaseStart,
    end: &PhaseEnd,
) -> Option<f64> {
    if !end.reads_by_system_call || phase.writes() {
        return None;
    }
    let (before, after) = (start.counters.read_bytes?, end.counters.read_bytes?);
    ratio(after.checked_sub(before)? as f64, user_bytes_read as f64)
}

/// Bytes written by flushes and compactions per user byte written. As in RocksDB's own statistics,
/// the write-ahead log is not counted; it adds one byte per byte.
///
/// Compactions count for what the phase flushed, neither for what waited before nor without what
/// still waits: `waiting` are the bytes in level 0 when it began and when it was over. Of seven
/// flushes compactions at four files take four or eight, by chance, which is twice the bytes.
pub fn write_amplification(
    work: &BackgroundWork,
    user_bytes_written: u64,
    waiting: Option<(u64, u64)>,
) -> Option<f64> {
    let (flushed, compacted) = (work.flush_bytes?, work.compaction_write_bytes?);
    let share = waiting.map_or(1.0, |waiting| share_of_flushed(work, flushed, waiting));
    let written = flushed as f64 + share * compacted as f64;
    ratio(written, user_bytes_written as f64)
}

/// What was flushed over what compactions took out of level 0. 1 where they took less than half, so
/// that most would be guessed, or wrote into level 0, where nothing only waits.
fn share_of_flushed(work: &BackgroundWork, flushed: u64, (before, after): (u64, u64)) -> f64 {
    let into_level0 = work.levels.as_ref().is_some_and(|to| to.contains_key(&0));
    let taken = (flushed + before).saturating_sub(after);
    match into_level0 || taken == 0 || taken < flushed / 2 {
        true => 1.0,
        false => flushed as f64 / taken as f64,
    }
}

/// A ratio; `None` if the denominator is not positive.
fn ratio(numerator: f64, denominator: f64) -> Option<f64> {
    (denominator > 0.0).then(|| numerator / denominator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::LevelWork;
    use std::collections::BTreeMap;

    fn work(compacted: u64, to_level: u32) -> BackgroundWork {
        BackgroundWork {
            flush_bytes: Some(700),
            compaction_write_bytes: Some(compacted),
            levels: Some(BTreeMap::from([(to_level, LevelWork::default())])),
            ..BackgroundWork::default()
        }
    }

    /// Runs of one configuration, each of seven flushes of 100 bytes: compactions wrote 800 or
    /// 1,600 bytes, and the guard of the write amplification took one for twice the other.
    #[test]
    fn compactions_count_for_what_was_flushed_whatever_waits_in_level_0() {
        let of = |compacted, waiting| write_amplification(&work(compacted, 5), 1400, waiting);
        assert_eq!(of(800, None), Some(1500.0 / 1400.0));
        assert_eq!(
            of(800, Some((0, 300))),
            Some(1.5),
            "four files, and three that still wait"
        );
        assert_eq!(
            of(1600, Some((100, 0))),
            Some(1.5),
            "eight files, one from before"
        );
        assert_eq!(
            of(800, Some((300, 300))),
            of(800, None),
            "as many as before"
        );
    }

    #[test]
    fn nothing_is_guessed_where_little_left_level_0_or_compactions_write_there() {
        let waiting = Some((0, 400));
        assert_eq!(
            write_amplification(&work(800, 5), 1400, waiting),
            Some(1500.0 / 1400.0)
        );
        assert_eq!(
            write_amplification(&work(800, 0), 1400, Some((0, 300))),
            Some(1500.0 / 1400.0)
        );
        let nothing = BackgroundWork {
            flush_bytes: Some(0),
            ..work(800, 5)
        };
        assert_eq!(
            write_amplification(&nothing, 1400, Some((0, 0))),
            Some(800.0 / 1400.0)
        );
        assert_eq!(
            write_amplification(&BackgroundWork::default(), 1400, waiting),
            None
        );
    }
}
