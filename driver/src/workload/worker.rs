//! The loop of one thread: start an operation, time it, count it, until the phase's size is
//! reached or somebody stops it.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::Result;
use crate::measure::{Progress, Recorder, Ticks};

use super::arrival::Schedule;
use super::gate::Pass;
use super::operations::{Action, Step};

/// Why and when threads stop early.
#[derive(Debug, Clone, Copy)]
pub struct Stops<'a> {
    /// The tuner cancelled the run.
    pub cancelled: &'a AtomicBool,
    /// The gate has something to say to this thread.
    pub attention: &'a AtomicBool,
}

impl Stops<'_> {
    #[inline]
    fn any(&self) -> bool {
        self.attention.load(Ordering::Relaxed) || self.cancelled.load(Ordering::Relaxed)
    }
}

/// How much one thread does, and how fast.
#[derive(Debug, Clone)]
pub struct Extent {
    /// Operations at most.
    pub operations: u64,
    /// Nanoseconds after `started` at which it stops.
    pub duration_ns: u64,
    /// Tick at which the phase began.
    pub started: u64,
    /// Open loop, where there is a target rate.
    pub schedule: Option<Schedule>,
}

/// What one thread's loop came to.
#[derive(Debug, Clone)]
pub struct Lap {
    /// Operations finished.
    pub operations: u64,
    /// Tick at the end of the last.
    pub ended: u64,
    /// Latencies, by the action's slot.
    pub recorders: Vec<Recorder>,
    /// Whether it was stopped before its extent was reached.
    pub cut_short: bool,
}

/// Repeats `action` to its extent, slice by slice if it is a closed loop.
pub fn repeat<A: Action>(
    action: &mut A,
    extent: Extent,
    ticks: &Ticks,
    pass: &Pass<'_>,
    progress: &Progress,
) -> Result<Lap> {
    match extent.schedule.clone() {
        None => closed_loop(action, &extent, ticks, pass, progress),
        Some(schedule) => open_loop(action, schedule, &extent, ticks, pass.stops(), progress),
    }
}

fn closed_loop<A: Action>(
    action: &mut A,
    extent: &Extent,
    ticks: &Ticks,
    pass: &Pass<'_>,
    progress: &Progress,
) -> Result<Lap> {
    let mut lap = Lap::begun(extent.started, action.kinds().len());
    let stops = pass.stops();
    while let Some(turn) = pass.turn(extent, &mut lap) {
        let timed = turn.until_ns != u64::MAX;
        while lap.operations < turn.operations {
            let start = if A::PREPARES {
                action.prepare();
                ticks.now()
            } else {
                lap.ended
            };
            let step = action.perform()?;
            lap.ended = ticks.now();
            if step == Step::Exhausted {
                pass.give_back(turn.operations - lap.operations);
                return Ok(lap);
            }
            if stops.any() {
                lap.count(action.slot(), pass.corrected_ns(start, lap.ended), progress);
                break;
            }
            lap.count(action.slot(), ticks.ns_between(start, lap.ended), progress);
            if timed && ticks.ns_between(turn.origin, lap.ended) >= turn.until_ns {
                break;
            }
        }
        pass.give_back(turn.operations - lap.operations);
    }
    Ok(lap)
}

fn open_loop<A: Action>(
    action: &mut A,
    mut schedule: Schedule,
    extent: &Extent,
    ticks: &Ticks,
    stops: Stops<'_>,
    progress: &Progress,
) -> Result<Lap> {
    let mut lap = Lap::begun(extent.started, action.kinds().len());
    let now_ns = || ticks.ns_between(extent.started, ticks.now());
    while lap.operations < extent.operations {
        action.prepare();
        let over = || now_ns() >= extent.duration_ns;
        let Some(intended_ns) = schedule.wait(|| stops.any() || over()) else {
            lap.cut_short = stops.any();
            break;
        };
        if intended_ns >= extent.duration_ns {
            break;
        }
        let step = action.perform()?;
        lap.ended = ticks.now();
        if step == Step::Exhausted {
            break;
        }
        let ended_ns = ticks.ns_between(extent.started, lap.ended);
        lap.count(
            action.slot(),
            ended_ns.saturating_sub(intended_ns),
            progress,
        );
    }
    lap.ended = ticks.now();
    Ok(lap)
}

impl Lap {
    fn begun(started: u64, slots: usize) -> Self {
        Lap {
            operations: 0,
            ended: started,
            recorders: vec![Recorder::default(); slots],
            cut_short: false,
        }
    }

