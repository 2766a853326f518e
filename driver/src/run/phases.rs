//! The phases of a run on an open database, and what is known once it is closed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::engine::{BackgroundWork, Database, Engine, EngineError};
use crate::measure::unix_us;
use crate::protocol::{Message, Operation, Phase, PhaseKind, PhaseReply, Replay, RunRequest};
use crate::random::KeyWriter;
use crate::trace::replay::{
    run_replay, ReplayContext, ReplayError, ReplayObservation, ReplayedKeys,
};
use crate::workload::{
    check_reads, is_bulk, run_bulk, run_phase, shared, CheckedReads, Ledger, Notes, Observation,
    PhaseContext, SliceOver, Values,
};

use super::check::refusal;
use super::failure::Failure;
use super::page_cache;
use super::report::{phase_reply, write_amplification, PhaseEnd, PhaseStart};
use super::reporter::Reporter;
use super::turns::Turns;
use super::wall_clock::WallClock;
use super::Sink;

/// The phases of one request, and what they leave.
pub struct Phases<'a> {
    request: &'a RunRequest,
    cancelled: &'a AtomicBool,
    /// What the database must hold.
    pub ledger: Ledger,
    /// Where its values come from.
    pub values: Values,
    /// What the database must hold of the keys that replays wrote.
    pub replayed: ReplayedKeys,
    /// Whether the engine keeps data at all (the no-op engine does not).
    pub keeps_data: bool,
    /// Peak resident memory over all phases.
    pub rss_bytes_max: u64,
    /// When the process stops.
    pub turns: Turns<'a>,
    wall_clock: WallClock,
    windows: Vec<Window>,
    /// What became of the reads of the phase that ran last; `None` if it had none.
    checked: Option<CheckedReads>,
}

/// The wall-clock window of a finished phase; its flushes and compactions fall into it.
struct Window {
    index: usize,
    from_us: u64,
    to_us: u64,
    user_bytes_written: u64,
    /// Bytes in level 0 when it began and when it was over, where they are known.
    waiting: Option<(u64, u64)>,
}

/// What the threads of a phase came to.
enum Performed {
    /// A settle phase has none.
    Nothing,
    Operations(Observation, Vec<Notes>),
    Trace(ReplayObservation),
}

impl Performed {
    fn cut_short(&self) -> bool {
        match self {
            Performed::Nothing => false,
            Performed::Operations(observation, _) => observation.cut_short,
            Performed::Trace(trace) => trace.observation.cut_short,
        }
    }
}

impl<'a> Phases<'a> {
    /// The phases of `request` that are still to run; `ledger` has the writes of the phases before
    /// them.
    pub fn new(
        request: &'a RunRequest,
        ledger: Ledger,
        cancelled: &'a AtomicBool,
        turns: Turns<'a>,
    ) -> Self {
        Phases {
            request,
            cancelled,
            ledger,
            values: Values::new(&request.workload, request.load_seed()),
            replayed: ReplayedKeys::new(request.verify_keys),
            keeps_data: false,
            rss_bytes_max: 0,
            turns,
            wall_clock: WallClock::default(),
            windows: Vec::new(),
            checked: None,
        }
    }

