//! One phase: its threads, started together, watched while they run, and merged at the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::engine::{Database, EngineError, Result};
use crate::measure::{IntervalSeries, OperationKind, Progress, Recorders, Ticks};
use crate::protocol::{Interval, Operation, Phase, Workload};
use crate::random::ValuePool;

use super::arrival::Schedule;
use super::ledger::{Ledger, ThreadLedger};
use super::operations::{Action, Delete, Get, KeyBuffer, Origin, Put, Scan, Seek, Tally};
use super::streams::{key_stream, StreamOf};
use super::worker::{repeat, Extent, Lap, Stops};

/// What all phases of a run share.
pub struct PhaseContext<'a> {
    /// The open database.
    pub database: &'a dyn Database,
    /// Sizes and key space.
    pub workload: &'a Workload,
    /// What was written before; hands each thread a ledger of its own.
    pub ledger: &'a Ledger,
    /// Where values come from.
    pub pool: &'a ValuePool,
    /// Seed of the phase's keys, from which each phase derives its own.
    pub seed: u64,
    /// Length of a step of the interval series.
    pub interval: Duration,
    /// Set when the tuner cancels the run.
    pub cancelled: &'a AtomicBool,
}

/// What the threads of a phase came to.
#[derive(Debug)]
pub struct PhaseObservation {
    /// Operations of the phase's own threads.
    pub operations: u64,
    /// Seconds from the start to the end of the last operation.
    pub elapsed_s: f64,
    /// Latencies by operation type.
    pub recorders: Recorders,
    /// The phase's own operation type.
    pub kind: OperationKind,
    /// Bytes and keys, over all threads.
    pub tally: Tally,
    /// Whether a cancel ended it.
    pub cut_short: bool,
    /// What was written, by thread.
    pub ledgers: Vec<ThreadLedger>,
}

/// What one thread brings back.
struct ThreadResult {
    started: u64,
    lap: Lap,
    kind: OperationKind,
    tally: Tally,
    ledger: Option<ThreadLedger>,
}

/// Runs phase `index`, whose operation must be given, and passes every interval to `emit`.
pub fn run_phase(
    context: &PhaseContext<'_>,
    index: usize,
    phase: &Phase,
    operation: Operation,
    emit: &mut dyn FnMut(Interval),
) -> Result<PhaseObservation> {
    let writer = usize::from(operation == Operation::ReadWhileWriting);
    let progress: Vec<Progress> = (0..phase.threads + writer)
        .map(|_| Progress::default())
        .collect();
    let crew = Crew {
        context,
        index,
        phase,
        ticks: Ticks::default(),
        barrier: Barrier::new(phase.threads + writer + 1),
        halted: AtomicBool::new(false),
        finished: AtomicBool::new(false),
    };
    let (sender, receiver) = channel::<()>();
    let results = std::thread::scope(|scope| {
        let spawn = |thread: usize, operation: Operation, sender: Option<Sender<()>>| {
            let (crew, progress) = (&crew, &progress[thread]);
            scope.spawn(move || {
                let _done_when_dropped = sender;
                crew.work(thread, operation, progress)
            })
        };
        let workers: Vec<_> = (0..phase.threads)
            .map(|thread| spawn(thread, thread_operation(operation), Some(sender.clone())))
            .collect();
        let companion = (writer == 1).then(|| spawn(phase.threads, Operation::Overwrite, None));
        drop(sender);
        crew.barrier.wait();
        let started = crew.ticks.now();
        let mut series = IntervalSeries::new(
            index,
            crew.ticks.clone(),
            started,
            &progress[..phase.threads],
        );
        watch(&receiver, context.interval, || emit(series.step()));
        let mut results: Vec<_> = workers.into_iter().map(join).collect();
        crew.finished.store(true, Ordering::Relaxed);
        results.extend(companion.map(join));
        results.into_iter().collect::<Result<Vec<_>>>()
    })?;
    Ok(observe(&crew, results))
}

/// `readwhilewriting` is `readrandom` with a companion.
fn thread_operation(operation: Operation) -> Operation {
    match operation {
        Operation::ReadWhileWriting => Operation::ReadRandom,
        other => other,
    }
}

fn join<T>(handle: std::thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    handle.join().unwrap_or_else(|_| {
        Err(EngineError::Failed {
            message: "a worker thread panicked".to_owned(),
        })
    })
}

/// Calls `step` at every interval until all senders are gone; the last step is a partial one.
fn watch(receiver: &std::sync::mpsc::Receiver<()>, interval: Duration, mut step: impl FnMut()) {
    let mut next = Instant::now() + interval;
    loop {
        match receiver.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {
                step();
                next += interval;
            }
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => return step(),
        }
    }
}

