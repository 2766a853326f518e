//! The summary at the end of a trace, made from all counts.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::time::Instant;

use crate::protocol::InspectRequest;
use crate::trace::{Damage, TraceReader};

use super::counts::Counts;
use super::curve::{curve, Weighted};
use super::heavy::{Heavy, COUNTERS};
use super::inspector::{ratio, Inspector, OPERATIONS, RECORDS};
use super::keys::Key;
use super::prefixes::hex;
use super::ranges::{by_number, by_rank, Placed};
use super::summary::{
    Curve, DistinctKeys, GetsOfWritten, KeySpace, Overwrites, Sampling, TraceSummary,
};
use super::Group;

/// The number of parts with equally many keys.
const RANK_PARTS: usize = 100;

/// The summary of all counts of a file of `bytes_total` bytes, which `reader` has read from `started`
/// on, up to its end or its `damage`.
pub fn summarise(
    counted: Inspector,
    request: &InspectRequest,
    reader: &TraceReader<impl Read>,
    bytes_total: u64,
    damage: Option<Damage>,
    started: Instant,
) -> TraceSummary {
    let header = reader.header();
    let placed = placed(&counted);
    let span = counted.numbers.range();
    let (first, last) = counted.time.range.unzip();
    let elapsed_s = started.elapsed().as_secs_f64();
    let named = |names: &[&str], counts: &[u64]| {
        let names = names.iter().map(|name| (*name).to_owned());
        names.zip(counts.iter().copied()).collect()
    };
    let histograms = |pairs: &[(&str, &Counts)]| {
        let pairs = pairs.iter();
        pairs
            .filter_map(|(name, counts)| Some(((*name).to_owned(), counts.summary()?)))
            .collect()
    };
    let groups = Group::ALL.map(|(group, name)| (name, &counted.key_sizes[group as usize]));
    let ascending =
        Group::ALL.map(|(group, name)| (name.to_owned(), counted.ascents[group as usize].share()));
    TraceSummary {
        path: request.path.clone(),
        bytes: reader.offset_bytes(),
        bytes_total,
        trace_version: header.trace_version.clone(),
        rocksdb_version: header.rocksdb_version.clone(),
        header_unix_us: header.unix_us,
        footer: reader.footer(),
        damage,
        records: counted.records,
        operations: counted.operations,
        first_unix_us: first,
        last_unix_us: last,
        duration_s: last.zip(first).map_or(0.0, |(b, a)| (b - a) as f64 / 1e6),
        out_of_order: counted.time.out_of_order,
        elapsed_s,
        records_per_s: ratio(counted.records as f64, elapsed_s).unwrap_or(0.0),
        record_counts: named(&RECORDS, &counted.record_counts),
        operation_counts: named(&OPERATIONS, &counted.operation_counts),
        markers: counted.markers,
        batch_entries: counted.batch_entries.summary(),
        multi_get_keys: counted.multi_get_keys.summary(),
        key_sizes: histograms(&groups),
        value_sizes: histograms(&[("put", &counted.put_sizes), ("merge", &counted.merge_sizes)]),
        scan_lengths: None,
        seek_bounds: counted.seek_bounds,
        inter_arrival_us: counted.time.gaps_us.summary(),
        sampling: sampling(&counted),
        keys: distinct_keys(&counted),
        overwrites: overwrites(&counted),
        gets_of_written: gets_of_written(&counted),
        get_after_write: counted.get_after_write.summary(),
        ascending: ascending.into(),
        hotness: hotness(&counted),
        key_space: key_space(&counted),
        keys_without_number: counted.numbers.without(),
        ranges_by_number: span
            .map_or_else(Vec::new, |span| by_number(&placed, span, request.ranges)),
        ranges_by_rank: by_rank(&placed, RANK_PARTS),
        prefixes: counted.prefixes.summary(counted.numbers.prefix()),
        windows: counted.windows.summary(counted.keys.distinct()),
        reuse: [
            ("get", counted.reuse_of_gets),
            ("all", counted.reuse_of_all),
        ]
        .into_iter()
        .filter_map(|(name, reuse)| Some((name.to_owned(), reuse.summary()?)))
        .collect(),
        column_families: counted.families.into_iter().collect(),
        column_families_other: counted.families_other,
    }
}

/// The keys to estimate from: the hottest keys, which represent themselves, and the sampled keys
/// among the others, each of which represents several.
fn strata(counted: &Inspector) -> Vec<(Option<u64>, f64, [u32; 3])> {
    let mut all = Vec::new();
    let mut certain = HashSet::new();
    for (hash, key) in counted.heavy.iter().flat_map(Heavy::certain) {
        certain.insert(hash);
        all.push((key.number, 1.0, key.counts));
    }
    let weight = counted.keys.weight() as f64;
    let sampled = counted
        .keys
        .iter()
        .filter(|(hash, _)| !certain.contains(hash));
    all.extend(sampled.map(|(_, key)| (key.number, weight, key.counts)));
    all
}

