//! The gate that the threads of a phase pass from slice to slice.
//!
//! A thread works on what it was granted and comes back when that is used up. As long as the slice
//! lasts it is granted more; when the slice is over it waits, outside any operation, until the
//! whole crew has come to rest, the process has been stopped and continued, and the gate opens
//! for the next slice. So a thread at work needs to look at nothing but one flag of its own.
//!
//! A slice is a share of the phase's operations, all threads together; where a phase is sized by
//! a duration only, it is a share of that. The gate is closed until the crew is complete; in a phase
//! of one slice it never closes again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::measure::Ticks;

use super::worker::{Extent, Lap, Stops};

/// How long the gate waits for a thread that is inside an operation when the slice ends. After
/// that the process is stopped all the same, and the operation's latency corrected.
const PATIENCE: Duration = Duration::from_millis(50);

/// More operations than any phase has.
const UNLIMITED: u64 = u64::MAX;
/// Most operations granted at once to one of several threads.
const GRANT_MAX: u64 = 1024;

/// How a phase is cut.
#[derive(Debug, Clone, Copy)]
pub struct Slices {
    /// How many there are.
    pub count: u64,
    /// What they are a share of.
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
    /// The end of the first slice that is not over after `done`, in the unit of the size; `None` in
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

/// What a thread may do before it has to come back to the gate.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// Until it has done that many operations in this phase ...
    pub operations: u64,
    /// ... or until so many nanoseconds after `origin`.
    pub until_ns: u64,
    /// The start of the phase, put later by the time for which the gate was closed.
    pub origin: u64,
}

/// What the watcher of the crew has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The time asked for has come.
    Due,
    /// The slice is over and the crew at rest, apart from threads inside a long operation.
    SliceOver,
    /// All of the phase's own threads have left.
    Done,
}

/// A flag on a cache line of its own: its thread looks at it after every operation.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Flag(AtomicBool);

/// Ticks between which the gate was closed and everybody at rest; no end while it still is.
#[derive(Debug, Clone, Copy)]
struct Closed {
    from: u64,
    to: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    /// The phase's own threads that have not left.
    own: usize,
    /// All threads that have not left.
    present: usize,
    /// Those of them that wait for the gate to open.
    waiting: usize,
    /// Tick at which the first of the phase's own threads began.
    started: Option<u64>,
    /// When the slice was found to be over; `None` while it lasts.
    closing: Option<Instant>,
    /// Tick at which the last of those who wait ended its last operation.
    rest: u64,
    /// Everybody has to leave.
    halted: bool,
    /// Where the current slice ends, by operations or time; `None` in the last one.
    slice_end: Option<u64>,
    /// Operations of this slice that nobody was granted yet.
    left: u64,
    closed: Vec<Closed>,
}

impl State {
    /// Ticks between two ticks for which the gate was closed.
    fn closed_between(&self, from: u64, to: u64) -> u64 {
        let overlap = |closed: &Closed| {
            let end = closed.to.unwrap_or(to).min(to);
            end.saturating_sub(closed.from.max(from))
        };
        self.closed.iter().map(overlap).sum()
    }
}

/// The gate of one phase.
#[derive(Debug)]
pub struct Gate {
    ticks: Ticks,
    slices: Slices,
    threads: usize,
    attention: Vec<Flag>,
    state: Mutex<State>,
    /// Somebody waits or left.
    arrived: Condvar,
    opened: Condvar,
}

impl Gate {
    /// A gate for `threads` threads that share the phase's operations, and `companions` more that
    /// only rest with them.
    pub fn new(ticks: Ticks, slices: Slices, threads: usize, companions: usize) -> Self {
        let slice_end = slices.end_after(0);
        let state = State {
            own: threads,
            present: threads + companions,
            closing: Some(Instant::now()),
            slice_end,
            left: match slices.of {
                Size::Operations(_) => slice_end.unwrap_or(UNLIMITED),
                Size::Duration(_) => UNLIMITED,
            },
            ..State::default()
        };
        Gate {
            ticks,
            slices,
            threads,
            attention: (0..threads + companions).map(|_| Flag::default()).collect(),
            state: Mutex::new(state),
            arrived: Condvar::new(),
            opened: Condvar::new(),
        }
    }