    /// Opens the database, runs every phase that no earlier run has executed, and closes the
    /// database.
    pub fn execute(&mut self, engine: &dyn Engine, sink: &mut dyn Sink) -> Result<(), Failure> {
        let request = self.request;
        let (directory, options) = (&request.directory, &request.options);
        let durability = request.workload.durability;
        let executed = request.prepared.as_ref().map_or(0, |done| done.phases);
        let database = match executed {
            0 => engine.open(directory, options, durability),
            _ => engine.reopen(directory, options, durability),
        }
        .map_err(Failure::opening)?;
        self.keeps_data = database.keeps_data();
        sink.send(&Message::Opened {
            engine: database.identity(),
            options_not_taken: database.options_not_taken(),
        })?;
        let mut open = Some(database);
        for (index, phase) in request.workload.phases.iter().enumerate().skip(executed) {
            let Some(database) = open.take() else { break };
            let (database, cached_share) = page_cache::prepare(request, engine, database, phase)?;
            sink.send(&Message::PhaseStarted {
                index,
                name: phase.name.clone(),
                kind: phase.kind,
            })?;
            let is_last = index + 1 == request.workload.phases.len();
            // An engine that says it is drained may still have put work off until it is closed.
            let closes = is_last && engine.keeps_files() && is_charged(phase);
            let (mut reply, database) = self.phase(database, index, phase, closes, sink)?;
            reply.page_cache_cached_share = cached_share;
            let cut_short = reply.cut_short;
            open = database;
            let checked = self.checked.take();
            reply.reads_checked = checked.as_ref().map(|reads| reads.checked);
            sink.send(&Message::PhaseFinished {
                index,
                phase: Box::new(reply),
            })?;
            checked.map_or(Ok(()), |reads| refuse_wrong_reads(&phase.name, &reads))?;
            if cut_short || self.cancelled.load(Ordering::Relaxed) {
                return Err(Failure::cancelled(&phase.name));
            }
        }
        Ok(())
    }

    /// Runs one phase on an open database, and returns that unless the phase `closes` it.
    fn phase(
        &mut self,
        database: Box<dyn Database>,
        index: usize,
        phase: &Phase,
        closes: bool,
        sink: &mut dyn Sink,
    ) -> Result<(PhaseReply, Option<Box<dyn Database>>), Failure> {
        // Every phase begins stopped. Its counters start when it is continued.
        self.turns.stop(index, SliceOver::default(), None, sink)?;
        self.wall_clock.look();
        let (directory, stolen_s) = (&self.request.directory, self.turns.stolen_s());
        let start = PhaseStart::now(&*database, directory, stolen_s);
        let performed = self.perform(&*database, index, phase, &start, sink)?;
        let cut_short = performed.cut_short();
        let drained = match performed {
            Performed::Nothing => true,
            _ => is_charged(phase) && !cut_short,
        };
        let drain_s = match drained {
            true => self.drain(&*database, phase, &start)?,
            false => 0.0,
        };
        let (end, database) = PhaseEnd::of(database, &start, drain_s, closes && !cut_short);
        let steal_s = start.steal_s(self.turns.stolen_s());
        // Only now: compactions went on while notes were compared, and nobody was charged for them.
        let (observation, replayed) = match performed {
            Performed::Nothing => (None, None),
            Performed::Operations(observation, notes) => {
                self.note(phase, notes, &observation);
                (Some(observation), None)
            }
            Performed::Trace(trace) => {
                self.ledger.forget(&trace.touched);
                self.replayed.add_phase(trace.replayed_keys);
                (Some(trace.observation), Some(trace.reply))
            }
        };
        // From a replay on, the number of keys in the database is not known.
        let known = self.keeps_data && self.ledger.is_whole();
        let live_bytes = known.then(|| self.live_bytes());
        let mut reply = phase_reply(phase, &start, &end, observation, live_bytes);
        reply.replay = replayed;
        reply.steal_s = steal_s;
        Ok((self.ended(index, reply, &start), database))
    }

    /// Notes the results of a phase, which began at `start`, when it is over.
    fn ended(&mut self, index: usize, mut reply: PhaseReply, start: &PhaseStart) -> PhaseReply {
        if self.wall_clock.look() {
            // Engines time their stalls by the wall clock, which was set.
            reply.stall_s = None;
        }
        self.rss_bytes_max = self.rss_bytes_max.max(reply.rss_bytes_max);
        let after = reply.bytes_per_level.as_ref();
        let after = after.and_then(|levels| levels.first().copied());
        self.windows.push(Window {
            index,
            from_us: reply.started_unix_us,
            to_us: reply.finished_unix_us,
            user_bytes_written: reply.user_bytes_written,
            waiting: start.level0_bytes.zip(after),
        });
        reply
    }

