//! The loop of one thread: start an operation, time it, count it, until the thread reaches its
//! limits or is stopped. An open loop also files what was due by then and never began.

use crate::engine::Result;
use crate::measure::{Progress, Recorder};

use super::arrival::Schedule;
use super::gate::{Limits, Member, Position};
use super::operations::{Action, DataCounts, Step};

/// Above this, owed operations are filed in groups: enough for every digit of a histogram, and done
/// in milliseconds.
const OWED_MAX: u64 = 1 << 18;

/// What one thread did.
#[derive(Debug, Clone)]
pub struct LoopResult {
    /// Its progress.
    pub position: Position,
    /// Latencies, by the action's slot.
    pub recorders: Vec<Recorder>,
    /// Keys and bytes.
    pub counts: DataCounts,
}

/// Repeats `action`, which has so many slots, within `limits`, slice by slice: an open loop if there
/// is a `schedule`, else a closed loop.
pub fn repeat<A: Action>(
    action: &mut A,
    slots: usize,
    limits: &Limits,
    schedule: Option<Schedule>,
    member: &Member<'_>,
    progress: &Progress,
) -> Result<LoopResult> {
    match schedule {
        None => closed_loop(action, slots, limits, member, progress),
        Some(schedule) => open_loop(action, slots, schedule, limits, member, progress),
    }
}

fn closed_loop<A: Action>(
    action: &mut A,
    slots: usize,
    limits: &Limits,
    member: &Member<'_>,
    progress: &Progress,
) -> Result<LoopResult> {
    let (ticks, must_stop) = (member.ticks(), member.stop_signal());
    let mut done = LoopResult::begun(limits.started, slots);
    while let Some(grant) = member.next_grant(limits, &mut done.position) {
        let timed = grant.until_ns != u64::MAX;
        while done.position.operations < grant.operations {
            let start = if A::PREPARES {
                action.prepare();
                ticks.now()
            } else {
                done.position.ended
            };
            let step = action.perform(&mut done.counts)?;
            let end = ticks.now();
            done.position.ended = end;
            if step == Step::Exhausted {
                member.give_back(grant.operations - done.position.operations);
                return Ok(done);
            }
            if must_stop() {
                done.count(action.slot(), member.corrected_ns(start, end), progress);
                break;
            }
            done.count(action.slot(), ticks.ns_between(start, end), progress);
            if timed && ticks.ns_between(grant.origin, end) >= grant.until_ns {
                break;
            }
        }
        member.give_back(grant.operations - done.position.operations);
    }
    Ok(done)
}

fn open_loop<A: Action>(
    action: &mut A,
    slots: usize,
    mut schedule: Schedule,
    limits: &Limits,
    member: &Member<'_>,
    progress: &Progress,
) -> Result<LoopResult> {
    let (ticks, must_stop) = (member.ticks(), member.stop_signal());
    let mut done = LoopResult::begun(limits.started, slots);
    let now_ns = || ticks.ns_between(limits.started, ticks.now());
    let mut over = false;
    while done.position.operations < limits.operations {
        action.prepare();
        let stop = || must_stop() || now_ns() >= limits.duration_ns;
        let Some(intended_ns) = schedule.wait(stop) else {
            done.position.cut_short = must_stop();
            over = true;
            break;
        };
        if intended_ns >= limits.duration_ns {
            break;
        }
        let step = action.perform(&mut done.counts)?;
        let end = ticks.now();
        if step == Step::Exhausted {
            break;
        }
        let ended_ns = ticks.ns_between(limits.started, end);
        let latency_ns = ended_ns.saturating_sub(intended_ns);
        done.count(action.slot(), latency_ns, progress);
    }
    done.position.ended = ticks.now();
    if over && !member.is_cancelled() {
        let ended_ns = ticks.ns_between(limits.started, done.position.ended);
        // A companion may notice late that its phase is over.
        let stopped = member.stopped().unwrap_or(done.position.ended);
        let due_ns = ticks.ns_between(limits.started, stopped);
        let until_ns = due_ns.min(limits.duration_ns);
        let left = limits.operations - done.position.operations;
        done.owe(action, schedule, until_ns, left, ended_ns);
    }
    Ok(done)
}

impl LoopResult {
    fn begun(started: u64, slots: usize) -> Self {
        LoopResult {
            position: Position {
                operations: 0,
                ended: started,
                cut_short: false,
            },
            recorders: vec![Recorder::default(); slots],
            counts: DataCounts::default(),
        }
    }

