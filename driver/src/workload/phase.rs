//! One phase: its threads, started together, watched while they run, and merged at the end.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::engine::{Database, EngineError, Result};
use crate::measure::{IntervalSeries, OperationKind, Progress, Recorder, Recorders, Ticks};
use crate::protocol::{Interval, Operation, Phase, Workload};
use crate::random::{stream_seed, KeyWriter};

use super::arrival::{Pace, Schedule};
use super::gate::{Event, Gate, Pass, Size, Slices};
use super::ledger::{Ledger, ThreadLedger};
use super::mix::{MixAction, MixPlan, MixThread};
use super::operations::{Action, Delete, Get, KeyBuffer, Origin, Put, Scan, Seek, Tally};
use super::streams::{key_stream, StreamOf};
use super::values::Values;
use super::worker::{repeat, Extent, Lap};

/// What all phases of a run share.
pub struct PhaseContext<'a> {
    /// The open database.
    pub database: &'a dyn Database,
    /// Sizes and key space.
    pub workload: &'a Workload,
    /// What was written before; hands each thread a ledger of its own.
    pub ledger: &'a Ledger,
    /// Where values come from.
    pub values: &'a Values,
    /// Seed of the phase's keys, from which each phase derives its own.
    pub seed: u64,
    /// Length of a step of the interval series.
    pub interval: Duration,
    /// Set when the tuner cancels the run.
    pub cancelled: &'a AtomicBool,
    /// Parts of the phase between which the process is stopped; 1 for none.
    pub slices: u64,
}

/// Hears what happens while the threads of a phase run.
pub trait Watcher {
    /// A step of the interval series is over.
    fn interval(&mut self, interval: Interval);

    /// A slice is over and the threads are at rest: stops the process until it is continued.
    /// Returns the seconds that were stolen from the machine meanwhile.
    fn slice_over(&mut self, over: SliceOver) -> f64;
}

/// Where a phase stands when a slice is over, since its start.
#[derive(Debug, Clone, Copy)]
pub struct SliceOver {
    /// Slices that are over.
    pub slice: usize,
    /// Operations of the phase's own threads.
    pub operations: u64,
    /// Seconds, without those for which the process was stopped.
    pub elapsed_s: f64,
}

/// What the threads of a phase came to.
#[derive(Debug)]
pub struct PhaseObservation {
    /// Operations of the phase's own threads.
    pub operations: u64,
    /// Seconds from the start to the end of the last operation.
    pub elapsed_s: f64,
    /// Slices that were over before the last one.
    pub slices_over: usize,
    /// Latencies by operation type.
    pub recorders: Recorders,
    /// The types of the phase's own operations, and how many there were of each.
    pub kinds: Vec<(OperationKind, u64)>,
    /// Latencies of all of the phase's own operations.
    pub own: Recorder,
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
    kinds: Vec<OperationKind>,
    tally: Tally,
    ledger: Option<ThreadLedger>,
}

/// What one thread repeats.
#[derive(Debug, Clone, Copy)]
enum Work<'a> {
    Operation(Operation),
    Mix(&'a MixPlan),
}

