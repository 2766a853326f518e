//! Reading traces: what RocksDB recorded, what our writer writes, and what somebody damaged.

use lsmtune_driver::trace::{
    BatchBuilder, Damage, Record, TraceError, TraceReader, TraceVersion, TraceWriter, WriteKind,
    PAYLOAD_BYTES_MAX,
};
use proptest::prelude::*;

/// Recorded by RocksDB 7.8.3; `data/README.md` says how.
const RECORDED: &[u8] = include_bytes!("data/mixgraph-7.8.trace");
const METADATA_BYTES: usize = 13;

/// What is left of a record when the reader's buffer is gone.
type Told = (u64, u64, String);

/// All records of `bytes`, and what stopped the reader.
fn read(bytes: &[u8]) -> (Vec<Told>, Result<bool, TraceError>) {
    let mut told = Vec::new();
    let mut reader = match TraceReader::new(bytes) {
        Ok(reader) => reader,
        Err(error) => return (told, Err(error)),
    };
    loop {
        let offset_bytes = reader.offset_bytes();
        match reader.next_entry() {
            Ok(Some(entry)) => {
                let text = describe(&entry.record);
                told.push((offset_bytes, entry.unix_us, text));
            }
            Ok(None) => return (told, Ok(reader.footer())),
            Err(error) => {
                assert!(
                    reader.next_entry().unwrap().is_none(),
                    "nothing after an error"
                );
                return (told, Err(error));
            }
        }
    }
}

fn describe(record: &Record<'_>) -> String {
    let text = String::from_utf8_lossy;
    match record {
        Record::Write(batch) => {
            let items = batch.items().map(|item| {
                let (key, value) = (text(item.key), text(item.value));
                format!("{:?} {} {key}={value}", item.kind, item.column_family)
            });
            format!("write [{}]", items.collect::<Vec<_>>().join(", "))
        }
        Record::Get { column_family, key } => format!("get {column_family} {}", text(key)),
        Record::MultiGet(gets) => {
            let gets = gets
                .gets()
                .map(|(family, key)| format!("{family} {}", text(key)));
            format!("multi_get [{}]", gets.collect::<Vec<_>>().join(", "))
        }
        Record::Seek(seek) => {
            let bound = |bound: Option<&[u8]>| bound.map(|bound| text(bound).into_owned());
            format!(
                "seek {} {} {:?} {:?} {}",
                seek.column_family,
                text(seek.key),
                bound(seek.lower),
                bound(seek.upper),
                seek.for_prev
            )
        }
    }
}

fn damage(error: TraceError) -> Damage {
    match error {
        TraceError::Damaged(damage) => damage,
        other => panic!("{other}"),
    }
}

/// One record of each kind.
fn written(version: TraceVersion) -> Vec<u8> {
    let mut trace = TraceWriter::new(Vec::new(), version, "6.4", 1000).unwrap();
    let mut batch = BatchBuilder::default();
    batch
        .put(0, b"k", b"v")
        .put(7, b"k", b"v")
        .add(WriteKind::Merge, 0, b"k", b"m")
        .add(WriteKind::Merge, 300, b"k", b"m")
        .add(WriteKind::Delete, 0, b"k", b"")
        .add(WriteKind::Delete, 2, b"k", b"")
        .log_data(b"not an operation")
        .add(WriteKind::SingleDelete, 0, b"k", b"")
        .add(WriteKind::SingleDelete, 2, b"k", b"")
        .add(WriteKind::DeleteRange, 0, b"a", b"z")
        .add(WriteKind::DeleteRange, 2, b"a", b"z")
        .add(WriteKind::PutEntity, 0, b"k", b"columns")
        .add(WriteKind::PutEntity, 2, b"k", b"columns")
        .add(WriteKind::BlobIndex, 0, b"k", b"index")
        .add(WriteKind::BlobIndex, 2, b"k", b"index");
    trace.write(1001, &batch).unwrap();
    trace.get(1002, 3, b"key").unwrap();
    trace.seek(1003, 1, b"from", (b"a", b"z"), false).unwrap();
    trace.seek(1004, 0, b"back", (b"", b"z"), true).unwrap();
    if version == TraceVersion::V0_2 {
        trace.multi_get(1005, &[(0, b"one"), (5, b"two")]).unwrap();
    }
    trace.finish(1006).unwrap()
}

