//! Whether the wall clock can be relied upon.
//!
//! The driver takes durations from clocks that nobody sets, but engines stamp their logs with the
//! wall clock. A flush belongs to the phase in whose time its stamp falls. If the clock is set
//! forward, stamps stay in order and every flush stays in its phase. If it is set back, the times
//! of phases overlap, and the phase of a flush is unknown.

use crate::measure::wall_offset_us;

/// A smaller difference does not count: two clocks cannot be read at the same instant, and phases
/// last longer than this.
const STEP_US_MIN: i64 = 10_000;

/// What is known of the wall clock during a run.
#[derive(Debug, Default)]
pub struct WallClock {
    /// Microseconds by which it was last ahead of a clock that nobody can set.
    offset_us: Option<i64>,
    /// Whether it was set back between any two looks.
    pub set_back: bool,
}

impl WallClock {
    /// Looks at the clock. Returns whether it was set since the last look.
    pub fn look(&mut self) -> bool {
        self.note(wall_offset_us())
    }

    fn note(&mut self, offset_us: i64) -> bool {
        let before_us = self.offset_us.replace(offset_us);
        let step_us = before_us.map_or(0, |before_us| offset_us - before_us);
        self.set_back |= step_us <= -STEP_US_MIN;
        step_us.abs() >= STEP_US_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks_at(offsets_us: &[i64]) -> (Vec<bool>, bool) {
        let mut clock = WallClock::default();
        let set = offsets_us.iter().map(|&offset| clock.note(offset));
        (set.collect(), clock.set_back)
    }

    #[test]
    fn a_clock_that_nobody_sets_is_relied_upon() {
        let mut clock = WallClock::default();
        for _ in 0..3 {
            assert!(!clock.look());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(!clock.set_back);
        assert!(!WallClock::default().set_back);
    }

    #[test]
    fn steps_are_seen_and_told_apart() {
        assert_eq!(looks_at(&[0, 9_000, 0]), (vec![false; 3], false));
        let forward = looks_at(&[0, 3_600_000_000, 3_600_000_000]);
        assert_eq!(forward, (vec![false, true, false], false));
        let back = looks_at(&[5_000_000, 5_000_000, 0]);
        assert_eq!(back, (vec![false, false, true], true));
        // Set back, and forward again by more.
        assert!(looks_at(&[0, -20_000, 50_000]).1);
    }
}
