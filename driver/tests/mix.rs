//! Mixes as their users meet them: one request in, lines out. On the built-in engines and, where a
//! file on disk is the point, on the real ones.

mod conversation;
#[path = "mix/refusals.rs"]
mod refusals;

use conversation::{
    engines, failure, finished, in_time, last_phase, measure, phases, replace, rocksdb, run_on,
    verified, workload, Conversation, Target,
};
use lsmtune_driver::protocol::{Message, Outcome, PhaseReply};
use serde_json::{json, Value};

const RECORDS: u64 = 5000;

/// A load of `records` keys by inserts, as YCSB does it.
fn load(records: u64) -> Value {
    json!({
        "name": "load", "kind": "load", "operations": records, "threads": 2,
        "mix": {
            "operations": {"insert": 1.0}, "keys": {"distribution": "uniform"}, "records": 0,
        },
    })
}

/// A measure phase of `operations` with their weights; `more` is of the mix.
fn mixed(operations: Value, more: Value) -> Value {
    let mut mix = json!({
        "operations": operations, "keys": {"distribution": "uniform"}, "records": RECORDS,
    });
    replace(&mut mix, &more);
    json!({"name": "mixed", "kind": "measure", "operations": 10_001, "threads": 2, "mix": mix})
}

fn run(phases: Value) -> Vec<Message> {
    run_on(
        &Target::built_in("memory"),
        workload(RECORDS, phases),
        json!({}),
    )
}

fn counts(phase: &PhaseReply) -> Vec<(&str, u64)> {
    let by_type = phase.operations_by_type.as_ref().unwrap();
    by_type
        .iter()
        .map(|(name, n)| (name.as_str(), *n))
        .collect()
}

fn ycsb(order: &str) -> Value {
    json!({"format": "ycsb", "prefix": "user", "zero_padding": 1, "order": order})
}

#[test]
fn every_operation_is_drawn_by_its_weight_filed_by_its_type_and_counted() {
    let operations = json!({
        "get": 0.3, "put": 0.1, "insert": 0.1, "update": 0.2, "read_modify_write": 0.1,
        "scan": 0.1, "delete": 0.05, "delete_oldest": 0.05,
    });
    let lengths = json!({"scan_lengths": {"distribution": "uniform", "low": 1, "high": 20}});
    let messages = run(json!([load(RECORDS), mixed(operations, lengths)]));
    let phase = last_phase(&messages);
    assert_eq!(phase.operations, 10_001);
    let due = [
        ("delete", 1000.0),
        ("get", 3000.0),
        ("insert", 1000.0),
        ("put", 1000.0),
        ("read_modify_write", 1000.0),
        ("scan", 1000.0),
        ("update", 2000.0),
    ];
    for ((name, count), (due_name, due)) in counts(phase).into_iter().zip(due) {
        assert_eq!(name, due_name);
        assert_eq!(phase.latencies[name].count, count);
        // Five standard deviations.
        assert!(
            (count as f64 - due).abs() < 5.0 * due.sqrt(),
            "{name} {count}"
        );
    }
    assert_eq!(counts(phase).iter().map(|(_, n)| n).sum::<u64>(), 10_001);
    assert_eq!(phase.operation, None);
    assert!(phase.latency.latency_us_p99.is_some() && phase.latency.latency_us_max.is_some());
    let (checked, lost, wrong) = verified(&messages);
    assert!(checked > 1000);
    assert_eq!((lost, wrong), (0, 0));
}

/// Which of two threads came last to a key is not known, and neither is whether the key is there. All
/// such keys were counted, so that a sound engine lost half of them in a scan (`data_loss`).
#[test]
fn a_scan_need_not_find_keys_that_one_thread_put_and_another_deleted() {
    for operations in [
        json!({"put": 0.5, "delete": 0.5}),
        json!({"insert": 0.5, "delete_oldest": 0.5}),
    ] {
        let whole = json!({"operations_per_thread": 2 * RECORDS});
        let scan = measure("readseq", whole);
        let few = json!({"records": 3000}); // of which the ledger keeps every one
        let messages = run(json!([load(3000), mixed(operations, few), scan]));
        finished(&messages);
        assert!(last_phase(&messages).operations < 2 * RECORDS, "to its end");
        assert!(last_phase(&messages).reads_checked.unwrap() > 0);
    }
}

#[test]
fn a_key_may_have_one_operation_only() {
    let missed = |by_key: Option<f64>| {
        let more = by_key.map_or(json!({}), |share| json!({"operation_by_key": share}));
        let messages = run(json!([
            load(RECORDS),
            mixed(json!({"get": 0.8, "delete": 0.2}), more)
        ]));
        let phase = last_phase(&messages);
        let deletes = counts(phase)[0].1;
        assert!((1700..2300).contains(&deletes), "{deletes}");
        phase.keys_missing.unwrap()
    };
    // Keys that are deleted are never asked for.
    assert_eq!(missed(Some(1.0)), 0);
    let (half, none) = (missed(Some(0.5)), missed(None));
    assert!(0 < half && half < none, "{half} {none}");
}

