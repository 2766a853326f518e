//! Performs the records that the dispatcher sends.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Receiver, Sender};

use crate::engine::{BatchEntry, Result, Session};
use crate::measure::{OperationKind, PhaseTime, Progress};
use crate::workload::ThreadObservation;

use super::chunk::{Chunk, Command, Step};
use super::replayed_keys::{put, KeyState, ReplayedKeys};

/// What the workers and the dispatcher of a phase share.
pub struct Common<'a> {
    pub time: PhaseTime,
    /// Factor on the recorded pace, by which each record is due; `None` for as fast as possible.
    pub speed: Option<f64>,
    /// Nanoseconds after which all workers stop, and nothing is due any more.
    pub duration_ns: u64,
    /// Steps after each seek.
    pub seek_nexts: u64,
    /// Whether somebody stops the phase.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Keys of the ledger, with their numbers. Writes to them are noted.
    pub known: &'a HashMap<Vec<u8>, u64>,
}

/// The result of one worker.
pub struct Done {
    pub observed: ThreadObservation,
    /// Nanoseconds after the start at which its last operation ended.
    pub ended_ns: u64,
    pub replayed_keys: ReplayedKeys,
    /// Numbers of the ledger's keys that it wrote.
    pub touched: HashSet<u64>,
}

/// One worker.
pub struct Worker<'a> {
    session: Box<dyn Session + 'a>,
    common: &'a Common<'a>,
    done: Done,
}

impl<'a> Worker<'a> {
    /// A worker that notes what it writes in `replayed_keys`.
    pub fn new(
        session: Box<dyn Session + 'a>,
        common: &'a Common<'a>,
        replayed_keys: ReplayedKeys,
    ) -> Self {
        Worker {
            session,
            common,
            done: Done {
                observed: ThreadObservation::default(),
                ended_ns: 0,
                replayed_keys,
                touched: HashSet::new(),
            },
        }
    }

    /// Works until there are no more chunks, the time is over, or somebody stops it.
    pub fn run(
        mut self,
        chunks: &Receiver<Chunk>,
        used: &Sender<Chunk>,
        progress: &Progress,
    ) -> Result<Done> {
        while let Ok(chunk) = chunks.recv() {
            for command in chunk.commands() {
                if !self.command(&chunk, command)? {
                    return Ok(self.done);
                }
                progress.publish(self.done.observed.operations);
            }
            // The dispatcher may be gone already.
            let _ = used.send(chunk);
        }
        self.done.observed.cut_short |= (self.common.stop)();
        Ok(self.done)
    }

    /// Performs one record; returns false if the phase ends before.
    fn command(&mut self, chunk: &Chunk, command: &Command) -> Result<bool> {
        let common = self.common;
        let over = || common.time.now_ns() >= common.duration_ns;
        let paced = common.speed.is_some();
        let due_ns = if paced { command.due_ns } else { 0 };
        if due_ns >= common.duration_ns {
            return Ok(false);
        }
        if !common.time.wait(due_ns, || (common.stop)() || over()) {
            self.done.observed.cut_short = (common.stop)();
            if self.done.observed.cut_short || !paced {
                return Ok(false);
            }
            // It was due before the end, and the worker was late: as in any open loop, it has
            // waited so long (`workload::worker`).
            let waited_ns = common.time.now_ns().saturating_sub(due_ns);
            let latencies = &mut self.done.observed.latencies;
            latencies
                .of(kind(chunk.steps(command)))
                .record_owed(waited_ns, 1);
            return Ok(true);
        }
        let begun_ns = match paced {
            true => command.due_ns,
            false => common.time.now_ns(),
        };
        self.perform(chunk.steps(command))?;
        let ended_ns = common.time.now_ns();
        let done = &mut self.done;
        let latency_ns = ended_ns.saturating_sub(begun_ns);
        let kind = kind(chunk.steps(command));
        done.observed.latencies.of(kind).record(latency_ns);
        done.observed.operations += 1;
        done.ended_ns = ended_ns;
        for step in chunk.steps(command) {
            self.remember(step);
        }
        Ok(true)
    }

    fn perform<'c>(
        &mut self,
        mut steps: impl ExactSizeIterator<Item = Step<'c>> + Clone,
    ) -> Result<()> {
        if !is_batch(steps.clone()) {
            return steps.try_for_each(|step| self.one(step));
        }
        let entry = |step: Step<'c>| match step.kind {
            OperationKind::Put => BatchEntry::Put(step.key, step.value),
            _ => BatchEntry::Delete(step.key),
        };
        let entries: Vec<BatchEntry<'_>> = steps.clone().map(entry).collect();
        self.session.write(&entries)?;
        let bytes = |step: Step<'_>| (step.key.len() + step.value.len()) as u64;
        self.done.observed.counts.bytes_written += steps.map(bytes).sum::<u64>();
        Ok(())
    }

    #[inline]
    fn one(&mut self, step: Step<'_>) -> Result<()> {
        let written = (step.key.len() + step.value.len()) as u64;
        let counts = &mut self.done.observed.counts;
        match step.kind {
            OperationKind::Put => self.session.put(step.key, step.value)?,
            OperationKind::Merge => self.session.merge(step.key, step.value)?,
            OperationKind::Delete => self.session.delete(step.key)?,
            OperationKind::Get => {
                let mut bytes = 0;
                let found = self
                    .session
                    .get(step.key, &mut |value| bytes = value.len())?;
                counts.read(found, step.key.len() + bytes);
                return Ok(());
            }
            _ => return self.seek(step.key),
        }
        counts.bytes_written += written;
        Ok(())
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        let mut cursor = self.session.cursor()?;
        cursor.seek(key);
        let found = cursor.valid() && cursor.key() == key;
        let here = match found {
            true => key.len() + cursor.value().len(),
            false => 0,
        };
        let mut stepped = 0;
        for _ in 0..self.common.seek_nexts {
            if !cursor.valid() {
                break;
            }
            let Some((key, value)) = cursor.next_entry() else {
                break;
            };
            stepped += key.len() + value.len();
        }
        cursor.status()?;
        drop(cursor);
        let counts = &mut self.done.observed.counts;
        counts.read(found, here);
        counts.bytes_read += stepped as u64;
        Ok(())
    }

    #[inline]
    fn remember(&mut self, step: Step<'_>) {
        let state = || match step.kind {
            OperationKind::Put => put(step.value),
            OperationKind::Merge => KeyState::Merged,
            _ => KeyState::Deleted,
        };
        if step.kind.reads() {
            return;
        }
        self.done.replayed_keys.note(step.key, state);
        if let Some(number) = self.common.known.get(step.key) {
            self.done.touched.insert(*number);
        }
    }
}

/// Whether a record is handed to the engine as one batch. The driver's batches have no merges, so a
/// write with merges is not atomic.
fn is_batch<'c>(mut steps: impl ExactSizeIterator<Item = Step<'c>>) -> bool {
    let alone = |step: Step<'_>| step.kind.reads() || step.kind == OperationKind::Merge;
    steps.len() > 1 && !steps.any(alone)
}

/// The type under which a record is filed: that of its last step, or of a batch that of a put if
/// it has one.
fn kind<'c>(mut steps: impl ExactSizeIterator<Item = Step<'c>> + Clone) -> OperationKind {
    if is_batch(steps.clone()) {
        return match steps.any(|step| step.kind == OperationKind::Put) {
            true => OperationKind::Put,
            false => OperationKind::Delete,
        };
    }
    let last = steps.last();
    last.map_or(OperationKind::Get, |step| step.kind)
}
