//! The most space that a database takes during a phase.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::directory_bytes;

/// So many times as long as a look took it is not repeated, and no sooner than after `PAUSE_LEAST`:
/// with thousands of files a look takes milliseconds, and all of them at most 1 % of a processor.
const PAUSE_FACTOR: u32 = 100;
const PAUSE_LEAST: Duration = Duration::from_millis(10);

/// Looks at the files of a database from time to time.
#[derive(Debug)]
pub struct SpaceWatch {
    directory: PathBuf,
    bytes_max: Cell<u64>,
    next: Cell<Instant>,
}

impl SpaceWatch {
    /// Of the files below `directory`. It has not looked at them yet.
    pub fn new(directory: &Path) -> Self {
        SpaceWatch {
            directory: directory.to_path_buf(),
            bytes_max: Cell::new(0),
            next: Cell::new(Instant::now()),
        }
    }

    /// Looks at the files, unless it did so a short time ago.
    pub fn look(&self) {
        if Instant::now() >= self.next.get() {
            self.bytes_now();
        }
    }

    /// The bytes of the files now.
    pub fn bytes_now(&self) -> u64 {
        let began = Instant::now();
        let bytes = directory_bytes(&self.directory);
        self.bytes_max.set(self.bytes_max.get().max(bytes));
        let pause = (began.elapsed() * PAUSE_FACTOR).max(PAUSE_LEAST);
        self.next.set(Instant::now() + pause);
        bytes
    }

    /// The most that any look found.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_were_deleted_count_at_their_most() {
        let folder = tempfile::tempdir().unwrap();
        let watch = SpaceWatch::new(folder.path());
        let file = folder.path().join("table");
        std::fs::write(&file, vec![0; 5000]).unwrap();
        watch.look();
        // The next look comes too soon, however busy the machine is.
        watch.next.set(Instant::now() + Duration::from_secs(3600));
        std::fs::write(folder.path().join("other"), vec![0; 9000]).unwrap();
        watch.look();
        assert_eq!(watch.bytes_max(), 5000);
        std::fs::remove_file(&file).unwrap();
        assert_eq!((watch.bytes_now(), watch.bytes_max()), (9000, 9000));
        std::fs::remove_file(folder.path().join("other")).unwrap();
        assert_eq!((watch.bytes_now(), watch.bytes_max()), (0, 9000));
    }
}
