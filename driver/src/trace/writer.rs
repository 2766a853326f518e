//! Writing traces as RocksDB does, for tests, benchmarks and exports.

use std::io::{self, Write};

use super::batch::WriteKind;
use super::format::{payload, put_string, put_varint32, record, tag, METADATA_BYTES};
use super::reader::PAYLOAD_BYTES_MAX;

/// A version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceVersion {
    /// RocksDB 5.16 to 6.17: no bounds of iterators, no `MultiGet`.
    V0_1,
    /// RocksDB 6.19 and later.
    V0_2,
}

/// Writes one record after another.
#[derive(Debug)]
pub struct TraceWriter<W> {
    sink: W,
    version: TraceVersion,
    scratch: Vec<u8>,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace at `unix_us` that claims to be of `rocksdb_version`, such as `10.2`.
    pub fn new(
        sink: W,
        version: TraceVersion,
        rocksdb_version: &str,
        unix_us: u64,
    ) -> io::Result<Self> {
        let mut writer = TraceWriter {
            sink,
            version,
            scratch: Vec::new(),
        };
        let number = match version {
            TraceVersion::V0_1 => "0.1",
            TraceVersion::V0_2 => "0.2",
        };
        let header = format!(
            "feedcafedeadbeef\tTrace Version: {number}\tRocksDB Version: {rocksdb_version}\t\
             Format: Timestamp OpType Payload\n"
        );
        writer.scratch.extend_from_slice(header.as_bytes());
        writer.record(unix_us, record::BEGIN)?;
        Ok(writer)
    }

    /// Adds a write.
    pub fn write(&mut self, unix_us: u64, batch: &BatchBuilder) -> io::Result<()> {
        match self.version {
            TraceVersion::V0_1 => self.scratch.extend_from_slice(&batch.bytes),
            TraceVersion::V0_2 => {
                self.map(payload::WRITE_BATCH);
                put_string(&mut self.scratch, &batch.bytes);
            }
        }
        self.record(unix_us, record::WRITE)
    }

    /// Adds a get.
    pub fn get(&mut self, unix_us: u64, column_family: u32, key: &[u8]) -> io::Result<()> {
        self.map(payload::GET_CF | payload::GET_KEY);
        self.family(column_family);
        put_string(&mut self.scratch, key);
        self.record(unix_us, record::GET)
    }

    /// Adds a seek, or a seek for the last key that is not after `key`. Empty bounds are left out;
    /// in version 0.1 all bounds are.
    pub fn seek(
        &mut self,
        unix_us: u64,
        column_family: u32,
        key: &[u8],
        bounds: (&[u8], &[u8]),
        for_prev: bool,
    ) -> io::Result<()> {
        let mut bounds = vec![
            (bounds.0, payload::ITERATOR_LOWER),
            (bounds.1, payload::ITERATOR_UPPER),
        ];
        bounds.retain(|(bound, _)| !bound.is_empty() && self.version == TraceVersion::V0_2);
        let always = payload::ITERATOR_CF | payload::ITERATOR_KEY;
        self.map(bounds.iter().fold(always, |map, (_, bit)| map | bit));
        self.family(column_family);
        put_string(&mut self.scratch, key);
        for (bound, _) in bounds {
            put_string(&mut self.scratch, bound);
        }
        let kind = match for_prev {
            true => record::SEEK_FOR_PREV,
            false => record::SEEK,
        };
        self.record(unix_us, kind)
    }

