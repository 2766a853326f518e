//! A phase in slices: how much of it may be done now, and a clock that stands still between slices.
//!
//! A slice is a share of the phase's operations, all threads together. If only a duration sizes the
//! phase, a slice is a share of the duration.

use std::time::Duration;

use crate::measure::Ticks;

/// More operations than any phase has.
const UNLIMITED: u64 = u64::MAX;
/// Most operations granted at once to one of several threads.
const GRANT_MAX: u64 = 1024;

/// How a phase is cut.
#[derive(Debug, Clone, Copy)]
pub struct Slices {
    /// The number of slices.
    pub count: u64,
    /// The size that they divide.
    pub of: Size,
}

/// The size of a whole phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Operations of all threads.
    Operations(u64),
    /// Nanoseconds.
    Duration(u64),
}

impl Slices {
    /// The end of the first slice that is not over after `done`, in the unit of the size. `None` in
    /// the last slice, which ends with the phase.
    fn end_after(&self, done: u64) -> Option<u64> {
        let (Size::Operations(size) | Size::Duration(size)) = self.of;
        let (size, count) = (u128::from(size), u128::from(self.count));
        // The smallest k with size * k / count > done.
        let next = ((u128::from(done) + 1) * count).div_ceil(size.max(1));
        let end = (next < count).then_some(size * next / count)?;
        u64::try_from(end).ok()
    }
}

/// The current slice, and its operations that no thread was granted yet.
#[derive(Debug)]
pub struct CurrentSlice {
    slices: Slices,
    threads: usize,
    /// Where the slice ends, in the unit of the size; `None` in the last one.
    end: Option<u64>,
    /// [`UNLIMITED`] in the last slice, and if time ends the slice.
    ungranted: u64,
}

impl CurrentSlice {
    /// The first slice of a phase whose operations `threads` threads share.
    pub fn first(slices: Slices, threads: usize) -> Self {
        let end = slices.end_after(0);
        let ungranted = match slices.of {
            Size::Operations(_) => end.unwrap_or(UNLIMITED),
            Size::Duration(_) => UNLIMITED,
        };
        CurrentSlice {
            slices,
            threads,
            end,
            ungranted,
        }
    }

    /// Continues with the next slice, `elapsed_ns` after the start of the phase.
    pub fn advance(&mut self, elapsed_ns: u64) {
        let old_end = self.end.unwrap_or(UNLIMITED);
        match self.slices.of {
            Size::Operations(_) => {
                self.end = self.slices.end_after(old_end);
                // Operations that a late thread returned still have to be done.
                self.ungranted = match self.end {
                    Some(end) => self.ungranted + (end - old_end),
                    None => UNLIMITED,
                };
            }
            Size::Duration(_) => self.end = self.slices.end_after(old_end.max(elapsed_ns)),
        }
    }

    /// Nanoseconds after the start of the phase at which the slice ends; `None` if operations end
    /// it.
    pub fn end_ns(&self) -> Option<u64> {
        match self.slices.of {
            Size::Operations(_) => None,
            Size::Duration(_) => self.end,
        }
    }

    /// Whether all operations of the slice are granted.
    pub fn is_used_up(&self) -> bool {
        self.ungranted == 0
    }

    /// Grants a thread at most `wanted` operations, and few enough that all threads end the slice
    /// at about the same time.
    pub fn grant(&mut self, wanted: u64) -> u64 {
        if self.ungranted == UNLIMITED {
            return wanted;
        }
        let share = match self.threads {
            1 => self.ungranted,
            threads => (self.ungranted / (4 * threads as u64)).clamp(1, GRANT_MAX),
        };
        let granted = share.min(self.ungranted).min(wanted);
        self.ungranted -= granted;
        granted
    }

    /// Takes back `operations` that were granted but not done.
    pub fn take_back(&mut self, operations: u64) {
        if self.ungranted != UNLIMITED {
            self.ungranted += operations;
        }
    }
}

/// The ticks between which the phase's clock stood still; without an end while it still does.
#[derive(Debug, Clone, Copy)]
struct Pause {
    from: u64,
    to: Option<u64>,
}

/// The clock of a phase. It stands still while the process is stopped between two slices.
#[derive(Debug)]
pub struct PhaseClock {
    ticks: Ticks,
    started: Option<u64>,
    pauses: Vec<Pause>,
}

impl PhaseClock {
    /// A clock that no thread has started.
    pub fn new(ticks: Ticks) -> Self {
        PhaseClock {
            ticks,
            started: None,
            pauses: Vec::new(),
        }
    }

    /// Notes that a thread began at tick `started`. The earliest thread starts the clock. Returns
    /// whether this thread began earlier than all before it.
    pub fn start(&mut self, started: u64) -> bool {
        let earlier = self.started.is_none_or(|earliest| started < earliest);
        if earlier {
            self.started = Some(started);
        }
        earlier
    }

    /// Stops the clock at tick `from`.
    pub fn pause(&mut self, from: u64) {
        self.pauses.push(Pause { from, to: None });
    }

    /// Resumes the clock at tick `now`, if it stands still.
    pub fn resume(&mut self, now: u64) {
        if let Some(pause) = self.pauses.last_mut() {
            pause.to.get_or_insert(now);
        }
    }

    /// Ticks between two ticks during which the clock stood still.
    pub fn paused_between(&self, from: u64, to: u64) -> u64 {
        let overlap = |pause: &Pause| {
            let end = pause.to.unwrap_or(to).min(to);
            end.saturating_sub(pause.from.max(from))
        };
        self.pauses.iter().map(overlap).sum()
    }

    /// Nanoseconds between two ticks, without those during which the clock stood still.
    pub fn ns_between(&self, from: u64, to: u64) -> u64 {
        self.ticks
            .ns_between(from + self.paused_between(from, to), to)
    }

    /// Nanoseconds that the clock shows at tick `now`; 0 before it was started.
    pub fn elapsed_ns(&self, now: u64) -> u64 {
        self.ns_between(self.started.unwrap_or(now), now)
    }

    /// How long the clock takes to reach `end_ns`; `None` before it was started.
    pub fn time_to(&self, end_ns: u64) -> Option<Duration> {
        self.started?;
        let elapsed_ns = self.elapsed_ns(self.ticks.now());
        Some(Duration::from_nanos(end_ns.saturating_sub(elapsed_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The ends rise to the size; each is at its share of it, and none is missed.
        #[test]
        fn slices_end_at_their_shares(size in 1u64.., count in 1u64..=1000, done in 0u64..) {
            let slices = Slices { count, of: Size::Operations(size) };
            let share = |slice: u64| u128::from(size) * u128::from(slice) / u128::from(count);
            let done = done % size;
            let expected = (1..count).map(share).find(|&end| end > u128::from(done));
            prop_assert_eq!(slices.end_after(done).map(u128::from), expected);
        }
    }

    #[test]
    fn only_the_time_between_two_ticks_counts() {
        let pause = |from, to| Pause { from, to };
        let clock = PhaseClock {
            pauses: vec![pause(10, Some(20)), pause(30, None)],
            ..PhaseClock::new(Ticks::default())
        };
        for (from, to, expected) in [
            (0, 10, 0),
            (0, 15, 5),
            (12, 15, 3),
            (0, 25, 10),
            (20, 30, 0),
            (15, 40, 15),
            (35, 40, 5),
        ] {
            assert_eq!(clock.paused_between(from, to), expected, "{from} to {to}");
        }
    }
}