#[test]
fn a_trace_that_rocksdb_recorded_is_read_whole() {
    let reader = TraceReader::new(RECORDED).unwrap();
    assert_eq!(reader.header().rocksdb_version, "7.8");
    assert_eq!(reader.header().trace_version, "0.2");
    let (told, end) = read(RECORDED);
    assert!(end.unwrap(), "it was closed properly");
    let count = |kind: &str| {
        told.iter()
            .filter(|(_, _, text)| text.starts_with(kind))
            .count()
    };
    let counts = (count("get"), count("write [Put 0"), count("seek"));
    assert_eq!(told.len(), 120);
    assert_eq!(counts.0 + counts.1 + counts.2, 120);
    assert!(counts.0 > 40 && counts.1 > 20 && counts.2 > 5, "{counts:?}");
    assert!(told
        .windows(2)
        .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
}

#[test]
fn every_kind_of_record_is_read_as_it_was_written() {
    let (told, end) = read(&written(TraceVersion::V0_2));
    assert!(end.unwrap());
    let texts: Vec<&str> = told.iter().map(|(_, _, text)| text.as_str()).collect();
    let batch =
        "write [Put 0 k=v, Put 7 k=v, Merge 0 k=m, Merge 300 k=m, Delete 0 k=, Delete 2 k=, \
                 SingleDelete 0 k=, SingleDelete 2 k=, DeleteRange 0 a=z, DeleteRange 2 a=z, \
                 PutEntity 0 k=columns, PutEntity 2 k=columns, BlobIndex 0 k=index, \
                 BlobIndex 2 k=index]";
    let others = [
        "get 3 key",
        "seek 1 from Some(\"a\") Some(\"z\") false",
        "seek 0 back None Some(\"z\") true",
        "multi_get [0 one, 5 two]",
    ];
    assert_eq!(texts, [&[batch][..], &others].concat());
    let times: Vec<u64> = told.iter().map(|(_, unix_us, _)| *unix_us).collect();
    assert_eq!(times, [1001, 1002, 1003, 1004, 1005]);
    let (old, end) = read(&written(TraceVersion::V0_1));
    assert!(end.unwrap());
    assert_eq!(old[0].2, texts[0]);
    assert_eq!(old[2].2, "seek 1 from None None false");
}

#[test]
fn markers_are_no_operations() {
    let bytes = written(TraceVersion::V0_2);
    let mut reader = TraceReader::new(&bytes[..]).unwrap();
    let entry = reader.next_entry().unwrap().unwrap();
    let Record::Write(batch) = entry.record else {
        panic!("{entry:?}");
    };
    assert_eq!((batch.count(), batch.markers()), (14, 1));
    assert_eq!(batch.items().next().unwrap().kind, WriteKind::Put);
}

/// Wherever a trace is cut off, what lies before the cut is read, and the cut is told.
#[test]
fn a_truncated_trace_is_read_up_to_the_cut() {
    let (whole, _) = read(RECORDED);
    let header_bytes = whole[0].0;
    for length in 0..RECORDED.len() {
        let (told, end) = read(&RECORDED[..length]);
        if (length as u64) < header_bytes {
            assert!(matches!(end, Err(TraceError::Foreign { .. })), "{length}");
            continue;
        }
        let starts = whole.iter().map(|(offset, _, _)| *offset);
        let footer = RECORDED.len() as u64 - METADATA_BYTES as u64;
        let starts: Vec<u64> = starts.chain([footer]).collect();
        let before = starts.iter().filter(|start| **start < length as u64);
        let cut = *before.clone().next_back().unwrap_or(&header_bytes);
        if starts.contains(&(length as u64)) {
            assert!(!end.unwrap(), "no footer at {length}");
            assert_eq!(told.len(), before.count());
        } else {
            let damage = damage(end.unwrap_err());
            assert_eq!(damage.offset_bytes, cut, "{length}");
            assert_eq!(damage.record as usize, told.len() + 1);
            assert!(damage.reason.contains("the file ends"), "{damage:?}");
        }
        assert_eq!(told, whole[..told.len()]);
    }
}

/// A trace of one get, of which the byte at `position` behind the header has been replaced.
fn with_byte(position: usize, byte: u8) -> Result<bool, TraceError> {
    let mut trace = TraceWriter::new(Vec::new(), TraceVersion::V0_2, "9.0", 1).unwrap();
    trace.get(2, 0, b"key").unwrap();
    let mut bytes = trace.finish(3).unwrap();
    let record = read(&bytes).0[0].0 as usize;
    bytes[record + position] = byte;
    read(&bytes).1
}

#[test]
fn damage_is_named() {
    let reason = |position, byte| damage(with_byte(position, byte).unwrap_err()).reason;
    assert_eq!(reason(8, 99), "unknown type 99");
    assert_eq!(reason(8, 1), "a second header");
    assert_eq!(
        reason(8, 9),
        "type 9, which belongs into block cache or IO traces"
    );
    assert!(reason(8, 3).contains("a write whose payload of 16 bytes with the payload map 0xc"));
    assert!(reason(METADATA_BYTES, 8).contains("payload map 0x8"));
    assert!(reason(METADATA_BYTES + 12, 200).contains("does not hold"));
    // A length of 3 GiB is not even tried.
    let huge = reason(12, 0xc0);
    assert!(
        huge.contains(&format!("allowed: at most {PAYLOAD_BYTES_MAX}")),
        "{huge}"
    );
    // One of 48 MiB may be; the file ends long before.
    assert!(reason(12, 3).contains("the file ends after"));
}

#[test]
fn a_batch_must_hold_what_it_states() {
    let mut trace = TraceWriter::new(Vec::new(), TraceVersion::V0_1, "6.0", 1).unwrap();
    let mut batch = BatchBuilder::default();
    batch.put(0, b"key", b"value");
    trace.write(2, &batch).unwrap();
    let bytes = trace.finish(3).unwrap();
    let rep = bytes.len() - METADATA_BYTES - (12 + 11);
    let changed = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[rep + at] = byte;
        damage(read(&bytes).1.unwrap_err()).reason
    };
    assert_eq!(changed(8, 2), "write batch of 1 operations that states 2");
    assert_eq!(changed(12, 0x55), "write batch with the unknown tag 0x55");
    assert_eq!(
        changed(13, 9),
        "write batch ends in the middle of an entry with tag 0x01"
    );
}

