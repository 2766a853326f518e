//! The kernel's page cache before a measure phase.

use crate::engine::{Database, Engine};
use crate::measure::{cached_share, drop_cached, read_in};
use crate::protocol::{Outcome, PageCache, Phase, PhaseKind, Prepared, RunRequest};

use super::failure::Failure;

/// Makes the cached pages of a prepared database those of this run, if the request asks for it.
///
/// Pages that the load or an earlier run has read are charged to their memory groups, and this run
/// would have them beside its own memory. Nobody else may use the files meanwhile.
pub fn own(request: &RunRequest) -> Result<(), Failure> {
    let wanted = |prepared: &Prepared| prepared.own_pages;
    if !request.prepared.as_ref().is_some_and(wanted) {
        return Ok(());
    }
    let directory = &request.directory;
    drop_cached(directory)
        .and_then(|()| read_in(directory))
        .map_err(|error| Failure::system("page_cache", directory, &error, Outcome::Crashed))
}

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
