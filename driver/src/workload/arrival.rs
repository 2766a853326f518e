//! When operations start: when the previous one ends, or at a rate, constant or changing.

use std::f64::consts::{PI, TAU};

use crate::measure::{PhaseTime, Ticks};
use crate::protocol::{Phase, Rate};

/// Two starts that are closer than this are the same.
const PRECISION_S: f64 = 1e-9;
/// Enough steps to halve a bracket of a day down to a nanosecond.
const NEWTON_STEPS_MAX: usize = 64;
/// More operations than any thread can be owed.
const DUE_MAX: u64 = 1 << 40;

/// The rate of all threads together.
#[derive(Debug, Clone, PartialEq)]
pub enum Pace {
    /// A constant rate.
    Constant {
        /// Operations per second.
        ops_s: f64,
    },
    /// A rate that changes.
    Changing(Rate),
}

impl Pace {
    /// The pace of `phase`; `None` for a closed loop.
    pub fn of(phase: &Phase) -> Option<Self> {
        let constant = phase.rate_ops_s.map(|ops_s| Pace::Constant { ops_s });
        constant.or_else(|| phase.rate.clone().map(Pace::Changing))
    }

    /// Seconds after the phase's start at which operation number `count`, from 0, is to start: the
    /// time at which the integral of the rate reaches `count`. `near_s` is the start of an earlier
    /// operation, from which the search begins.
    fn start_s(&self, count: f64, near_s: f64) -> f64 {
        match *self {
            Pace::Constant { ops_s } => count / ops_s,
            Pace::Changing(Rate::Steps { ref steps }) => steps_start_s(steps, count),
            Pace::Changing(Rate::Sine {
                mean_ops_s,
                amplitude_ops_s,
                period_s,
                offset_s,
            }) => Wave {
                mean_ops_s,
                amplitude_ops_s,
                period_s,
                offset_s,
            }
            .start_s(count, near_s),
        }
    }
}

/// Whole cycles, then the step into which the rest of `count` falls.
fn steps_start_s(steps: &[(f64, f64)], count: f64) -> f64 {
    let cycle_s: f64 = steps.iter().map(|(duration_s, _)| duration_s).sum();
    let operations = |(duration_s, ops_s): &(f64, f64)| duration_s * ops_s;
    let cycle: f64 = steps.iter().map(operations).sum();
    let cycles = (count / cycle).floor();
    // Rounding may leave less than nothing, which a step without operations would divide by zero.
    let (mut rest, mut begun_s) = ((count - cycles * cycle).max(0.0), cycles * cycle_s);
    for step @ (duration_s, ops_s) in steps {
        if rest < operations(step) {
            return begun_s + rest / ops_s;
        }
        rest -= operations(step);
        begun_s += duration_s;
    }
    begun_s
}

/// `mean + amplitude sin(2 pi (t + offset) / period)`.
struct Wave {
    mean_ops_s: f64,
    amplitude_ops_s: f64,
    period_s: f64,
    offset_s: f64,
}

impl Wave {
    /// Operations due by `t_s`: the integral of the rate.
    fn sum(&self, t_s: f64) -> f64 {
        let turn = TAU / self.period_s;
        let swing = (turn * self.offset_s).cos() - (turn * (t_s + self.offset_s)).cos();
        self.mean_ops_s * t_s + self.amplitude_ops_s / turn * swing
    }

    fn rate(&self, t_s: f64) -> f64 {
        let angle = TAU / self.period_s * (t_s + self.offset_s);
        self.mean_ops_s + self.amplitude_ops_s * angle.sin()
    }

