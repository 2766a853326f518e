//! Opening a database that exists.

use std::path::Path;

use super::{EngineError, Options, Result};

/// Refuses a `directory` that holds no database of an engine whose databases name their newest
/// manifest in a file `CURRENT`. Without it, both engines would leave a lock and a log behind
/// before they find out, or make a new database.
pub fn require_database(directory: &Path) -> Result<()> {
    if directory.join("CURRENT").is_file() {
        return Ok(());
    }
    Err(EngineError::Failed {
        message: format!(
            "{}: holds no database (no file CURRENT)",
            directory.display()
        ),
    })
}

/// `options` without the one, of the same name in both engines, that refuses what exists.
pub fn for_existing(options: &Options) -> Options {
    let mut options = options.clone();
    options.remove("error_if_exists");
    options
}
