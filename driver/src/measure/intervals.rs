//! The interval series: throughput in steps of a fixed length while a phase runs.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{process_cpu_s, stolen_s, ProcessCounters, Ticks};
use crate::protocol::Interval;

/// Operations that one thread has finished. The counter has a cache line of its own, so that
/// threads do not slow each other down by counting.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Progress {
    operations: AtomicU64,
}

impl Progress {
    /// Publishes the number of operations that have returned. A crash test holds the engine to
    /// every number that was published.
    #[inline]
    pub fn publish(&self, operations: u64) {
        self.operations.store(operations, Ordering::Release);
    }

    /// The operations that have returned so far.
    pub fn read(&self) -> u64 {
        self.operations.load(Ordering::Acquire)
    }
}

/// Turns the threads' progress into steps.
#[derive(Debug)]
pub struct IntervalSeries<'a> {
    index: usize,
    ticks: Ticks,
    started: u64,
    elapsed_s: f64,
    operations_total: u64,
    cpu_s: f64,
    stolen_s: Option<f64>,
    progress: &'a [Progress],
}

impl<'a> IntervalSeries<'a> {
    /// A series of phase `index` that starts at tick `started`.
    pub fn new(index: usize, ticks: Ticks, started: u64, progress: &'a [Progress]) -> Self {
        IntervalSeries {
            index,
            ticks,
            started,
            elapsed_s: 0.0,
            operations_total: 0,
            cpu_s: process_cpu_s(),
            stolen_s: stolen_s(),
            progress,
        }
    }

    /// Operations since the series began.
    pub fn operations(&self) -> u64 {
        self.progress.iter().map(Progress::read).sum()
    }

    /// Leaves out `stolen_s` seconds that were stolen while the process was stopped.
    pub fn skip_stolen(&mut self, stolen_s: f64) {
        self.stolen_s = self.stolen_s.map(|before| before + stolen_s);
    }

    /// The step that ends at tick `now`. The process was stopped for `stopped` ticks since the
    /// series began.
    pub fn step(&mut self, now: u64, stopped: u64) -> Interval {
        let operations_total = self.operations();
        let operations = operations_total - self.operations_total;
        let elapsed_s = self.ticks.seconds_between(self.started + stopped, now);
        let interval_s = (elapsed_s - self.elapsed_s).max(0.0);
        let (cpu_s, stolen_s) = (process_cpu_s(), stolen_s());
        let step = Interval {
            index: self.index,
            elapsed_s,
            interval_s,
            operations,
            operations_total,
            throughput_ops_s: match interval_s > 0.0 {
                true => operations as f64 / interval_s,
                false => 0.0,
            },
            rss_bytes: ProcessCounters::rss_bytes(),
            cpu_s: cpu_s - self.cpu_s,
            steal_s: stolen_s
                .zip(self.stolen_s)
                .map(|(now, before)| (now - before).max(0.0)),
            pending_compaction_bytes: None,
            background_write_bytes: None,
        };
        self.elapsed_s = elapsed_s;
        self.operations_total = operations_total;
        (self.cpu_s, self.stolen_s) = (cpu_s, stolen_s);
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_add_up_to_the_total() {
        let progress = [Progress::default(), Progress::default()];
        let ticks = Ticks::default();
        let started = ticks.now();
        let mut series = IntervalSeries::new(3, ticks.clone(), started, &progress);
        progress[0].publish(5);
        progress[1].publish(7);
        let first = series.step(ticks.now(), 0);
        progress[0].publish(9);
        let second = series.step(ticks.now(), 0);
        assert_eq!(
            (first.operations, second.operations, second.operations_total),
            (12, 4, 16)
        );
        assert!(second.elapsed_s >= first.elapsed_s && second.index == 3);
    }
}