    /// Files operations, `left` at most, that were due before `until_ns` and not begun by
    /// `ended_ns`. They have waited for at least so long, and without them a phase that falls
    /// behind would look as if its last operations had not existed (coordinated omission). They
    /// are not performed: a rate that the engine cannot hold would make the phase as much longer.
    fn owe<A: Action>(
        &mut self,
        action: &mut A,
        mut schedule: Schedule,
        until_ns: u64,
        left: u64,
        ended_ns: u64,
    ) {
        let mut owed = schedule.due_before(until_ns).min(left);
        let group = owed.div_ceil(OWED_MAX).max(1);
        let mut slot = action.slot();
        while owed > 0 {
            let count = group.min(owed);
            let waited_ns = ended_ns.saturating_sub(schedule.pass(count));
            self.recorders[slot].record_owed(waited_ns, count);
            owed -= count;
            slot = action.draw_slot();
        }
    }

    #[inline]
    fn count(&mut self, slot: usize, ns: u64, progress: &Progress) {
        self.recorders[slot].record(ns);
        self.position.operations += 1;
        progress.publish(self.position.operations);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{OperationKind, Recorders, Ticks};
    use crate::workload::arrival::Pace;
    use crate::workload::gate::{Event, Gate};
    use crate::workload::slices::{Size, Slices};
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    /// Takes `millis` for its first operation and no time for the others.
    struct Stumble {
        millis: u64,
    }

    impl Action for Stumble {
        fn perform(&mut self, _counts: &mut DataCounts) -> Result<Step> {
            std::thread::sleep(Duration::from_millis(std::mem::take(&mut self.millis)));
            Ok(Step::Done)
        }
    }

    /// A loop whose first operation takes 100 ms.
    fn stumbled(rate_ops_s: Option<f64>, operations: u64, duration_ns: u64) -> Recorders {
        let ticks = Ticks::default();
        let started = ticks.now();
        let quiet = AtomicBool::new(false);
        let limits = Limits {
            operations,
            duration_ns,
            started,
        };
        let schedule = rate_ops_s
            .map(|ops_s| Schedule::new(ticks.clone(), started, Pace::Constant { ops_s }, 0, 1));
        let whole = Slices {
            count: 1,
            of: Size::Operations(operations),
        };
        let gate = Gate::new(ticks.clone(), whole, 1, 0);
        let member = Member::new(&gate, 0, &quiet);
        let progress = Progress::default();
        let mut stumble = Stumble { millis: 100 };
        let done = std::thread::scope(|scope| {
            scope.spawn(|| gate.start());
            member.arrive();
            repeat(&mut stumble, 1, &limits, schedule, &member, &progress).unwrap()
        });
        let mut all = Recorders::default();
        all.of(OperationKind::Get).add(&done.recorders[0]);
        assert_eq!(all.counts()["get"], done.position.operations);
        assert!(!done.position.cut_short);
        all
    }

    fn p50_us(rate_ops_s: Option<f64>) -> f64 {
        let all = stumbled(rate_ops_s, 50, u64::MAX);
        all.replies()["get"].statistics.latency_us_p50
    }

    /// Fifty operations are intended within 50 ms, and the first of them takes 100 ms. In an open
    /// loop most of them waited for tens of milliseconds; a closed loop never shows this.
    #[test]
    fn open_loop_latency_includes_the_queue_that_closed_loop_hides() {
        assert!(p50_us(Some(1000.0)) > 40_000.0);
        assert!(p50_us(None) < 1_000.0);
    }

    /// Of the operations that are due in 50 ms the first one takes 100. The others were dropped, so
    /// that of a phase which could not hold its rate only what it had managed was told.
    #[test]
    fn what_was_due_when_the_time_was_over_is_filed_with_its_wait_and_not_performed() {
        let owed = |ops_s: f64, operations| stumbled(Some(ops_s), operations, 50_000_000);
        // A busy machine may take the 50 ms away before the first operation.
        in_time(|| {
            let all = owed(1000.0, u64::MAX);
            let reply = &all.replies()["get"];
            let performed = all.counts()["get"];
            assert!(performed <= 1, "{performed}");
            assert_eq!(reply.count, 50);
            performed == 1 && reply.statistics.latency_us_p50 > 70_000.0
        });
        let few = owed(1000.0, 20).replies()["get"].count;
        assert_eq!(few, 20, "no more than the phase has operations");
        let absurd = owed(1e9, u64::MAX).replies()["get"].count;
        assert_eq!(absurd, 50_000_000, "and it ends at once");
    }

    /// Runs two threads of 1000 operations in two slices, and keeps the gate closed for 300 ms
    /// between the slices. The first operation of the second thread takes `millis`; that of the
    /// first thread takes long enough for the second to begin. Returns the operations done when the
    /// gate closed, the largest latency of the second thread, and the seconds that this thread
    /// took.
    fn two_slices(millis: u64) -> (u64, f64, f64) {
        let ticks = Ticks::default();
        let halves = Slices {
            count: 2,
            of: Size::Operations(2000),
        };
        let gate = Gate::new(ticks.clone(), halves, 2, 0);
        let cancelled = AtomicBool::new(false);
        let progress = [Progress::default(), Progress::default()];
        let work = |thread: usize| {
            let member = Member::new(&gate, thread, &cancelled);
            member.arrive();
            let limits = Limits {
                operations: 1000,
                duration_ns: u64::MAX,
                started: ticks.now(),
            };
            let mut action = Stumble {
                millis: if thread == 1 { millis } else { 10 },
            };
            let done = repeat(&mut action, 1, &limits, None, &member, &progress[thread]);
            let done = done.unwrap();
            assert_eq!(done.position.operations, 1000);
            let mut all = Recorders::default();
            all.of(OperationKind::Get).add(&done.recorders[0]);
            let max_us = all.replies()["get"].statistics.latency_us_max;
            let (started, ended) = (limits.started, done.position.ended);
            let origin = started + gate.paused_between(started, ended);
            (max_us, ticks.seconds_between(origin, ended))
        };
        std::thread::scope(|scope| {
            let work = &work;
            let threads = [0, 1].map(|thread| scope.spawn(move || work(thread)));
            gate.start();
            let due = Instant::now() + Duration::from_secs(60);
            assert_eq!(gate.next_event(due), Event::SliceOver);
            gate.pause_clock();
            let series: u64 = progress.iter().map(Progress::read).sum();
            std::thread::sleep(Duration::from_millis(300));
            gate.open();
            assert_eq!(gate.next_event(due), Event::Done);
            let [_, (max_us, elapsed_s)] = threads.map(|thread| thread.join().unwrap());
            (series, max_us, elapsed_s)
        })
    }

    /// On a busy machine the processors may belong to somebody else for a while, but hardly each of
    /// fifty times.
    fn in_time(attempt: impl Fn() -> bool) {
        assert!((0..50).any(|_| attempt()), "late fifty times in a row");
    }

    #[test]
    fn a_closed_gate_costs_nobody_time() {
        in_time(|| {
            let (operations, max_us, elapsed_s) = two_slices(0);
            assert!(operations <= 1000, "{operations}");
            max_us < 250_000.0 && elapsed_s < 0.25
        });
    }

    /// The gate does not wait for the operation of 600 ms; 300 ms of it fall into the stop.
    #[test]
    fn an_operation_that_outlasts_the_stop_is_corrected() {
        in_time(|| {
            let (operations, max_us, elapsed_s) = two_slices(600);
            assert!(operations <= 1000, "{operations}");
            (290_000.0..550_000.0).contains(&max_us) && (0.29..0.55).contains(&elapsed_s)
        });
    }

    /// Takes its time, and says only at the very end that it has returned.
    struct Slow<'a> {
        returned: &'a AtomicU64,
    }

