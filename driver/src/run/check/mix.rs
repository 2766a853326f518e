//! What a mix must satisfy.

use crate::protocol::{Mix, MixOperation, RunRequest};

use super::distributions::{key_distribution, size_distribution};
use super::{require, Checked, VALUE_BYTES_MAX};

/// Key numbers stay below this, so that inserted ones cannot overflow.
const KEY_NUMBER_MAX: u64 = 1 << 62;
const SCAN_LENGTH_MAX: u64 = 1 << 32;
/// RocksDB's names of the merge operator for which the last operand is the value.
const PUT_OPERATORS: [&str; 3] = ["put", "put_v1", "PutOperator"];

/// The mix that the request calls `field`.
pub fn mix(field: &str, mix: &Mix) -> Checked {
    let inner = |name: &str| format!("{field}.{name}");
    operations(&inner("operations"), mix)?;
    let numbers = format!("at most {KEY_NUMBER_MAX}");
    let insert_from = mix.insert_from.unwrap_or(0);
    for (name, number) in [
        ("first", mix.first),
        ("records", mix.records),
        ("insert_from", insert_from),
    ] {
        require(number <= KEY_NUMBER_MAX, &inner(name), number, &numbers)?;
    }
    if let Some(number) = mix.insert_from {
        let end = mix.first + mix.records;
        let allowed = format!("{end} (first + records) or more");
        require(number >= end, &inner("insert_from"), number, &allowed)?;
    }
    if mix.chooses_keys() {
        let allowed = "at least 1, since operations choose among them";
        require(mix.records > 0, &inner("records"), mix.records, allowed)?;
        let moving = mix.operations.contains_key(&MixOperation::DeleteOldest);
        key_distribution(&inner("keys"), &mix.keys, mix.records, moving)?;
    }
    operation_by_key(&inner("operation_by_key"), mix)?;
    sizes(field, mix)
}

fn operation_by_key(field: &str, mix: &Mix) -> Checked {
    let Some(share) = mix.operation_by_key else {
        return Ok(());
    };
    require((0.0..=1.0).contains(&share), field, share, "0 to 1")?;
    let has = |operation| mix.operations.contains_key(&operation);
    let passing = has(MixOperation::Insert) || has(MixOperation::DeleteOldest);
    let allowed = "nothing, since keys come or go in the mix";
    require(!passing, field, share, allowed)
}

/// Merge operands are whole values, so the engine needs an operator that treats them as such.
pub fn merges(request: &RunRequest) -> Checked {
    let mixes = request.workload.phases.iter().flat_map(|phase| {
        let beside = phase.companions.iter().filter_map(|each| each.mix.as_ref());
        phase.mix.iter().chain(beside)
    });
    let merges = |mix: &Mix| mix.operations.contains_key(&MixOperation::Merge);
    if !mixes.into_iter().any(merges) {
        return Ok(());
    }
    let name = &request.engine.name;
    let allowed = "rocksdb, since a mix has merge";
    require(name == "rocksdb", "engine.name", name, allowed)?;
    let option = "merge_operator";
    let found = request.options.get(option);
    let found = found.map_or("nothing", String::as_str);
    let allowed = format!("{}, since a mix has merge", PUT_OPERATORS.join(" or "));
    let sensible = PUT_OPERATORS.contains(&found);
    require(sensible, &format!("options.{option}"), found, &allowed)
}

fn operations(field: &str, mix: &Mix) -> Checked {
    require(!mix.operations.is_empty(), field, "none", "at least one")?;
    for (operation, weight) in &mix.operations {
        let name = serde_json::to_value(operation).unwrap_or_default();
        let field = format!("{field}.{}", name.as_str().unwrap_or_default());
        let sensible = weight.is_finite() && *weight > 0.0;
        require(sensible, &field, weight, "a weight above 0")?;
    }
    Ok(())
}

fn sizes(field: &str, mix: &Mix) -> Checked {
    let lengths_field = format!("{field}.scan_lengths");
    match &mix.scan_lengths {
        Some(lengths) => size_distribution(&lengths_field, lengths, 1, SCAN_LENGTH_MAX)?,
        None => {
            let scans = mix.operations.contains_key(&MixOperation::Scan);
            let allowed = "the lengths of the mix's scans";
            require(!scans, &lengths_field, "nothing", allowed)?;
        }
    }
    let field = format!("{field}.value_sizes");
    mix.value_sizes.as_ref().map_or(Ok(()), |sizes| {
        size_distribution(&field, sizes, 0, VALUE_BYTES_MAX as u64)
    })
}
