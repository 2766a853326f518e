//! One phase: its threads start together, are watched while they run, and are merged at the end.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::engine::{BlockCacheCounters, Database, EngineError, Result};
use crate::measure::{IntervalSeries, OperationKind, Progress, Recorders, Ticks};
use crate::protocol::{Interval, Operation, Phase, Workload};
use crate::random::{stream_seed, KeyWriter, Version};

use super::arrival::Schedule;
use super::bulk::HeldCompactions;
use super::gate::{Event, Gate, Limits, Member};
use super::ledger::{Ledger, ThreadLedger};
use super::mix::MixAction;
use super::observation::{Observation, ThreadObservation};
use super::operations::{Action, Delete, Get, KeyBuffer, Put, Scan, Seek, Writes};
use super::read_check::{Notes, ReadSample};
use super::slices::{Size, Slices};
use super::streams::key_stream;
use super::tasks::{tasks, Side, Task, Work};
use super::values::Values;
use super::worker::repeat;

/// What all phases of a run share.
#[derive(Clone, Copy)]
pub struct PhaseContext<'a> {
    /// The open database.
    pub database: &'a dyn Database,
    /// Sizes and key space.
    pub workload: &'a Workload,
    /// What was written before; it gives each thread a ledger of its own.
    pub ledger: &'a Ledger,
    /// Where values come from.
    pub values: &'a Values,
    /// Seed of the phase's keys, from which each phase derives its own.
    pub seed: u64,
    /// Length of a step of the interval series.
    pub interval: Duration,
    /// Set when the tuner cancels the run.
    pub cancelled: &'a AtomicBool,
    /// Slices of the phase between which the process is stopped; 1 for none.
    pub slices: u64,
    /// Whether compactions wait while most of the phase is written.
    pub holds_compactions: bool,
    /// Set if the threads write what one thread would have written (`bulk::shared`): how many of its
    /// operations were written before.
    pub as_one: Option<u64>,
}

/// Is told what happens while the threads of a phase run.
pub trait Watcher {
    /// A step of the interval series is over.
    fn interval(&mut self, interval: Interval);

    /// A slice is over, and the threads are at rest. Stops the process until it is continued.
    /// Returns the seconds that were stolen from the machine meanwhile.
    fn slice_over(&mut self, over: SliceOver) -> f64;
}

/// The progress of a phase at the end of a slice.
#[derive(Debug, Clone, Copy, Default)]
pub struct SliceOver {
    /// Slices that are over.
    pub slice: usize,
    /// Operations of the phase's own threads.
    pub operations: u64,
    /// Seconds, without those for which the process was stopped.
    pub elapsed_s: f64,
}

/// The result of a phase.
#[derive(Debug)]
pub struct PhaseObservation {
    /// What its threads observed.
    pub observation: Observation,
    /// Slices that were over before the last one.
    pub slices_over: usize,
    /// What was written and read of the sampled keys, by thread.
    pub notes: Vec<Notes>,
}

/// The result of one thread.
struct ThreadResult {
    started: u64,
    ended: u64,
    observed: ThreadObservation,
    notes: Notes,
}

/// Runs phase `index`, which must have an operation or a mix, and tells `watcher` about it.
pub fn run_phase(
    context: &PhaseContext<'_>,
    index: usize,
    phase: &Phase,
    watcher: &mut dyn Watcher,
) -> Result<PhaseObservation> {
    let tasks = tasks(phase, context.as_one)?;
    let progress: Vec<Progress> = tasks.iter().map(|_| Progress::default()).collect();
    let slices = Slices {
        count: context.slices,
        of: size(phase),
    };
    let (own, companions) = (phase.threads, tasks.len() - phase.threads);
    let execution = Execution {
        context,
        index,
        phase,
        gate: Gate::new(Ticks::default(), slices, own, companions),
    };
    let mut slices_over = 0;
    let written = context.as_one.unwrap_or(0);
    let whole = phase.operations_whole().unwrap_or(0) + written;
    let mut held = match context.holds_compactions {
        true => HeldCompactions::begin(context.database, whole, written)?,
        false => None,
    };
    let results = std::thread::scope(|scope| {
        let spawn = |(thread, task)| {
            let (execution, progress) = (&execution, &progress[thread]);
            let work = move || execution.work(thread, task, progress);
            let started = std::thread::Builder::new().spawn_scoped(scope, work);
            started.map_err(|error| {
                // The threads that have started wait for this one.
                execution.gate.stop_all();
                EngineError::failed(format!(
                    "thread {thread} of the phase cannot start: {error}"
                ))
            })
        };
        let mut workers = tasks
            .iter()
            .enumerate()
            .map(spawn)
            .collect::<Result<Vec<_>>>()?;
        let companions = workers.split_off(own);
        execution.gate.start();
        let ticks = execution.gate.ticks.clone();
        let started = ticks.now();
        let series = IntervalSeries::new(index, ticks, started, &progress[..own]);
        let watched = execution.watch(started, series, watcher, held.as_mut());
        if watched.is_err() {
            execution.gate.stop_all();
        }
        let mut results: Vec<_> = workers.into_iter().map(join).collect();
        execution.gate.stop_all();
        results.extend(companions.into_iter().map(join));
        slices_over = watched?;
        results.into_iter().collect::<Result<Vec<_>>>()
    })?;
    held.map_or(Ok(()), HeldCompactions::end)?;
    Ok(observe(&execution, &tasks, results, slices_over))
}

