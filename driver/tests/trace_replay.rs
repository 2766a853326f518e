//! Phases that perform a trace, through the binary.

mod conversation;

use std::path::{Path, PathBuf};

use conversation::{
    cancel_in_time, engines, failure, finished, in_time, last_phase, load, measure, phases,
    replace, verified, workload, Conversation, Target,
};
use lsmtune_driver::protocol::{Message, Outcome, PROTOCOL_VERSION};
use lsmtune_driver::trace::{BatchBuilder, TraceVersion, TraceWriter, WriteKind};
use serde_json::{json, Value};

fn memory() -> Target {
    Target::built_in("memory")
}

/// Writes a trace into `folder`: `fill` is called with it.
fn trace(
    folder: &Path,
    fill: impl FnOnce(&mut TraceWriter<Vec<u8>>, &mut BatchBuilder),
) -> PathBuf {
    let mut trace = TraceWriter::new(Vec::new(), TraceVersion::V0_2, "10.2", 1).unwrap();
    fill(&mut trace, &mut BatchBuilder::default());
    let path = folder.join("a.trace");
    std::fs::write(&path, trace.finish(2).unwrap()).unwrap();
    path
}

fn replay(path: &Path, more: Value) -> Value {
    let mut phase = json!({"name": "replay", "kind": "measure", "replay": {"path": path}});
    replace(&mut phase, &more);
    phase
}

fn run(target: &Target, phases: Value) -> Vec<Message> {
    let more = json!({"protocol_version": PROTOCOL_VERSION});
    Conversation::start(target, workload(1000, phases), more).messages()
}

/// 2,000 writes of 50 keys: of each key the last value must win, whichever threads write.
fn rewrites(folder: &Path) -> PathBuf {
    trace(folder, |trace, batch| {
        for number in 0..2000u32 {
            let key = format!("key{:02}", number % 50);
            batch.clear();
            batch.put(0, key.as_bytes(), &number.to_be_bytes());
            trace.write(u64::from(number), batch).unwrap();
        }
    })
}

#[test]
fn operations_on_a_key_keep_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = rewrites(folder.path());
    for threads in [1, 4] {
        let messages = run(
            &memory(),
            json!([replay(&path, json!({"threads": threads}))]),
        );
        finished(&messages);
        assert_eq!(verified(&messages), (50, 0, 0));
        let phase = last_phase(&messages);
        assert_eq!(phase.operations, 2000);
        assert_eq!(phase.user_bytes_written, 2000 * (5 + 4));
        assert_eq!(phase.latencies["put"].count, 2000);
        assert!(phase.latency.latency_us_p99.is_some());
    }
}

#[test]
fn every_kind_of_operation_is_performed_or_said_to_be_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), |trace, batch| {
        trace
            .write(1, batch.put(0, b"a", b"1").put(0, b"b", b"2"))
            .unwrap();
        batch.clear();
        batch.put(0, b"c", b"3");
        trace
            .write(2, batch.add(WriteKind::Delete, 0, b"b", b""))
            .unwrap();
        batch.clear();
        trace
            .write(3, batch.add(WriteKind::SingleDelete, 0, b"c", b""))
            .unwrap();
        batch.clear();
        batch.add(WriteKind::DeleteRange, 0, b"x", b"z");
        trace
            .write(4, batch.add(WriteKind::PutEntity, 0, b"e", b"?"))
            .unwrap();
        trace.get(5, 0, b"a").unwrap();
        trace.multi_get(6, &[(0, b"a"), (0, b"b")]).unwrap();
        trace.seek(7, 0, b"a", (b"", b"z"), false).unwrap();
        trace.seek(8, 0, b"q", (b"", b""), true).unwrap();
    });
    let messages = run(&memory(), json!([replay(&path, json!({"seek_nexts": 1}))]));
    finished(&messages);
    assert_eq!(verified(&messages), (3, 0, 0));
    let phase = last_phase(&messages);
    let by_type = json!({"put": 2, "delete": 1, "get": 2, "seek": 2});
    assert_eq!(json!(phase.operations_by_type), by_type);
    assert_eq!((phase.keys_found, phase.keys_missing), (Some(3), Some(2)));
    let reply = json!({"skipped": {"delete_range": 1, "put_entity": 1}, "damage": null});
    assert_eq!(json!(phase.replay), reply);
    // What the database holds now, nobody knows.
    assert_eq!(phase.space_amplification, None);
}

#[test]
fn a_recorded_trace_is_performed_at_its_own_pace_or_faster() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), |trace, _| {
        for number in 0..41 {
            trace.get(1000 + number * 10_000, 0, b"key").unwrap();
        }
    });
    let elapsed_s = |speed: Value| {
        let replayed = json!({"replay": {"path": path, "speed": speed}, "threads": 2});
        let messages = run(&memory(), json!([replay(&path, replayed)]));
        finished(&messages);
        last_phase(&messages).elapsed_s
    };
    let within = |speed: Value, least_s: f64, most_s: f64| {
        in_time(|| {
            let took_s = elapsed_s(speed.clone());
            assert!(took_s >= least_s, "{speed}: {took_s}");
            took_s < most_s
        });
    };
    within(json!(1.0), 0.4, 1.0);
    within(json!(4.0), 0.1, 0.4);
    within(Value::Null, 0.0, 0.2);
}