    #[inline]
    fn count(&mut self, slot: usize, ns: u64, progress: &Progress) {
        self.recorders[slot].record(ns);
        self.operations += 1;
        progress.publish(self.operations);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::OperationKind;
    use crate::workload::arrival::Pace;
    use crate::workload::gate::{Gate, Size, Slices};
    use crate::workload::operations::Tally;
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    /// Takes `millis` for its first operation and no time for the others.
    struct Stumble {
        millis: u64,
    }

    impl Action for Stumble {
        const PREPARES: bool = true;

        fn kinds(&self) -> Vec<OperationKind> {
            vec![OperationKind::Get]
        }

        fn prepare(&mut self) {}

        fn perform(&mut self) -> Result<Step> {
            std::thread::sleep(Duration::from_millis(std::mem::take(&mut self.millis)));
            Ok(Step::Done)
        }

        fn tally(&self) -> Tally {
            Tally::default()
        }
    }

    fn p50_us(rate_ops_s: Option<f64>) -> f64 {
        let ticks = Ticks::default();
        let started = ticks.now();
        let quiet = AtomicBool::new(false);
        let extent = Extent {
            operations: 50,
            duration_ns: u64::MAX,
            started,
            schedule: rate_ops_s
                .map(|ops_s| Schedule::new(ticks.clone(), started, Pace::Constant { ops_s }, 0, 1)),
        };
        let whole = Slices {
            count: 1,
            of: Size::Operations(50),
        };
        let gate = Gate::new(ticks.clone(), whole, 1, 0);
        let pass = gate.pass(0, &quiet);
        let progress = Progress::default();
        let mut stumble = Stumble { millis: 100 };
        let lap = std::thread::scope(|scope| {
            scope.spawn(|| gate.begin());
            pass.assemble();
            repeat(&mut stumble, extent, &ticks, &pass, &progress).unwrap()
        });
        let mut all = crate::measure::Recorders::default();
        all.merge(OperationKind::Get, &lap.recorders[0]);
        all.replies()["get"].latency_us_p50
    }

    /// Fifty operations intended within 50 ms, the first of which takes 100 ms: in an open loop
    /// most of them waited for tens of milliseconds; a closed loop never learns of it.
    #[test]
    fn open_loop_latency_includes_the_queue_that_closed_loop_hides() {
        assert!(p50_us(Some(1000.0)) > 40_000.0);
        assert!(p50_us(None) < 1_000.0);
    }

    /// Says that it has returned at the very end, and takes its time before that.
    struct Slow<'a> {
        returned: &'a AtomicU64,
    }

    impl Action for Slow<'_> {
        const PREPARES: bool = true;

        fn kinds(&self) -> Vec<OperationKind> {
            vec![OperationKind::Put]
        }

        fn prepare(&mut self) {}

        fn perform(&mut self) -> Result<Step> {
            std::thread::sleep(Duration::from_micros(200));
            self.returned.fetch_add(1, Ordering::SeqCst);
            Ok(Step::Done)
        }

        fn tally(&self) -> Tally {
            Tally::default()
        }
    }

    /// A number that the tuner has seen is of operations that have returned, at any moment: what
    /// a crash test takes for acknowledged.
    #[test]
    fn an_operation_is_published_only_after_it_has_returned() {
        for rate_ops_s in [None, Some(1e6)] {
            let (ticks, quiet) = (Ticks::default(), AtomicBool::new(false));
            let (returned, progress) = (AtomicU64::new(0), Progress::default());
            let started = ticks.now();
            let extent = Extent {
                operations: 500,
                duration_ns: u64::MAX,
                started,
                schedule: rate_ops_s.map(|ops_s| {
                    Schedule::new(ticks.clone(), started, Pace::Constant { ops_s }, 0, 1)
                }),
            };
            let whole = Slices {
                count: 1,
                of: Size::Operations(500),
            };
            let gate = Gate::new(ticks.clone(), whole, 1, 0);
            let pass = gate.pass(0, &quiet);
            std::thread::scope(|scope| {
                let mut slow = Slow {
                    returned: &returned,
                };
                let (ticks, pass, progress) = (&ticks, &pass, &progress);
                scope.spawn(move || {
                    pass.assemble();
                    repeat(&mut slow, extent, ticks, pass, progress).unwrap()
                });
                gate.begin();
                loop {
                    let published = progress.read();
                    assert!(published <= returned.load(Ordering::SeqCst));
                    if published == 500 {
                        break;
                    }
                }
            });
        }
    }
}