/// The size of `phase` that its slices divide.
fn size(phase: &Phase) -> Size {
    match (phase.operations_whole(), phase.duration_s) {
        (Some(operations), _) => Size::Operations(operations),
        (None, duration_s) => Size::Duration(duration_s.map_or(u64::MAX, |s| (s * 1e9) as u64)),
    }
}

/// What a thread came to.
pub fn join<T>(handle: std::thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    handle
        .join()
        .unwrap_or_else(|_| Err(EngineError::failed("a worker thread panicked")))
}

/// One phase while it runs: the state that its threads share.
struct Execution<'a> {
    context: &'a PhaseContext<'a>,
    index: usize,
    phase: &'a Phase,
    gate: Gate,
}

impl Execution<'_> {
    /// Tells `watcher` about every interval and slice until the phase's own threads have left. The
    /// last interval is a partial one. Returns how many slices were over before the last.
    fn watch(
        &self,
        started: u64,
        mut series: IntervalSeries<'_>,
        watcher: &mut dyn Watcher,
        mut held: Option<&mut HeldCompactions<'_>>,
    ) -> Result<usize> {
        let interval = self.context.interval;
        let mut next = Instant::now() + interval;
        let mut slice = 0;
        loop {
            let event = self.gate.next_event(next);
            let now = self.gate.ticks.now();
            match event {
                Event::Due => {
                    if let Some(held) = &mut held {
                        held.look(series.operations())?;
                    }
                    watcher.interval(series.step(now, self.gate.paused_between(started, now)));
                    // Somebody else may stop the process, too: the missed time makes one step, not
                    // many, and the next one is not so short that its rate says nothing.
                    next = (next + interval).max(Instant::now() + interval / 2);
                }
                Event::SliceOver => {
                    let stopped = Instant::now();
                    slice += 1;
                    let elapsed_s = self.gate.pause_clock();
                    let stolen_s = watcher.slice_over(SliceOver {
                        slice,
                        operations: series.operations(),
                        elapsed_s,
                    });
                    self.gate.open();
                    series.skip_stolen(stolen_s);
                    next += stopped.elapsed();
                }
                Event::Done => {
                    watcher.interval(series.step(now, self.gate.paused_between(started, now)));
                    return Ok(slice);
                }
            }
        }
    }

    fn work(&self, thread: usize, task: &Task<'_>, progress: &Progress) -> Result<ThreadResult> {
        let member = Member::new(&self.gate, thread, self.context.cancelled);
        member.arrive();
        let mut counters = BlockCacheCounters::begin(self.context.database);
        let worker = Worker {
            member: &member,
            thread,
            task,
            progress,
        };
        let mut notes = Notes::default();
        let result = match &task.work {
            Work::Operation(operation) => self.perform(worker, *operation, &mut notes),
            Work::Mix(plan) => {
                let mix = MixAction::new(
                    plan,
                    self.context.database.session(),
                    KeyWriter::new(self.context.workload),
                    self.writes(worker, &mut notes.written),
                    notes.read.insert(ReadSample::new(self.context.ledger)),
                    stream_seed(self.context.seed, self.index, thread),
                    task.share,
                );
                self.repeat(mix, &plan.kinds, worker)
            }
        };
        if result.is_err() {
            self.gate.stop_all();
        }
        let mut result = result?;
        result.observed.block_cache = counters.end();
        result.notes = notes;
        Ok(result)
    }

    fn perform(
        &self,
        worker: Worker<'_>,
        operation: Operation,
        notes: &mut Notes,
    ) -> Result<ThreadResult> {
        let ledger = self.context.ledger;
        let mut session = self.context.database.session();
        let key = self.keys(worker, operation);
        let sample = match operation {
            Operation::ReadMissing => ReadSample::idle(ledger),
            _ => ReadSample::new(ledger),
        };
        match operation {
            Operation::ReadSeq => {
                let own = worker.task.side == Side::Own;
                let scan = Scan {
                    cursor: session.cursor()?,
                    wraps: !own || self.phase.operations_whole().is_none(),
                    keys: KeyWriter::new(self.context.workload),
                    reads: notes.read.insert(sample),
                    position: None,
                };
                self.repeat(scan, &[OperationKind::Next], worker)
            }
            Operation::SeekRandom => {
                let seek = Seek {
                    session,
                    key,
                    nexts: self.phase.seek_nexts,
                    reads: notes.read.insert(sample),
                };
                self.repeat(seek, &[OperationKind::Seek], worker)
            }
            Operation::ReadRandom
            | Operation::ReadUniqueRandom
            | Operation::ReadMissing
            | Operation::ReadHot
            | Operation::ReadWhileWriting => {
                let get = Get {
                    session,
                    key,
                    reads: notes.read.insert(sample),
                };
                self.repeat(get, &[OperationKind::Get], worker)
            }
            Operation::DeleteRandom | Operation::DeleteUniqueRandom => {
                let delete = Delete {
                    session,
                    key,
                    ledger: notes.written.insert(ledger.thread()),
                };
                self.repeat(delete, &[OperationKind::Delete], worker)
            }
            Operation::FillSeq
            | Operation::FillRandom
            | Operation::FillUniqueRandom
            | Operation::Overwrite => {
                let put = Put {
                    session,
                    key,
                    writes: self.writes(worker, &mut notes.written),
                };
                self.repeat(put, &[OperationKind::Put], worker)
            }
        }
    }

    fn writes<'n>(
        &'n self,
        worker: Worker<'_>,
        written: &'n mut Option<ThreadLedger>,
    ) -> Writes<'n> {
        // Where all write what one would have written, that is thread 0.
        let place = self.place(worker);
        let thread = place.map_or(worker.thread, |_| 0);
        Writes {
            values: self.context.values.of(self.index, thread),
            version: Version::new(self.index, thread, 0),
            value: &[],
            count: place.unwrap_or(0),
            ledger: written.insert(self.context.ledger.thread()),
        }
    }

    /// Operations before those of this thread, where all write what one would have written.
    fn place(&self, worker: Worker<'_>) -> Option<u64> {
        let before = |thread| self.phase.operations_of(thread).unwrap_or(0);
        let written = self.context.as_one?;
        Some(written + (0..worker.thread).map(before).sum::<u64>())
    }

    fn keys(&self, worker: Worker<'_>, operation: Operation) -> KeyBuffer {
        let PhaseContext { workload, seed, .. } = *self.context;
        let (thread, share) = (worker.thread, worker.task.share);
        let mut stream = key_stream(workload.num, operation, seed, self.index, thread, share);
        if let Some(place) = self.place(worker) {
            stream = stream.at(place);
        }
        let writer = match operation {
            Operation::ReadMissing => KeyWriter::never_written(workload),
            _ => KeyWriter::new(workload),
        };
        KeyBuffer::new(stream, writer)
    }

    /// Repeats `action`, whose types are `kinds`. Companions go on until the phase ends.
    fn repeat<A: Action>(
        &self,
        mut action: A,
        kinds: &[OperationKind],
        worker: Worker<'_>,
    ) -> Result<ThreadResult> {
        let (ticks, task) = (&self.gate.ticks, worker.task);
        let ((thread, threads), started) = (task.share, ticks.now());
        let own = task.side == Side::Own;
        let operations = self.phase.operations_of(thread).filter(|_| own);
        let duration_s = self.phase.duration_s.filter(|_| own);
        let limits = Limits {
            operations: operations.unwrap_or(u64::MAX),
            duration_ns: duration_s.map_or(u64::MAX, |s| (s * 1e9) as u64),
            started,
        };
        let pace = task.pace.clone();
        let schedule =
            pace.map(|pace| Schedule::new(ticks.clone(), started, pace, thread, threads));
        let (slots, member, progress) = (kinds.len(), worker.member, worker.progress);
        let done = repeat(&mut action, slots, &limits, schedule, member, progress)?;
        let mut latencies = Recorders::default();
        for (kind, recorder) in kinds.iter().zip(&done.recorders) {
            latencies.of(*kind).add(recorder);
        }
        Ok(ThreadResult {
            started,
            ended: done.position.ended,
            observed: ThreadObservation {
                operations: done.position.operations,
                cut_short: done.position.cut_short,
                latencies,
                counts: done.counts,
                block_cache: None,
            },
            notes: Notes::default(),
        })
    }
}