#[test]
fn an_update_of_a_missing_row_writes_nothing() {
    let absent = json!({"first": 1_000_000});
    let messages = run(json!([
        load(RECORDS),
        mixed(json!({"update": 1.0}), absent.clone())
    ]));
    let phase = last_phase(&messages);
    assert_eq!(
        (phase.keys_found, phase.keys_missing),
        (Some(0), Some(10_001))
    );
    assert_eq!(phase.user_bytes_written, 0);
    let blind = run(json!([load(RECORDS), mixed(json!({"put": 1.0}), absent)]));
    assert_eq!(last_phase(&blind).user_bytes_written, 10_001 * 116);
    assert_eq!(last_phase(&blind).keys_found, None);
}

/// A read hands over key and value. The first one of a read-modify-write counted its value alone.
#[test]
fn rows_are_read_as_often_as_by_ycsb() {
    let bytes = |operation: &str| {
        let messages = run(json!([
            load(RECORDS),
            mixed(json!({operation: 1.0}), json!({}))
        ]));
        let phase = last_phase(&messages);
        assert_eq!(
            (phase.keys_found, phase.keys_missing),
            (Some(10_001), Some(0))
        );
        (phase.user_bytes_read, phase.user_bytes_written)
    };
    let row = 10_001 * 116;
    assert_eq!(bytes("get"), (row, 0));
    assert_eq!(bytes("update"), (row, row));
    assert_eq!(bytes("read_modify_write"), (2 * row, row));
}

#[test]
fn a_scan_reads_as_many_entries_as_it_is_long() {
    let lengths = json!({"scan_lengths": {"distribution": "constant", "size": 7}});
    let mut scans = mixed(json!({"scan": 1.0}), lengths);
    // Not beyond the last key.
    scans["mix"]["records"] = json!(RECORDS - 10);
    let messages = run(json!([load(RECORDS), scans]));
    let phase = last_phase(&messages);
    assert_eq!(phase.user_bytes_read, 10_001 * 7 * 116);
    assert_eq!(phase.keys_found, Some(10_001));
}

/// Whoever reads the newest record finds it, however many are being inserted at the time.
#[test]
fn no_chooser_sees_a_record_that_is_not_in_yet() {
    for distribution in [
        json!({"distribution": "latest", "theta": 0.99}),
        json!({"distribution": "exponential", "percentile": 95.0, "fraction": 0.1}),
        json!({"distribution": "scrambled_zipfian", "theta": 0.99, "items": RECORDS * 4}),
    ] {
        let operations = json!({"get": 0.5, "insert": 0.5});
        let mut phase = mixed(
            operations,
            json!({"keys": distribution, "insert_from": 1u64 << 40}),
        );
        phase["threads"] = json!(4);
        let messages = run(json!([load(RECORDS), phase]));
        let phase = last_phase(&messages);
        assert_eq!(phase.keys_missing, Some(0), "{distribution}");
        assert_eq!(phase.keys_found, Some(phase.latencies["get"].count));
    }
}

/// Inserts of several threads come to one key each, without a hole.
#[test]
fn inserted_keys_are_those_that_follow() {
    let all = json!({
        "name": "all", "kind": "measure", "operations": RECORDS + 3000,
        "mix": {
            "operations": {"get": 1.0}, "keys": {"distribution": "sequential"},
            "records": RECORDS + 3000,
        },
    });
    let mut more = load(3000);
    more["mix"]["records"] = json!(RECORDS);
    more["name"] = json!("more");
    more["threads"] = json!(3);
    let messages = run(json!([load(RECORDS), more, all]));
    let phase = last_phase(&messages);
    assert_eq!(
        (phase.keys_found, phase.keys_missing),
        (Some(RECORDS + 3000), Some(0))
    );
}

/// A window of records that moves: what is behind it is gone, what is in it is there.
#[test]
fn the_oldest_records_are_deleted_in_turn() {
    let window = mixed(json!({"insert": 0.5, "delete_oldest": 0.5}), json!({}));
    let mut read = mixed(json!({"get": 1.0}), json!({}));
    read["name"] = json!("read");
    let messages = run(json!([load(RECORDS), window, read]));
    // Deletes came to about the first five thousand keys, out of as many: nearly all are gone.
    let phase = last_phase(&messages);
    let missing = phase.keys_missing.unwrap() as f64 / 10_001.0;
    assert!(missing > 0.9, "{missing}");
    assert_eq!(verified(&messages).1, 0);
    // Where nothing is inserted, all but one can be deleted.
    let shrink = json!([
        load(RECORDS),
        mixed(json!({"delete_oldest": 1.0}), json!({}))
    ]);
    let messages = run(shrink);
    assert_eq!(last_phase(&messages).operations, RECORDS - 1);
}

