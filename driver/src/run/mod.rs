//! One run: open, execute the phases, close, reopen, read back, and report each step.

mod after_crash;
pub(crate) mod check;
mod failure;
mod inspect;
mod page_cache;
mod phases;
mod prepared;
mod report;
mod reporter;
mod turns;
mod wall_clock;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::engine::{self, Engine};
use crate::measure::{directory_bytes, process_cpu_s, ProcessCounters};
use crate::protocol::{
    EngineRequest, Message, OptionDefault, ProbeRequest, Request, RunRequest, Workload,
    PROTOCOL_VERSION,
};
use crate::random::KeyWriter;
use crate::workload::verify;

use failure::Failure;
use phases::Phases;
use turns::Turns;

/// Where messages go. An error means that nobody listens any more.
pub trait Sink {
    /// Sends one message.
    fn send(&mut self, message: &Message) -> std::io::Result<()>;

    /// Stops this process until somebody continues it. Does not stop if there is input to read
    /// first.
    fn stop_process(&mut self) -> std::io::Result<()>;
}

/// Carries out `request`, reports to `sink`, and polls `cancelled` throughout.
///
/// Returns whether the run succeeded; the last message is then `finished`, otherwise `failed`.
/// Errors are those of the sink.
pub fn execute(
    request: &Request,
    cancelled: &AtomicBool,
    sink: &mut dyn Sink,
) -> std::io::Result<bool> {
    let started = Instant::now();
    let done = match request {
        Request::Run(request) => run(request, cancelled, sink),
        Request::Probe(request) => probe(request, sink),
        Request::Check(request) => after_crash::check(request, cancelled, sink),
        Request::InspectTrace(request) => inspect::inspect_trace(request, cancelled, sink),
    };
    match done {
        Ok(usage) => {
            sink.send(&usage.finished(started))?;
            Ok(true)
        }
        Err(Failure::TunerGone(error)) => Err(error),
        Err(Failure::Reported(outcome, error)) => {
            let error = *error;
            sink.send(&Message::Failed { outcome, error })?;
            Ok(false)
        }
    }
}

/// The first message of every conversation.
pub fn hello() -> Message {
    Message::Hello {
        protocol_version: PROTOCOL_VERSION,
        driver_version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// What is known only at the end of a run.
#[derive(Default)]
struct Usage {
    /// Peak resident memory before the present peak began.
    rss_bytes_max: u64,
    database_bytes: u64,
    stopped_s: f64,
}

impl Usage {
    fn finished(self, started: Instant) -> Message {
        Message::Finished {
            outcome: "ok".to_owned(),
            elapsed_s: started.elapsed().as_secs_f64() - self.stopped_s,
            cpu_s: process_cpu_s(),
            rss_bytes_max: self.rss_bytes_max.max(ProcessCounters::rss_bytes_max()),
            database_bytes: self.database_bytes,
        }
    }
}

fn run(
    request: &RunRequest,
    cancelled: &AtomicBool,
    sink: &mut dyn Sink,
) -> Result<Usage, Failure> {
    check::workload(&request.workload)?;
    check::interval(request)?;
    check::slices(request)?;
    check::merges(request)?;
    let engine = engine_for(&request.engine, &request.workload)?;
    prepared::check(request, &*engine)?;
    check::create(&request.directory)?;
    let ledger = prepared::ledger(request)?;
    page_cache::own(request)?;
    let turns = Turns::new(request.slices, cancelled)?;
    let mut phases = Phases::new(request, ledger, cancelled, turns);
    phases.execute(&*engine, sink)?;
    let database_bytes = directory_bytes(&request.directory);
    phases.send_background_work(&*engine, sink)?;
    read_back(request, &*engine, &phases, sink)?;
    prepared::save(request, &phases.ledger)?;
    Ok(Usage {
        rss_bytes_max: phases.rss_bytes_max,
        database_bytes,
        stopped_s: phases.turns.stopped_s,
    })
}

fn load(request: &EngineRequest) -> Result<Box<dyn Engine>, Failure> {
    engine::load(&request.name, request.library.as_deref()).map_err(Failure::opening)
}

/// The engine with as many databases and column families as the workload has.
fn engine_for(request: &EngineRequest, workload: &Workload) -> Result<Box<dyn Engine>, Failure> {
    let families = workload.column_families;
    engine::arrange(load(request)?, workload.databases, families).ok_or_else(|| {
        let allowed = format!("1: {} has none", request.name);
        check::refusal("workload.column_families", families, &allowed)
    })
}

/// Reopens the closed database and compares a sample of the written keys.
fn read_back(
    request: &RunRequest,
    engine: &dyn Engine,
    phases: &Phases<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let (ledger, replayed) = (&phases.ledger, &phases.replayed);
    if !phases.keeps_data || (ledger.is_empty() && replayed.is_empty()) {
        return Ok(());
    }
    let (workload, options) = (&request.workload, &request.options);
    let started = Instant::now();
    let database = engine
        .reopen(&request.directory, options, workload.durability)
        .map_err(Failure::running)?;
    let reopen_s = started.elapsed().as_secs_f64();
    let (keys, keys_min) = (KeyWriter::new(workload), request.verify_keys);
    let sample = verify(&*database, ledger, &phases.values, keys, keys_min)
        .map_err(Failure::running)?
        .and(replayed.verify(&*database).map_err(Failure::running)?);
    sink.send(&Message::Verified {
        keys_checked: sample.keys_checked,
        keys_lost: sample.keys_lost,
        keys_wrong: sample.keys_wrong,
        keys_beyond: None,
        keys_scanned: None,
        reopen_s,
    })?;
    if sample.keys_lost + sample.keys_wrong == 0 {
        return Ok(());
    }
    Err(Failure::data_loss(format!(
        "{} of {} sampled keys lost, {} wrong",
        sample.keys_lost, sample.keys_checked, sample.keys_wrong
    )))
}

fn probe(request: &ProbeRequest, sink: &mut dyn Sink) -> Result<Usage, Failure> {
    let engine = load(&request.engine)?;
    check::create(&request.directory)?;
    let probe = engine::probe(&*engine, &request.directory).map_err(Failure::opening)?;
    let options = probe.options.into_iter();
    sink.send(&Message::Probed {
        engine: probe.identity,
        compressions: probe.compressions,
        options: options
            .map(|(name, default)| OptionDefault { name, default })
            .collect(),
    })?;
    Ok(Usage::default())
}