/// Runs phase `index`, which must have an operation or a mix, and tells `watcher` how it goes.
pub fn run_phase(
    context: &PhaseContext<'_>,
    index: usize,
    phase: &Phase,
    watcher: &mut dyn Watcher,
) -> Result<PhaseObservation> {
    let plan = phase.mix.as_ref().map(MixPlan::new);
    let work = match (phase.operation, &plan) {
        (Some(operation), _) => Work::Operation(thread_operation(operation)),
        (None, Some(plan)) => Work::Mix(plan),
        (None, None) => {
            return Err(EngineError::Failed {
                message: format!("phase {} has nothing to do", phase.name),
            })
        }
    };
    let writer = usize::from(phase.operation == Some(Operation::ReadWhileWriting));
    let progress: Vec<Progress> = (0..phase.threads + writer)
        .map(|_| Progress::default())
        .collect();
    let ticks = Ticks::default();
    let slices = Slices {
        count: context.slices,
        of: size(phase),
    };
    let crew = Crew {
        context,
        index,
        phase,
        gate: Gate::new(ticks.clone(), slices, phase.threads, writer),
        ticks,
    };
    let mut slices_over = 0;
    let results = std::thread::scope(|scope| {
        let spawn = |thread: usize, work| {
            let (crew, progress) = (&crew, &progress[thread]);
            let work = move || crew.work(thread, work, progress);
            let started = std::thread::Builder::new().spawn_scoped(scope, work);
            started.map_err(|error| {
                // Those who came already wait for this one.
                crew.gate.halt();
                EngineError::Failed {
                    message: format!("thread {thread} of the phase cannot start: {error}"),
                }
            })
        };
        let workers = (0..phase.threads)
            .map(|thread| spawn(thread, work))
            .collect::<Result<Vec<_>>>()?;
        let companion = (writer == 1)
            .then(|| spawn(phase.threads, Work::Operation(Operation::Overwrite)))
            .transpose()?;
        crew.gate.begin();
        let started = crew.ticks.now();
        let own = &progress[..phase.threads];
        let series = IntervalSeries::new(index, crew.ticks.clone(), started, own);
        slices_over = crew.watch(started, series, watcher);
        let mut results: Vec<_> = workers.into_iter().map(join).collect();
        crew.gate.halt();
        results.extend(companion.map(join));
        results.into_iter().collect::<Result<Vec<_>>>()
    })?;
    Ok(observe(&crew, results, slices_over))
}

/// What the slices of `phase` are a share of.
fn size(phase: &Phase) -> Size {
    match (phase.operations_whole(), phase.duration_s) {
        (Some(operations), _) => Size::Operations(operations),
        (None, duration_s) => Size::Duration(duration_s.map_or(u64::MAX, |s| (s * 1e9) as u64)),
    }
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

/// The threads of one phase and what they share.
struct Crew<'a> {
    context: &'a PhaseContext<'a>,
    index: usize,
    phase: &'a Phase,
    ticks: Ticks,
    gate: Gate,
}

