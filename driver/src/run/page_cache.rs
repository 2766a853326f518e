//! The kernel's page cache before a measure phase.

use crate::engine::{Database, Engine};
use crate::measure::{cached_share, drop_cached};
use crate::protocol::{Outcome, PageCache, Phase, PhaseKind, RunRequest};

use super::failure::Failure;

/// Prepares the page cache for `phase`. Returns the database and, for a cold start, the share of
/// its pages that is still in memory (`None` if that cannot be measured).
///
/// For a cold start the database is closed before its pages are dropped, because the kernel keeps
/// pages that an engine has mapped. Opening it again reads and may write, so its pages are dropped
/// once more. The engine's own cache begins empty, too.
pub fn prepare(
    request: &RunRequest,
    engine: &dyn Engine,
    database: Box<dyn Database>,
    phase: &Phase,
) -> Result<(Box<dyn Database>, Option<f64>), Failure> {
    let cold = request.workload.page_cache == PageCache::Cold;
    if !cold || phase.kind != PhaseKind::Measure || !engine.keeps_files() {
        return Ok((database, None));
    }
    drop(database);
    let directory = &request.directory;
    let failed = |error| Failure::system("page_cache", directory, &error, Outcome::Crashed);
    drop_cached(directory).map_err(failed)?;
    let durability = request.workload.durability;
    let database = engine
        .reopen(directory, &request.options, durability)
        .map_err(Failure::running)?;
    drop_cached(directory).map_err(failed)?;
    let share = cached_share(directory).map_err(failed)?;
    Ok((database, share))
}
