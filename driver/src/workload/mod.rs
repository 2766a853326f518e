//! Workloads: what each thread of a phase does, when it starts each operation, and what the
//! database must hold afterwards.

mod acknowledged;
mod arrival;
mod bulk;
mod gate;
mod ledger;
pub(crate) mod ledger_file;
mod mix;
mod observation;
mod operations;
mod phase;
mod read_check;
mod slices;
mod sorted;
mod streams;
mod tasks;
mod values;
mod verify;
mod worker;

pub use acknowledged::{verify_load, Load};
pub use bulk::{is_bulk, shared};
pub use ledger::Ledger;
pub use ledger_file::{load_ledger, save_ledger, LedgerFileError, Origins};
pub use observation::{Observation, ThreadObservation};
pub use phase::{run_phase, PhaseContext, SliceOver, Watcher};
pub use read_check::{check_reads, CheckedReads, Notes};
pub use sorted::run_bulk;
pub use values::Values;
pub use verify::{verify, Verification};
