//! Companions of a phase, rates that change, several databases and column families: through the
//! driver's binary.

mod conversation;

use conversation::{
    failure, in_time, intervals, last_phase, leveldb, load, measure, phases, rocksdb, run_on,
    verified, workload, Target,
};
use lsmtune_driver::protocol::PhaseReply;
use serde_json::{json, Value};

const NUM: u64 = 10_000;

fn targets() -> [Target; 3] {
    [Target::built_in("memory"), rocksdb(), leveldb()]
}

fn uniform(operations: Value) -> Value {
    let lengths = json!({"distribution": "constant", "size": 20});
    json!({
        "operations": operations, "keys": {"distribution": "uniform"}, "records": NUM,
        "scan_lengths": lengths,
    })
}

/// Operations of a type; 0 where there were none.
fn count(phase: &PhaseReply, name: &str) -> u64 {
    phase.latencies.get(name).map_or(0, |reply| reply.count)
}

/// Scans beside point reads, as backups and analyses do, and a writer at a rate of its own.
#[test]
fn companions_work_for_as_long_as_the_phase_and_are_filed_apart() {
    for target in targets() {
        let companions = json!([
            {"name": "backup", "mix": uniform(json!({"scan": 1.0})), "threads": 2},
            {"name": "feed", "mix": uniform(json!({"put": 0.5, "delete": 0.5})), "rate_ops_s": 500.0},
        ]);
        let size = json!({"duration_s": 0.5, "threads": 2, "companions": companions});
        let phases = json!([load(NUM), measure("readrandom", size)]);
        // A busy machine may keep a companion from work, or from the end of the phase.
        in_time(|| {
            let messages = run_on(&target, workload(NUM, phases.clone()), json!({}));
            let phase = last_phase(&messages);
            let kinds: Vec<_> = phase.latencies.keys().map(String::as_str).collect();
            // Its own operations are the phase's, and nothing else is.
            assert_eq!(phase.operations, count(phase, "get"));
            let looked = phase.keys_found.unwrap() + phase.keys_missing.unwrap();
            assert_eq!(looked, phase.operations);
            // What they wrote is read back as well.
            let (checked, lost, wrong) = verified(&messages);
            assert!(
                checked >= 1000 && lost + wrong == 0,
                "{}: {checked} {lost}",
                target.name
            );
            let fed = count(phase, "feed.put") + count(phase, "feed.delete");
            // Its rate is about the most that it does, and without one it does thousands; how near
            // it comes, and how much later than the phase it ends, is the machine's.
            let most = 2.0 * 500.0 * phase.elapsed_s;
            kinds == ["backup.scan", "feed.delete", "feed.put", "get"] && fed as f64 <= most
        });
    }
}

/// Their checked reads were left out beside reads of keys that were never written.
#[test]
fn reads_of_companions_are_checked_and_counted_whatever_the_phase_reads() {
    let gets = json!([{"name": "gets", "mix": uniform(json!({"get": 1.0}))}]);
    let size = json!({"duration_s": 0.2, "companions": gets});
    let phases = json!([load(NUM), measure("readmissing", size)]);
    in_time(|| {
        let memory = Target::built_in("memory");
        let messages = run_on(&memory, workload(NUM, phases.clone()), json!({}));
        let phase = last_phase(&messages);
        assert_eq!(phase.keys_missing, Some(phase.operations));
        phase.reads_checked.unwrap() > phase.operations
    });
}

/// Rates far above what any engine does: what was due and not begun before the end has waited, too.
#[test]
fn a_rate_that_cannot_be_held_shows_in_the_latencies_of_all_that_was_due() {
    let companions = json!([
        {"name": "feed", "mix": uniform(json!({"put": 0.5, "delete": 0.5})), "rate_ops_s": 1e8},
    ]);
    let phase = json!({
        "name": "paced", "kind": "measure", "mix": uniform(json!({"get": 0.75, "scan": 0.25})),
        "duration_s": 0.05, "threads": 2, "rate_ops_s": 1e8, "companions": companions,
    });
    let phases = json!([load(NUM), phase]);
    in_time(|| {
        let target = Target::built_in("memory");
        let messages = run_on(&target, workload(NUM, phases.clone()), json!({}));
        let phase = last_phase(&messages);
        let due = count(phase, "get") + count(phase, "scan");
        assert_eq!(due, 5_000_000);
        assert!((count(phase, "get") as f64 / due as f64 - 0.75).abs() < 0.01);
        assert!(phase.latency.latency_us_p50.unwrap() > 10_000.0);
        // Those that were not performed are in nothing else.
        let by_type = phase.operations_by_type.as_ref().unwrap();
        assert_eq!(by_type.values().sum::<u64>(), phase.operations);
        assert!(phase.operations < due);
        let looked = phase.keys_found.unwrap() + phase.keys_missing.unwrap();
        assert_eq!(looked, phase.operations);
        // Of a companion, nothing is due before it begins.
        count(phase, "feed.put") + count(phase, "feed.delete") > 4_000_000
    });
}

