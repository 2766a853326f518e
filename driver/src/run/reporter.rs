//! Reports a phase while its threads run.

use crate::protocol::{Interval, Message};
use crate::workload::{SliceOver, Watcher};

use super::report::PhaseStart;
use super::turns::{Position, Turns};
use super::Sink;

/// Sends the reports of a phase to the tuner, until the tuner is gone.
pub struct Reporter<'a, 'b> {
    index: usize,
    start: &'a PhaseStart,
    turns: &'a mut Turns<'b>,
    sink: &'a mut dyn Sink,
    sent: std::io::Result<()>,
}

impl<'a, 'b> Reporter<'a, 'b> {
    /// For phase `index`, which began at `start`.
    pub fn new(
        index: usize,
        start: &'a PhaseStart,
        turns: &'a mut Turns<'b>,
        sink: &'a mut dyn Sink,
    ) -> Self {
        Reporter {
            index,
            start,
            turns,
            sink,
            sent: Ok(()),
        }
    }

    /// Whether everything could be sent.
    pub fn finish(self) -> std::io::Result<()> {
        self.sent
    }
}

impl Watcher for Reporter<'_, '_> {
    fn interval(&mut self, interval: Interval) {
        if self.sent.is_ok() {
            self.sent = self.sink.send(&Message::Interval(interval));
        }
    }

    fn slice_over(&mut self, over: SliceOver) -> f64 {
        if self.sent.is_err() {
            return 0.0;
        }
        let position = Position {
            index: self.index,
            slice: over.slice,
            operations: over.operations,
            elapsed_s: over.elapsed_s,
        };
        let stopped = self.turns.stop(position, Some(self.start), self.sink);
        stopped.unwrap_or_else(|error| {
            self.sent = Err(error);
            0.0
        })
    }
}