    /// Performs a trace.
    fn replay(
        &mut self,
        database: &dyn Database,
        (index, phase, replay): (usize, &Phase, &Replay),
        start: &PhaseStart,
        sink: &mut dyn Sink,
    ) -> Result<ReplayObservation, Failure> {
        let context = ReplayContext {
            database,
            known: &self.known_keys(),
            keys_min: self.request.verify_keys,
            interval: Duration::from_millis(self.request.interval_ms),
            cancelled: self.cancelled,
        };
        let mut reporter = Reporter::new(database, index, start, &mut self.turns, sink);
        let performed = run_replay(&context, index, phase, replay, &mut reporter);
        reporter.finish()?;
        let field = format!("workload.phases[{index}].replay.path");
        performed.map_err(|error| match error {
            ReplayError::Engine(EngineError::Unable(why)) => {
                let allowed = format!("another trace: {why}");
                refusal(&field, replay.path.display(), &allowed)
            }
            ReplayError::Engine(error) => Failure::running(error),
            ReplayError::Trace(error) => Failure::unreadable_trace(&field, &replay.path, &error),
        })
    }

    /// The keys for which the ledger has an expectation.
    fn known_keys(&self) -> HashMap<Vec<u8>, u64> {
        let mut keys = KeyWriter::new(&self.request.workload);
        let expected = self.ledger.expectations().into_iter();
        expected
            .map(|(number, _)| (keys.write(number).to_vec(), number))
            .collect()
    }

    /// Performs the operations of the phase, or its trace.
    fn perform(
        &mut self,
        database: &dyn Database,
        index: usize,
        phase: &Phase,
        start: &PhaseStart,
        sink: &mut dyn Sink,
    ) -> Result<Performed, Failure> {
        if phase.kind == PhaseKind::Settle {
            return Ok(Performed::Nothing);
        }
        if let Some(replay) = &phase.replay {
            let trace = self.replay(database, (index, phase, replay), start, sink)?;
            return Ok(Performed::Trace(trace));
        }
        let workload = &self.request.workload;
        let bulk = self.request.bulk_load.filter(|_| is_bulk(phase, workload));
        let shared = bulk.and_then(|bulk| shared(phase, bulk.threads));
        let context = PhaseContext {
            database,
            workload,
            ledger: &self.ledger,
            values: &self.values,
            seed: match phase.kind {
                PhaseKind::Load => self.request.load_seed(),
                _ => self.request.seed,
            },
            interval: Duration::from_millis(self.request.interval_ms),
            cancelled: self.cancelled,
            slices: self.turns.slices_of(phase),
            holds_compactions: bulk.is_some_and(|bulk| bulk.hold_compactions),
            as_one: shared.is_some().then_some(0),
        };
        let mut reporter = Reporter::new(database, index, start, &mut self.turns, sink);
        let performed = match &shared {
            Some(shared) => run_bulk(&context, index, shared, &mut reporter),
            None => run_phase(&context, index, phase, &mut reporter),
        };
        reporter.finish()?;
        let performed = performed.map_err(Failure::running)?;
        let (observation, slices_over) = (performed.observation, performed.slices_over);
        if phase.kind == PhaseKind::Measure && !observation.cut_short {
            // The last slice ends with its operations; the drain is a turn of its own.
            let over = SliceOver {
                slice: slices_over + 1,
                operations: observation.operations,
                elapsed_s: observation.elapsed_s,
            };
            self.turns.stop(index, over, Some(start), sink)?;
        }
        Ok(Performed::Operations(observation, performed.notes))
    }

