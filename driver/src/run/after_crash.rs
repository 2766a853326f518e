//! The second half of the crash test. A driver was killed in the middle of a load. The database
//! that it left behind must hold every write that it had reported as done, and nothing that nobody
//! wrote; and it must open once more after that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::engine::EngineError;
use crate::measure::directory_bytes;
use crate::protocol::{CheckRequest, Message, Operation, PhaseKind};
use crate::workload::{verify_load, Load, Values};

use super::check::{self, require};
use super::failure::Failure;
use super::{engine_for, Sink, Usage};

/// Opens the database, reads back all acknowledged keys, scans it, and opens it once more.
///
/// The same options have opened the database before. If they no longer open it, the engine has
/// failed (`crashed`).
pub fn check(
    request: &CheckRequest,
    cancelled: &AtomicBool,
    sink: &mut dyn Sink,
) -> Result<Usage, Failure> {
    check::workload(&request.workload)?;
    let engine = engine_for(&request.engine, &request.workload)?;
    let expected = expected(request)?;
    let name = &request.engine.name;
    let on_disk = "an engine that keeps its data on disk";
    require(engine.keeps_files(), "engine.name", name, on_disk)?;
    let (directory, durability) = (&request.directory, request.workload.durability);
    let (there, shown) = (directory.is_dir(), directory.display());
    require(there, "directory", shown, "the folder of a database")?;
    let started = Instant::now();
    let database = engine
        .reopen(directory, &request.options, durability)
        .map_err(Failure::running)?;
    let reopen_s = started.elapsed().as_secs_f64();
    let load_seed = request.load_seed.unwrap_or(request.seed);
    let values = Values::new(&request.workload, load_seed);
    let stop = || cancelled.load(Ordering::Relaxed);
    let recovered = verify_load(&*database, &expected, &values, &stop).map_err(Failure::running)?;
    drop(database);
    let again = engine.reopen(directory, &request.options, durability);
    drop(again.map_err(|error| {
        Failure::running(EngineError::failed(format!(
            "opened once, and then: {error}"
        )))
    })?);
    sink.send(&Message::Verified {
        keys_checked: expected.acknowledged,
        keys_lost: recovered.keys_lost,
        keys_wrong: recovered.keys_wrong,
        keys_beyond: Some(recovered.keys_beyond),
        keys_scanned: recovered.keys_scanned,
        reopen_s,
    })?;
    if recovered.keys_lost + recovered.keys_wrong == 0 {
        return Ok(Usage {
            database_bytes: directory_bytes(directory),
            ..Usage::default()
        });
    }
    Err(Failure::data_loss(format!(
        "{} of {} acknowledged keys lost, {} keys wrong",
        recovered.keys_lost, expected.acknowledged, recovered.keys_wrong
    )))
}

/// The load of the request, if the number of finished operations determines its keys.
fn expected(request: &CheckRequest) -> Result<Load<'_>, Failure> {
    let workload = &request.workload;
    // A scan over several begins anew in each, which would look like keys out of order.
    let (databases, families) = (workload.databases, workload.column_families);
    require(databases == 1, "workload.databases", databases, "1")?;
    require(families == 1, "workload.column_families", families, "1")?;
    let phase = &workload.phases[0];
    let field = |name: &str| format!("workload.phases[0].{name}");
    let operation = phase
        .operation
        .filter(|operation| matches!(operation, Operation::FillSeq | Operation::FillUniqueRandom));
    let Some(operation) = operation else {
        let allowed = "fillseq or filluniquerandom, whose keys follow from their number";
        let found = serde_json::json!(phase.operation);
        return Err(check::refusal(&field("operation"), found, allowed));
    };
    let single = phase.threads == 1;
    require(single, &field("threads"), phase.threads, "1")?;
    let operations = phase.operations_whole().unwrap_or(0);
    let (sensible, size) = (
        (1..=workload.num).contains(&operations),
        field("operations_per_thread"),
    );
    let allowed = format!("1 to {}, so that no key is written twice", workload.num);
    require(sensible, &size, operations, &allowed)?;
    let acknowledged = request.acknowledged;
    let allowed = format!("at most {operations}, the operations of the load");
    require(
        acknowledged <= operations,
        "acknowledged",
        acknowledged,
        &allowed,
    )?;
    Ok(Load {
        workload,
        operation,
        seed: match phase.kind {
            PhaseKind::Load => request.load_seed.unwrap_or(request.seed),
            _ => request.seed,
        },
        operations,
        acknowledged,
    })
}
