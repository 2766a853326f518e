//! A directory for throw-away databases.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{EngineError, Result};

/// Marks a directory as one that lsmtune made and may delete.
const MARKER: &str = ".lsmtune-owned";

/// A new directory, removed with all it holds when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes a directory of a new name inside `parent`, or, where nothing can be made there, in
    /// the system's directory for temporary files.
    pub fn inside(parent: &Path) -> Result<Self> {
        Self::create(parent).or_else(|_| {
            Self::create(&std::env::temp_dir()).map_err(|error| EngineError::Failed {
                message: format!("cannot make a temporary directory: {error}"),
            })
        })
    }

    fn create(parent: &Path) -> std::io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos());
        let name = format!(".lsmtune-scratch-{}-{now}-{count}", std::process::id());
        // `create_dir` fails where something exists: what is removed later is only ever ours.
        let scratch = Self {
            path: parent.join(name),
        };
        std::fs::create_dir(&scratch.path)?;
        std::fs::write(scratch.path.join(MARKER), "")?;
        Ok(scratch)
    }

    /// A path inside, where nothing has been made yet.
    pub fn database(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing can be done about a failure here, and the marker lets the tuner sweep it later.
        drop(std::fs::remove_dir_all(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::Scratch;

    #[test]
    fn it_is_new_marked_and_goes_away() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::inside(parent.path()).unwrap();
        let other = Scratch::inside(parent.path()).unwrap();
        assert_ne!(scratch.database("a"), other.database("a"));
        assert!(scratch.database(".lsmtune-owned").is_file());
        std::fs::create_dir_all(scratch.database("db/deep")).unwrap();
        drop((scratch, other));
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
