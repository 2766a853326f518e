//! Keeping LevelDB's information log over several openings.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Puts the log of earlier openings in front of the current one, before the database in `directory`
/// is opened again. LevelDB then renames `LOG` to `LOG.old`, and the previous `LOG.old` would be
/// lost. Neither file is written to, because a copy of a database may share them with the original.
pub fn keep(directory: &Path) -> io::Result<()> {
    let path = |name: &str| directory.join(name);
    let (old, log, both) = (path("LOG.old"), path("LOG"), path("LOG.both"));
    if !old.is_file() || !log.is_file() {
        return Ok(());
    }
    let mut all = File::create(&both)?;
    for part in [&old, &log] {
        io::copy(&mut File::open(part)?, &mut all)?;
    }
    fs::rename(&both, &log)?;
    fs::remove_file(&old)
}

#[cfg(test)]
mod tests {
    use super::keep;

    #[test]
    fn logs_are_put_together_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        keep(folder.path()).unwrap();
        std::fs::write(path("LOG"), "b\n").unwrap();
        keep(folder.path()).unwrap();
        std::fs::write(path("LOG.old"), "a\n").unwrap();
        keep(folder.path()).unwrap();
        assert_eq!(std::fs::read_to_string(path("LOG")).unwrap(), "a\nb\n");
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }
}