/// Whoever reads ahead slept through the pause with what the queue of the worker had no room for:
/// it was performed after the pause, and filed with the wait.
#[test]
fn records_that_are_due_before_a_pause_are_performed_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), |trace, _| {
        for number in 0..80 {
            trace.get(1000 + number * 10_000, 0, b"key").unwrap();
        }
        trace.get(3_000_000, 0, b"key").unwrap();
    });
    let phase = json!({"replay": {"path": path, "speed": 1.0}});
    in_time(|| {
        let messages = run(&memory(), json!([replay(&path, phase.clone())]));
        finished(&messages);
        assert_eq!(last_phase(&messages).operations, 81);
        last_phase(&messages).latency.latency_us_p50.unwrap() < 500_000.0
    });
}

#[test]
fn a_size_ends_a_replay_early() {
    let folder = tempfile::tempdir().unwrap();
    let path = rewrites(folder.path());
    let messages = run(
        &memory(),
        json!([replay(&path, json!({"operations": 120}))]),
    );
    finished(&messages);
    assert_eq!(last_phase(&messages).operations, 120);
    assert!(!last_phase(&messages).cut_short);
}

/// Nobody looked at the duration before the next record was due: such a phase lasted an hour.
#[test]
fn a_duration_ends_a_replay_that_waits() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), |trace, _| {
        trace.get(1, 0, b"key").unwrap();
        trace.get(3_600_000_000, 0, b"key").unwrap();
    });
    let size = json!({"replay": {"path": path, "speed": 1.0}, "duration_s": 0.1, "threads": 3});
    // On a busy machine the first record may be due for 100 ms before anybody performs it.
    in_time(|| {
        let messages = run(&memory(), json!([replay(&path, size.clone())]));
        finished(&messages);
        let phase = last_phase(&messages);
        assert_eq!(phase.latencies["get"].count, 1);
        phase.operations == 1
    });
}

/// All records are due at once, and the time is over long before they are performed. Those that
/// were left counted for nothing.
#[test]
fn records_that_were_due_before_the_end_are_filed_with_their_wait() {
    let folder = tempfile::tempdir().unwrap();
    let records = 100_000;
    let path = trace(folder.path(), |trace, _| {
        for number in 0..records {
            trace
                .get(number, 0, format!("{number}").as_bytes())
                .unwrap();
        }
    });
    let size = json!({"replay": {"path": path, "speed": 1e4}, "duration_s": 0.01, "threads": 2});
    let messages = run(&memory(), json!([replay(&path, size)]));
    finished(&messages);
    let phase = last_phase(&messages);
    assert!(phase.operations < records, "{}", phase.operations);
    assert_eq!(phase.latencies["get"].count, records);
    let performed = json!({"get": phase.operations});
    assert_eq!(json!(phase.operations_by_type), performed);
}

#[test]
fn a_cancel_ends_a_replay_that_waits() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), |trace, _| {
        trace.get(1, 0, b"key").unwrap();
        trace.get(3_600_000_000, 0, b"key").unwrap();
    });
    let phase = json!({"replay": {"path": path, "speed": 1.0}});
    let phases = json!([replay(&path, phase)]);
    let more = json!({"protocol_version": PROTOCOL_VERSION});
    let endless = workload(1000, phases);
    cancel_in_time(|| Conversation::start(&memory(), endless.clone(), more.clone()));
}

#[test]
fn a_damaged_trace_is_performed_up_to_the_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = rewrites(folder.path());
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2 + 1]).unwrap();
    let messages = run(&memory(), json!([replay(&path, json!({}))]));
    finished(&messages);
    let phase = last_phase(&messages);
    let damage = phase.replay.as_ref().unwrap().damage.as_ref().unwrap();
    assert_eq!(damage.record, phase.operations + 1);
    assert_eq!(verified(&messages), (50, 0, 0));
}

/// The load expects its own values; what the trace wrote to its keys after that is right too.
#[test]
fn keys_of_an_earlier_load_may_be_written_by_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), |trace, batch| {
        for number in 0..100u64 {
            let key = [&number.to_be_bytes()[..], b"00000000"].concat();
            batch.clear();
            trace.write(number, batch.put(0, &key, b"another")).unwrap();
        }
    });
    let messages = run(
        &memory(),
        json!([load(1000), replay(&path, json!({"threads": 2}))]),
    );
    finished(&messages);
    assert_eq!(verified(&messages), (1000, 0, 0));
    let overwrite = json!({
        "name": "overwrite", "kind": "measure", "operation": "overwrite", "operations_per_thread": 500,
    });
    let messages = run(
        &memory(),
        json!([load(1000), replay(&path, json!({})), overwrite]),
    );
    finished(&messages);
    let (_, lost, wrong) = verified(&messages);
    assert_eq!((lost, wrong), (0, 0));
}

