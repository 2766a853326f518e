//! Whole runs on real engines, through the binary: what the built-in engines of `tests/run.rs`
//! cannot show, because they neither flush, compact, read files nor lose data.

mod conversation;

use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use conversation::{
    background_work, failure, finished, in_time, last_phase, leveldb, load, measure, rocksdb,
    run_on, verified, workload, Conversation, Target,
};
use lsmtune_driver::protocol::{LevelReply, Message, Outcome};
use serde_json::{json, Value};

const NUM: u64 = 100_000;
const RECORD_BYTES: u64 = 116; // a key and a value

fn fillrandom() -> Value {
    measure("fillrandom", json!({"operations_per_thread": NUM}))
}

#[test]
fn writes_are_charged_with_flush_and_compaction_and_read_back_after_reopening() {
    for target in [rocksdb(), leveldb()] {
        in_time(|| {
            let options = json!({"write_buffer_size": "1048576"});
            let messages = run_on(&target, workload(NUM, json!([fillrandom()])), options);
            let phase = last_phase(&messages);
            assert!(phase.drain_s > 0.0, "{}", target.name);
            assert!(phase.sustained_throughput_ops_s < phase.throughput_ops_s);
            let work = background_work(&messages);
            assert!(work.flushes.unwrap() >= 5, "{}: {work:?}", target.name);
            assert!(work.compactions.unwrap() >= 1, "{}: {work:?}", target.name);
            assert!(
                work.write_amplification.unwrap() > 0.5,
                "{}: {work:?}",
                target.name
            );
            let levels = work.levels.unwrap();
            let sum = |count: fn(&LevelReply) -> u64| levels.iter().map(count).sum::<u64>();
            assert_eq!(Some(sum(|level| level.compactions)), work.compactions);
            assert!(sum(|level| level.compaction_write_bytes) > 1_000_000);
            assert!(
                levels.iter().all(|work| (1..7).contains(&work.level)),
                "{levels:?}"
            );
            let (checked, lost, wrong) = verified(&messages);
            assert!(
                checked >= 1000 && lost == 0 && wrong == 0,
                "{}",
                target.name
            );
            assert!(finished(&messages) > 1_000_000);
            // Compactions write their tables before the old ones go, if somebody looks meanwhile.
            phase.database_bytes_max > phase.database_bytes
        });
    }
}

/// Tables alone were counted, and the write amplification of such a run was nearly 0.
#[test]
fn values_in_blob_files_are_written_too() {
    let amplification = |collects: &str| {
        let options = json!({
            "write_buffer_size": "1048576", "enable_blob_files": "true", "min_blob_size": "0",
            "level0_file_num_compaction_trigger": "2", "blob_garbage_collection_age_cutoff": "1.0",
            "enable_blob_garbage_collection": collects,
        });
        let messages = run_on(&rocksdb(), workload(NUM, json!([fillrandom()])), options);
        finished(&messages);
        let work = background_work(&messages);
        assert!(work.compactions.unwrap() >= 1, "{work:?}");
        work.write_amplification.unwrap()
    };
    // Each value is flushed once, apart from the few that a later one replaces in the memtable.
    let flushed = amplification("false");
    assert!(flushed > 0.9, "{flushed}");
    // And compactions write again those that are still there.
    let collected = amplification("true");
    assert!(collected > flushed + 0.5, "{collected} {flushed}");
}

/// By the number of files a compaction is due, and there are too few of them for one so wide.
#[test]
fn the_second_for_which_a_compaction_never_began_is_charged_to_nobody() {
    let options = json!({
        "compaction_style": "kCompactionStyleUniversal", "write_buffer_size": "1048576",
        "compaction_options_universal.min_merge_width": "1000",
        "compaction_options_universal.max_size_amplification_percent": "4294967295",
    });
    in_time(|| {
        let messages = run_on(
            &rocksdb(),
            workload(NUM, json!([fillrandom()])),
            options.clone(),
        );
        finished(&messages);
        assert_eq!(background_work(&messages).compactions, Some(0));
        let phase = last_phase(&messages);
        let lasted_s = (phase.finished_unix_us - phase.started_unix_us) as f64 / 1e6;
        assert!(lasted_s > phase.elapsed_s + 1.0, "{phase:?}");
        phase.drain_s < 0.9
    });
}

/// The trap that tuning scripts fall into: FIFO compaction is the fastest compaction, because it
/// deletes the data.
#[test]
fn a_configuration_that_deletes_data_fails_the_run() {
    let options = json!({
        "compaction_style": "kCompactionStyleFIFO",
        "compaction_options_fifo.max_table_files_size": "2097152",
        "write_buffer_size": "524288",
    });
    let messages = run_on(&rocksdb(), workload(NUM, json!([fillrandom()])), options);
    let (outcome, message) = failure(&messages);
    assert_eq!(outcome, Outcome::DataLoss, "{message}");
    assert!(verified(&messages).1 > 0);
}

#[test]
fn reads_start_settled_and_find_every_key() {
    for target in [rocksdb(), leveldb()] {
        for operation in ["readrandom", "readseq", "seekrandom"] {
            let settle = json!({"name": "settle", "kind": "settle"});
            let read = measure(operation, json!({"operations_per_thread": NUM}));
            let phases = json!([load(NUM), settle, read]);
            let messages = run_on(&target, workload(NUM, phases), json!({}));
            let phase = last_phase(&messages);
            assert_eq!(phase.keys_found, Some(NUM), "{} {operation}", target.name);
            assert_eq!(phase.keys_missing, Some(0));
            assert_eq!(background_work(&messages).flushes, Some(0));
            // LevelDB maps its files, so that its reads cannot be counted: not known is not zero.
            assert_eq!(phase.read_amplification.is_some(), target.name == "rocksdb");
        }
    }
}

