//! A phase that performs a trace: its threads start together and are watched while they run.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crate::engine::{BlockCacheCounters, Database, EngineError, Result};
use crate::measure::{IntervalSeries, PhaseTime, Progress, Ticks};
use crate::protocol::{Phase, Replay, ReplayReply};
use crate::trace::{TraceError, TraceReader};
use crate::workload::{Observation, Watcher};

use super::chunk::Chunk;
use super::dispatcher::{Dispatcher, Lane, QUEUE};
use super::replayed_keys::ReplayedKeys;
use super::worker::{Common, Done, Worker};

/// The inputs of a replay.
pub struct ReplayContext<'a> {
    /// The open database.
    pub database: &'a dyn Database,
    /// Keys for which the run has an expectation, with their numbers.
    pub known: &'a HashMap<Vec<u8>, u64>,
    /// The least number of written keys to keep in the sample.
    pub keys_min: usize,
    /// Length of a step of the interval series.
    pub interval: Duration,
    /// Set when the tuner cancels the run.
    pub cancelled: &'a AtomicBool,
}

/// The result of a replay.
#[derive(Debug)]
pub struct ReplayObservation {
    /// What its threads observed.
    pub observation: Observation,
    /// What could not be performed.
    pub reply: ReplayReply,
    /// What was written, by worker.
    pub replayed_keys: Vec<ReplayedKeys>,
    /// Numbers of the known keys that were written.
    pub touched: HashSet<u64>,
}

/// Why a replay did not reach its end.
#[derive(Debug)]
pub enum ReplayError {
    /// The engine failed.
    Engine(EngineError),
    /// The trace cannot be read.
    Trace(TraceError),
}

impl From<EngineError> for ReplayError {
    fn from(error: EngineError) -> Self {
        ReplayError::Engine(error)
    }
}

/// A worker's sign that it is at work; gone when its thread ends, for whatever reason.
struct Present<'a> {
    failed: &'a AtomicBool,
    _sign: Sender<()>,
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.failed
            .fetch_or(std::thread::panicking(), Ordering::Relaxed);
    }
}

/// Performs the trace of `replay` as phase `index`, and tells `watcher` about it.
pub fn run_replay(
    context: &ReplayContext<'_>,
    index: usize,
    phase: &Phase,
    replay: &Replay,
    watcher: &mut dyn Watcher,
) -> std::result::Result<ReplayObservation, ReplayError> {
    let file = File::open(&replay.path).map_err(|source| {
        let offset_bytes = 0;
        ReplayError::Trace(TraceError::Io {
            offset_bytes,
            source,
        })
    })?;
    let reader = TraceReader::new(file).map_err(ReplayError::Trace)?;
    let failed = AtomicBool::new(false);
    let (sign, at_work) = channel();
    let stop = || context.cancelled.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
    let ticks = Ticks::default();
    let time = PhaseTime {
        started: ticks.now(),
        ticks,
    };
    let common = Common {
        time: time.clone(),
        speed: replay.speed,
        duration_ns: phase.duration_s.map_or(u64::MAX, |s| (s * 1e9) as u64),
        seek_nexts: phase.seek_nexts,
        stop: &stop,
        known: context.known,
    };
    let progress: Vec<Progress> = (0..phase.threads).map(|_| Progress::default()).collect();
    let (workers, reply) = std::thread::scope(|scope| {
        let mut lanes = Vec::new();
        let mut workers = Vec::new();
        for (thread, progress) in progress.iter().enumerate() {
            let (chunks, mine) = sync_channel::<Chunk>(QUEUE);
            let (back, used) = channel();
            lanes.push(Lane {
                chunks,
                used,
                filling: Chunk::default(),
            });
            let (failed, common) = (&failed, &common);
            let present = Present {
                failed,
                _sign: sign.clone(),
            };
            let work = move || {
                let _present = present;
                let session = context.database.session();
                let mut counters = BlockCacheCounters::begin(context.database);
                let worker = Worker::new(session, common, ReplayedKeys::new(context.keys_min));
                let mut done = worker.run(&mine, &back, progress);
                match &mut done {
                    Ok(done) => done.observed.block_cache = counters.end(),
                    Err(_) => failed.store(true, Ordering::Relaxed),
                }
                done
            };
            let spawned = std::thread::Builder::new().spawn_scoped(scope, work);
            workers.push(spawned.map_err(|error| {
                failed.store(true, Ordering::Relaxed);
                EngineError::failed(format!(
                    "thread {thread} of the phase cannot start: {error}"
                ))
            })?);
        }
        drop(sign);
        let dispatcher = Dispatcher {
            reader,
            lanes,
            records_max: phase.operations_whole().unwrap_or(u64::MAX),
            common: &common,
        };
        let dispatcher = scope.spawn(move || dispatcher.run());
        let series = IntervalSeries::new(index, time.ticks.clone(), time.started, &progress);
        watch(context, &at_work, &time, series, watcher);
        let workers = workers
            .into_iter()
            .map(join)
            .collect::<Result<Vec<Done>>>()?;
        let reply = dispatcher.join().map_err(|_| panicked())?;
        Ok::<_, ReplayError>((workers, reply.map_err(ReplayError::Trace)?))
    })?;
    Ok(observe(workers, reply))
}

/// Tells `watcher` about every interval until no worker is at work.
fn watch(
    context: &ReplayContext<'_>,
    at_work: &Receiver<()>,
    time: &PhaseTime,
    mut series: IntervalSeries<'_>,
    watcher: &mut dyn Watcher,
) {
    let mut due = Instant::now() + context.interval;
    let wait = |due: Instant| at_work.recv_timeout(due.saturating_duration_since(Instant::now()));
    while wait(due) == Err(RecvTimeoutError::Timeout) {
        watcher.interval(series.step(time.ticks.now(), 0));
        // As in `workload::phase`, no step is shorter than half of one.
        due = (due + context.interval).max(Instant::now() + context.interval / 2);
    }
    watcher.interval(series.step(time.ticks.now(), 0));
}

fn join(handle: std::thread::ScopedJoinHandle<'_, Result<Done>>) -> Result<Done> {
    handle.join().unwrap_or_else(|_| Err(panicked()))
}

fn panicked() -> EngineError {
    EngineError::failed("a thread of the replay panicked")
}

fn observe(workers: Vec<Done>, reply: ReplayReply) -> ReplayObservation {
    let ended_ns = workers.iter().map(|worker| worker.ended_ns).max();
    let mut observed = Vec::new();
    let mut replayed_keys = Vec::new();
    let mut touched = HashSet::new();
    for worker in workers {
        observed.push(worker.observed);
        replayed_keys.push(worker.replayed_keys);
        touched.extend(worker.touched);
    }
    ReplayObservation {
        observation: Observation::new(&observed, ended_ns.unwrap_or(0) as f64 / 1e9),
        reply,
        replayed_keys,
        touched,
    }
}
