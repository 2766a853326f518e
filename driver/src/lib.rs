//! The driver: performs one *run* of a key-value store and says what it observed.
//!
//! A request comes in ([`protocol`]), an engine is opened ([`engine`]), the phases of a workload
//! are executed on it ([`workload`], with keys and values from [`random`]) while latency and
//! counters are taken ([`measure`]), and [`run`] ties them together. One run, one process.

pub mod engine;
pub mod measure;
pub mod protocol;
pub mod random;
pub mod run;
pub mod trace;
pub mod workload;
