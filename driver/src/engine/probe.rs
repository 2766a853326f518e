//! What an engine library can do, found by trying it.

use std::path::Path;

use super::scratch::Scratch;
use super::{Durability, Engine, EngineError, Identity, OpenResult, Options, Result};

/// What an engine states about itself, and what trying it showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// With the version, from a database that was opened for this purpose.
    pub identity: Identity,
    /// Short names of the compressions that work: none, snappy, zlib, bzip2, lz4, lz4hc, zstd.
    pub compressions: Vec<String>,
    /// Every option that the engine lists, by full name, with its default.
    pub options: Vec<(String, String)>,
}

/// Tries `engine` with throw-away databases in a directory of its own inside `scratch`.
pub fn probe(engine: &dyn Engine, scratch: &Path) -> Result<Probe> {
    let own = Scratch::inside(scratch)?;
    let database = open(engine, &own.database("probe"))?;
    Ok(Probe {
        identity: database.identity(),
        compressions: engine.compressions(scratch)?,
        options: engine.known_options(scratch)?,
    })
}

/// Opens a database in `directory`, under a durability that the engine has.
fn open(engine: &dyn Engine, directory: &Path) -> OpenResult {
    let lacks = |opened: &OpenResult| match opened {
        Err(EngineError::BadOptionValue { name, .. }) => name == "durability",
        _ => false,
    };
    let mut opened = engine.open(directory, &Options::new(), Durability::Wal);
    for other in [Durability::Sync, Durability::None] {
        if lacks(&opened) {
            opened = engine.open(directory, &Options::new(), other);
        }
    }
    opened
}
