//! Reads a trace from its beginning to its end, or to its first damage.

use std::io::Read;

use super::batch::Batch;
use super::error::{Damage, TraceError};
use super::foreign::looks_like;
use super::format::{payload, record, Bytes, MAGIC, METADATA_BYTES};

/// The longest payload that is read. Nothing longer is allocated, whatever a record states.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;
/// The longest header.
const HEADER_BYTES_MAX: usize = 4096;
/// Bytes requested from the source at once.
const BUFFER_BYTES: usize = 1 << 20;

/// What a trace states about itself.
#[derive(Debug, Default)]
pub struct Header {
    /// When the trace began, in microseconds since 1970.
    pub unix_us: u64,
    /// `0.1` or `0.2`.
    pub trace_version: String,
    /// Major and minor version of the RocksDB that recorded it.
    pub rocksdb_version: String,
    /// Whether payloads say which fields they have (0.2).
    maps: bool,
}

/// One recorded call.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// When it was recorded, in microseconds since 1970.
    pub unix_us: u64,
    /// The call.
    pub record: Record<'a>,
}

/// The recorded call.
#[derive(Debug, Clone, Copy)]
pub enum Record<'a> {
    /// `Write`, `Put`, `Merge`, `Delete` ...
    Write(Batch<'a>),
    /// `Get`.
    Get {
        /// Number of the column family.
        column_family: u32,
        /// The key.
        key: &'a [u8],
    },
    /// `Seek` or `SeekForPrev` of an iterator. The steps after it are not recorded.
    Seek(Seek<'a>),
    /// `MultiGet`.
    MultiGet(MultiGet<'a>),
}

/// A seek.
#[derive(Debug, Clone, Copy)]
pub struct Seek<'a> {
    /// Number of the column family.
    pub column_family: u32,
    /// The key that was sought.
    pub key: &'a [u8],
    /// Lower bound of the iterator.
    pub lower: Option<&'a [u8]>,
    /// Upper bound of the iterator.
    pub upper: Option<&'a [u8]>,
    /// Whether the call was `SeekForPrev`, which goes to the last key that is not after `key`.
    pub for_prev: bool,
}

/// A `MultiGet`, checked from its beginning to its end.
#[derive(Debug, Clone, Copy)]
pub struct MultiGet<'a> {
    count: u32,
    families: &'a [u8],
    keys: &'a [u8],
}

impl<'a> MultiGet<'a> {
    /// Column family and key of each get.
    pub fn gets(&self) -> impl Iterator<Item = (u32, &'a [u8])> + use<'a> {
        let (mut families, mut keys) = (Bytes(self.families), Bytes(self.keys));
        (0..self.count).map_while(move |_| Some((families.fixed32()?, keys.string()?)))
    }

    /// The number of gets: at least one.
    pub fn count(&self) -> u32 {
        self.count
    }
}

/// What stands before the payload of a record.
struct Metadata {
    unix_us: u64,
    kind: u8,
    payload_bytes: usize,
}

/// Returns the records of a trace one by one. Its memory is a buffer of 1 MiB, or of the longest
/// record if that is longer: at most a little more than [`PAYLOAD_BYTES_MAX`].
#[derive(Debug)]
pub struct TraceReader<R> {
    source: R,
    header: Header,
    buffer: Vec<u8>,
    /// The part of the buffer that was read from the source but not returned yet.
    unread: std::ops::Range<usize>,
    /// Offset of that part in the file.
    offset_bytes: u64,
    number: u64,
    footer: bool,
    over: bool,
}

impl<R: Read> TraceReader<R> {
    /// Begins to read. Refuses a file that is no query trace.
    pub fn new(source: R) -> Result<Self, TraceError> {
        let mut reader = TraceReader {
            source,
            header: Header::default(),
            buffer: vec![0; BUFFER_BYTES],
            unread: 0..0,
            offset_bytes: 0,
            number: 0,
            footer: false,
            over: false,
        };
        let length = match reader.fill(METADATA_BYTES)? {
            true => METADATA_BYTES + reader.metadata().payload_bytes,
            false => 0,
        };
        if length > 0 && length <= HEADER_BYTES_MAX {
            reader.fill(length)?;
        }
        let start = &reader.buffer[reader.unread.clone()];
        reader.header = start.get(..length).and_then(parse_header).map_or_else(
            || {
                let found = looks_like(&start[..start.len().min(HEADER_BYTES_MAX)]);
                Err(TraceError::Foreign { found })
            },
            |header| header.map_err(|found| TraceError::Foreign { found }),
        )?;
        reader.advance(length);
        Ok(reader)
    }

    /// What the trace states about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes understood so far.
    pub fn offset_bytes(&self) -> u64 {
        self.offset_bytes
    }