#[test]
fn operations_are_divided_among_threads() {
    for (operations, threads) in [(10u64, 3u64), (2, 3), (9, 3)] {
        let mut phase = mixed(json!({"get": 1.0}), json!({}));
        replace(
            &mut phase,
            &json!({"operations": operations, "threads": threads}),
        );
        let messages = run(json!([load(RECORDS), phase]));
        assert_eq!(last_phase(&messages).operations, operations);
    }
    let fill = json!({
        "name": "fill", "kind": "measure", "operation": "fillrandom", "operations": 101,
        "threads": 2,
    });
    assert_eq!(last_phase(&run(json!([fill]))).operations, 101);
}

#[test]
fn keys_of_ycsb_serve_mixes_and_db_bench_alike() {
    for order in ["ordered", "hashed"] {
        let mut whole = workload(
            RECORDS,
            json!([
                load(RECORDS),
                mixed(json!({"get": 0.5, "update": 0.5}), json!({})),
                {"name": "random", "kind": "measure", "operation": "readrandom",
                 "operations_per_thread": RECORDS},
                {"name": "missing", "kind": "measure", "operation": "readmissing",
                 "operations_per_thread": RECORDS},
            ]),
        );
        whole["keys"] = ycsb(order);
        let messages = run_on(&Target::built_in("memory"), whole, json!({}));
        let found: Vec<_> = phases(&messages)
            .iter()
            .map(|phase| phase.keys_found)
            .collect();
        assert_eq!(found, [None, Some(10_001), Some(RECORDS), Some(0)]);
        assert_eq!(verified(&messages).1 + verified(&messages).2, 0);
    }
}

/// `exponential.frac` of YCSB may be above 1. The tuner took it, and each run of it was refused.
#[test]
fn an_exponential_may_reach_beyond_the_oldest_key() {
    let keys = json!({"distribution": "exponential", "percentile": 95.0, "fraction": 2.0});
    let read = mixed(json!({"get": 1.0}), json!({"keys": keys}));
    let messages = run(json!([load(RECORDS), read]));
    finished(&messages);
    assert_eq!(last_phase(&messages).keys_found, Some(10_001));
}

/// Sizes differ between phases; what was written by each is known at the end.
#[test]
fn values_have_the_sizes_of_their_phase() {
    let pareto = json!({
        "distribution": "pareto", "theta": 0.0, "k": 0.2615, "sigma": 25.45, "low": 1, "high": 1000,
    });
    let mut first = load(RECORDS);
    first["mix"]["value_sizes"] = json!({"distribution": "uniform", "low": 200, "high": 400});
    let second = mixed(
        json!({"update": 0.2, "get": 0.8}),
        json!({"value_sizes": pareto}),
    );
    let messages = run(json!([first, second]));
    let mean = |phase: &PhaseReply, of: &str| {
        phase.user_bytes_written as f64 / phase.latencies[of].count as f64 - 16.0
    };
    let loaded = phases(&messages)[0];
    assert!((mean(loaded, "insert") - 300.0).abs() < 5.0);
    let updated = mean(last_phase(&messages), "update");
    assert!((updated - 34.0).abs() < 4.0, "{updated}");
    let (checked, lost, wrong) = verified(&messages);
    assert!(checked > 1000);
    assert_eq!((lost, wrong), (0, 0));
}

#[test]
fn keys_have_their_sizes() {
    let mut whole = workload(
        RECORDS,
        json!([load(RECORDS), mixed(json!({"get": 1.0}), json!({}))]),
    );
    whole["key_bytes"] = json!(48);
    whole["key_sizes"] = json!({"distribution": "normal", "mean": 30.0, "sd": 4.0,
                                "low": 16, "high": 48});
    let messages = run_on(&Target::built_in("memory"), whole, json!({}));
    let phase = last_phase(&messages);
    assert_eq!(phase.keys_found, Some(10_001));
    let mean = phase.user_bytes_read as f64 / 10_001.0 - 100.0;
    assert!((mean - 30.0).abs() < 0.5, "{mean}");
}

