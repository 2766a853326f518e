//! Workloads: what each thread of a phase does, when it starts each operation, and what the
//! database must hold afterwards.

mod arrival;
mod gate;
mod ledger;
mod operations;
mod phase;
mod verify;
mod worker;

pub use ledger::Ledger;
pub use phase::{run_phase, PhaseContext, PhaseObservation, SliceOver, Watcher};
pub use verify::{verify, Verification};
