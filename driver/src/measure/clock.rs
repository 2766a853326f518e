//! The clock: CPU ticks where they are constant, the monotonic clock elsewhere.
//!
//! A call of the monotonic clock costs about 40 ns on a virtual machine, and an operation needs
//! two. Reading the time-stamp counter costs a fraction of that. `quanta` checks that the counter
//! is constant, calibrates it, and otherwise uses the monotonic clock.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{clock_gettime, ClockId};

/// A calibrated clock; cheap to clone, one per thread.
#[derive(Debug, Clone)]
pub struct Ticks {
    clock: quanta::Clock,
}

impl Default for Ticks {
    fn default() -> Self {
        Ticks {
            clock: quanta::Clock::new(),
        }
    }
}

impl Ticks {
    /// Now, in ticks.
    #[inline]
    pub fn now(&self) -> u64 {
        self.clock.raw()
    }

    /// Nanoseconds from `start` to `end`; 0 if `end` is earlier, which can happen across cores.
    #[inline]
    pub fn ns_between(&self, start: u64, end: u64) -> u64 {
        self.clock.delta_as_nanos(start, end)
    }

    /// Seconds from `start` to `end`.
    pub fn seconds_between(&self, start: u64, end: u64) -> f64 {
        self.ns_between(start, end) as f64 / 1e9
    }
}

/// Microseconds by which the wall clock is ahead of the monotonic clock. Both run at the same
/// speed, so the difference changes only when somebody sets the wall clock.
pub fn wall_offset_us() -> i64 {
    let attempt = || {
        let (before_us, wall_us, after_us) = (monotonic_us(), unix_us(), monotonic_us());
        (after_us - before_us, wall_us as i64 - after_us)
    };
    // The two readings of the best attempt are close together, even on a busy machine.
    let best = (0..5).map(|_| attempt()).min();
    best.map_or(0, |(_, offset_us)| offset_us)
}

fn monotonic_us() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1000
}

/// The wall clock in microseconds since 1970, the unit of the engines' own logs.
pub fn unix_us() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as u64)
}