    /// Checks what the threads read, and adds what they wrote to the ledger.
    fn note(&mut self, phase: &Phase, mut notes: Vec<Notes>, observation: &Observation) {
        let workload = &self.request.workload;
        if self.keeps_data {
            let in_order = workload.databases * workload.column_families == 1;
            let keys = KeyWriter::new(workload);
            let mut checked = check_reads(&mut notes, &self.ledger, &self.values, keys, in_order);
            if phase.operation == Some(Operation::ReadMissing) {
                checked.checked += observation.operations;
                checked.found_missing(observation.counts.found);
            }
            // A phase that only writes may have companions that read.
            let reads = observation.own.reads() || checked.checked > 0;
            self.checked = reads.then_some(checked);
        }
        let written = notes.into_iter().filter_map(|thread| thread.written);
        self.ledger.add_phase(written.collect());
        if phase.writes() {
            // The phase may have overwritten keys of a trace.
            self.replayed.clear();
        }
    }

    /// Waits for what the phase, which began at `start`, has left behind.
    fn drain(
        &self,
        database: &dyn Database,
        phase: &Phase,
        start: &PhaseStart,
    ) -> Result<f64, Failure> {
        let started = Instant::now();
        // An engine asks this while it drains, so that this is the time to look at its files, too.
        let cancelled = || {
            start.space.look();
            self.cancelled.load(Ordering::Relaxed)
        };
        match database.drain(&cancelled) {
            Ok(in_vain) => Ok(started.elapsed().saturating_sub(in_vain).as_secs_f64()),
            Err(EngineError::Cancelled) => Err(Failure::cancelled(&phase.name)),
            Err(error) => Err(Failure::running(error)),
        }
    }

    /// Estimated key and value bytes of what the database must hold.
    fn live_bytes(&self) -> f64 {
        let mut keys = KeyWriter::new(&self.request.workload);
        let value = |version| self.values.value(version).len();
        self.ledger
            .estimate(|number, version| keys.write(number).len() + value(version))
    }

    /// Reports the flushes and compactions of every phase. The engines' logs are complete only
    /// after the database has been closed.
    pub fn send_background_work(
        &mut self,
        engine: &dyn Engine,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let end_us = unix_us();
        self.wall_clock.look();
        let set_back = self.wall_clock.set_back;
        if set_back {
            eprintln!("lsmtune-driver: the wall clock was set back: background work is not known");
        }
        for (position, window) in self.windows.iter().enumerate() {
            // Work between two phases belongs to the earlier one, which caused it.
            let next = self.windows.get(position + 1);
            let to_us = next.map_or(end_us.max(window.to_us), |next| next.from_us);
            let work = if set_back {
                BackgroundWork::default()
            } else {
                engine.background_work(&self.request.directory, window.from_us, to_us)
            };
            let (user_bytes, waiting) = (window.user_bytes_written, window.waiting);
            sink.send(&Message::BackgroundWork {
                index: window.index,
                write_amplification: write_amplification(&work, user_bytes, waiting),
                flushes: work.flushes,
                flush_bytes: work.flush_bytes,
                compactions: work.compactions,
                compaction_read_bytes: work.compaction_read_bytes,
                compaction_write_bytes: work.compaction_write_bytes,
                levels: work
                    .levels
                    .map(|levels| levels.into_iter().map(Into::into).collect()),
            })?;
        }
        Ok(())
    }
}

/// Whether `phase` pays for the work that it leaves behind.
fn is_charged(phase: &Phase) -> bool {
    phase.kind == PhaseKind::Measure && phase.writes()
}

/// A wrong answer fails the run: an engine that may lie must not win by it.
fn refuse_wrong_reads(phase: &str, reads: &CheckedReads) -> Result<(), Failure> {
    let Some(example) = &reads.example else {
        return Ok(());
    };
    Err(Failure::data_loss(format!(
        "phase {phase}: {} of {} checked reads were wrong: {example}",
        reads.wrong, reads.checked
    )))
}

#[cfg(test)]
mod tests;
