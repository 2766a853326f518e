//! Query traces, as RocksDB records them (`DB::StartTrace`, `db_bench --trace_file`): read, write,
//! summarise, perform again.
//!
//! `docs/traces.md` describes the format. A trace comes from outside: nothing in it is trusted,
//! least of all a length. Everything before a damage is kept.

mod batch;
mod error;
mod foreign;
mod format;
mod reader;
mod writer;

pub mod inspect;
pub mod replay;

pub use batch::{Batch, BatchItem, WriteKind};
pub use error::{Damage, TraceError};
pub use reader::{Entry, Header, MultiGet, Record, Seek, TraceReader, PAYLOAD_BYTES_MAX};
pub use writer::{BatchBuilder, TraceVersion, TraceWriter};