#[test]
fn compressible_values_take_half_the_space() {
    let phases = || json!([load(NUM), {"name": "settle", "kind": "settle"}]);
    for (target, none, snappy) in [
        (rocksdb(), "kNoCompression", "kSnappyCompression"),
        (leveldb(), "none", "snappy"),
    ] {
        let space = |compression: &str| {
            let options = json!({"compression": compression});
            let messages = run_on(&target, workload(NUM, phases()), options);
            last_phase(&messages).database_bytes as f64 / (NUM * RECORD_BYTES) as f64
        };
        let (plain, packed) = (space(none), space(snappy));
        assert!((0.95..1.2).contains(&plain), "{}: {plain}", target.name);
        assert!((0.5..0.75).contains(&packed), "{}: {packed}", target.name);
    }
}

#[test]
fn an_option_that_the_engine_changed_is_reported() {
    let messages = run_on(
        &rocksdb(),
        workload(
            1000,
            json!([measure("fillseq", json!({"operations_per_thread": 1000}))]),
        ),
        json!({"max_open_files": "5", "max_background_jobs": "3"}),
    );
    let not_taken = messages.iter().find_map(|message| match message {
        Message::Opened {
            options_not_taken, ..
        } => Some(options_not_taken),
        _ => None,
    });
    let [only] = not_taken.unwrap().as_slice() else {
        panic!("{not_taken:?}");
    };
    assert_eq!(
        (only.name.as_str(), only.requested.as_str()),
        ("max_open_files", "5")
    );
    assert_eq!(only.effective.as_deref(), Some("20"));
}

#[test]
fn durability_is_honoured_or_refused() {
    let phases = || json!([measure("fillrandom", json!({"operations_per_thread": 200}))]);
    let run = |target: &Target, durability: &str| {
        let mut workload = workload(1000, phases());
        workload["durability"] = json!(durability);
        run_on(target, workload, json!({}))
    };
    for target in [rocksdb(), leveldb()] {
        // Medians: a stall may last longer than all syncs together, but falls into one write.
        let p50_us = |durability: &str| {
            let latency = last_phase(&run(&target, durability)).latency;
            latency.latency_us_p50.unwrap()
        };
        let (synced, logged) = (p50_us("sync"), p50_us("wal"));
        assert!(
            synced > logged,
            "{}: {synced} synced, {logged} not",
            target.name
        );
    }
    assert_eq!(verified(&run(&rocksdb(), "none")).1, 0);
    let (outcome, message) = failure(&run(&leveldb(), "none"));
    assert_eq!(outcome, Outcome::Invalid);
    assert!(message.contains("durability"), "{message}");
}

/// Spread over loading, settling, measuring, draining, closing and reading back.
#[test]
fn a_cancel_ends_a_run_within_300_ms_whatever_it_does_rocksdb() {
    cancel_at_many_moments(&rocksdb(), &json!({"write_buffer_size": "67108864"}));
}

#[test]
fn a_cancel_ends_a_run_within_300_ms_whatever_it_does_leveldb() {
    cancel_at_many_moments(&leveldb(), &json!({"write_buffer_size": "67108864"}));
}

fn cancel_at_many_moments(target: &Target, options: &Value) {
    let num = 1_000_000;
    let fill = measure("fillrandom", json!({"operations_per_thread": num}));
    let settle = json!({"name": "settle", "kind": "settle"});
    let phases = json!([load(num / 8), settle, fill]);
    for moment in 0u64..10 {
        in_time(|| {
            let more = json!({"options": options, "verify_keys": 100_000});
            let mut run = Conversation::start(target, workload(num, phases.clone()), more);
            std::thread::sleep(Duration::from_millis(10 + moment * moment * 10));
            let (messages, took) = run.cancel();
            assert_eq!(failure(&messages).0, Outcome::Cancelled, "{moment}");
            took < Duration::from_millis(300)
        });
    }
}

/// Without any compaction there is nothing that ends the stall.
#[test]
fn a_cancel_ends_a_stalled_write() {
    let options = json!({
        "write_buffer_size": "65536", "compaction_style": "kCompactionStyleNone",
        "level0_file_num_compaction_trigger": "4", "level0_slowdown_writes_trigger": "4",
        "level0_stop_writes_trigger": "4",
    });
    in_time(|| {
        let phases = workload(NUM, json!([fillrandom()]));
        let more = json!({"options": options});
        let mut run = Conversation::start(&rocksdb(), phases, more);
        let lines = BufReader::new(run.child.stdout.take().unwrap()).lines();
        let mut messages = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap());
        // A busy machine may keep the writer from work for some intervals too.
        let mut idle = 0;
        while idle < 5 {
            match messages.next().unwrap() {
                Message::Interval(step) if step.operations == 0 => idle += 1,
                _ => idle = 0,
            }
        }
        let asked = Instant::now();
        run.say_cancel();
        let messages: Vec<Message> = messages.collect();
        run.child.wait().unwrap();
        let took = asked.elapsed();
        let (outcome, message) = failure(&messages);
        assert_eq!(outcome, Outcome::Cancelled);
        // If it was the machine that kept the writer from work, the run ends in good order.
        message == "cancelled before its engine could be closed"
            && took < Duration::from_millis(300)
    });
}