/// The threads of one phase and what they share.
struct Crew<'a> {
    context: &'a PhaseContext<'a>,
    index: usize,
    phase: &'a Phase,
    ticks: Ticks,
    barrier: Barrier,
    /// A thread failed.
    halted: AtomicBool,
    /// The phase's own threads are done, so its companion may stop.
    finished: AtomicBool,
}

impl Crew<'_> {
    fn work(
        &self,
        thread: usize,
        operation: Operation,
        progress: &Progress,
    ) -> Result<ThreadResult> {
        self.barrier.wait();
        let result = self.perform(thread, operation, progress);
        if result.is_err() {
            self.halted.store(true, Ordering::Relaxed);
        }
        result
    }

    fn perform(
        &self,
        thread: usize,
        operation: Operation,
        progress: &Progress,
    ) -> Result<ThreadResult> {
        let mut session = self.context.database.session();
        let origin = Origin {
            phase: self.index,
            thread,
        };
        let key = self.keys(thread, operation);
        let ledger = self.context.ledger.thread();
        match operation {
            Operation::ReadSeq => {
                let wraps = self.phase.operations_per_thread.is_none();
                self.lap(Scan::new(session.cursor()?, wraps), thread, progress)
            }
            Operation::SeekRandom => self.lap(
                Seek::new(session, key, self.phase.seek_nexts),
                thread,
                progress,
            ),
            Operation::ReadRandom
            | Operation::ReadUniqueRandom
            | Operation::ReadMissing
            | Operation::ReadHot
            | Operation::ReadWhileWriting => self.lap(Get::new(session, key), thread, progress),
            Operation::DeleteRandom | Operation::DeleteUniqueRandom => {
                self.lap(Delete::new(session, key, ledger), thread, progress)
            }
            Operation::FillSeq
            | Operation::FillRandom
            | Operation::FillUniqueRandom
            | Operation::Overwrite => {
                let put = Put::new(session, key, self.context.pool, origin, ledger);
                self.lap(put, thread, progress)
            }
        }
    }

    fn keys(&self, thread: usize, operation: Operation) -> KeyBuffer {
        let workload = self.context.workload;
        let of = StreamOf {
            phase: self.phase,
            index: self.index,
            thread,
            seed: self.context.seed,
        };
        let stream = key_stream(workload.num, operation, of);
        if operation == Operation::ReadMissing {
            KeyBuffer::never_written(stream, workload.key_bytes)
        } else {
            KeyBuffer::new(stream, workload.key_bytes)
        }
    }

    fn lap<A: Action>(
        &self,
        mut action: A,
        thread: usize,
        progress: &Progress,
    ) -> Result<ThreadResult> {
        let started = self.ticks.now();
        let extent = self.extent(thread, started);
        let companion = thread == self.phase.threads;
        let stops = Stops {
            cancelled: self.context.cancelled,
            halted: if companion {
                &self.finished
            } else {
                &self.halted
            },
        };
        let lap = repeat(&mut action, extent, &self.ticks, stops, progress)?;
        Ok(ThreadResult {
            started,
            lap,
            kind: A::KIND,
            tally: action.tally(),
            ledger: action.into_ledger(),
        })
    }

    /// The companion of `readwhilewriting` has no end of its own and is not paced.
    fn extent(&self, thread: usize, started: u64) -> Extent {
        let own = thread < self.phase.threads;
        let schedule = self.phase.rate_ops_s.filter(|_| own).map(|rate_ops_s| {
            Schedule::new(
                self.ticks.clone(),
                started,
                rate_ops_s,
                thread,
                self.phase.threads,
            )
        });
        Extent {
            operations: self
                .phase
                .operations_per_thread
                .filter(|_| own)
                .unwrap_or(u64::MAX),
            duration_ns: self
                .phase
                .duration_s
                .filter(|_| own)
                .map_or(u64::MAX, |s| (s * 1e9) as u64),
            started,
            schedule,
        }
    }
}

/// Merges the threads, of which any beyond the phase's own are its companion's.
fn observe(crew: &Crew<'_>, results: Vec<ThreadResult>) -> PhaseObservation {
    let own = &results[..crew.phase.threads];
    let started = own.iter().map(|r| r.started).min().unwrap_or(0);
    let ended = own.iter().map(|r| r.lap.ended).max().unwrap_or(0);
    let mut recorders = Recorders::default();
    let mut tally = Tally::default();
    for result in &results {
        recorders.merge(result.kind, &result.lap.recorder);
        tally.add(result.tally);
    }
    PhaseObservation {
        operations: own.iter().map(|r| r.lap.operations).sum(),
        elapsed_s: crew.ticks.seconds_between(started, ended),
        recorders,
        kind: own[0].kind,
        tally,
        cut_short: own.iter().any(|r| r.lap.cut_short),
        ledgers: results.into_iter().filter_map(|r| r.ledger).collect(),
    }
}
