//! Blocking engine calls that cannot be cancelled, made on another thread.

use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{EngineError, Result};

/// The time between two checks whether a waiting caller was cancelled.
const POLL: Duration = Duration::from_millis(20);

/// Makes at most one blocking call of a database at a time.
///
/// A caller that is cancelled returns at once, while the call continues. Dropping the flusher waits
/// for it, and must come before the database that the call uses is closed.
#[derive(Debug, Default)]
pub struct Flusher {
    running: Mutex<Option<Call>>,
}

#[derive(Debug)]
struct Call {
    thread: JoinHandle<()>,
    result: Receiver<Result<()>>,
}

impl Flusher {
    /// Makes the call, after any earlier one has ended.
    pub fn run(
        &self,
        call: impl FnOnce() -> Result<()> + Send + 'static,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<()> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        wait(&mut running, cancelled)?;
        let (sender, result) = channel();
        let thread = std::thread::Builder::new()
            .name("flush".into())
            // If the receiver is gone, its caller has cancelled and does not want the result.
            .spawn(move || drop(sender.send(call())))
            .map_err(|error| EngineError::failed(format!("cannot start a thread: {error}")))?;
        *running = Some(Call { thread, result });
        wait(&mut running, cancelled)
    }

    /// Whether a call that its caller abandoned is still running.
    pub fn is_running(&self) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running
            .as_ref()
            .is_some_and(|call| !call.thread.is_finished())
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        let running = self.running.get_mut();
        if let Some(call) = running.unwrap_or_else(PoisonError::into_inner).take() {
            // A call that panicked has also ended; nothing else matters here.
            drop(call.thread.join());
        }
    }
}

fn wait(running: &mut Option<Call>, cancelled: &dyn Fn() -> bool) -> Result<()> {
    let Some(call) = running.as_ref() else {
        return Ok(());
    };
    let result = loop {
        match call.result.recv_timeout(POLL) {
            Ok(result) => break result,
            Err(RecvTimeoutError::Timeout) if cancelled() => return Err(EngineError::Cancelled),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                break Err(EngineError::failed("the flush thread panicked"))
            }
        }
    };
    *running = None;
    result
}

/// The waits between polls. They are short at first, so that a short drain is not charged too much.
/// Later they are long enough not to disturb the engine, whose lock each poll takes.
#[derive(Debug)]
pub struct Backoff(Duration);

impl Backoff {
    /// The first wait is a quarter of a millisecond.
    pub const fn new() -> Self {
        Self(Duration::from_micros(250))
    }

    /// Sleeps; the next sleep is twice as long, up to 4 ms.
    pub fn sleep(&mut self) {
        std::thread::sleep(self.0);
        self.0 = (self.0 * 2).min(Duration::from_millis(4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::Arc;

    #[test]
    fn a_result_is_handed_on() {
        let flusher = Flusher::default();
        assert_eq!(flusher.run(|| Ok(()), &|| false), Ok(()));
        let error = flusher.run(|| Err(EngineError::failed("broken")), &|| false);
        assert_eq!(error, Err(EngineError::failed("broken")));
    }

    #[test]
    fn a_cancelled_call_returns_soon_and_is_waited_for_in_the_end() {
        let flusher = Flusher::default();
        let ended = Arc::new(AtomicBool::new(false));
        let inside = Arc::clone(&ended);
        let (go_on, told) = std::sync::mpsc::channel();
        let result = flusher.run(
            move || {
                told.recv().unwrap();
                inside.store(true, Ordering::SeqCst);
                Ok(())
            },
            &|| true,
        );
        assert_eq!(result, Err(EngineError::Cancelled));
        assert!(!ended.load(Ordering::SeqCst));
        go_on.send(()).unwrap();
        drop(flusher);
        assert!(ended.load(Ordering::SeqCst));
    }

    #[test]
    fn a_call_that_panics_is_an_error() {
        let flusher = Flusher::default();
        let result = flusher.run(|| panic!("on purpose"), &|| false);
        assert!(matches!(result, Err(EngineError::Failed(_))));
    }
}
