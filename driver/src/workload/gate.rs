//! The gate that the threads of a phase pass from slice to slice.
//!
//! A thread performs the operations that it was granted, and comes back for more. When the slice is
//! over, it waits outside any operation. It continues after all threads have come to wait, the
//! process was stopped and continued, and the gate opened for the next slice. So a working thread
//! only needs to look at one flag of its own.
//!
//! The gate is closed until all threads have arrived. In a phase of one slice it never closes
//! again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::measure::Ticks;

use super::slices::{CurrentSlice, PhaseClock, Slices};

/// How long the gate waits for a thread that is inside an operation when the slice ends. Then the
/// process is stopped all the same, and the operation's latency is corrected.
const STRAGGLER_WAIT: Duration = Duration::from_millis(50);

/// What the caller of [`Gate::next_event`] has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The time asked for has come.
    Due,
    /// The slice is over and all threads wait, apart from those inside a long operation.
    SliceOver,
    /// All of the phase's own threads have left.
    Done,
}

/// A flag on a cache line of its own, because its thread looks at it after every operation.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Flag(AtomicBool);

#[derive(Debug)]
struct State {
    /// The phase's own threads that have not left.
    own: usize,
    /// All threads that have not left.
    present: usize,
    /// Threads that wait for the gate to open.
    waiting: usize,
    /// When the gate closed; `None` while it is open.
    closed: Option<Instant>,
    /// Tick at which the last of the waiting threads ended its last operation.
    last_ended: u64,
    /// Tick since which all threads have to leave.
    stopped: Option<u64>,
    slice: CurrentSlice,
    clock: PhaseClock,
}

impl State {
    fn all_wait(&self) -> bool {
        self.waiting == self.present
    }
}

/// The gate of one phase.
#[derive(Debug)]
pub struct Gate {
    /// The clock of its threads.
    pub ticks: Ticks,
    threads: usize,
    /// For each thread, whether it has to come back before it has finished its grant.
    come_back: Vec<Flag>,
    state: Mutex<State>,
    /// A thread waits or left.
    arrived: Condvar,
    opened: Condvar,
}

impl Gate {
    /// A gate for `threads` threads that share the phase's operations, and `companions` more that
    /// only wait with them.
    pub fn new(ticks: Ticks, slices: Slices, threads: usize, companions: usize) -> Self {
        let state = State {
            own: threads,
            present: threads + companions,
            waiting: 0,
            closed: Some(Instant::now()),
            last_ended: 0,
            stopped: None,
            slice: CurrentSlice::first(slices, threads),
            clock: PhaseClock::new(ticks.clone()),
        };
        Gate {
            ticks,
            threads,
            come_back: (0..threads + companions).map(|_| Flag::default()).collect(),
            state: Mutex::new(state),
            arrived: Condvar::new(),
            opened: Condvar::new(),
        }
    }

    /// Opens the gate for the first slice, when all threads have arrived.
    pub fn start(&self) {
        let absent = |state: &mut State| !state.all_wait();
        let arrived = self.arrived.wait_while(self.lock(), absent);
        arrived.unwrap_or_else(PoisonError::into_inner).closed = None;
        self.opened.notify_all();
    }

