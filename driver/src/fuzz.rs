//! Every reader of bytes from outside, as a function that a fuzzer can call with any bytes.
//!
//! A target panics where a reader does, and where what was read contradicts itself. The test below
//! runs each over its seeds and changes of them; `docs/test-strength.md` says how the long runs are
//! made, and what they found. Not part of the driver.

use std::collections::BTreeMap;

use crate::engine::leveldb::log;
use crate::engine::rocksdb::options_file::OptionsFile;
use crate::engine::rocksdb::{drain, events, nested, option_values, options_file};
use crate::protocol::{
    Control, InspectRequest, ProbeRequest, Request, RunRequest, PROTOCOL_VERSION,
};
use crate::run::check;
use crate::trace::inspect::inspect;
use crate::trace::{Record, TraceError, TraceReader};
use crate::workload::ledger_file::{ledger_text, read_ledger, with_checksum};
use crate::workload::Origins;

/// Reads any bytes; panics where what was read contradicts itself.
pub type Target = fn(&[u8]);

/// The targets by name. Their seeds are in `fuzz/seeds/NAME/`.
pub const TARGETS: [(&str, Target); 6] = [
    ("request", request),
    ("trace_reader", trace_reader),
    ("trace_summary", trace_summary),
    ("ledger", ledger),
    ("engine_log", engine_log),
    ("options", options),
];

/// Calls the target `name`.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    target.expect("a target of this name").1(bytes);
}

/// A request that is understood can be written, and is the same then.
fn request(bytes: &[u8]) {
    drop(serde_json::from_slice::<Control>(bytes));
    let request = match Request::parse(bytes) {
        Ok(request) => request,
        Err(error) => return assert!(!error.message.contains('\n'), "{error:?}"),
    };
    let text = serde_json::to_vec(&request).expect("a request can be written");
    assert_eq!(Request::parse(&text).expect("and read"), request);
    match request {
        Request::Run(request) => check_run(request),
        Request::Check(request) => drop(check::workload(&request.workload)),
        Request::Probe(ProbeRequest { .. }) | Request::InspectTrace(_) => {}
    }
}

fn check_run(mut request: RunRequest) {
    for phase in &mut request.workload.phases {
        if let Some(replay) = &mut phase.replay {
            replay.path = "/nowhere".into(); // a fuzzer must not open files
        }
    }
    drop(check::workload(&request.workload));
    drop(check::interval(&request));
    drop(check::slices(&request));
    drop(check::merges(&request));
}

