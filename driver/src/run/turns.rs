//! Taking turns with another run: between slices this process stops, and somebody continues it.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{set_parent_process_death_signal, Signal};

use crate::measure::{stolen_s, Ticks};
use crate::protocol::{Message, Phase, PhaseKind};
use crate::workload::SliceOver;

use super::report::PhaseStart;
use super::Sink;

/// The turns of one run, and the time for which it was stopped.
#[derive(Debug)]
pub struct Turns<'a> {
    slices: u32,
    cancelled: &'a AtomicBool,
    ticks: Ticks,
    /// Seconds for which this process was stopped.
    pub stopped_s: f64,
    stolen_s: f64,
}

impl<'a> Turns<'a> {
    /// The turns of a run that cuts each measure phase into `slices` parts; 0 for a run that never
    /// stops. A run that stops dies with its parent, because a stopped process does not see the end
    /// of its input.
    pub fn new(slices: u32, cancelled: &'a AtomicBool) -> std::io::Result<Self> {
        if slices > 0 {
            set_parent_process_death_signal(Some(Signal::KILL))?;
        }
        Ok(Turns {
            slices,
            cancelled,
            ticks: Ticks::default(),
            stopped_s: 0.0,
            stolen_s: 0.0,
        })
    }

    /// How many parts `phase` has.
    pub fn slices_of(&self, phase: &Phase) -> u64 {
        match phase.kind {
            PhaseKind::Measure => u64::from(self.slices.max(1)),
            PhaseKind::Load | PhaseKind::Settle | PhaseKind::Warmup => 1,
        }
    }

    /// Seconds stolen from the machine while this process was not stopped.
    pub fn stolen_s(&self) -> Option<f64> {
        stolen_s().map(|all| all - self.stolen_s)
    }

    /// Reports that a slice of phase `index`, which began at `start` (`None` if it is about to
    /// begin), is `over`, and stops until somebody continues it. A cancelled run does not stop, but
    /// continues to its end. Returns the seconds that were stolen meanwhile.
    pub fn stop(
        &mut self,
        index: usize,
        over: SliceOver,
        start: Option<&PhaseStart>,
        sink: &mut dyn Sink,
    ) -> std::io::Result<f64> {
        if self.slices == 0 || self.cancelled.load(Ordering::Relaxed) {
            return Ok(0.0);
        }
        sink.send(&Message::Paused {
            index,
            slice: over.slice,
            operations_total: over.operations,
            elapsed_s: over.elapsed_s,
            cpu_s: start.map_or(0.0, PhaseStart::cpu_s),
            steal_s: match start {
                Some(start) => start.steal_s(self.stolen_s()),
                None => stolen_s().map(|_| 0.0),
            },
        })?;
        let (from, stolen_before_s) = (self.ticks.now(), stolen_s());
        sink.stop_process()?;
        let stolen_s = stolen_s().zip(stolen_before_s).map_or(0.0, |(a, b)| a - b);
        self.stopped_s += self.ticks.seconds_between(from, self.ticks.now());
        self.stolen_s += stolen_s;
        Ok(stolen_s)
    }
}