    /// Waits until something has to be done, but not beyond `due`.
    pub fn next_event(&self, due: Instant) -> Event {
        let mut state = self.lock();
        loop {
            if state.own == 0 {
                return Event::Done;
            }
            let now = Instant::now();
            let end_ns = state.slice.end_ns();
            let left = end_ns.and_then(|end_ns| state.clock.time_to(end_ns));
            let wake = match (state.closed, left) {
                (Some(_), _) if state.all_wait() => return Event::SliceOver,
                (Some(since), _) if now >= since + STRAGGLER_WAIT => return Event::SliceOver,
                (Some(since), _) => since + STRAGGLER_WAIT,
                (None, Some(Duration::ZERO)) => {
                    self.close(&mut state);
                    continue;
                }
                (None, left) => left.map_or(due, |left| now + left),
            };
            if now >= due {
                return Event::Due;
            }
            let wait = self.arrived.wait_timeout(state, wake.min(due) - now);
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Stops the phase's clock, after [`Event::SliceOver`]. Returns the seconds that it shows.
    pub fn pause_clock(&self) -> f64 {
        let mut state = self.lock();
        let now = if state.all_wait() {
            state.last_ended
        } else {
            // The threads inside an operation must learn that part of its time was a pause.
            call_back(&self.come_back);
            self.ticks.now()
        };
        state.clock.pause(now);
        state.clock.elapsed_ns(now) as f64 / 1e9
    }

    /// Opens the gate for the next slice.
    pub fn open(&self) {
        let mut state = self.lock();
        let now = self.ticks.now();
        if !state.all_wait() {
            // Some threads are at work already; otherwise the first one to start resumes the clock.
            state.clock.resume(now);
        }
        let elapsed_ns = state.clock.elapsed_ns(now);
        state.slice.advance(elapsed_ns);
        state.closed = None;
        self.opened.notify_all();
    }

    /// Tells all threads to leave, both those that wait and those at work.
    pub fn stop_all(&self) {
        self.lock().stopped.get_or_insert(self.ticks.now());
        call_back(&self.come_back);
        self.opened.notify_all();
    }

    /// Ticks between two ticks during which the phase's clock stood still.
    pub fn paused_between(&self, from: u64, to: u64) -> u64 {
        self.lock().clock.paused_between(from, to)
    }

    fn close(&self, state: &mut State) {
        state.closed.get_or_insert_with(Instant::now);
        // The size of the phase does not limit companions.
        call_back(&self.come_back[self.threads..]);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn call_back(flags: &[Flag]) {
    for flag in flags {
        flag.0.store(true, Ordering::Relaxed);
    }
}

/// How much one thread may do in all slices together.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Operations at most.
    pub operations: u64,
    /// Nanoseconds after `started` at which it stops.
    pub duration_ns: u64,
    /// Tick at which the thread began.
    pub started: u64,
}

/// The progress of one thread.
#[derive(Debug, Clone, Copy)]
pub struct Position {
    /// Operations finished.
    pub operations: u64,
    /// Tick at the end of the last.
    pub ended: u64,
    /// Whether it was stopped before it reached its limits.
    pub cut_short: bool,
}

/// What a thread may do before it has to return to the gate.
#[derive(Debug, Clone, Copy)]
pub struct Grant {
    /// Until the thread has done that many operations in this phase ...
    pub operations: u64,
    /// ... or until this many nanoseconds after `origin`.
    pub until_ns: u64,
    /// The tick at which the thread began, moved later by the time for which the clock stood still.
    pub origin: u64,
}

/// One thread at the gate. It is dropped when the thread leaves, for whatever reason.
#[derive(Debug)]
pub struct Member<'a> {
    gate: &'a Gate,
    thread: usize,
    cancelled: &'a AtomicBool,
    come_back: &'a AtomicBool,
}

impl<'a> Member<'a> {
    /// Thread number `thread` of `gate`; companions have the last numbers.
    pub fn new(gate: &'a Gate, thread: usize, cancelled: &'a AtomicBool) -> Self {
        Member {
            gate,
            thread,
            cancelled,
            come_back: &gate.come_back[thread].0,
        }
    }

    /// The clock of the gate.
    pub fn ticks(&self) -> Ticks {
        self.gate.ticks.clone()
    }

    /// Whether the tuner cancelled the run.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Says, after every operation, whether the gate calls the thread back or the tuner cancelled
    /// the run.
    pub fn stop_signal(&self) -> impl Fn() -> bool + Copy + 'a {
        let (come_back, cancelled) = (self.come_back, self.cancelled);
        move || come_back.load(Ordering::Relaxed) || cancelled.load(Ordering::Relaxed)
    }

    /// Tick at which all threads were told to leave; `None` if they were not.
    pub fn stopped(&self) -> Option<u64> {
        self.gate.lock().stopped
    }

    /// Waits until all threads have arrived.
    pub fn arrive(&self) {
        drop(self.wait(self.gate.lock()));
    }

    /// What the thread may do next, at once or after the gate has opened. `None` if it has to
    /// leave: because it has reached its limits, or because it was stopped (noted in `position`).
    pub fn next_grant(&self, limits: &Limits, position: &mut Position) -> Option<Grant> {
        let own = self.is_own();
        let mut state = self.gate.lock();
        if own && state.clock.start(limits.started) {
            self.gate.arrived.notify_one();
        }
        loop {
            let paused = state.clock.paused_between(limits.started, position.ended);
            let origin = limits.started + paused;
            let elapsed_ns = self.gate.ticks.ns_between(origin, position.ended);
            if position.operations >= limits.operations || elapsed_ns >= limits.duration_ns {
                return None;
            }
            if state.stopped.is_some() || self.is_cancelled() {
                position.cut_short = true;
                return None;
            }
            let slice_end_ns = state.slice.end_ns().filter(|_| own).unwrap_or(u64::MAX);
            let over = own && (state.slice.is_used_up() || elapsed_ns >= slice_end_ns);
            if over || state.closed.is_some() {
                state = self.wait_for_next_slice(state, position);
                continue;
            }
            let wanted = limits.operations - position.operations;
            let granted = match own {
                true => state.slice.grant(wanted),
                false => wanted,
            };
            return Some(Grant {
                operations: position.operations + granted,
                until_ns: limits.duration_ns.min(slice_end_ns),
                origin,
            });
        }
    }

    /// Waits for the next slice. The thread's time continues when that begins.
    fn wait_for_next_slice<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        position: &mut Position,
    ) -> MutexGuard<'s, State> {
        self.gate.close(&mut state);
        state.last_ended = state.last_ended.max(position.ended);
        state = self.wait(state);
        position.ended = self.gate.ticks.now();
        state.clock.resume(position.ended);
        self.lower_flag(&state);
        state
    }

    /// Waits until the gate is open.
    fn wait<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        state.waiting += 1;
        self.gate.arrived.notify_one();
        let shut = |state: &mut State| state.closed.is_some() && state.stopped.is_none();
        let opened = self.gate.opened.wait_while(state, shut);
        let mut state = opened.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    /// Nanoseconds that an operation between two ticks took, of a thread that was called back. The
    /// time for which the process was stopped meanwhile does not count.
    #[cold]
    pub fn corrected_ns(&self, start: u64, end: u64) -> u64 {
        let state = self.gate.lock();
        self.lower_flag(&state);
        state.clock.ns_between(start, end)
    }

    /// Returns `operations` of a grant, for other threads or for later slices.
    pub fn give_back(&self, operations: u64) {
        if self.is_own() {
            self.gate.lock().slice.take_back(operations);
        }
    }

    /// Lowers the thread's flag, unless it has to leave.
    fn lower_flag(&self, state: &State) {
        let stopped = state.stopped.is_some();
        self.come_back.store(stopped, Ordering::Relaxed);
    }

    /// Whether it is one of the phase's own threads.
    fn is_own(&self) -> bool {
        self.thread < self.gate.threads
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.present -= 1;
        state.own -= usize::from(self.is_own());
        self.gate.arrived.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::slices::Size;

    #[test]
    fn threads_that_are_told_to_stop_leave() {
        let ticks = Ticks::default();
        let whole = Slices {
            count: 1,
            of: Size::Duration(u64::MAX),
        };
        let gate = Gate::new(ticks.clone(), whole, 1, 1);
        let cancelled = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // The second thread never arrives.
            let first = scope.spawn(|| Member::new(&gate, 0, &cancelled).arrive());
            gate.stop_all();
            first.join().unwrap();
        });
        let due = Instant::now() + Duration::from_secs(60);
        assert_eq!(gate.next_event(due), Event::Done);
    }
}