#[test]
fn the_same_seed_draws_the_same_and_another_seed_does_not() {
    let bytes = |seed: u64| {
        let phase = mixed(
            json!({"get": 0.5, "scan": 0.5}),
            json!({
                "keys": {"distribution": "zipfian", "theta": 0.5},
                "scan_lengths": {"distribution": "zipfian", "low": 1, "high": 50, "theta": 0.99},
            }),
        );
        let target = Target::built_in("memory");
        let whole = workload(RECORDS, json!([load(RECORDS), phase]));
        let messages = Conversation::start(&target, whole, json!({"seed": seed})).messages();
        last_phase(&messages).user_bytes_read
    };
    assert_eq!(bytes(3), bytes(3));
    assert_ne!(bytes(3), bytes(4));
}

#[test]
fn a_mix_may_be_timed_and_paced() {
    let mut timed = mixed(json!({"get": 0.5, "update": 0.5}), json!({}));
    timed.as_object_mut().unwrap().remove("operations");
    timed["duration_s"] = json!(0.2);
    let messages = run(json!([load(RECORDS), timed.clone()]));
    let seen = last_phase(&messages);
    assert!(seen.elapsed_s > 0.19 && seen.operations > 0);
    timed["rate_ops_s"] = json!(2000.0);
    in_time(|| {
        let messages = run(json!([load(RECORDS), timed.clone()]));
        let operations = last_phase(&messages).operations;
        assert!(operations <= 401, "{operations}");
        operations > 0
    });
}

/// The contest's sequence in small: loaded by one run, used by another on the same folder.
#[test]
fn a_loaded_database_serves_later_runs() {
    for target in engines() {
        let name = target.name;
        let row = json!({
            "distribution": "row", "fields": 4, "names_bytes": 24,
            "length": {"distribution": "uniform", "low": 10, "high": 60},
        });
        let mut first = load(RECORDS);
        first["mix"]["value_sizes"] = row.clone();
        let settle = json!({"name": "settle", "kind": "settle"});
        let mut second = mixed(
            json!({"get": 0.5, "update": 0.4, "insert": 0.1}),
            json!({"keys": {"distribution": "latest", "theta": 0.99}, "value_sizes": row}),
        );
        second["operations"] = json!(4000);
        let whole = |phases: Value| {
            let mut whole = workload(RECORDS, phases);
            whole["keys"] = ycsb("hashed");
            whole
        };
        let folder = tempfile::tempdir().unwrap();
        let (directory, ledger) = (folder.path().join("db"), folder.path().join("ledger"));
        let loading = json!({"directory": directory, "save_ledger": ledger, "load_seed": 5});
        let phases = json!([first.clone(), settle.clone()]);
        finished(&Conversation::start(&target, whole(phases), loading).messages());
        let mut going_on = json!({
            "directory": directory, "load_seed": 5, "seed": 6,
            "prepared": {"ledger": ledger, "phases": 2},
        });
        // Other sizes were not what the first run wrote.
        let mut other = first.clone();
        other["mix"]["value_sizes"] = json!({"distribution": "constant", "size": 5});
        let phases = json!([other, settle, second]);
        let refused = Conversation::start(&target, whole(phases), going_on.clone()).messages();
        let message = failure(&refused).1;
        assert!(message.contains("mix.value_sizes"), "{message}");
        let phases = json!([first, settle, second]);
        going_on["save_ledger"] = json!(folder.path().join("next"));
        let messages = Conversation::start(&target, whole(phases), going_on).messages();
        let phase = last_phase(&messages);
        assert_eq!(phase.keys_missing, Some(0), "{name}");
        assert!(phase.drain_s > 0.0 && phase.space_amplification.unwrap() > 0.3);
        let (checked, lost, wrong) = verified(&messages);
        assert!(checked >= 1000);
        assert_eq!((lost, wrong), (0, 0), "{name}");
        finished(&messages);
    }
}

#[test]
fn merge_operands_are_whole_values() {
    let merging = || {
        let mut phase = mixed(json!({"merge": 0.5, "get": 0.5}), json!({}));
        phase["operations"] = json!(4000);
        workload(RECORDS, json!([load(RECORDS), phase]))
    };
    let rocksdb = rocksdb();
    let messages = run_on(&rocksdb, merging(), json!({"merge_operator": "put"}));
    let phase = last_phase(&messages);
    assert_eq!(phase.keys_missing, Some(0));
    assert_eq!(
        phase.latencies["merge"].count + phase.latencies["get"].count,
        4000
    );
    assert_eq!((verified(&messages).1, verified(&messages).2), (0, 0));
    let refused = failure(&run_on(&rocksdb, merging(), json!({}))).1;
    assert!(
        refused.starts_with("options.merge_operator: found nothing; allowed: put"),
        "{refused}"
    );
    let refused = failure(&run_on(&Target::built_in("memory"), merging(), json!({}))).1;
    assert!(
        refused.starts_with("engine.name: found memory; allowed: rocksdb"),
        "{refused}"
    );
}
