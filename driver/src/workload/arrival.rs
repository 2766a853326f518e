//! When operations start: as soon as the last one ended, or at a fixed rate.

use std::time::Duration;

use crate::measure::Ticks;

/// Below this wait a thread spins instead of sleeping: a sleep may overrun by as much.
const SPIN_NS: u64 = 100_000;
/// The longest sleep, so that a cancelled phase ends in time however low its rate is.
const SLEEP_NS_MAX: u64 = 50_000_000;

/// An open-loop schedule of one thread: operation k is *intended* to start at
/// `first + k * period`, whatever became of the operations before it. Latency counted from there
/// includes the queueing that a closed loop hides (coordinated omission).
#[derive(Debug, Clone)]
pub struct Schedule {
    ticks: Ticks,
    started: u64,
    first_ns: f64,
    period_ns: f64,
    next: u64,
}

impl Schedule {
    /// The share of thread `thread` of `threads` in `rate_ops_s` operations per second.
    pub fn new(ticks: Ticks, started: u64, rate_ops_s: f64, thread: usize, threads: usize) -> Self {
        let period_ns = 1e9 * threads as f64 / rate_ops_s;
        Schedule {
            ticks,
            started,
            first_ns: period_ns * thread as f64 / threads as f64,
            period_ns,
            next: 0,
        }
    }

    /// Nanoseconds after the phase's start at which the next operation is intended to start.
    fn intended_ns(&self) -> u64 {
        (self.first_ns + self.period_ns * self.next as f64) as u64
    }

    /// Waits for the next intended start and returns it, in ns after the phase's start.
    /// Returns `None` as soon as `stop` says so.
    pub fn wait(&mut self, stop: impl Fn() -> bool) -> Option<u64> {
        let intended_ns = self.intended_ns();
        loop {
            if stop() {
                return None;
            }
            let now_ns = self.ticks.ns_between(self.started, self.ticks.now());
            let ahead_ns = intended_ns.saturating_sub(now_ns);
            if ahead_ns == 0 {
                self.next += 1;
                return Some(intended_ns);
            }
            if ahead_ns > SPIN_NS {
                std::thread::sleep(Duration::from_nanos((ahead_ns - SPIN_NS).min(SLEEP_NS_MAX)));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_interleave_at_the_total_rate() {
        let ticks = Ticks::default();
        let mut starts: Vec<u64> = (0..4)
            .flat_map(|thread| {
                let mut schedule = Schedule::new(ticks.clone(), 0, 1000.0, thread, 4);
                (0..10).map(move |k| {
                    schedule.next = k;
                    schedule.intended_ns()
                })
            })
            .collect();
        starts.sort_unstable();
        let millisecond_apart = starts.windows(2).all(|pair| pair[1] - pair[0] == 1_000_000);
        assert!(millisecond_apart, "{starts:?}");
    }

    #[test]
    fn a_late_thread_is_owed_every_start() {
        let ticks = Ticks::default();
        let started = ticks.now();
        let mut schedule = Schedule::new(ticks, started, 10_000.0, 0, 1);
        std::thread::sleep(Duration::from_millis(20));
        let owed: Vec<u64> = (0..3).map(|_| schedule.wait(|| false).unwrap()).collect();
        assert_eq!(owed, [0, 100_000, 200_000]);
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let ticks = Ticks::default();
        let started = ticks.now();
        let mut schedule = Schedule::new(ticks, started, 0.001, 0, 1);
        schedule.next = 1;
        assert_eq!(schedule.wait(|| true), None);
    }
}
