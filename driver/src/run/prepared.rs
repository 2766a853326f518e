//! Databases that an earlier run made. A ledger says what they hold, and a run saves its own ledger
//! for later runs.

use std::io::ErrorKind;
use std::path::Path;

use crate::engine::Engine;
use crate::protocol::{BulkLoad, ErrorReply, Outcome, Phase, RunRequest, SizeDistribution};
use crate::workload::{load_ledger, save_ledger, Ledger, LedgerFileError, Origins};

use super::check::{require, within};
use super::failure::Failure;

/// Checks that what the request says about earlier and later runs makes sense for `engine`.
pub fn check(request: &RunRequest, engine: &dyn Engine) -> Result<(), Failure> {
    let name = &request.engine.name;
    if let Some(bulk) = &request.bulk_load {
        within(1..=BulkLoad::THREADS_MAX, "bulk_load.threads", bulk.threads)?;
    }
    let on_disk = "an engine that keeps its data on disk";
    if let Some(prepared) = &request.prepared {
        require(engine.keeps_files(), "prepared", name, on_disk)?;
        let count = request.workload.phases.len();
        require(
            (1..=count).contains(&prepared.phases),
            "prepared.phases",
            prepared.phases,
            &format!("1 to {count}, the phases of the workload"),
        )?;
        let directory = request.directory.display();
        let there = request.directory.is_dir();
        require(there, "directory", directory, "the folder of a database")?;
    }
    let saves = request.save_ledger.is_some();
    let mut phases = request.workload.phases.iter();
    if let Some(phase) = phases.find(|phase| phase.replay.is_some()) {
        // A ledger has key numbers, while a trace has keys.
        let allowed = format!("absent, because phase {} replays a trace", phase.name);
        require(!saves, "save_ledger", "a file", &allowed)?;
    }
    require(!saves || engine.keeps_files(), "save_ledger", name, on_disk)
}

/// The ledger that the run begins with: that of the prepared database, or an empty one.
pub fn ledger(request: &RunRequest) -> Result<Ledger, Failure> {
    let Some(prepared) = &request.prepared else {
        return Ok(Ledger::new(
            request.load_seed(),
            request.verify_keys,
            request.workload.num,
        ));
    };
    let origins = origins(request, prepared.phases);
    load_ledger(&prepared.ledger, &origins, request.verify_keys)
        .map_err(|error| refused(&prepared.ledger, &error))
}

fn refused(path: &Path, error: &LedgerFileError) -> Failure {
    if let LedgerFileError::Unreadable(error) = error {
        if error.raw_os_error().is_some() && error.kind() != ErrorKind::NotFound {
            return Failure::system("prepared.ledger", path, error, Outcome::Invalid);
        }
    }
    let allowed = match error {
        LedgerFileError::Other { .. } => "the ledger of a database of the same workload",
        _ => "a whole ledger that save_ledger wrote",
    };
    let path = path.display().to_string();
    Failure::invalid(ErrorReply {
        field: Some("prepared.ledger".to_owned()),
        allowed: Some(allowed.to_owned()),
        found: Some(path.clone()),
        ..ErrorReply::new(
            "ledger",
            format!("prepared.ledger: found {path}: {error}; allowed: {allowed}"),
        )
    })
}

/// Saves the ledger of a successful run, if the request asks for it.
pub fn save(request: &RunRequest, ledger: &Ledger) -> Result<(), Failure> {
    let Some(path) = &request.save_ledger else {
        return Ok(());
    };
    let origins = origins(request, request.workload.phases.len());
    save_ledger(path, &origins, ledger)
        .map_err(|error| Failure::system("save_ledger", path, &error, Outcome::Invalid))
}

fn origins(request: &RunRequest, phases: usize) -> Origins {
    let workload = &request.workload;
    Origins {
        key_bytes: workload.key_bytes,
        value_bytes: workload.value_bytes,
        keys: workload.keys.clone(),
        key_sizes: workload.key_sizes.clone(),
        databases: workload.databases,
        column_families: workload.column_families,
        value_sizes: value_sizes(&workload.phases[..phases]),
        compression_ratio: workload.compression_ratio,
        num: workload.num,
        load_seed: request.load_seed(),
        phases,
    }
}

/// The sizes of the values that each of `phases` writes, if they differ from those of the workload.
fn value_sizes(phases: &[Phase]) -> Vec<Option<SizeDistribution>> {
    let sizes = phases
        .iter()
        .map(|phase| phase.mix.as_ref()?.value_sizes.clone());
    let mut sizes: Vec<_> = sizes.collect();
    while sizes.last().is_some_and(Option::is_none) {
        sizes.pop();
    }
    sizes
}
