//! Traces of queries, as RocksDB records them (`DB::StartTrace`, `db_bench --trace_file`): read,
//! write, summarise, perform again.
//!
//! `docs/traces.md` describes the format as it is read here. A trace is foreign matter: nothing in
//! it is trusted, a length in it least of all. What came before damage is kept.

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
