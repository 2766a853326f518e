//! The driver: performs one *run* of a key-value store and reports its observations.
//!
//! A request comes in ([`protocol`]). The driver opens an engine ([`engine`]) and executes the
//! phases of a workload on it ([`workload`], with keys and values from [`random`]). Meanwhile it
//! measures latencies and counters ([`measure`]). [`run`] ties these together. One process performs
//! one run.

pub mod engine;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod measure;
pub mod protocol;
pub mod random;
pub mod run;
pub mod trace;
mod workload;
