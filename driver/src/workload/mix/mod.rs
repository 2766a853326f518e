//! Mixes: several operations, drawn again and again.

mod action;
mod plan;
mod records;

pub use action::MixAction;
pub use plan::MixPlan;
pub use records::Records;
