//! What each thread of a phase does: first its own threads, then those of each companion.

use std::sync::Arc;

use crate::engine::{EngineError, Result};
use crate::protocol::{Mix, Operation, Phase};

use super::arrival::Pace;
use super::mix::MixPlan;

/// What one thread repeats.
#[derive(Debug, Clone)]
pub enum Work {
    /// One operation of db_bench.
    Operation(Operation),
    /// Several operations, drawn at random, by a plan that the threads of a group share.
    Mix(Arc<MixPlan>),
}

/// The group to which a thread belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side<'a> {
    /// The phase's own threads: the phase sizes and measures these.
    Own,
    /// The writer of `readwhilewriting`, whose latencies are filed with the phase's.
    Writer,
    /// The threads of a companion, whose latencies are filed under its name.
    Companion(&'a str),
}

/// What one thread has to do.
#[derive(Debug, Clone)]
pub struct Task<'a> {
    /// What it repeats.
    pub work: Work,
    /// The group to which the thread belongs.
    pub side: Side<'a>,
    /// The thread's number, from 0, in its group, and the number of threads there.
    pub share: (usize, usize),
    /// The pace of its group; `None` for a closed loop.
    pub pace: Option<Pace>,
}

/// The tasks of all threads of `phase`, in the order of their numbers. `written` is for the plan of
/// a mix.
pub fn tasks(phase: &Phase, written: Option<u64>) -> Result<Vec<Task<'_>>> {
    let work = |name: &str, operation: Option<Operation>, mix: &Option<Mix>| match (operation, mix)
    {
        // The writer is a separate thread.
        (Some(Operation::ReadWhileWriting), _) => Ok(Work::Operation(Operation::ReadRandom)),
        (Some(operation), _) => Ok(Work::Operation(operation)),
        (None, Some(mix)) => Ok(Work::Mix(Arc::new(MixPlan::new(mix, written)))),
        (None, None) => Err(EngineError::failed(format!(
            "phase {name} has nothing to do"
        ))),
    };
    let own = work(&phase.name, phase.operation, &phase.mix)?;
    let mut tasks = Vec::new();
    group(&mut tasks, &own, Side::Own, phase.threads, Pace::of(phase));
    if phase.operation == Some(Operation::ReadWhileWriting) {
        let writes = Work::Operation(Operation::Overwrite);
        group(&mut tasks, &writes, Side::Writer, 1, None);
    }
    for each in &phase.companions {
        let beside = work(&each.name, each.operation, &each.mix)?;
        let pace = each.rate_ops_s.map(|ops_s| Pace::Constant { ops_s });
        let side = Side::Companion(&each.name);
        group(&mut tasks, &beside, side, each.threads, pace);
    }
    Ok(tasks)
}

/// Adds the tasks of `threads` that do the same.
fn group<'a>(
    tasks: &mut Vec<Task<'a>>,
    work: &Work,
    side: Side<'a>,
    threads: usize,
    pace: Option<Pace>,
) {
    tasks.extend((0..threads).map(|thread| Task {
        work: work.clone(),
        side,
        share: (thread, threads),
        pace: pace.clone(),
    }));
}