    /// Newton's method from `near_s`, kept inside a bracket. The sum differs from a straight line
    /// by at most its swing. It never falls, because the amplitude is at most the mean.
    fn start_s(&self, count: f64, near_s: f64) -> f64 {
        let swing_s = self.amplitude_ops_s * self.period_s / (PI * self.mean_ops_s);
        let line_s = count / self.mean_ops_s;
        let (mut low, mut high) = ((line_s - swing_s).max(0.0), line_s + swing_s);
        let mut t_s = near_s.clamp(low, high);
        for _ in 0..NEWTON_STEPS_MAX {
            let over = self.sum(t_s) - count;
            if over > 0.0 {
                high = t_s;
            } else {
                low = t_s;
            }
            let next_s = t_s - over / self.rate(t_s);
            // A Newton step may lead anywhere if the rate is nearly 0: halve the bracket instead.
            let next_s = match next_s > low && next_s < high {
                true => next_s,
                false => f64::midpoint(low, high),
            };
            if (next_s - t_s).abs() < PRECISION_S {
                return next_s;
            }
            t_s = next_s;
        }
        t_s
    }
}

/// The open-loop schedule of one thread. Each operation is *intended* to start when the integral of
/// the rate of all threads reaches its number, whatever happened to the operations before it.
/// Latency counted from there includes the queueing that a closed loop hides (coordinated
/// omission).
#[derive(Debug, Clone)]
pub struct Schedule {
    time: PhaseTime,
    pace: Pace,
    thread: u64,
    threads: u64,
    next: u64,
    near_s: f64,
}

impl Schedule {
    /// The part of thread `thread` of `threads`: every `threads`-th operation of `pace`.
    pub fn new(ticks: Ticks, started: u64, pace: Pace, thread: usize, threads: usize) -> Self {
        Schedule {
            time: PhaseTime { ticks, started },
            pace,
            thread: thread as u64,
            threads: threads as u64,
            next: 0,
            near_s: 0.0,
        }
    }

    /// Nanoseconds after the phase's start at which the next operation is intended to start.
    fn intended_ns(&mut self) -> u64 {
        let count = self.next * self.threads + self.thread;
        self.near_s = self.pace.start_s(count as f64, self.near_s);
        (self.near_s * 1e9).round() as u64
    }

    /// Waits for the next intended start and returns it, in ns after the phase's start. Returns
    /// `None` as soon as `stop` returns true.
    pub fn wait(&mut self, stop: impl Fn() -> bool) -> Option<u64> {
        let intended_ns = self.intended_ns();
        self.time.wait(intended_ns, stop).then(|| {
            self.next += 1;
            intended_ns
        })
    }

