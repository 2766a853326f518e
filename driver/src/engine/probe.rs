//! What an engine library can do, found by trying it.

use std::path::Path;

use super::scratch::Scratch;
use super::{Database, Durability, Engine, Identity, Options, Result};

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
    let directory = own.database("probe");
    let database: Box<dyn Database> = engine.open(&directory, &Options::new(), Durability::Wal)?;
    Ok(Probe {
        identity: database.identity(),
        compressions: engine.compressions(scratch)?,
        options: engine.known_options(scratch)?,
    })
}
