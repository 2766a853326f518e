//! The interval series: throughput in steps of a fixed length while a phase runs.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{ProcessCounters, Ticks};
use crate::protocol::Interval;

/// Operations that one thread has finished. On a cache line of its own, so that counting does not
/// make threads wait for each other.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Progress {
    operations: AtomicU64,
}

impl Progress {
    /// Publishes the thread's count, of operations that have returned: a crash test holds the
    /// engine to every number that was read here.
    #[inline]
    pub fn publish(&self, operations: u64) {
        self.operations.store(operations, Ordering::Release);
    }

    /// The operations that had returned by now.
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
    previous: u64,
    operations_total: u64,
    progress: &'a [Progress],
}

impl<'a> IntervalSeries<'a> {
    /// A series of phase `index` that starts at tick `started`.
    pub fn new(index: usize, ticks: Ticks, started: u64, progress: &'a [Progress]) -> Self {
        IntervalSeries {
            index,
            ticks,
            started,
            previous: started,
            operations_total: 0,
            progress,
        }
    }

    /// The step that ends now.
    pub fn step(&mut self) -> Interval {
        let now = self.ticks.now();
        let operations_total: u64 = self.progress.iter().map(Progress::read).sum();
        let operations = operations_total - self.operations_total;
        let interval_s = self.ticks.seconds_between(self.previous, now);
        self.previous = now;
        self.operations_total = operations_total;
        Interval {
            index: self.index,
            elapsed_s: self.ticks.seconds_between(self.started, now),
            interval_s,
            operations,
            operations_total,
            throughput_ops_s: if interval_s > 0.0 {
                operations as f64 / interval_s
            } else {
                0.0
            },
            rss_bytes: ProcessCounters::rss_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_add_up_to_the_total() {
        let progress = [Progress::default(), Progress::default()];
        let ticks = Ticks::default();
        let mut series = IntervalSeries::new(3, ticks.clone(), ticks.now(), &progress);
        progress[0].publish(5);
        progress[1].publish(7);
        let first = series.step();
        progress[0].publish(9);
        let second = series.step();
        assert_eq!(
            (first.operations, second.operations, second.operations_total),
            (12, 4, 16)
        );
        assert!(second.elapsed_s >= first.elapsed_s && second.index == 3);
    }
}