/// A later phase knows as little of what a trace has written as its replay. All bytes were put down
/// to the keys of the load that the trace had left alone: space amplification rose tenfold.
#[test]
fn nobody_knows_the_keys_of_a_database_from_a_replay_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), |trace, batch| {
        for number in 0..900u64 {
            let key = [&number.to_be_bytes()[..], b"00000000"].concat();
            batch.clear();
            trace.write(number, batch.put(0, &key, b"another")).unwrap();
        }
    });
    let read = measure("readrandom", json!({"operations_per_thread": 100}));
    for target in engines() {
        let all = json!([load(1000), replay(&path, json!({})), read]);
        let messages = run(&target, all);
        finished(&messages);
        let space = phases(&messages)
            .into_iter()
            .map(|phase| phase.space_amplification.is_some());
        assert_eq!(space.collect::<Vec<_>>(), [true, false, false]);
    }
}

/// Nobody but the trace knows its keys: a scan that met them ended the run as `data_loss`.
#[test]
fn a_scan_after_a_replay_may_meet_the_keys_of_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = rewrites(folder.path());
    let scan = measure("readseq", json!({"operations_per_thread": 1000}));
    let seek = measure("seekrandom", json!({"operations_per_thread": 100}));
    let messages = run(&memory(), json!([replay(&path, json!({})), scan, seek]));
    finished(&messages);
    assert_eq!(verified(&messages), (50, 0, 0));
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = rewrites(folder.path());
    let refused = |phase: Value| {
        let (outcome, message) = failure(&run(&memory(), json!([phase])));
        assert_eq!(outcome, Outcome::Invalid);
        message
    };
    let text = folder.path().join("text");
    std::fs::write(&text, "no trace\n").unwrap();
    assert!(refused(replay(&text, json!({}))).contains("offset 0: found text (\"no trace\")"));
    assert!(refused(replay(&folder.path().join("none"), json!({}))).contains("No such file"));
    let both = refused(replay(&path, json!({"operation": "fillseq"})));
    let expected = "phases[0].replay: found operation and replay";
    assert!(both.contains(expected), "{both}");
    let slow = refused(replay(
        &path,
        json!({"replay": {"path": path, "speed": 0.0}}),
    ));
    assert!(slow.contains("replay.speed: found 0"), "{slow}");
    let more = json!({"protocol_version": PROTOCOL_VERSION, "slices": 3});
    let phases = json!([replay(&path, json!({}))]);
    let sliced = Conversation::start(&memory(), workload(10, phases), more).messages();
    assert!(failure(&sliced)
        .1
        .contains("because phase replay replays a trace"));
}

/// A batch of two keys, which are in two databases, and a merge, on an engine that has none. Either
/// ended the run as `crashed`, which is held against its configuration.
#[test]
fn a_trace_that_cannot_be_performed_here_makes_the_request_invalid() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), |trace, batch| {
        for number in 0..20u8 {
            batch.put(0, &[number], b"1");
        }
        trace.write(1, batch).unwrap();
    });
    let mut several = workload(1000, json!([replay(&path, json!({}))]));
    several["databases"] = json!(2);
    let more = json!({"protocol_version": PROTOCOL_VERSION});
    let (outcome, message) = failure(&Conversation::start(&memory(), several, more).messages());
    assert_eq!(outcome, Outcome::Invalid, "{message}");
    let said = "a.trace; allowed: another trace: a batch cannot be over several databases";
    assert!(message.contains(said), "{message}");
    assert!(message.starts_with("workload.phases[0].replay.path: found "));
    let path = trace(folder.path(), |trace, batch| {
        trace
            .write(1, batch.add(WriteKind::Merge, 0, b"a", b"1"))
            .unwrap();
    });
    let (outcome, message) = failure(&run(&memory(), json!([replay(&path, json!({}))])));
    assert_eq!(outcome, Outcome::Invalid, "{message}");
    let said = "another trace: the engine has no merges";
    assert!(message.ends_with(said), "{message}");
}

/// A trace that db_bench recorded, on the engines that people run.
#[test]
fn a_trace_of_db_bench_is_performed_on_real_engines() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mixgraph-7.8.trace");
    for target in engines() {
        let messages = run(&target, json!([replay(&path, json!({"threads": 2}))]));
        finished(&messages);
        let phase = last_phase(&messages);
        assert_eq!(phase.operations, 120);
        let (checked, lost, wrong) = verified(&messages);
        assert!(checked > 0 && lost == 0 && wrong == 0);
        assert!(phase.drain_s > 0.0);
    }
}
