//! `inspect_trace`, through the binary.

mod conversation;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use conversation::{ask, failure, finished, replace, told};
use lsmtune_driver::protocol::{Message, Outcome, PROTOCOL_VERSION};
use lsmtune_driver::trace::inspect::TraceSummary;
use lsmtune_driver::trace::{TraceVersion, TraceWriter};
use serde_json::{json, Value};

/// Recorded by RocksDB 7.8.3; `data/README.md` says how.
fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mixgraph-7.8.trace")
}

fn inspect(path: &Path, more: Value) -> Vec<Message> {
    let mut request = json!({
        "protocol_version": PROTOCOL_VERSION, "command": "inspect_trace", "path": path,
    });
    replace(&mut request, &more);
    ask(&request)
}

fn summary(messages: &[Message]) -> &TraceSummary {
    let found = messages.iter().find_map(|message| match message {
        Message::TraceSummary(summary) => Some(summary),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no summary: {messages:?}"))
}

#[test]
fn a_recorded_trace_is_summarised() {
    let messages = inspect(&recorded(), json!({"ranges": 4}));
    finished(&messages);
    let summary = summary(&messages);
    assert_eq!((summary.records, summary.operations), (120, 120));
    assert!(summary.footer && summary.damage.is_none());
    assert_eq!(summary.bytes, summary.bytes_total);
    assert_eq!(summary.record_counts.values().sum::<u64>(), 120);
    assert_eq!(summary.key_sizes["get"].buckets[0].0, 16);
    assert!(summary.value_sizes["put"].min >= 10);
    assert_eq!(summary.scan_lengths, None);
    assert!(summary.ranges_by_number.len() <= 4);
    let gets = summary.record_counts["get"] as f64;
    let ranges = &summary.ranges_by_number;
    assert_eq!(ranges.iter().map(|range| range.2).sum::<f64>(), gets);
}

#[test]
fn the_number_of_a_key_may_be_said() {
    let number = json!({"offset_bytes": 0, "bytes": 8, "format": "big_endian"});
    let messages = inspect(
        &recorded(),
        json!({"key_number": number, "prefix_bytes": 16}),
    );
    let summary = summary(&messages);
    assert_eq!(summary.key_space.number, "big_endian");
    assert!(summary.key_space.max.parse::<u64>().unwrap() > 0);
    assert_eq!(summary.prefixes.prefix_bytes, 16);
    assert_eq!(summary.prefixes.distinct as f64, summary.keys.distinct);
}

#[test]
fn what_is_before_damage_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.trace");
    let bytes = std::fs::read(recorded()).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
    let messages = inspect(&path, json!({}));
    finished(&messages);
    let summary = summary(&messages);
    let damage = summary.damage.as_ref().unwrap();
    assert_eq!((summary.records, damage.record), (119, 120));
    assert_eq!(summary.bytes, damage.offset_bytes);
}

#[test]
fn what_is_no_trace_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.file");
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let (outcome, message) = failure(&inspect(&path, json!({})));
        assert_eq!(outcome, Outcome::Invalid);
        assert!(!message.contains('\n'), "{message}");
        message
    };
    let allowed = "allowed: a query trace of RocksDB (DB::StartTrace)";
    let empty = refused(b"");
    let whole = format!(
        "path: {}: offset 0: found an empty file; {allowed}",
        path.display()
    );
    assert_eq!(empty, whole);
    assert!(refused(&[0x1f, 0x8b, 8]).contains("found a gzip file; decompress it first"));
    assert!(refused(b"a: b\n").contains("found text (\"a: b\")"));
    for (missing, why) in [("none", "No such file"), ("", "directory")] {
        let (_, message) = failure(&inspect(&folder.path().join(missing), json!({})));
        assert!(message.contains(why), "{message}");
    }
}

/// A trace that never ends, as long as nobody cancels.
#[test]
fn a_cancel_ends_the_reading() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let request = json!({
        "protocol_version": PROTOCOL_VERSION, "command": "inspect_trace", "path": path,
    });
    let mut child = told(&request, &[]);
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn({
        let path = path.clone();
        move || {
            let pipe = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            let mut trace = TraceWriter::new(pipe, TraceVersion::V0_2, "10.2", 1).unwrap();
            while trace.get(2, 0, b"key").is_ok() {}
        }
    });
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut messages = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap());
    let progress = |message: &Message| matches!(message, Message::TraceProgress { .. });
    assert!(messages.by_ref().any(|message| progress(&message)));
    writeln!(stdin, "{}", json!({"command": "cancel"})).unwrap();
    // The trace itself never ends.
    let messages: Vec<Message> = messages.collect();
    child.wait().unwrap();
    writer.join().unwrap();
    assert_eq!(failure(&messages).0, Outcome::Cancelled);
}

#[test]
fn what_a_request_must_not_say() {
    let refused = |more: Value| failure(&inspect(&recorded(), more)).1;
    let number = |bytes| json!({"offset_bytes": 0, "bytes": bytes, "format": "big_endian"});
    assert_eq!(
        refused(json!({"ranges": 0})),
        "ranges: found 0; allowed: 1 to 4096"
    );
    assert_eq!(
        refused(json!({"prefix_bytes": 65})),
        "prefix_bytes: found 65; allowed: 1 to 64"
    );
    let bytes = refused(json!({"key_number": number(9)}));
    assert_eq!(bytes, "key_number.bytes: found 9; allowed: 1 to 8");
    assert!(refused(json!({"colour": 1})).contains("colour"));
}
