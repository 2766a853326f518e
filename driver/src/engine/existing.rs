//! Opening a database that already exists.

use std::path::Path;

use super::{EngineError, Options, Result};

/// Refuses a `directory` without a database. Databases of both engines name their newest manifest
/// in a file `CURRENT`. Without this check, both engines would leave a lock and a log behind before
/// they notice, or make a new database.
pub fn require_database(directory: &Path) -> Result<()> {
    if directory.join("CURRENT").is_file() {
        return Ok(());
    }
    Err(EngineError::failed(format!(
        "{}: holds no database (no file CURRENT)",
        directory.display()
    )))
}

/// `options` without the option that refuses existing databases; both engines use the same name.
pub fn for_existing(options: &Options) -> Options {
    let mut options = options.clone();
    options.remove("error_if_exists");
    options
}
