//! A directory for throw-away databases.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::library::status_error;
use super::Result;

/// Marks a directory as one that lsmtune made and may delete.
const MARKER: &str = ".lsmtune-owned";

/// A new directory. Dropping it removes it with its contents.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes a directory with a new name inside `parent`. If that fails, it makes one in the
    /// system's directory for temporary files.
    pub fn inside(parent: &Path) -> Result<Self> {
        Self::create(parent).or_else(|_| {
            Self::create(&std::env::temp_dir()).map_err(|error| {
                status_error(&format!("cannot make a temporary directory: {error}"))
            })
        })
    }

    /// Makes a directory with a new name inside `parent`, and nowhere else.
    pub fn only_inside(parent: &Path) -> Result<Self> {
        Self::create(parent)
            .map_err(|error| status_error(&format!("{}: {error}", parent.display())))
    }

    fn create(parent: &Path) -> std::io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos());
        let name = format!(".lsmtune-scratch-{}-{now}-{count}", std::process::id());
        // `create_dir` fails if something exists: only what was made here is removed later.
        let scratch = Self {
            path: parent.join(name),
        };
        std::fs::create_dir(&scratch.path)?;
        std::fs::write(scratch.path.join(MARKER), "")?;
        Ok(scratch)
    }

    /// A path inside the directory, at which nothing exists yet.
    pub fn database(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A failure here cannot be handled. The marker lets the tuner remove the directory later.
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