    /// The pass of thread number `thread`; companions have the last numbers.
    pub fn pass<'a>(&'a self, thread: usize, cancelled: &'a AtomicBool) -> Pass<'a> {
        Pass {
            gate: self,
            thread,
            cancelled,
        }
    }

    /// Sends everybody away, those who wait and those at work.
    pub fn halt(&self) {
        self.lock().halted = true;
        self.ask_for_attention(&self.attention);
        self.opened.notify_all();
    }

    /// Opens the gate for the first slice, when the whole crew has assembled.
    pub fn begin(&self) {
        let mut state = self.lock();
        while state.waiting < state.present {
            state = self
                .arrived
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.closing = None;
        self.opened.notify_all();
    }

    /// Waits until something has to be done, but not beyond `due`.
    pub fn event(&self, due: Instant) -> Event {
        let mut state = self.lock();
        loop {
            if state.own == 0 {
                return Event::Done;
            }
            let now = Instant::now();
            let wake = match state.closing {
                Some(_) if state.waiting == state.present => return Event::SliceOver,
                Some(since) if now >= since + PATIENCE => return Event::SliceOver,
                Some(since) => since + PATIENCE,
                None => match self.slice_lasts(&state) {
                    Some(Duration::ZERO) => {
                        self.close(&mut state);
                        continue;
                    }
                    lasts => lasts.map_or(due, |lasts| now + lasts),
                },
            };
            if now >= due {
                return Event::Due;
            }
            let wait = self.arrived.wait_timeout(state, wake.min(due) - now);
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Stops the clock of the phase, after [`Event::SliceOver`]: the seconds that it shows.
    pub fn stop_clock(&self) -> f64 {
        let mut state = self.lock();
        let from = if state.waiting == state.present {
            state.rest
        } else {
            // They must learn that their operation did not take as long as it seems.
            self.ask_for_attention(&self.attention);
            self.ticks.now()
        };
        state.closed.push(Closed { from, to: None });
        self.elapsed_ns(&state, from) as f64 / 1e9
    }

    /// Opens the gate for the next slice.
    pub fn open(&self) {
        let mut state = self.lock();
        let now = self.ticks.now();
        if state.waiting < state.present {
            // Some are at work already; otherwise the clock goes on with the first to start.
            start_clock(&mut state, now);
        }
        let (old_end, elapsed_ns) = (state.slice_end, self.elapsed_ns(&state, now));
        match self.slices.of {
            Size::Operations(_) => {
                let old_end = old_end.unwrap_or(UNLIMITED);
                state.slice_end = self.slices.end_after(old_end);
                // What a late thread gave back is still to be done.
                state.left = match state.slice_end {
                    Some(end) => state.left + (end - old_end),
                    None => UNLIMITED,
                };
            }
            Size::Duration(_) => {
                let done = old_end.unwrap_or(UNLIMITED).max(elapsed_ns);
                state.slice_end = self.slices.end_after(done);
            }
        }
        state.closing = None;
        self.opened.notify_all();
    }

    /// Ticks between two ticks for which the clock of the phase stood.
    pub fn stopped_between(&self, from: u64, to: u64) -> u64 {
        self.lock().closed_between(from, to)
    }

    /// How long the current slice lasts yet, if time ends it.
    fn slice_lasts(&self, state: &State) -> Option<Duration> {
        let Size::Duration(_) = self.slices.of else {
            return None;
        };
        state.started?;
        let elapsed_ns = self.elapsed_ns(state, self.ticks.now());
        let end = state.slice_end?;
        Some(Duration::from_nanos(end.saturating_sub(elapsed_ns)))
    }

    fn elapsed_ns(&self, state: &State, now: u64) -> u64 {
        let started = state.started.unwrap_or(now);
        let origin = started + state.closed_between(started, now);
        self.ticks.ns_between(origin, now)
    }

    fn close(&self, state: &mut State) {
        state.closing.get_or_insert_with(Instant::now);
        // Companions do not know the phase's size.
        self.ask_for_attention(&self.attention[self.threads..]);
    }

    fn ask_for_attention(&self, flags: &[Flag]) {
        for flag in flags {
            flag.0.store(true, Ordering::Relaxed);
        }
    }

    /// A share of what is left that leaves enough for the others to end at the same time.
    fn grant(&self, state: &mut State, wanted: u64) -> u64 {
        if state.left == UNLIMITED {
            return wanted;
        }
        let share = match self.threads {
            1 => state.left,
            threads => (state.left / (4 * threads as u64)).clamp(1, GRANT_MAX),
        };
        let granted = share.min(state.left).min(wanted);
        state.left -= granted;
        granted
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn start_clock(state: &mut State, now: u64) {
    if let Some(closed) = state.closed.last_mut() {
        closed.to.get_or_insert(now);
    }
}

/// One thread's way through the gate. Dropped when the thread leaves, however it does.
#[derive(Debug)]
pub struct Pass<'a> {
    gate: &'a Gate,
    thread: usize,
    cancelled: &'a AtomicBool,
}

impl<'a> Pass<'a> {
    /// What the thread has to look at after every operation.
    pub fn stops(&self) -> Stops<'a> {
        Stops {
            cancelled: self.cancelled,
            attention: &self.gate.attention[self.thread].0,
        }
    }

    /// Waits until the crew is complete.
    pub fn assemble(&self) {
        drop(self.wait(self.gate.lock()));
    }

    /// What the thread may do next, at once or after the gate has opened; `None` when it has to
    /// leave, because it is done or, noted in `lap`, because somebody stops it.
    pub fn turn(&self, extent: &Extent, lap: &mut Lap) -> Option<Turn> {
        let own = self.thread < self.gate.threads;
        let mut state = self.gate.lock();
        if own && state.started.is_none_or(|started| extent.started < started) {
            state.started = Some(extent.started);
            self.gate.arrived.notify_one();
        }
        loop {
            let origin = extent.started + state.closed_between(extent.started, lap.ended);
            let elapsed_ns = self.gate.ticks.ns_between(origin, lap.ended);
            if lap.operations >= extent.operations || elapsed_ns >= extent.duration_ns {
                return None;
            }
            if state.halted || self.cancelled.load(Ordering::Relaxed) {
                lap.cut_short = true;
                return None;
            }
            let slice_end_ns = match (own, self.gate.slices.of, state.slice_end) {
                (true, Size::Duration(_), Some(end_ns)) => end_ns,
                _ => u64::MAX,
            };
            let over = own && (state.left == 0 || elapsed_ns >= slice_end_ns);
            if over || state.closing.is_some() {
                state = self.rest(state, lap);
                continue;
            }
            let wanted = extent.operations - lap.operations;
            let granted = if own {
                self.gate.grant(&mut state, wanted)
            } else {
                wanted
            };
            return Some(Turn {
                operations: lap.operations + granted,
                until_ns: extent.duration_ns.min(slice_end_ns),
                origin,
            });
        }
    }

    /// Waits for the next slice; the thread's time goes on when it does.
    fn rest<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        lap: &mut Lap,
    ) -> MutexGuard<'s, State> {
        self.gate.close(&mut state);
        state.rest = state.rest.max(lap.ended);
        state = self.wait(state);
        lap.ended = self.gate.ticks.now();
        start_clock(&mut state, lap.ended);
        self.attend(state.halted);
        state
    }

    /// Waits until the gate is open.
    fn wait<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let gate = self.gate;
        state.waiting += 1;
        gate.arrived.notify_one();
        while state.closing.is_some() && !state.halted {
            state = gate
                .opened
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting -= 1;
        state
    }

    /// Lowers the thread's flag, unless it has to leave.
    fn attend(&self, halted: bool) {
        self.stops().attention.store(halted, Ordering::Relaxed);
    }

    /// Nanoseconds that an operation between two ticks took, after the thread was asked for its
    /// attention: without those for which the process was stopped meanwhile.
    #[cold]
    pub fn corrected_ns(&self, start: u64, end: u64) -> u64 {
        let state = self.gate.lock();
        self.attend(state.halted);
        let stopped = state.closed_between(start, end);
        self.gate.ticks.ns_between(start + stopped, end)
    }

    /// Gives back `operations` of a turn, for others or for later.
    pub fn give_back(&self, operations: u64) {
        let mut state = self.gate.lock();
        if self.thread < self.gate.threads && state.left != UNLIMITED {
            state.left += operations;
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.present -= 1;
        state.own -= usize::from(self.thread < self.gate.threads);
        self.gate.arrived.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Result;
    use crate::measure::{OperationKind, Progress, Recorders};
    use crate::workload::operations::{Action, Step, Tally};
    use crate::workload::worker::repeat;
    use proptest::prelude::*;

    proptest! {
        /// The ends rise to the size, each at its share of it, and none is missed.
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
        let closed = |from, to| Closed { from, to };
        let state = State {
            closed: vec![closed(10, Some(20)), closed(30, None)],
            ..State::default()
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
            assert_eq!(state.closed_between(from, to), expected, "{from} to {to}");
        }
    }

    /// Takes `millis` for its first operation and no time for the others.
    struct Stall {
        millis: u64,
    }

    impl Action for Stall {
        const PREPARES: bool = true;

        fn kinds(&self) -> Vec<OperationKind> {
            vec![OperationKind::Put]
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

    /// Runs two threads of 1000 operations in two slices, the second thread with a first operation of
    /// `millis` (that of the first thread leaves it the time to begin), and keeps the gate closed for 300 ms. Returns the operations when it closed, the
    /// largest latency of the second thread, and the seconds that the phase took.
    fn through_the_gate(millis: u64) -> (u64, f64, f64) {
        let ticks = Ticks::default();
        let halves = Slices {
            count: 2,
            of: Size::Operations(2000),
        };
        let gate = Gate::new(ticks.clone(), halves, 2, 0);
        let cancelled = AtomicBool::new(false);
        let progress = [Progress::default(), Progress::default()];
        let work = |thread: usize| {
            let pass = gate.pass(thread, &cancelled);
            pass.assemble();
            let extent = Extent {
                operations: 1000,
                duration_ns: u64::MAX,
                started: ticks.now(),
                schedule: None,
            };
            let started = extent.started;
            let mut action = Stall {
                millis: if thread == 1 { millis } else { 10 },
            };
            let lap = repeat(&mut action, extent, &ticks, &pass, &progress[thread]).unwrap();
            assert_eq!(lap.operations, 1000);
            let mut all = Recorders::default();
            all.merge(OperationKind::Put, &lap.recorders[0]);
            let max_us = all.replies()["put"].latency_us_max;
            let origin = started + gate.stopped_between(started, lap.ended);
            (max_us, ticks.seconds_between(origin, lap.ended))
        };
        std::thread::scope(|scope| {
            let work = &work;
            let threads = [0, 1].map(|thread| scope.spawn(move || work(thread)));
            gate.begin();
            let due = Instant::now() + Duration::from_secs(60);
            assert_eq!(gate.event(due), Event::SliceOver);
            gate.stop_clock();
            let series: u64 = progress.iter().map(Progress::read).sum();
            std::thread::sleep(Duration::from_millis(300));
            gate.open();
            assert_eq!(gate.event(due), Event::Done);
            let [_, (max_us, elapsed_s)] = threads.map(|thread| thread.join().unwrap());
            (series, max_us, elapsed_s)
        })
    }

    #[test]
    fn a_closed_gate_costs_nobody_time() {
        let (operations, max_us, elapsed_s) = through_the_gate(0);
        assert!(operations <= 1000, "{operations}");
        assert!(max_us < 250_000.0, "{max_us}");
        assert!(elapsed_s < 0.25, "{elapsed_s}");
    }

    /// The operation of 600 ms is not waited for; 300 ms of it fall into the stop.
    #[test]
    fn an_operation_that_outlasts_the_stop_is_corrected() {
        let (operations, max_us, elapsed_s) = through_the_gate(600);
        assert!(operations <= 1000, "{operations}");
        assert!((290_000.0..550_000.0).contains(&max_us), "{max_us}");
        assert!((0.29..0.55).contains(&elapsed_s), "{elapsed_s}");
    }

    #[test]
    fn a_crew_that_is_sent_away_leaves() {
        let ticks = Ticks::default();
        let whole = Slices {
            count: 1,
            of: Size::Duration(u64::MAX),
        };
        let gate = Gate::new(ticks.clone(), whole, 1, 1);
        let cancelled = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // The second thread never comes.
            let first = scope.spawn(|| gate.pass(0, &cancelled).assemble());
            gate.halt();
            first.join().unwrap();
        });
        let due = Instant::now() + Duration::from_secs(60);
        assert_eq!(gate.event(due), Event::Done);
    }
}