    impl Action for Slow<'_> {
        fn perform(&mut self, _counts: &mut DataCounts) -> Result<Step> {
            std::thread::sleep(Duration::from_micros(200));
            self.returned.fetch_add(1, Ordering::SeqCst);
            Ok(Step::Done)
        }
    }

    /// At any moment, a published number counts only operations that have returned. A crash test
    /// takes these as acknowledged.
    #[test]
    fn an_operation_is_published_only_after_it_has_returned() {
        for rate_ops_s in [None, Some(1e6)] {
            let (ticks, quiet) = (Ticks::default(), AtomicBool::new(false));
            let (returned, progress) = (AtomicU64::new(0), Progress::default());
            let started = ticks.now();
            let limits = Limits {
                operations: 500,
                duration_ns: u64::MAX,
                started,
            };
            let schedule = rate_ops_s
                .map(|ops_s| Schedule::new(ticks.clone(), started, Pace::Constant { ops_s }, 0, 1));
            let whole = Slices {
                count: 1,
                of: Size::Operations(500),
            };
            let gate = Gate::new(ticks.clone(), whole, 1, 0);
            let member = Member::new(&gate, 0, &quiet);
            std::thread::scope(|scope| {
                let mut slow = Slow {
                    returned: &returned,
                };
                let (member, progress) = (&member, &progress);
                scope.spawn(move || {
                    member.arrive();
                    repeat(&mut slow, 1, &limits, schedule, member, progress).unwrap()
                });
                gate.start();
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