/// One thread at its task.
#[derive(Clone, Copy)]
struct Worker<'a> {
    member: &'a Member<'a>,
    thread: usize,
    task: &'a Task<'a>,
    progress: &'a Progress,
}

/// Combines the observations of all threads. Threads beyond the phase's own work beside them.
fn observe(
    execution: &Execution<'_>,
    tasks: &[Task<'_>],
    results: Vec<ThreadResult>,
    slices_over: usize,
) -> PhaseObservation {
    let threads = execution.phase.threads;
    let own = &results[..threads];
    let started = own.iter().map(|result| result.started).min().unwrap_or(0);
    let ended = own.iter().map(|result| result.ended).max().unwrap_or(0);
    let origin = started + execution.gate.paused_between(started, ended);
    let elapsed_s = execution.gate.ticks.seconds_between(origin, ended);
    let (observed, notes): (Vec<_>, Vec<_>) = results
        .into_iter()
        .map(|result| (result.observed, result.notes))
        .unzip();
    let mut observation = Observation::new(&observed[..threads], elapsed_s);
    for (task, thread) in tasks.iter().zip(&observed).skip(threads) {
        match task.side {
            Side::Companion(name) => observation.add_companion(name, thread),
            Side::Own | Side::Writer => observation.add_writer(thread),
        }
    }
    PhaseObservation {
        observation,
        slices_over,
        notes,
    }
}