impl Crew<'_> {
    /// Tells `watcher` of every interval and slice until the phase's own threads have left; the
    /// last interval is a partial one. Returns how many slices were over before the last.
    fn watch(
        &self,
        started: u64,
        mut series: IntervalSeries<'_>,
        watcher: &mut dyn Watcher,
    ) -> usize {
        let interval = self.context.interval;
        let mut next = Instant::now() + interval;
        let mut slice = 0;
        loop {
            let event = self.gate.event(next);
            let now = self.ticks.now();
            match event {
                Event::Due => {
                    watcher.interval(series.step(now, self.gate.stopped_between(started, now)));
                    // Somebody else may stop the process too: what is past is one step, not many.
                    next = (next + interval).max(Instant::now());
                }
                Event::SliceOver => {
                    let stopped = Instant::now();
                    slice += 1;
                    let elapsed_s = self.gate.stop_clock();
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
                    watcher.interval(series.step(now, self.gate.stopped_between(started, now)));
                    return slice;
                }
            }
        }
    }

    fn work(&self, thread: usize, work: Work<'_>, progress: &Progress) -> Result<ThreadResult> {
        let pass = self.gate.pass(thread, self.context.cancelled);
        pass.assemble();
        let result = match work {
            Work::Operation(operation) => self.perform(&pass, thread, operation, progress),
            Work::Mix(plan) => {
                let mix = MixAction::new(plan, self.mix_thread(thread));
                self.lap(mix, &pass, thread, progress)
            }
        };
        if result.is_err() {
            self.gate.halt();
        }
        result
    }

    fn perform(
        &self,
        pass: &Pass<'_>,
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
                let wraps = self.phase.operations_whole().is_none();
                let scan = Scan::new(session.cursor()?, wraps);
                self.lap(scan, pass, thread, progress)
            }
            Operation::SeekRandom => {
                let seek = Seek::new(session, key, self.phase.seek_nexts);
                self.lap(seek, pass, thread, progress)
            }
            Operation::ReadRandom
            | Operation::ReadUniqueRandom
            | Operation::ReadMissing
            | Operation::ReadHot
            | Operation::ReadWhileWriting => {
                self.lap(Get::new(session, key), pass, thread, progress)
            }
            Operation::DeleteRandom | Operation::DeleteUniqueRandom => {
                let delete = Delete::new(session, key, ledger);
                self.lap(delete, pass, thread, progress)
            }
            Operation::FillSeq
            | Operation::FillRandom
            | Operation::FillUniqueRandom
            | Operation::Overwrite => {
                let values = self.context.values.of(self.index, thread);
                let put = Put::new(session, key, values, origin, ledger);
                self.lap(put, pass, thread, progress)
            }
        }
    }

    fn mix_thread(&self, thread: usize) -> MixThread<'_> {
        MixThread {
            session: self.context.database.session(),
            keys: KeyWriter::new(self.context.workload),
            values: self.context.values.of(self.index, thread),
            origin: Origin {
                phase: self.index,
                thread,
            },
            share: (thread, self.phase.threads),
            seed: stream_seed(self.context.seed, self.index, thread),
            ledger: self.context.ledger.thread(),
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
            KeyBuffer::new(stream, KeyWriter::never_written(workload))
        } else {
            KeyBuffer::new(stream, KeyWriter::new(workload))
        }
    }

    fn lap<A: Action>(
        &self,
        mut action: A,
        pass: &Pass<'_>,
        thread: usize,
        progress: &Progress,
    ) -> Result<ThreadResult> {
        let started = self.ticks.now();
        let extent = self.extent(thread, started);
        let lap = repeat(&mut action, extent, &self.ticks, pass, progress)?;
        Ok(ThreadResult {
            started,
            lap,
            kinds: action.kinds(),
            tally: action.tally(),
            ledger: action.into_ledger(),
        })
    }

    /// The companion of `readwhilewriting` has no end of its own and is not paced.
    fn extent(&self, thread: usize, started: u64) -> Extent {
        let own = thread < self.phase.threads;
        let pace = Pace::of(self.phase).filter(|_| own);
        let threads = self.phase.threads;
        let schedule =
            pace.map(|pace| Schedule::new(self.ticks.clone(), started, pace, thread, threads));
        Extent {
            operations: Some(thread)
                .filter(|_| own)
                .and_then(|thread| self.phase.operations_of(thread))
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
fn observe(crew: &Crew<'_>, results: Vec<ThreadResult>, slices_over: usize) -> PhaseObservation {
    let own = &results[..crew.phase.threads];
    let started = own.iter().map(|r| r.started).min().unwrap_or(0);
    let ended = own.iter().map(|r| r.lap.ended).max().unwrap_or(0);
    let origin = started + crew.gate.stopped_between(started, ended);
    let mut recorders = Recorders::default();
    let mut tally = Tally::default();
    for result in &results {
        for (kind, recorder) in result.kinds.iter().zip(&result.lap.recorders) {
            recorders.merge(*kind, recorder);
        }
        tally.add(result.tally);
    }
    let (own_recorder, kinds) = sum(own);
    PhaseObservation {
        operations: own.iter().map(|r| r.lap.operations).sum(),
        elapsed_s: crew.ticks.seconds_between(origin, ended),
        slices_over,
        recorders,
        kinds,
        own: own_recorder,
        tally,
        cut_short: own.iter().any(|r| r.lap.cut_short),
        ledgers: results.into_iter().filter_map(|r| r.ledger).collect(),
    }
}

/// Latencies of all operations of `threads`, and how many there were of each type.
fn sum(threads: &[ThreadResult]) -> (Recorder, Vec<(OperationKind, u64)>) {
    let mut all = Recorder::default();
    let mut counts = BTreeMap::new();
    for thread in threads {
        for (kind, recorder) in thread.kinds.iter().zip(&thread.lap.recorders) {
            all.add(recorder);
            *counts.entry(*kind).or_insert(0) += recorder.count();
        }
    }
    (all, counts.into_iter().collect())
}