/// What was read lies within the file, and does not claim more than the file can hold.
fn trace_reader(bytes: &[u8]) {
    let Ok(mut reader) = TraceReader::new(bytes) else {
        return;
    };
    loop {
        match reader.next_entry() {
            Ok(Some(entry)) => {
                let operations = match entry.record {
                    Record::Write(batch) => {
                        assert_eq!(batch.items().count(), batch.count() as usize);
                        batch.count() as usize
                    }
                    Record::MultiGet(gets) => {
                        assert_eq!(gets.gets().count(), gets.count() as usize);
                        gets.count() as usize
                    }
                    Record::Get { .. } | Record::Seek(_) => 1,
                };
                assert!(operations <= bytes.len());
            }
            Ok(None) => break,
            Err(TraceError::Damaged(damage)) => {
                assert!(damage.offset_bytes <= bytes.len() as u64);
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(reader.offset_bytes() <= bytes.len() as u64);
}

/// The summary does not contradict itself.
fn trace_summary(bytes: &[u8]) {
    let request = InspectRequest {
        protocol_version: PROTOCOL_VERSION,
        path: "fuzzed".into(),
        key_number: None,
        prefix_bytes: None,
        ranges: 16,
        seed: 0,
    };
    if let Ok(summary) = inspect(bytes, bytes.len() as u64, &request, &mut |_| true) {
        assert!(summary.bytes <= bytes.len() as u64);
        assert_eq!(
            summary.operations,
            summary.operation_counts.values().sum::<u64>()
        );
    }
}

/// The bytes as the body of a ledger with the right checksum: what is taken is written the same.
fn ledger(bytes: &[u8]) {
    let origins = Origins {
        key_bytes: 16,
        value_bytes: 100,
        compression_ratio: 0.5,
        num: 1000,
        keys: None,
        key_sizes: None,
        databases: 1,
        column_families: 1,
        value_sizes: Vec::new(),
        load_seed: 7,
        phases: 1,
    };
    assert!(
        read_ledger(bytes, &origins, 0).is_err(),
        "without a checksum"
    );
    let Ok(body) = std::str::from_utf8(bytes) else {
        return;
    };
    let read = |text: &str| read_ledger(text.as_bytes(), &origins, 0);
    match read(&with_checksum(body)) {
        Ok(ledger) => {
            let text = ledger_text(&origins, &ledger).expect("a ledger can be written");
            let again = read(&text).expect("and read");
            assert_eq!(again.expectations(), ledger.expectations());
            assert!(
                ledger.estimate(|_, _| 1) <= 2_f64.powi(64) * ledger.expectations().len() as f64
            );
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The bytes as a log of either engine. Times are UTC in both.
fn engine_log(bytes: &[u8]) {
    let during = 0..1 << 50;
    let (half, rest) = bytes.split_at(bytes.len() / 2);
    for work in [
        events::work_in([Some(bytes)], during.clone(), true),
        events::work_in([Some(half), Some(rest)], during.clone(), true),
        log::work_in(None, bytes, during.clone()),
        log::work_in(Some(half), rest, during),
    ]
    .into_iter()
    .flatten()
    {
        let levels = work.levels.unwrap_or_default();
        let written: u64 = levels.values().fold(0, |sum, level| {
            sum.saturating_add(level.compaction_write_bytes)
        });
        assert!(written <= work.compaction_write_bytes.unwrap_or(u64::MAX));
        assert!(levels.len() as u64 <= work.compactions.unwrap_or(u64::MAX));
    }
    let text = String::from_utf8_lossy(bytes);
    assert!(drain::stall_s(&text).is_none_or(|stall_s| stall_s >= 0.0));
    let cache: BTreeMap<_, _> = options_file::cache_in_log(&text);
    assert!(cache.is_empty() || cache.contains_key("id"));
}

/// The bytes as an OPTIONS file: each option has the value that the file states.
fn options(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let file = OptionsFile::parse(&text);
    for (name, value) in &file.all {
        assert!(file.names().contains(name));
        assert!(option_values::same(value, value), "{value}");
        if let Some(parts) = nested::split(value) {
            let parts = parts.into_iter().map(|(a, b)| (a.into(), b.into()));
            let parts: BTreeMap<String, String> = parts.collect();
            let again = nested::join(&parts);
            assert_eq!(
                nested::split(&again).map(|parts| parts.len()),
                Some(parts.len())
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use rand::seq::IndexedRandom;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::TARGETS;

    /// Changes of the seeds of each target; all of them take some seconds without optimisation.
    const CHANGED: usize = 1000;

    const PIECES: [&[u8]; 16] = [
        b"{",
        b"}",
        b"[",
        b"]",
        b"\"",
        b":",
        b",",
        b"=",
        b";",
        b"\n",
        b"\0",
        b"\xff",
        b"-1",
        b"1e999",
        b"18446744073709551615",
        b"null",
    ];

    fn files(folder: &Path, named: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.file_name().unwrap().to_string_lossy().contains(named));
        paths.sort();
        paths
    }

    fn seeds(target: &str) -> Vec<Vec<u8>> {
        let driver = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut paths = files(&driver.join("fuzz/seeds").join(target), "");
        paths.extend(match target {
            "request" => files(&driver.join("../protocol/golden"), "request-"),
            "trace_reader" | "trace_summary" => files(&driver.join("tests/data"), ".trace"),
            _ => Vec::new(),
        });
        let seeds: Vec<_> = paths
            .iter()
            .map(|path| std::fs::read(path).unwrap())
            .collect();
        assert!(!seeds.is_empty(), "{target} has no seeds");
        seeds
    }

    fn changed(seed: &[u8], random: &mut Xoshiro256PlusPlus) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..random.random_range(1..4) {
            let start = random.random_range(0..=bytes.len());
            let end = bytes.len().min(start + random.random_range(0..20));
            match random.random_range(0..4) {
                0 => random.fill(&mut bytes[start..end]),
                1 => drop(bytes.drain(start..end)),
                2 => {
                    let again = bytes[start..end].repeat(random.random_range(1..20));
                    bytes.splice(start..start, again);
                }
                _ => {
                    let piece = PIECES.choose(random).copied().unwrap_or_default();
                    bytes.splice(start..end, piece.iter().copied());
                }
            }
        }
        bytes
    }

    #[test]
    fn no_bytes_make_a_reader_panic_or_contradict_itself() {
        for (name, target) in TARGETS {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
            let seeds = seeds(name);
            seeds.iter().for_each(|seed| target(seed));
            for _ in 0..CHANGED {
                let seed = seeds.choose(&mut random).unwrap();
                target(&changed(seed, &mut random));
            }
        }
    }
}
