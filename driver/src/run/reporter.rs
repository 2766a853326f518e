//! Reports a phase while its threads run.

use crate::engine::Database;
use crate::measure::ThreadWrites;
use crate::protocol::{Interval, Message};
use crate::workload::{SliceOver, Watcher};

use super::report::PhaseStart;
use super::turns::Turns;
use super::Sink;

/// Sends the reports of a phase to the tuner, until the tuner is gone.
pub struct Reporter<'a, 'b> {
    index: usize,
    start: &'a PhaseStart,
    turns: &'a mut Turns<'b>,
    sink: &'a mut dyn Sink,
    database: &'a dyn Database,
    background: Option<ThreadWrites>,
    sent: std::io::Result<()>,
}

impl<'a, 'b> Reporter<'a, 'b> {
    /// For phase `index` on `database`, which began at `start`.
    pub fn new(
        database: &'a dyn Database,
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
            database,
            background: match database.background_threads() {
                "" => None,
                prefix => Some(ThreadWrites::begin(prefix)),
            },
            sent: Ok(()),
        }
    }

    /// Whether everything could be sent.
    pub fn finish(self) -> std::io::Result<()> {
        self.sent
    }
}

impl Watcher for Reporter<'_, '_> {
    fn interval(&mut self, mut interval: Interval) {
        interval.pending_compaction_bytes = self.database.pending_compaction_bytes();
        interval.background_write_bytes = self.background.as_mut().and_then(ThreadWrites::step);
        self.start.space.look();
        if self.sent.is_ok() {
            self.sent = self.sink.send(&Message::Interval(interval));
        }
    }

    fn slice_over(&mut self, over: SliceOver) -> f64 {
        if self.sent.is_err() {
            return 0.0;
        }
        let stopped = self
            .turns
            .stop(self.index, over, Some(self.start), self.sink);
        stopped.unwrap_or_else(|error| {
            self.sent = Err(error);
            0.0
        })
    }
}
