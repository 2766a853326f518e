//! Mixes that make no sense are refused, and the field at fault is named.

use serde_json::{json, Value};

use super::conversation::failure;
use super::*;

#[test]
fn what_makes_no_sense_is_refused_by_its_field() {
    let get = || mixed(json!({"get": 1.0}), json!({}));
    let with = |more: Value| mixed(json!({"get": 1.0}), more);
    let keys = |keys: Value| with(json!({ "keys": keys }));
    let sizes = |sizes: Value| with(json!({ "value_sizes": sizes }));
    let changed = |more: Value| {
        let mut phase = get();
        replace(&mut phase, &more);
        phase
    };
    let wrong = [
        (mixed(json!({}), json!({})), "mix.operations: found none"),
        (
            mixed(json!({"get": 0.0}), json!({})),
            "mix.operations.get: found 0;",
        ),
        (
            mixed(json!({"put": -1.0}), json!({})),
            "mix.operations.put: found -1;",
        ),
        (
            mixed(json!({"scan": 1.0}), json!({})),
            "mix.scan_lengths: found nothing",
        ),
        (
            with(json!({"records": 0})),
            "mix.records: found 0; allowed: at least 1",
        ),
        (
            with(json!({"insert_from": 10})),
            "mix.insert_from: found 10; allowed: 5000",
        ),
        (with(json!({"first": 1u64 << 63})), "mix.first: found"),
        (
            keys(json!({"distribution": "zipfian", "theta": 1.0})),
            "mix.keys.theta: found 1;",
        ),
        (
            keys(json!({"distribution": "latest", "theta": 0.0})),
            "mix.keys.theta: found 0;",
        ),
        (
            keys(json!({"distribution": "scrambled_zipfian", "theta": 0.9, "items": 10})),
            "mix.keys.items: found 10; allowed: 5000 (records) to 5000000",
        ),
        (
            keys(json!({"distribution": "hotspot", "hot_data": 1.5, "hot_operations": 0.5})),
            "mix.keys.hot_data: found 1.5;",
        ),
        (
            keys(json!({"distribution": "hotspot", "hot_data": 0.5, "hot_operations": -0.5})),
            "mix.keys.hot_operations: found -0.5;",
        ),
        (
            keys(json!({"distribution": "exponential", "percentile": 100.0, "fraction": 0.5})),
            "mix.keys.percentile: found 100;",
        ),
        (
            keys(json!({"distribution": "power", "a": 0.0, "b": 1.0})),
            "mix.keys.a: found 0;",
        ),
        (
            keys(json!({"distribution": "power", "a": 0.1, "b": -1.0})),
            "mix.keys.b: found -1;",
        ),
        (
            keys(json!({"distribution": "power", "a": 0.1, "b": 0.5, "grains": 0})),
            "mix.keys.grains: found 0; allowed: at least 1",
        ),
        (
            keys(
                json!({"distribution": "ranges", "ranges": 9, "a": 1.0, "b": -0.1, "c": 0.0,
                        "d": -0.1, "key_grains": 5}),
            ),
            "mix.keys.key_grains: found it alone;",
        ),
        (
            with(json!({"operation_by_key": 1.5})),
            "mix.operation_by_key: found 1.5; allowed: 0 to 1",
        ),
        (
            mixed(
                json!({"get": 0.5, "insert": 0.5}),
                json!({"operation_by_key": 0.5}),
            ),
            "mix.operation_by_key: found 0.5; allowed: nothing, since keys come",
        ),
        (
            keys(ranges(0, 1.0, None)),
            "mix.keys.ranges: found 0; allowed: 1 to 5000",
        ),
        (keys(ranges(9, 0.0, None)), "mix.keys.a: found 0;"),
        (
            keys(ranges(9, 1.0, Some(0.5))),
            "mix.keys.key_b: found nothing;",
        ),
        (
            sizes(json!({"distribution": "uniform", "low": 9, "high": 8})),
            "mix.value_sizes.low: found 9; allowed: at most 8 (high)",
        ),
        (
            sizes(json!({"distribution": "constant", "size": 1 << 30})),
            "mix.value_sizes: found sizes of 1073741824 to 1073741824",
        ),
        (
            sizes(json!({"distribution": "normal", "mean": 5.0, "sd": 0.0, "low": 0, "high": 9})),
            "mix.value_sizes.sd: found 0;",
        ),
        (
            sizes(json!({"distribution": "normal", "mean": 1e9, "sd": 1.0, "low": 0, "high": 9})),
            "mix.value_sizes.distribution: found one without sizes",
        ),
        (
            sizes(json!({"distribution": "table", "sizes": [[5, 0.0]]})),
            "mix.value_sizes.sizes: found none of any weight",
        ),
        (
            sizes(json!({"distribution": "row", "fields": 0, "names_bytes": 1,
                         "length": {"distribution": "constant", "size": 1}})),
            "mix.value_sizes.fields: found 0;",
        ),
        (
            mixed(
                json!({"scan": 1.0}),
                json!({
                    "scan_lengths": {"distribution": "uniform", "low": 0, "high": 8},
                }),
            ),
            "mix.scan_lengths: found sizes of 0 to 8; allowed: 1 to",
        ),
        (
            mixed(
                json!({"get": 1.0, "delete_oldest": 1.0}),
                json!({
                    "keys": {"distribution": "power", "a": 0.1, "b": 0.5},
                }),
            ),
            "mix.keys.distribution: found power;",
        ),
        (
            changed(json!({"operation": "fillseq"})),
            "mix: found operation and mix;",
        ),
        (
            changed(json!({"operations_per_thread": 5})),
            "operations: found both;",
        ),
        (changed(json!({"operations": 0})), "operations: found 0;"),
        (
            changed(json!({"kind": "settle"})),
            "mix: found one; allowed: none in a settle phase",
        ),
    ];
    for (phase, message) in wrong {
        let messages = run(json!([phase]));
        let (outcome, found) = failure(&messages);
        assert_eq!(outcome, Outcome::Invalid, "{message}");
        let expected = format!("workload.phases[0].{message}");
        assert!(found.starts_with(&expected), "{found}");
        assert!(!found.contains('\n'));
    }
}