    /// Adds a `MultiGet` of pairs of column family and key. Version 0.1 does not have it and
    /// refuses.
    pub fn multi_get(&mut self, unix_us: u64, gets: &[(u32, &[u8])]) -> io::Result<()> {
        if self.version == TraceVersion::V0_1 || gets.is_empty() {
            let message = "a MultiGet needs a key, and a trace of version 0.2";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.map(payload::MULTI_GET_SIZE | payload::MULTI_GET_CFS | payload::MULTI_GET_KEYS);
        let (mut families, mut keys) = (Vec::new(), Vec::new());
        for (family, key) in gets {
            families.extend_from_slice(&family.to_le_bytes());
            put_string(&mut keys, key);
        }
        self.family(gets.len() as u32);
        put_string(&mut self.scratch, &families);
        put_string(&mut self.scratch, &keys);
        self.record(unix_us, record::MULTI_GET)
    }

    /// Ends the trace properly, and returns the underlying writer.
    pub fn finish(mut self, unix_us: u64) -> io::Result<W> {
        self.record(unix_us, record::END)?;
        self.sink.flush()?;
        Ok(self.sink)
    }

    fn map(&mut self, map: u64) {
        if self.version == TraceVersion::V0_2 {
            self.scratch.extend_from_slice(&map.to_le_bytes());
        }
    }

    fn family(&mut self, number: u32) {
        self.scratch.extend_from_slice(&number.to_le_bytes());
    }

    /// Writes the scratch buffer as the payload of a record.
    fn record(&mut self, unix_us: u64, kind: u8) -> io::Result<()> {
        let length = self.scratch.len();
        if length > PAYLOAD_BYTES_MAX {
            let message = format!("payload of {length} bytes; allowed: {PAYLOAD_BYTES_MAX}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut metadata = [0; METADATA_BYTES];
        metadata[..8].copy_from_slice(&unix_us.to_le_bytes());
        metadata[8] = kind;
        metadata[9..].copy_from_slice(&(length as u32).to_le_bytes());
        self.sink.write_all(&metadata)?;
        let written = self.sink.write_all(&self.scratch);
        self.scratch.clear();
        written
    }
}

/// Builds a write batch.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    bytes: Vec<u8>,
    count: u32,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        BatchBuilder {
            bytes: vec![0; 12],
            count: 0,
        }
    }
}

impl BatchBuilder {
    /// Empties it.
    pub fn clear(&mut self) {
        self.bytes.truncate(12);
        self.count = 0;
        self.bytes[8..12].fill(0);
    }

    /// Adds a put.
    pub fn put(&mut self, family: u32, key: &[u8], value: &[u8]) -> &mut Self {
        self.add(WriteKind::Put, family, key, value)
    }

    /// Adds an operation. What is not a delete has a `value`: an operand, the end of a range ...
    pub fn add(&mut self, kind: WriteKind, family: u32, key: &[u8], value: &[u8]) -> &mut Self {
        let (tag, tag_with_family) = match kind {
            WriteKind::Put => (tag::PUT, tag::CF_PUT),
            WriteKind::Merge => (tag::MERGE, tag::CF_MERGE),
            WriteKind::Delete => (tag::DELETE, tag::CF_DELETE),
            WriteKind::SingleDelete => (tag::SINGLE_DELETE, tag::CF_SINGLE_DELETE),
            WriteKind::DeleteRange => (tag::DELETE_RANGE, tag::CF_DELETE_RANGE),
            WriteKind::PutEntity => (tag::ENTITY, tag::CF_ENTITY),
            WriteKind::BlobIndex => (tag::BLOB_INDEX, tag::CF_BLOB_INDEX),
        };
        if family == 0 {
            self.bytes.push(tag);
        } else {
            self.bytes.push(tag_with_family);
            put_varint32(&mut self.bytes, family);
        }
        put_string(&mut self.bytes, key);
        if !matches!(kind, WriteKind::Delete | WriteKind::SingleDelete) {
            put_string(&mut self.bytes, value);
        }
        self.count += 1;
        self.bytes[8..12].copy_from_slice(&self.count.to_le_bytes());
        self
    }

    /// Adds data for the log only, which is no operation.
    pub fn log_data(&mut self, data: &[u8]) -> &mut Self {
        self.bytes.push(tag::LOG_DATA);
        put_string(&mut self.bytes, data);
        self
    }
}
