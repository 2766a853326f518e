//! The second half of the crash test. A driver was killed in the middle of a load. The database
//! that it left behind must hold every write that it had reported as done, and nothing that nobody
//! wrote; and it must open once more after that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::engine::EngineError;
use crate::measure::{directory_bytes, ProcessCounters};
use crate::protocol::{
    CheckRequest, ErrorReply, Message, Operation, Outcome, Phase, PhaseKind, Workload,
};
use crate::random::KeyWriter;
use crate::workload::{verify_load, Load, StreamOf, Values};

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
    let there = directory.is_dir();
    require(
        there,
        "directory",
        directory.display(),
        "the folder of a database",
    )?;
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
            rss_bytes_max: ProcessCounters::rss_bytes_max(),
            database_bytes: directory_bytes(directory),
            stopped_s: 0.0,
        });
    }
    let message = format!(
        "{} of {} acknowledged keys lost, {} keys wrong",
        recovered.keys_lost, expected.acknowledged, recovered.keys_wrong
    );
    Err(Failure::reported(
        Outcome::DataLoss,
        ErrorReply::new("data_loss", message),
    ))
}

/// The load of the request, if the number of finished operations determines its keys.
fn expected(request: &CheckRequest) -> Result<Load, Failure> {
    let workload: &Workload = &request.workload;
    let phase: &Phase = &workload.phases[0];
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
    require(
        (1..=workload.num).contains(&operations),
        &field("operations_per_thread"),
        operations,
        &format!("1 to {}, so that no key is written twice", workload.num),
    )?;
    require(
        request.acknowledged <= operations,
        "acknowledged",
        request.acknowledged,
        &format!("at most {operations}, the operations of the load"),
    )?;
    let seed = match phase.kind {
        PhaseKind::Load => request.load_seed.unwrap_or(request.seed),
        _ => request.seed,
    };
    Ok(Load {
        stream: StreamOf {
            share: (0, phase.threads),
            index: 0,
            thread: 0,
            seed,
        },
        operation,
        num: workload.num,
        keys: KeyWriter::new(workload),
        operations,
        acknowledged: request.acknowledged,
    })
}
