//! Waits until an operation is due.

use std::time::Duration;

use super::Ticks;

/// For a shorter wait a thread spins instead of sleeping, because a sleep may overrun by as much.
const SPIN_NS: u64 = 100_000;
/// The longest sleep, so that a cancelled phase ends in time even at a low rate.
const SLEEP_NS_MAX: u64 = 50_000_000;

/// The time of a phase.
#[derive(Debug, Clone)]
pub struct PhaseTime {
    /// The clock.
    pub ticks: Ticks,
    /// The start, in ticks.
    pub started: u64,
}

impl PhaseTime {
    /// Nanoseconds since the start.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.ticks.ns_between(self.started, self.ticks.now())
    }

    /// Waits until `due_ns` after the start; returns false as soon as `stop` returns true.
    pub fn wait(&self, due_ns: u64, stop: impl Fn() -> bool) -> bool {
        loop {
            if stop() {
                return false;
            }
            let ahead_ns = due_ns.saturating_sub(self.now_ns());
            if ahead_ns == 0 {
                return true;
            }
            if ahead_ns > SPIN_NS {
                let sleep_ns = (ahead_ns - SPIN_NS).min(SLEEP_NS_MAX);
                std::thread::sleep(Duration::from_nanos(sleep_ns));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}