/// The keys with a number, in the order of their numbers.
fn placed(counted: &Inspector) -> Vec<Placed> {
    let strata = strata(counted).into_iter();
    let mut placed: Vec<Placed> = strata
        .filter_map(|(number, weight, counts)| {
            let number = number?;
            Some(Placed {
                number,
                weight,
                counts,
            })
        })
        .collect();
    placed.sort_unstable_by_key(|key| key.number);
    placed
}

fn hotness(counted: &Inspector) -> BTreeMap<String, Curve> {
    let strata = strata(counted);
    let of = |count: &dyn Fn(&[u32; 3]) -> u64, accesses: u64| {
        let weighted = |(_, weight, counts): &(_, f64, [u32; 3])| (count(counts) as f64, *weight);
        let keys: Vec<Weighted> = strata.iter().map(weighted).collect();
        curve(keys, accesses)
    };
    let all = ("all", of(&super::accesses, counted.keyed.iter().sum()));
    let groups = Group::ALL.map(|(group, name)| {
        let one = |counts: &[u32; 3]| u64::from(counts[group as usize]);
        (name, of(&one, counted.keyed[group as usize]))
    });
    std::iter::once(all)
        .chain(groups)
        .filter_map(|(name, curve)| Some((name.to_owned(), curve?)))
        .collect()
}

/// The number of distinct keys for which `which` holds.
fn count_keys(counted: &Inspector, which: impl Fn(&Key) -> bool) -> f64 {
    let kept = counted.keys.iter().filter(|(_, key)| which(key)).count();
    kept as f64 * counted.keys.weight() as f64
}

fn distinct_keys(counted: &Inspector) -> DistinctKeys {
    let has = |key: &Key, group: Group| key.counts[group as usize] > 0;
    DistinctKeys {
        distinct: counted.keys.distinct(),
        read: count_keys(counted, |key| has(key, Group::Get)),
        written: count_keys(counted, |key| has(key, Group::Write)),
        sought: count_keys(counted, |key| has(key, Group::Seek)),
        read_and_written: count_keys(counted, |key| {
            has(key, Group::Get) && has(key, Group::Write)
        }),
    }
}

fn overwrites(counted: &Inspector) -> Overwrites {
    let writes = counted.keyed[Group::Write as usize];
    let written = count_keys(counted, |key| key.counts[Group::Write as usize] > 0);
    let repeated = (writes as f64 - written).max(0.0);
    Overwrites {
        writes,
        repeated,
        share: ratio(repeated, writes as f64),
    }
}

fn gets_of_written(counted: &Inspector) -> GetsOfWritten {
    let share = ratio(counted.gets_of_written as f64, counted.gets_sampled as f64);
    let gets = counted.keyed[Group::Get as usize] as f64;
    GetsOfWritten {
        gets: share.unwrap_or(0.0) * gets,
        share,
    }
}

fn key_space(counted: &Inspector) -> KeySpace {
    let (min, max) = counted.numbers.range().unwrap_or((0, 0));
    KeySpace {
        common_prefix_hex: hex(counted.numbers.prefix()),
        common_prefix_bytes: counted.numbers.prefix_bytes() as u64,
        number: counted.numbers.name().to_owned(),
        window_offset_bytes: counted.numbers.offset_bytes() as u64,
        min: min.to_string(),
        max: max.to_string(),
    }
}

fn sampling(counted: &Inspector) -> Sampling {
    let kept = counted.keys.iter().count() as u64;
    let weight = counted.keys.weight();
    let accesses: u64 = counted.keyed.iter().sum();
    let (method, standard_error, text) = match &counted.heavy {
        None => ("exact", 0.0, format!("all {kept} keys were kept")),
        Some(_) => (
            "sampled",
            1.0 / (kept.max(1) as f64).sqrt(),
            format!(
                "1 key in {weight} was kept, by its hash (adaptive sampling after Wegman), \
                 and the hottest keys were counted one by one (frequent items after \
                 Anderson et al., {COUNTERS} counters)"
            ),
        ),
    };
    let unseen = counted.heavy.as_ref().map_or(0, Heavy::unseen_max);
    Sampling {
        method: method.to_owned(),
        keys_kept: kept,
        share: 1.0 / weight as f64,
        standard_error,
        heavy_counters: counted.heavy.as_ref().map_or(0, |_| COUNTERS as u64),
        heavy_error: ratio(unseen as f64, accesses as f64).unwrap_or(0.0),
        text,
    }
}