    /// How many operations, from the next one on, are intended to start before `end_ns`. Starts
    /// never fall, so that they can be bisected: where the rate is absurd, they are too many to be
    /// counted one by one.
    pub fn due_before(&self, end_ns: u64) -> u64 {
        let mut probe = self.clone();
        let mut is_due = |ahead: u64| {
            probe.next = self.next + ahead;
            probe.intended_ns() < end_ns
        };
        let mut high = 1;
        while high < DUE_MAX && is_due(high - 1) {
            high *= 2;
        }
        let mut low = high / 2;
        while low < high {
            let middle = u64::midpoint(low, high);
            if is_due(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Passes over `count` operations. Returns the intended start of the first.
    pub fn pass(&mut self, count: u64) -> u64 {
        let intended_ns = self.intended_ns();
        self.next += count;
        intended_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    fn constant(ops_s: f64) -> Pace {
        Pace::Constant { ops_s }
    }

    #[test]
    fn threads_interleave_at_the_total_rate() {
        let ticks = Ticks::default();
        let mut starts: Vec<u64> = (0..4)
            .flat_map(|thread| {
                let mut schedule = Schedule::new(ticks.clone(), 0, constant(1000.0), thread, 4);
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
        let mut schedule = Schedule::new(ticks, started, constant(10_000.0), 0, 1);
        std::thread::sleep(Duration::from_millis(20));
        let owed: Vec<u64> = (0..3).map(|_| schedule.wait(|| false).unwrap()).collect();
        assert_eq!(owed, [0, 100_000, 200_000]);
    }

    #[test]
    fn what_is_due_is_counted_without_asking_for_each() {
        let paces = [
            constant(1000.0),
            constant(0.001),
            Pace::Changing(Rate::Steps {
                steps: vec![(0.1, 500.0), (0.1, 0.0)],
            }),
        ];
        for pace in paces {
            for (next, end_ns) in [(0, 0), (0, 1), (0, 1_000_000_000), (7, 350_000_000)] {
                let mut schedule = Schedule::new(Ticks::default(), 0, pace.clone(), 1, 3);
                schedule.next = next;
                let (due, mut one_by_one) = (schedule.due_before(end_ns), 0);
                while schedule.pass(1) < end_ns {
                    one_by_one += 1;
                }
                assert_eq!(due, one_by_one, "{pace:?} {next} {end_ns}");
            }
        }
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let ticks = Ticks::default();
        let started = ticks.now();
        let mut schedule = Schedule::new(ticks, started, constant(0.001), 0, 1);
        schedule.next = 1;
        assert_eq!(schedule.wait(|| true), None);
    }

    /// Operations that a schedule starts in each of `seconds` seconds.
    fn per_second(pace: Pace, seconds: usize) -> Vec<usize> {
        let mut schedule = Schedule::new(Ticks::default(), 0, pace, 0, 1);
        let mut counts = vec![0; seconds];
        loop {
            let second = (schedule.intended_ns() / 1_000_000_000) as usize;
            if second >= seconds {
                return counts;
            }
            counts[second] += 1;
            schedule.next += 1;
        }
    }

    #[test]
    fn steps_come_one_after_another_and_again() {
        let pace = Pace::Changing(Rate::Steps {
            steps: vec![(2.0, 100.0), (1.0, 0.0), (1.0, 1000.0)],
        });
        let starts = per_second(pace, 8);
        assert_eq!(starts, [100, 100, 0, 1000, 100, 100, 0, 1000]);
    }

    /// 170 cycles of 1.1 operations come to a little more than 187 where they are rounded. What was
    /// left was below 0, and the pause divided it by its rate of 0: operation 187 was due before
    /// the phase began, and had waited for 340 s when it was performed.
    #[test]
    fn an_operation_on_the_edge_of_a_cycle_waits_for_the_end_of_the_pause() {
        let steps = [(0.9, 0.0), (1.1, 1.0)];
        for (count, due_s) in [(0.0, 0.9), (187.0, 340.9)] {
            let start_s = steps_start_s(&steps, count);
            assert!((start_s - due_s).abs() < 1e-9, "{count}: {start_s}");
        }
    }

    #[test]
    fn a_wave_is_highest_after_a_quarter_and_lowest_after_three() {
        let wave = |offset_s| {
            Pace::Changing(Rate::Sine {
                mean_ops_s: 1000.0,
                amplitude_ops_s: 1000.0,
                period_s: 20.0,
                offset_s,
            })
        };
        let starts = per_second(wave(0.0), 20);
        assert_eq!(starts.iter().sum::<usize>(), 20_000);
        // 1 + sin over the second after the crest: 1 + 10 / pi * cos(0.6 pi + pi) = 1.98363.
        assert!((1983..=1984).contains(&starts[5]), "{starts:?}");
        assert!((16..=17).contains(&starts[15]), "{starts:?}");
        let moved = per_second(wave(5.0), 20);
        assert!(moved[0].abs_diff(starts[5]) <= 1 && moved[10].abs_diff(starts[15]) <= 1);
    }

    proptest! {
        /// Each operation starts when the integral of the rate reaches its number, in whatever
        /// order the threads ask.
        #[test]
        fn a_wave_sums_up_to_the_number(
            mean_ops_s in 1.0..1e6_f64, share in 0.0..=1.0_f64, period_s in 0.01..1e5_f64,
            offset_s in 0.0..1e5_f64, count in 0u32..1_000_000, near_s in 0.0..1e6_f64,
        ) {
            let wave = Wave { mean_ops_s, amplitude_ops_s: share * mean_ops_s, period_s, offset_s };
            let start_s = wave.start_s(f64::from(count), near_s);
            let error = (wave.sum(start_s) - f64::from(count)).abs();
            prop_assert!(error < 1e-3 + 1e-8 * f64::from(count) + 2e-9 * mean_ops_s, "{error}");
        }
    }
}