    /// Whether the trace was closed properly; known once [`TraceReader::next_entry`] returned
    /// `None`.
    pub fn footer(&self) -> bool {
        self.footer
    }

    /// The next record; `None` at the end. After an error there are no more records.
    #[inline]
    pub fn next_entry(&mut self) -> Result<Option<Entry<'_>>, TraceError> {
        if self.over {
            return Ok(None);
        }
        let metadata = match self.next_metadata() {
            Ok(Some(metadata)) => metadata,
            end => {
                self.over = true;
                return end.map(|_| None);
            }
        };
        let length = METADATA_BYTES + metadata.payload_bytes;
        let payload = &self.buffer[self.unread.clone()][METADATA_BYTES..length];
        match parse(metadata.kind, payload, self.header.maps) {
            Ok(record) => {
                self.unread.start += length;
                self.offset_bytes += length as u64;
                let unix_us = metadata.unix_us;
                Ok(Some(Entry { unix_us, record }))
            }
            Err(reason) => {
                self.over = true;
                Err(self.damaged(reason))
            }
        }
    }

    /// Reads the next complete record into the buffer; `None` at the end.
    #[inline]
    fn next_metadata(&mut self) -> Result<Option<Metadata>, TraceError> {
        self.number += 1;
        if !self.fill(METADATA_BYTES)? {
            let left = self.unread.len();
            if left == 0 {
                return Ok(None);
            }
            return Err(self.damaged(format!("the file ends after {left} bytes of a record")));
        }
        let metadata = self.metadata();
        let (kind, length) = (metadata.kind, metadata.payload_bytes);
        if kind == record::END && length == 0 {
            self.advance(METADATA_BYTES);
            self.footer = true;
            return match self.fill(1)? {
                true => Err(self.damaged("more bytes after the footer".to_owned())),
                false => Ok(None),
            };
        }
        if let Some(reason) = wrong_type(kind) {
            return Err(self.damaged(reason));
        }
        if length > PAYLOAD_BYTES_MAX {
            return Err(self.damaged(format!(
                "payload of {length} bytes; allowed: at most {PAYLOAD_BYTES_MAX}"
            )));
        }
        if !self.fill(METADATA_BYTES + length)? {
            let left = self.unread.len() - METADATA_BYTES;
            return Err(self.damaged(format!(
                "the file ends after {left} of the {length} bytes of a payload"
            )));
        }
        Ok(Some(metadata))
    }

    /// That of the record at the front, which must have been read.
    #[inline]
    fn metadata(&self) -> Metadata {
        let mut bytes = Bytes(&self.buffer[self.unread.clone()]);
        Metadata {
            unix_us: bytes.fixed64().unwrap_or_default(),
            kind: bytes.byte().unwrap_or_default(),
            payload_bytes: bytes.fixed32().unwrap_or_default() as usize,
        }
    }

    /// Reads until the buffer holds `wanted` bytes that were not returned yet; false if the file
    /// has fewer left.
    #[inline]
    fn fill(&mut self, wanted: usize) -> Result<bool, TraceError> {
        if self.unread.len() >= wanted {
            return Ok(true);
        }
        self.read_more(wanted)
    }

    #[cold]
    fn read_more(&mut self, wanted: usize) -> Result<bool, TraceError> {
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        while self.unread.len() < wanted {
            if self.unread.end == self.buffer.len() {
                // The buffer doubles as bytes arrive, whatever length a record states.
                let doubled = (self.buffer.len() * 2).min(METADATA_BYTES + PAYLOAD_BYTES_MAX);
                self.buffer.resize(doubled, 0);
            }
            let end = self.unread.end;
            match self.source.read(&mut self.buffer[end..]) {
                Ok(0) => return Ok(false),
                Ok(count) => self.unread.end += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(TraceError::Io {
                        offset_bytes: self.offset_bytes + self.unread.len() as u64,
                        source,
                    })
                }
            }
        }
        Ok(true)
    }

    fn advance(&mut self, length: usize) {
        self.unread.start += length;
        self.offset_bytes += length as u64;
    }

    #[cold]
    fn damaged(&self, reason: String) -> TraceError {
        TraceError::Damaged(Damage {
            offset_bytes: self.offset_bytes,
            record: self.number,
            reason,
        })
    }
}

/// The header in `bytes`; `None` if they are no header, an error if its version is not known here.
fn parse_header(bytes: &[u8]) -> Option<Result<Header, String>> {
    let mut metadata = Bytes(bytes);
    let unix_us = metadata.fixed64()?;
    let begins = metadata.byte()? == record::BEGIN;
    metadata.fixed32()?;
    let text = std::str::from_utf8(metadata.0).ok()?;
    let mut fields = text.trim_end().split('\t');
    let magic = fields.next()?.as_bytes() == MAGIC;
    if !begins || !magic {
        return None;
    }
    let trace_version = fields.next()?.strip_prefix("Trace Version: ")?.to_owned();
    let rocksdb_version = fields.next()?.strip_prefix("RocksDB Version: ")?.to_owned();
    let maps = match trace_version.as_str() {
        "0.1" => false,
        "0.2" => true,
        other => {
            return Some(Err(format!(
                "a query trace of version {other:?}, not 0.1 or 0.2"
            )))
        }
    };
    Some(Ok(Header {
        unix_us,
        trace_version,
        rocksdb_version,
        maps,
    }))
}