fn ranges(ranges: u64, a: f64, key_a: Option<f64>) -> Value {
    let mut keys = json!({"distribution": "ranges", "ranges": ranges, "a": a, "b": -0.1,
                          "c": 0.0, "d": -0.1});
    if let Some(key_a) = key_a {
        keys["key_a"] = json!(key_a);
    }
    keys
}

#[test]
fn keys_that_make_no_sense_are_refused_by_their_field() {
    let size = |low: u64, high: u64| json!({"distribution": "uniform", "low": low, "high": high});
    let wrong = [
        (
            json!({"key_sizes": size(4, 16)}),
            "workload.key_sizes: found sizes of 4 to 16",
        ),
        (
            json!({"key_sizes": size(8, 17)}),
            "workload.key_sizes: found sizes of 8 to 17",
        ),
        (
            json!({"key_sizes": size(8, 16), "keys": ycsb("hashed")}),
            "workload.key_sizes: found",
        ),
        (
            json!({"key_bytes": 7}),
            "workload.key_bytes: found 7; allowed: 8 to",
        ),
        (
            json!({"keys": {"format": "ycsb", "prefix": "u", "zero_padding": 5000,
                            "order": "hashed"}}),
            "workload.keys.zero_padding: found 5000; allowed: 0 to 1000",
        ),
    ];
    for (more, message) in wrong {
        let mut whole = workload(RECORDS, json!([load(RECORDS)]));
        replace(&mut whole, &more);
        let messages = run_on(&Target::built_in("memory"), whole, json!({}));
        let (outcome, found) = failure(&messages);
        assert_eq!(outcome, Outcome::Invalid);
        assert!(found.starts_with(message), "{found}");
    }
}
