//! Performs the records that the dispatcher sends.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Receiver, Sender};

use crate::engine::{BatchEntry, Result, Session};
use crate::measure::{OperationKind, PhaseTime, Progress};
use crate::workload::ThreadObservation;

use super::chunk::{Action, Chunk, Command, Step};
use super::replayed_keys::{put, KeyState, ReplayedKeys};

/// What the workers of a phase share.
pub struct Common<'a> {
    pub time: PhaseTime,
    /// Whether each record is due at a time of its own.
    pub paced: bool,
    /// Nanoseconds after which all workers stop.
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
        let due_ns = if common.paced { command.due_ns } else { 0 };
        if due_ns >= common.duration_ns {
            return Ok(false);
        }
        if !common.time.wait(due_ns, || (common.stop)() || over()) {
            self.done.observed.cut_short = (common.stop)();
            return Ok(false);
        }
        let begun_ns = match common.paced {
            true => command.due_ns,
            false => common.time.now_ns(),
        };
        let kind = self.perform(chunk.steps(command))?;
        let ended_ns = common.time.now_ns();
        let done = &mut self.done;
        let latency_ns = ended_ns.saturating_sub(begun_ns);
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
        steps: impl ExactSizeIterator<Item = Step<'c>> + Clone,
    ) -> Result<OperationKind> {
        let has = |action| steps.clone().any(|step| step.action == action);
        if steps.len() == 1 || has(Action::Get) || has(Action::Merge) {
            // The driver's batches have no merges, so a write with merges is not atomic.
            let mut kind = OperationKind::Get;
            for step in steps {
                kind = self.one(step)?;
            }
            return Ok(kind);
        }
        let entry = |step: Step<'c>| match step.action {
            Action::Put => BatchEntry::Put(step.key, step.value),
            _ => BatchEntry::Delete(step.key),
        };
        let entries: Vec<BatchEntry<'_>> = steps.clone().map(entry).collect();
        self.session.write(&entries)?;
        let bytes = |step: Step<'_>| (step.key.len() + step.value.len()) as u64;
        self.done.observed.counts.bytes_written += steps.clone().map(bytes).sum::<u64>();
        Ok(match has(Action::Put) {
            true => OperationKind::Put,
            false => OperationKind::Delete,
        })
    }

    #[inline]
    fn one(&mut self, step: Step<'_>) -> Result<OperationKind> {
        let written = (step.key.len() + step.value.len()) as u64;
        let counts = &mut self.done.observed.counts;
        let kind = match step.action {
            Action::Put => {
                self.session.put(step.key, step.value)?;
                counts.bytes_written += written;
                OperationKind::Put
            }
            Action::Merge => {
                self.session.merge(step.key, step.value)?;
                counts.bytes_written += written;
                OperationKind::Merge
            }
            Action::Delete => {
                self.session.delete(step.key)?;
                counts.bytes_written += written;
                OperationKind::Delete
            }
            Action::Get => {
                let mut bytes = 0;
                let found = self
                    .session
                    .get(step.key, &mut |value| bytes = value.len())?;
                counts.read(found, step.key.len() + bytes);
                OperationKind::Get
            }
            Action::Seek => {
                self.seek(step.key)?;
                OperationKind::Seek
            }
        };
        Ok(kind)
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
        let state = || match step.action {
            Action::Put => put(step.value),
            Action::Merge => KeyState::Merged,
            _ => KeyState::Deleted,
        };
        if matches!(step.action, Action::Get | Action::Seek) {
            return;
        }
        self.done.replayed_keys.note(step.key, state);
        if let Some(number) = self.common.known.get(step.key) {
            self.done.touched.insert(*number);
        }
    }
}
