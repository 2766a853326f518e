//! Measuring: the clock, latency histograms, the interval series, and what the process used.

mod clock;
mod intervals;
mod latency;
mod page_cache;
mod phase_time;
mod process;
mod space;
mod steal;

pub use clock::{unix_us, wall_offset_us, Ticks};
pub use intervals::{IntervalSeries, Progress};
pub use latency::{OperationKind, Recorder, Recorders};
pub use page_cache::{cached_share, drop_cached, read_in};
pub use phase_time::PhaseTime;
pub use process::{directory_bytes, process_cpu_s, ProcessCounters, ThreadWrites};
pub use space::SpaceWatch;
pub use steal::stolen_s;
