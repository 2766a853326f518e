//! Writers who wait for a flush that will never come.
//!
//! When a flush or a compaction fails for lack of space, RocksDB stops background work and waits
//! for space. Writers wait for the memtables that are not written out (`DelayWrite` in its
//! `db_impl_write.cc` continues to wait while an automatic recovery is in progress). Observed in
//! 10.2.1 on a full device: sometimes the error reaches the next writer, sometimes all writers wait
//! for ever.

use std::ffi::CStr;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use super::api::Api;
use crate::engine::c_store::DbHandle;
use crate::engine::library::status_error;
use crate::engine::log_lines::for_each_line;
use crate::engine::{EngineError, Result};

/// The time between two looks.
const LOOK: Duration = Duration::from_millis(500);

/// How many looks in a row must find the engine stuck: three seconds. By then an engine that can
/// recover has begun a flush or a compaction.
const LOOKS: u32 = 6;

/// Watches a database, on a thread of its own, until it is dropped.
#[derive(Debug)]
pub struct Watch {
    verdict: Arc<OnceLock<EngineError>>,
    /// `None` only while it is being dropped.
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Watch {
    /// Begins to watch. The watch must be dropped before the database is closed.
    pub fn start(api: &'static Api, handle: DbHandle, directory: &Path) -> Result<Self> {
        let verdict = Arc::new(OnceLock::new());
        let (stop, stopped) = channel();
        let (shared, directory) = (Arc::clone(&verdict), directory.to_owned());
        let thread = std::thread::Builder::new()
            .name("watch".into())
            .spawn(move || watch(api, handle, &directory, &stopped, &shared))
            .map_err(|error| EngineError::failed(format!("cannot start a thread: {error}")))?;
        Ok(Watch {
            verdict,
            thread: Some((stop, thread)),
        })
    }

    /// Why the engine was stuck, if it was; otherwise `error`, which a call returned.
    #[cold]
    pub fn explain(&self, error: EngineError) -> EngineError {
        self.verdict.get().cloned().unwrap_or(error)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            // A thread that panicked has also ended; nothing else matters here.
            drop(thread.join());
        }
    }
}

fn watch(
    api: &Api,
    handle: DbHandle,
    directory: &Path,
    stopped: &Receiver<()>,
    verdict: &OnceLock<EngineError>,
) {
    let mut looks = 0;
    while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        looks = if is_stuck(api, handle) { looks + 1 } else { 0 };
        if looks == LOOKS {
            // Stored first, because the next call wakes the writers, which read it.
            drop(verdict.set(reason(directory)));
            // SAFETY: the database is open as long as this thread runs. Without waiting, the call
            // only tells writers and background work to give up.
            unsafe { (api.cancel_all_background_work)(handle.get(), 0) };
            return;
        }
    }
}

/// Whether writes are stopped, an error was counted, and nothing runs that could change this.
fn is_stuck(api: &Api, handle: DbHandle) -> bool {
    let number = |property| number(api, handle, property);
    number(c"rocksdb.is-write-stopped") == Some(1)
        && number(c"rocksdb.background-errors").is_some_and(|count| count > 0)
        && number(c"rocksdb.num-running-compactions") == Some(0)
        && number(c"rocksdb.num-running-flushes") == Some(0)
}

/// A property that is a number; `None` if the engine does not have it.
pub fn number(api: &Api, handle: DbHandle, property: &CStr) -> Option<u64> {
    let mut value = 0;
    // SAFETY: the database is open and the name ends with NUL.
    let status = unsafe { (api.property_int)(handle.get(), property.as_ptr(), &raw mut value) };
    (status == 0).then_some(value)
}

/// The last background error in the engine's log: its interface does not report it.
fn reason(directory: &Path) -> EngineError {
    let mut last = None;
    if let Ok(log) = File::open(directory.join("LOG")) {
        let read = for_each_line(BufReader::new(log), |line| {
            last = background_error(&String::from_utf8_lossy(line)).or(last.take());
        });
        // If reading failed, the lines read so far have to do.
        drop(read);
    }
    // The log is on the same device, which may have no room for that line either.
    let full = "No space left on device: the engine lets nobody write";
    let unknown = "the engine lets nobody write after an error in the background";
    let without = if is_full(directory) { full } else { unknown };
    status_error(last.as_deref().unwrap_or(without))
}

/// Whether the device of `directory` has no room for a file of a few blocks.
fn is_full(directory: &Path) -> bool {
    let path = directory.join("room");
    let written = std::fs::write(&path, [0; 1 << 16]);
    // What could not be removed goes with the folder of the run.
    drop(std::fs::remove_file(path));
    written.is_err_and(|error| error.kind() == std::io::ErrorKind::StorageFull)
}

/// The status in `... Background IO error STATUS, reason N`.
fn background_error(line: &str) -> Option<String> {
    let (_, status) = line.split_once("Background IO error ")?;
    let status = status.split_once(", reason ").map_or(status, |(s, _)| s);
    Some(status.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "2026/11/21-09:01:33.983475 1401 [WARN] [/error_handler.cc:399] \
        Background IO error IO error: No space left on device: While appending to file: \
        /db/000020.sst: No space left on device, reason 5";

    #[test]
    fn the_reason_is_the_last_one_logged() {
        let folder = tempfile::tempdir().unwrap();
        let failed = reason(folder.path());
        assert!(matches!(failed, EngineError::Failed(_)), "{failed}");
        let log = format!("{LINE}\n{}\nother\n", LINE.replace("000020", "000017"));
        std::fs::write(folder.path().join("LOG"), log).unwrap();
        let full = reason(folder.path());
        assert_eq!(
            full,
            EngineError::DiskFull(
                "IO error: No space left on device: While appending to file: \
                 /db/000017.sst: No space left on device"
                    .into()
            )
        );
    }
}
