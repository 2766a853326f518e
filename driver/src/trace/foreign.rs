//! Recognises files that are no query traces.

use super::format::{record, MAGIC, METADATA_BYTES};

/// The first bytes of well-known kinds of files.
const KNOWN: [(&[u8], &str); 6] = [
    (&[0x1f, 0x8b], "a gzip file; decompress it first"),
    (
        &[0x28, 0xb5, 0x2f, 0xfd],
        "a zstd file; decompress it first",
    ),
    (
        &[0x04, 0x22, 0x4d, 0x18],
        "an lz4 file; decompress it first",
    ),
    (b"BZh", "a bzip2 file; decompress it first"),
    (
        &[0xfd, b'7', b'z', b'X', b'Z'],
        "an xz file; decompress it first",
    ),
    (b"PK", "a zip file"),
];

/// What a file looks like that begins with `start`; more bytes may follow.
pub fn looks_like(start: &[u8]) -> String {
    if start.is_empty() {
        return "an empty file".to_owned();
    }
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| start.starts_with(magic)) {
        return (*what).to_owned();
    }
    if let Some(what) = sibling(start) {
        return what;
    }
    let payload = start.get(METADATA_BYTES..).unwrap_or_default();
    if payload.starts_with(MAGIC) {
        return "a query trace whose header is damaged or cut off".to_owned();
    }
    let text = start.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let printable = |c: char| !c.is_control() || c.is_ascii_whitespace();
    // The last character may be incomplete.
    if text.len() + 3 >= start.len() && text.chars().all(printable) && !text.is_empty() {
        let line = text.lines().next().unwrap_or_default();
        let line: String = line.chars().take(40).collect();
        return format!("text ({line:?})");
    }
    let bytes: Vec<_> = start.iter().take(8).map(|b| format!("{b:02x}")).collect();
    format!("bytes {}", bytes.join(" "))
}

/// Traces of block cache accesses and of file operations begin like query traces. In them the
/// length precedes the magic number, and binary versions follow it.
fn sibling(start: &[u8]) -> Option<String> {
    let payload = start.get(METADATA_BYTES..)?;
    let inner = payload.strip_prefix(&[MAGIC.len() as u8])?;
    if start[8] != record::BEGIN || !inner.starts_with(MAGIC) {
        return None;
    }
    let length = u32::from_le_bytes([start[9], start[10], start[11], start[12]]) as usize;
    let first = start.get(METADATA_BYTES.saturating_add(length).saturating_add(8));
    Some(match first {
        Some(kind) if record::BLOCK_CACHE.contains(kind) => "a block cache trace of RocksDB".into(),
        Some(&record::IO) => "an IO trace of RocksDB".into(),
        _ => "a block cache or IO trace of RocksDB".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_files_are_named() {
        assert_eq!(looks_like(b""), "an empty file");
        assert!(looks_like(&[0x1f, 0x8b, 8, 0]).contains("gzip"));
        assert_eq!(looks_like(b"Key size: 16\nmore"), "text (\"Key size: 16\")");
        assert_eq!(looks_like("grüße".as_bytes()), "text (\"grüße\")");
        assert_eq!(looks_like(&[0, 1, 2, 0xff]), "bytes 00 01 02 ff");
    }
}
