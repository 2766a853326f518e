//! What each thread of a phase does: first its own threads, then those of each companion.

use crate::engine::{EngineError, Result};
use crate::protocol::{Companion, Mix, Operation, Phase};

use super::arrival::Pace;
use super::mix::MixPlan;

/// What one thread repeats.
#[derive(Debug, Clone, Copy)]
pub enum Work<'a> {
    /// One operation of db_bench.
    Operation(Operation),
    /// Several operations, drawn at random.
    Mix(&'a MixPlan),
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
    pub work: Work<'a>,
    /// The group to which the thread belongs.
    pub side: Side<'a>,
    /// The thread's number, from 0, in its group, and the number of threads there.
    pub share: (usize, usize),
    /// The pace of its group; `None` for a closed loop.
    pub pace: Option<Pace>,
}

/// The mixes of a phase, which its threads share.
#[derive(Debug)]
pub struct Plans {
    own: Option<MixPlan>,
    companions: Vec<Option<MixPlan>>,
}

impl Plans {
    /// The mixes of `phase` and of its companions.
    pub fn new(phase: &Phase) -> Self {
        let plan = |mix: &Option<Mix>| mix.as_ref().map(MixPlan::new);
        Plans {
            own: plan(&phase.mix),
            companions: phase.companions.iter().map(|c| plan(&c.mix)).collect(),
        }
    }
}

/// The tasks of all threads of `phase`, in the order of their numbers.
pub fn tasks<'a>(phase: &'a Phase, plans: &'a Plans) -> Result<Vec<Task<'a>>> {
    let own = work(&phase.name, phase.operation, plans.own.as_ref())?;
    let mut tasks: Vec<_> = group(own, Side::Own, phase.threads, Pace::of(phase)).collect();
    if phase.operation == Some(Operation::ReadWhileWriting) {
        let writes = Work::Operation(Operation::Overwrite);
        tasks.extend(group(writes, Side::Writer, 1, None));
    }
    for (companion, plan) in phase.companions.iter().zip(&plans.companions) {
        let Companion {
            name, operation, ..
        } = companion;
        let pace = companion.rate_ops_s.map(|ops_s| Pace::Constant { ops_s });
        let beside = work(name, *operation, plan.as_ref())?;
        tasks.extend(group(
            beside,
            Side::Companion(name),
            companion.threads,
            pace,
        ));
    }
    Ok(tasks)
}

/// The tasks of `threads` that do the same.
fn group<'a>(
    work: Work<'a>,
    side: Side<'a>,
    threads: usize,
    pace: Option<Pace>,
) -> impl Iterator<Item = Task<'a>> {
    (0..threads).map(move |thread| Task {
        work,
        side,
        share: (thread, threads),
        pace: pace.clone(),
    })
}

fn work<'a>(
    name: &str,
    operation: Option<Operation>,
    plan: Option<&'a MixPlan>,
) -> Result<Work<'a>> {
    match (operation, plan) {
        // The writer is a separate thread.
        (Some(Operation::ReadWhileWriting), _) => Ok(Work::Operation(Operation::ReadRandom)),
        (Some(operation), _) => Ok(Work::Operation(operation)),
        (None, Some(plan)) => Ok(Work::Mix(plan)),
        (None, None) => Err(EngineError::failed(format!(
            "phase {name} has nothing to do"
        ))),
    }
}