#[test]
fn more_after_the_footer_is_damage() {
    let mut bytes = written(TraceVersion::V0_2);
    let length = bytes.len() as u64;
    bytes.push(0);
    let (told, end) = read(&bytes);
    let damage = damage(end.unwrap_err());
    assert_eq!((told.len(), damage.offset_bytes), (5, length));
    assert_eq!(damage.reason, "more bytes after the footer");
}

#[test]
fn foreign_files_are_refused_by_name() {
    let found = |bytes: &[u8]| match read(bytes).1 {
        Err(TraceError::Foreign { found }) => found,
        other => panic!("{other:?}"),
    };
    assert_eq!(found(b""), "an empty file");
    assert!(found(b"2026/11/21-11:12:44 options\n").starts_with("text"));
    assert!(found(&[0x1f, 0x8b, 8, 0, 0, 0]).contains("gzip"));
    assert!(found(&[7; 100]).starts_with("bytes 07"));
    assert!(found(&RECORDED[..60]).contains("header is damaged or cut off"));
    let mut other = RECORDED.to_vec();
    let at = other.windows(3).position(|part| part == b"0.2").unwrap();
    other[at + 2] = b'3';
    assert_eq!(
        found(&other),
        "a query trace of version \"0.3\", not 0.1 or 0.2"
    );
}

