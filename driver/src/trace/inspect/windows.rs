//! The trace over time, in windows that become longer as the trace does.

use cardinality_estimator::CardinalityEstimator;

use super::summary::Windows;
use super::Group;

/// The most windows.
const WINDOWS: usize = 512;
/// The length of a window at the beginning.
const SHORTEST_US: u64 = 1000;

/// One window.
#[derive(Debug, Default)]
struct Window {
    counts: [u64; 3],
    keys: CardinalityEstimator<u64>,
    so_far: f64,
}

impl Window {
    fn merge(&mut self, later: &Window) {
        for (sum, count) in self.counts.iter_mut().zip(later.counts) {
            *sum += count;
        }
        self.keys.merge(&later.keys);
        self.so_far = self.so_far.max(later.so_far);
    }
}

/// Counts by time. When time passes the last window, pairs of windows are merged. Sketches of
/// distinct keys (HyperLogLog) can be merged; numbers of distinct keys could not.
#[derive(Debug)]
pub struct WindowSeries {
    started_us: Option<u64>,
    window_us: u64,
    windows: Vec<Window>,
    current: usize,
}

impl Default for WindowSeries {
    fn default() -> Self {
        WindowSeries {
            started_us: None,
            window_us: SHORTEST_US,
            windows: vec![Window::default()],
            current: 0,
        }
    }
}

impl WindowSeries {
    /// Moves to the window of `unix_us`. Earlier times belong to the first window. `so_far` is the
    /// number of distinct keys before this moment.
    #[inline]
    pub fn go_to(&mut self, unix_us: u64, so_far: impl Fn() -> f64) {
        let started_us = *self.started_us.get_or_insert(unix_us);
        let index = unix_us.saturating_sub(started_us) / self.window_us;
        if index != self.current as u64 {
            self.leave(unix_us, so_far());
        }
    }

    #[cold]
    fn leave(&mut self, unix_us: u64, so_far: f64) {
        self.close(so_far);
        let elapsed_us = unix_us.saturating_sub(self.started_us.unwrap_or(unix_us));
        while elapsed_us / self.window_us >= WINDOWS as u64 {
            self.window_us *= 2;
            let pairs = std::mem::take(&mut self.windows).into_iter();
            let mut pairs = pairs.peekable();
            while let Some(mut window) = pairs.next() {
                if let Some(later) = pairs.next() {
                    window.merge(&later);
                }
                self.windows.push(window);
            }
        }
        self.current = (elapsed_us / self.window_us) as usize;
        while self.windows.len() <= self.current {
            self.windows.push(Window::default());
        }
    }

    /// Notes an operation on the key with this hash.
    #[inline]
    pub fn note(&mut self, group: Group, hash: u64) {
        let window = &mut self.windows[self.current];
        window.counts[group as usize] += 1;
        window.keys.insert_hash(hash);
    }

    /// Notes a write that concerns no single key.
    pub fn note_keyless(&mut self, group: Group) {
        self.windows[self.current].counts[group as usize] += 1;
    }

    fn close(&mut self, so_far: f64) {
        let window = &mut self.windows[self.current];
        window.so_far = window.so_far.max(so_far);
    }

    /// The series; `so_far` is the number of distinct keys of the whole trace.
    pub fn summary(mut self, so_far: f64) -> Windows {
        self.close(so_far);
        let mut before = 0.0;
        let step = |window: &Window| {
            before = window.so_far.max(before);
            let [gets, writes, seeks] = window.counts;
            (gets, writes, seeks, window.keys.estimate() as f64, before)
        };
        Windows {
            window_s: self.window_us as f64 / 1e6,
            started_unix_us: self.started_us,
            steps: match self.started_us {
                Some(_) => self.windows.iter().map(step).collect(),
                None => Vec::new(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::mix;

    #[test]
    fn windows_grow_and_lose_nothing() {
        let mut series = WindowSeries::default();
        let seconds = 10u64;
        for operation in 0..100_000u64 {
            let unix_us = 5_000_000 + operation * seconds * 10;
            series.go_to(unix_us, || operation as f64);
            series.note(Group::Get, mix(operation));
        }
        let summary = series.summary(100_000.0);
        let steps = &summary.steps;
        assert!(steps.len() <= WINDOWS && steps.len() > WINDOWS / 4);
        assert_eq!(steps.iter().map(|step| step.0).sum::<u64>(), 100_000);
        let covered_s = summary.window_s * steps.len() as f64;
        assert!(covered_s >= seconds as f64 && covered_s < 2.0 * seconds as f64);
        for step in steps {
            assert!(
                (step.3 - step.0 as f64).abs() <= 0.1 * step.0 as f64 + 1.0,
                "{step:?}"
            );
        }
        assert!(steps.windows(2).all(|pair| pair[0].4 <= pair[1].4));
        assert_eq!(steps.last().unwrap().4, 100_000.0);
    }

    #[test]
    fn a_long_pause_and_a_step_back_are_survived() {
        let mut series = WindowSeries::default();
        for unix_us in [1_000_000, 3_600_000_000_000, 0, u64::MAX] {
            series.go_to(unix_us, || 1.0);
            series.note(Group::Write, 1);
        }
        let summary = series.summary(1.0);
        assert_eq!(summary.steps.iter().map(|step| step.1).sum::<u64>(), 4);
        assert!(summary.steps.len() <= WINDOWS);
    }
}