#[test]
fn a_companion_that_cannot_be_is_named() {
    let scans = json!({"name": "scans", "mix": uniform(json!({"scan": 1.0}))});
    let refused = |operation: &str, companions: Value| {
        let size = json!({"duration_s": 0.1, "companions": companions});
        let phases = json!([load(NUM), measure(operation, size)]);
        let target = Target::built_in("memory");
        failure(&run_on(&target, workload(NUM, phases), json!({}))).1
    };
    let field = "workload.phases[1].companions";
    let twice = refused("readrandom", json!([scans, scans]));
    assert!(
        twice.starts_with(&format!("{field}[1].name: found scans")),
        "{twice}"
    );
    let idle = refused("readrandom", json!([{"name": "idle"}]));
    assert!(idle.starts_with(&format!("{field}[0].operation")), "{idle}");
    let none = refused(
        "readrandom",
        json!([{"name": "none", "operation": "readseq", "threads": 0}]),
    );
    assert!(none.starts_with(&format!("{field}[0].threads")), "{none}");
    let writer = refused("readwhilewriting", json!([scans]));
    assert!(writer.starts_with(&format!("{field}: found 1")), "{writer}");
}

/// Twice as fast in every other tenth of a second.
#[test]
fn bursts_are_seen_in_the_series() {
    let rate = json!({"shape": "steps", "steps": [[0.2, 4000.0], [0.2, 500.0]]});
    let size = json!({"duration_s": 0.8, "threads": 2, "rate": rate});
    let phases = json!([load(NUM), measure("readrandom", size)]);
    in_time(|| {
        let memory = Target::built_in("memory");
        let messages = run_on(&memory, workload(NUM, phases.clone()), json!({}));
        let phase = last_phase(&messages);
        assert!(phase.operations <= 1804, "{}", phase.operations);
        let mut halves = [0, 0];
        for step in intervals(&messages) {
            if step.index == 1 {
                let middle_s = step.elapsed_s - step.interval_s / 2.0;
                halves[(middle_s / 0.2) as usize % 2] += step.operations;
            }
        }
        phase.operations >= 1796 && halves[0] > 3 * halves[1]
    });
}

#[test]
fn several_databases_and_families_are_one_store() {
    for target in targets() {
        let families = if target.name == "rocksdb" { 3 } else { 1 };
        let once = json!({"operations_per_thread": NUM / 2, "threads": 2});
        let work = json!([
            load(NUM),
            {"name": "settle", "kind": "settle"},
            measure("readuniquerandom", once),
            measure("readseq", json!({"operations_per_thread": 2 * NUM})),
        ]);
        let mut all = workload(NUM, work);
        all["databases"] = json!(2);
        all["column_families"] = json!(families);
        let messages = run_on(&target, all, json!({}));
        let phases = phases(&messages);
        assert_eq!(phases[2].keys_found, Some(NUM), "{}", target.name);
        assert_eq!(phases[3].operations, NUM, "{}", target.name);
        let (checked, lost, wrong) = verified(&messages);
        assert!(checked >= 1000 && lost + wrong == 0, "{}", target.name);
    }
    let mut two = workload(NUM, json!([load(NUM)]));
    two["column_families"] = json!(2);
    let leveldb = leveldb();
    let refused = failure(&run_on(&leveldb, two, json!({}))).1;
    let expected = "workload.column_families: found 2; allowed: 1: leveldb has none";
    assert_eq!(refused, expected);
}

/// What a cache of all blocks holds is found there: every read but the first of each block.
#[test]
fn rocksdb_tells_of_its_block_cache() {
    let rocksdb = rocksdb();
    let again = |name: &str| {
        let mut phase = measure("readuniquerandom", json!({"operations_per_thread": NUM}));
        phase["name"] = json!(name);
        phase
    };
    let settle = json!({"name": "settle", "kind": "settle"});
    let twice = json!([load(NUM), settle, again("first"), again("second")]);
    let messages = run_on(&rocksdb, workload(NUM, twice), json!({}));
    let [.., first, second] = phases(&messages)[..] else {
        panic!("{messages:?}");
    };
    assert!(first.block_cache_misses.unwrap() > 50);
    assert_eq!(second.block_cache_misses, Some(0));
    assert!(second.block_cache_hits.unwrap() >= NUM);
    let memory = Target::built_in("memory");
    let messages = run_on(
        &memory,
        workload(NUM, json!([load(NUM), again("a")])),
        json!({}),
    );
    assert_eq!(last_phase(&messages).block_cache_hits, None);
}