/// As `BlockCacheTraceWriter` and `IOTraceWriter` begin their files.
#[test]
fn traces_of_the_block_cache_and_of_files_are_told_apart() {
    for (kind, what) in [
        (9, "a block cache trace of RocksDB"),
        (12, "an IO trace of RocksDB"),
    ] {
        let mut payload = vec![16];
        payload.extend_from_slice(b"feedcafedeadbeef");
        payload.extend_from_slice(&[7, 0, 0, 0, 8, 0, 0, 0]);
        let mut bytes = vec![0; 8];
        bytes.push(1);
        bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&payload);
        bytes.extend_from_slice(&[0; 8]);
        bytes.push(kind);
        bytes.extend_from_slice(&[0; 4]);
        let error = read(&bytes).1.unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("offset 0: found {what}")),
            "{error}"
        );
    }
}

#[test]
fn one_long_record_is_read_and_the_longest_is_bounded() {
    let value = vec![b'x'; 5 << 20];
    let mut trace = TraceWriter::new(Vec::new(), TraceVersion::V0_2, "9.0", 1).unwrap();
    let mut batch = BatchBuilder::default();
    trace.write(2, batch.put(0, b"key", &value)).unwrap();
    trace.get(3, 0, b"key").unwrap();
    let (told, end) = read(&trace.finish(4).unwrap());
    assert!(end.unwrap());
    assert!(told.len() == 2 && told[0].2.len() > value.len());
    let mut trace = TraceWriter::new(Vec::new(), TraceVersion::V0_2, "9.0", 1).unwrap();
    let too_long = vec![b'x'; PAYLOAD_BYTES_MAX];
    assert!(trace.write(2, batch.put(0, b"key", &too_long)).is_err());
}

/// Some bytes of a valid trace, replaced, inserted or removed.
fn mutated() -> impl Strategy<Value = (Vec<u8>, usize)> {
    let source = prop_oneof![
        Just(RECORDED.to_vec()),
        Just(written(TraceVersion::V0_1)),
        Just(written(TraceVersion::V0_2)),
    ];
    let change = (any::<prop::sample::Index>(), 0..3u8, any::<u8>());
    (source, prop::collection::vec(change, 1..6)).prop_map(|(mut bytes, changes)| {
        let mut first = usize::MAX;
        for (index, how, byte) in changes {
            let at = index.index(bytes.len());
            first = first.min(at);
            match how {
                0 => bytes[at] ^= byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        (bytes, first)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever is done to a trace: no panic, what lies before the first change is read as it was,
    /// and an error lies within the file.
    #[test]
    fn a_mutated_trace_is_read_up_to_the_damage((bytes, first) in mutated()) {
        let (told, end) = read(&bytes);
        let sources = [RECORDED.to_vec(), written(TraceVersion::V0_1), written(TraceVersion::V0_2)];
        let prefix = &bytes[..first.min(bytes.len())];
        let source = sources.iter().find(|source| source.starts_with(prefix));
        let whole = read(source.unwrap()).0;
        let intact = whole.windows(2).filter(|pair| pair[1].0 <= first as u64).count();
        if !matches!(end, Err(TraceError::Foreign { .. })) {
            prop_assert!(told.len() >= intact);
            prop_assert_eq!(&told[..intact], &whole[..intact]);
        }
        if let Err(TraceError::Damaged(damage)) = end {
            prop_assert!(damage.offset_bytes <= bytes.len() as u64);
            prop_assert!(told.iter().all(|(offset, _, _)| *offset < damage.offset_bytes));
        }
    }
}