/// Why a record of type `kind` cannot appear between header and footer.
#[inline]
fn wrong_type(kind: u8) -> Option<String> {
    match kind {
        record::WRITE | record::GET | record::SEEK | record::SEEK_FOR_PREV | record::MULTI_GET => {
            None
        }
        record::BEGIN => Some("a second header".to_owned()),
        record::END => Some("a footer with a payload".to_owned()),
        kind if record::BLOCK_CACHE.contains(&kind) || kind == record::IO => Some(format!(
            "type {kind}, which belongs into block cache or IO traces"
        )),
        kind => Some(format!("unknown type {kind}")),
    }
}

#[inline]
fn parse(kind: u8, bytes: &[u8], maps: bool) -> Result<Record<'_>, String> {
    let record = match kind {
        record::WRITE => write(bytes, maps)?,
        record::GET => get(bytes, maps),
        record::SEEK => seek(bytes, maps, false),
        record::SEEK_FOR_PREV => seek(bytes, maps, true),
        _ => multi_get(bytes, maps),
    };
    record.ok_or_else(|| cut(kind, bytes, maps))
}

#[inline]
fn write(bytes: &[u8], maps: bool) -> Result<Option<Record<'_>>, String> {
    if !maps {
        return Batch::check(bytes).map(Record::Write).map(Some);
    }
    let mut rest = Bytes(bytes);
    if rest.fixed64() != Some(payload::WRITE_BATCH) {
        return Ok(None);
    }
    match rest.string() {
        Some(batch) if rest.0.is_empty() => Batch::check(batch).map(Record::Write).map(Some),
        _ => Ok(None),
    }
}

#[inline]
fn get(bytes: &[u8], maps: bool) -> Option<Record<'_>> {
    let mut rest = Bytes(bytes);
    if maps && rest.fixed64()? != payload::GET_CF | payload::GET_KEY {
        return None;
    }
    let (column_family, key) = (rest.fixed32()?, rest.string()?);
    rest.0
        .is_empty()
        .then_some(Record::Get { column_family, key })
}

fn seek(bytes: &[u8], maps: bool, for_prev: bool) -> Option<Record<'_>> {
    let mut rest = Bytes(bytes);
    let always = payload::ITERATOR_CF | payload::ITERATOR_KEY;
    let map = if maps { rest.fixed64()? } else { always };
    let bounds = payload::ITERATOR_LOWER | payload::ITERATOR_UPPER;
    if map & !bounds != always {
        return None;
    }
    let (column_family, key) = (rest.fixed32()?, rest.string()?);
    let mut bound = |bit| match map & bit {
        0 => Some(None),
        _ => rest.string().map(Some),
    };
    let lower = bound(payload::ITERATOR_LOWER)?;
    let upper = bound(payload::ITERATOR_UPPER)?;
    rest.0.is_empty().then_some(Record::Seek(Seek {
        column_family,
        key,
        lower,
        upper,
        for_prev,
    }))
}

fn multi_get(bytes: &[u8], maps: bool) -> Option<Record<'_>> {
    let mut rest = Bytes(bytes);
    let all = payload::MULTI_GET_SIZE | payload::MULTI_GET_CFS | payload::MULTI_GET_KEYS;
    if !maps || rest.fixed64()? != all {
        return None;
    }
    let (count, families, keys) = (rest.fixed32()?, rest.string()?, rest.string()?);
    let mut strings = Bytes(keys);
    let mut whole = rest.0.is_empty() && families.len() as u64 == u64::from(count) * 4;
    for _ in 0..if whole { count } else { 0 } {
        whole &= strings.string().is_some();
    }
    (whole && strings.0.is_empty() && count > 0).then_some(Record::MultiGet(MultiGet {
        count,
        families,
        keys,
    }))
}

#[cold]
fn cut(kind: u8, bytes: &[u8], maps: bool) -> String {
    let what = match kind {
        record::WRITE => "write",
        record::GET => "get",
        record::SEEK | record::SEEK_FOR_PREV => "seek",
        _ => "multi-get",
    };
    let map = Bytes(bytes).fixed64().filter(|_| maps);
    let map = map.map_or(String::new(), |map| {
        format!(" with the payload map 0x{map:x}")
    });
    format!(
        "a {what} whose payload of {} bytes{map} does not hold what it must",
        bytes.len()
    )
}
