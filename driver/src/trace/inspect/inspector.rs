//! The pass over a trace, and the summary at its end.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::protocol::InspectRequest;
use crate::trace::{Damage, Record, TraceError, TraceReader, WriteKind};

use super::counts::Counts;
use super::curve::{curve, Weighted};
use super::heavy::{Heavy, COUNTERS};
use super::keys::{Key, Keys, KEYS_MAX};
use super::numbers::{shift, Numbers};
use super::prefixes::{hex, PrefixCounts};
use super::ranges::{by_number, by_rank, Placed};
use super::reuse::ReuseDistances;
use super::summary::*;
use super::windows::WindowSeries;
use super::Group;

/// Column families counted one by one.
const FAMILIES_MAX: usize = 64;
/// Parts of the keys in the order of their numbers.
const RANK_PARTS: usize = 100;
/// Records between two looks at the clock.
const LOOK_EVERY: u64 = 1 << 14;
/// Time between two reports: whoever hears them may end the pass, and must be heard soon.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// How far the pass has come.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Bytes read.
    pub bytes_read: u64,
    /// Records seen.
    pub records: u64,
    /// Seconds so far.
    pub elapsed_s: f64,
}

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The file is no trace, or cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Whoever was told of the progress does not want to hear more.
    #[error("stopped")]
    Stopped,
}

/// Summarises the trace in `source`, of `bytes_total` bytes. `report` hears of the progress ten times
/// a second, and says whether to go on. Damage after the header is part of the summary.
pub fn inspect(
    source: impl Read,
    bytes_total: u64,
    request: &InspectRequest,
    report: &mut dyn FnMut(Progress) -> bool,
) -> Result<TraceSummary, InspectError> {
    inspect_keeping(source, bytes_total, request, KEYS_MAX, report)
}

/// The same, with at most `keys_max` keys kept.
fn inspect_keeping(
    source: impl Read,
    bytes_total: u64,
    request: &InspectRequest,
    keys_max: usize,
    report: &mut dyn FnMut(Progress) -> bool,
) -> Result<TraceSummary, InspectError> {
    let started = Instant::now();
    let mut reader = TraceReader::new(source)?;
    let mut inspector = Inspector::new(request, keys_max);
    let mut next_report = started + REPORT_EVERY;
    let damage = loop {
        match reader.next_entry() {
            Ok(Some(entry)) => inspector.record(entry.unix_us, entry.record),
            Ok(None) => break None,
            Err(TraceError::Damaged(damage)) => break Some(damage),
            Err(error) => return Err(error.into()),
        }
        if inspector.records.is_multiple_of(LOOK_EVERY) && Instant::now() >= next_report {
            next_report = Instant::now() + REPORT_EVERY;
            let progress = Progress {
                bytes_read: reader.offset_bytes(),
                records: inspector.records,
                elapsed_s: started.elapsed().as_secs_f64(),
            };
            if !report(progress) {
                return Err(InspectError::Stopped);
            }
        }
    };
    let read = ReadTrace {
        path: &request.path,
        bytes: reader.offset_bytes(),
        bytes_total,
        footer: reader.footer(),
        header: reader.header().clone(),
        damage,
        started,
    };
    Ok(inspector.summary(read, request.ranges))
}

/// What is known of the file when it has been read.
struct ReadTrace<'a> {
    path: &'a Path,
    bytes: u64,
    bytes_total: u64,
    footer: bool,
    header: crate::trace::Header,
    damage: Option<Damage>,
    started: Instant,
}

/// What is counted while records come.
struct Inspector {
    seed: u64,
    records: u64,
    operations: u64,
    record_counts: [u64; 5],
    operation_counts: [u64; OPERATIONS.len()],
    markers: u64,
    families: BTreeMap<u32, u64>,
    families_other: u64,
    time: Time,
    batch_entries: Counts,
    multi_get_keys: Counts,
    key_sizes: [Counts; 3],
    put_sizes: Counts,
    merge_sizes: Counts,
    seek_bounds: SeekBounds,
    windows: WindowSeries,
    keyed: [u64; 3],
    keys: Keys,
    heavy: Option<Heavy>,
    get_after_write: Counts,
    gets_sampled: u64,
    gets_of_written: u64,
    ascents: [Ascents; 3],
    numbers: Numbers,
    prefixes: PrefixCounts,
    reuse_of_gets: ReuseDistances,
    reuse_of_all: ReuseDistances,
}

const RECORDS: [&str; 5] = ["write", "get", "multi_get", "seek", "seek_for_prev"];
const OPERATIONS: [&str; 11] = [
    "put",
    "merge",
    "delete",
    "single_delete",
    "delete_range",
    "put_entity",
    "blob_index",
    "get",
    "multi_get",
    "seek",
    "seek_for_prev",
];

/// Time stamps.
#[derive(Default)]
struct Time {
    range: Option<(u64, u64)>,
    previous: Option<u64>,
    out_of_order: u64,
    gaps_us: Counts,
}

impl Time {
    #[inline]
    fn note(&mut self, unix_us: u64) {
        match self.previous.map(|before| unix_us.checked_sub(before)) {
            Some(Some(gap_us)) => self.gaps_us.add(gap_us),
            Some(None) => self.out_of_order += 1,
            None => {}
        }
        self.previous = Some(unix_us);
        let (min, max) = self.range.unwrap_or((unix_us, unix_us));
        self.range = Some((min.min(unix_us), max.max(unix_us)));
    }
}

/// How often a key was above the one before it.
#[derive(Debug, Clone, Copy, Default)]
struct Ascents {
    last: Option<u64>,
    pairs: u64,
    ascents: u64,
}

impl Ascents {
    #[inline]
    fn note(&mut self, number: u64) {
        if let Some(last) = self.last {
            self.pairs += 1;
            self.ascents += u64::from(number > last);
        }
        self.last = Some(number);
    }

    fn share(self) -> Option<f64> {
        ratio(self.ascents as f64, self.pairs as f64)
    }
}

impl Inspector {
    fn new(request: &InspectRequest, keys_max: usize) -> Self {
        Inspector {
            seed: request.seed,
            records: 0,
            operations: 0,
            record_counts: [0; 5],
            operation_counts: [0; OPERATIONS.len()],
            markers: 0,
            families: BTreeMap::new(),
            families_other: 0,
            time: Time::default(),
            batch_entries: Counts::default(),
            multi_get_keys: Counts::default(),
            key_sizes: Default::default(),
            put_sizes: Counts::default(),
            merge_sizes: Counts::default(),
            seek_bounds: SeekBounds::default(),
            windows: WindowSeries::default(),
            keyed: [0; 3],
            keys: Keys::new(keys_max),
            heavy: None,
            get_after_write: Counts::default(),
            gets_sampled: 0,
            gets_of_written: 0,
            ascents: [Ascents::default(); 3],
            numbers: Numbers::new(request.key_number),
            prefixes: PrefixCounts::new(request.prefix_bytes),
            reuse_of_gets: ReuseDistances::default(),
            reuse_of_all: ReuseDistances::default(),
        }
    }

    #[inline]
    fn record(&mut self, unix_us: u64, record: Record<'_>) {
        self.records += 1;
        self.time.note(unix_us);
        let keys = &self.keys;
        self.windows.go_to(unix_us, || keys.distinct());
        match record {
            Record::Write(batch) => {
                self.record_counts[0] += 1;
                self.markers += u64::from(batch.markers());
                self.batch_entries.add(batch.len() as u64);
                for item in batch.items() {
                    self.write(item);
                }
            }
            Record::Get { column_family, key } => {
                self.record_counts[1] += 1;
                self.operation(7, column_family);
                self.key(Group::Get, column_family, key, false);
            }
            Record::MultiGet(multi_get) => {
                self.record_counts[2] += 1;
                self.multi_get_keys.add(multi_get.len() as u64);
                for (column_family, key) in multi_get.gets() {
                    self.operation(8, column_family);
                    self.key(Group::Get, column_family, key, false);
                }
            }
            Record::Seek(seek) => {
                let backwards = usize::from(seek.for_prev);
                self.record_counts[3 + backwards] += 1;
                self.operation(9 + backwards, seek.column_family);
                let bounds = &mut self.seek_bounds;
                *match (seek.lower, seek.upper) {
                    (None, None) => &mut bounds.none,
                    (Some(_), None) => &mut bounds.lower,
                    (None, Some(_)) => &mut bounds.upper,
                    (Some(_), Some(_)) => &mut bounds.both,
                } += 1;
                self.key(Group::Seek, seek.column_family, seek.key, false);
            }
        }
    }

    #[inline]
    fn write(&mut self, item: crate::trace::BatchItem<'_>) {
        self.operation(item.kind as usize, item.column_family);
        let value_bytes = item.value.len() as u64;
        let deletes = match item.kind {
            WriteKind::DeleteRange => {
                self.windows.note_keyless(Group::Write);
                return;
            }
            WriteKind::Delete | WriteKind::SingleDelete => true,
            WriteKind::Put => {
                self.put_sizes.add(value_bytes);
                false
            }
            WriteKind::Merge => {
                self.merge_sizes.add(value_bytes);
                false
            }
            WriteKind::PutEntity | WriteKind::BlobIndex => false,
        };
        self.key(Group::Write, item.column_family, item.key, deletes);
    }

    #[inline]
    fn operation(&mut self, kind: usize, family: u32) {
        self.operations += 1;
        self.operation_counts[kind] += 1;
        if let Some(count) = self.families.get_mut(&family) {
            *count += 1;
        } else if self.families.len() < FAMILIES_MAX {
            self.families.insert(family, 1);
        } else {
            self.families_other += 1;
        }
    }

    #[inline]
    fn key(&mut self, group: Group, family: u32, key: &[u8], deletes: bool) {
        self.key_sizes[group as usize].add(key.len() as u64);
        self.keyed[group as usize] += 1;
        if let Some(cut) = self.numbers.look(key) {
            self.shorten(&cut);
        }
        self.prefixes.note(key, self.numbers.prefix_bytes(), group);
        let number = self.numbers.number(key);
        if let Some(number) = number {
            self.ascents[group as usize].note(number);
        }
        // The same bytes in two column families are two keys.
        let hash = xxh3_64_with_seed(key, self.seed ^ u64::from(family) << 32);
        self.windows.note(group, hash);
        if group == Group::Get {
            self.reuse_of_gets.note(hash);
        }
        self.reuse_of_all.note(hash);
        if let Some(heavy) = &mut self.heavy {
            heavy.note(hash, number, group);
        }
        if self.keys.keeps(hash) {
            self.keep(hash, number, group, deletes);
        }
    }

    #[inline]
    fn keep(&mut self, hash: u64, number: Option<u64>, group: Group, deletes: bool) {
        let operation = self.operations;
        let weight = self.keys.weight();
        let since = self.keys.note(hash, number, group, deletes, operation);
        self.gets_sampled += if group == Group::Get { weight } else { 0 };
        if let Some(since) = since {
            self.gets_of_written += weight;
            self.get_after_write.add_times(since, weight);
        }
        if self.keys.too_many() {
            let keys = &self.keys;
            self.heavy.get_or_insert_with(|| Heavy::after(keys.iter()));
            self.keys.shrink();
        }
    }

    #[cold]
    fn shorten(&mut self, cut: &[u8]) {
        self.prefixes.shorten(cut);
        if self.numbers.shifts() {
            let shift = shift(cut);
            self.keys.shift(shift);
            if let Some(heavy) = &mut self.heavy {
                heavy.shift(shift);
            }
            for ascents in &mut self.ascents {
                ascents.last = ascents.last.map(|number| shift.apply(number));
            }
        }
    }

    fn summary(self, read: ReadTrace<'_>, ranges: usize) -> TraceSummary {
        let placed = self.placed();
        let span = self.numbers.range();
        let (first, last) = self.time.range.unzip();
        let elapsed_s = read.started.elapsed().as_secs_f64();
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
        let groups = Group::ALL.map(|(group, name)| (name, &self.key_sizes[group as usize]));
        let ascending =
            Group::ALL.map(|(group, name)| (name.to_owned(), self.ascents[group as usize].share()));
        TraceSummary {
            path: read.path.to_owned(),
            bytes: read.bytes,
            bytes_total: read.bytes_total,
            trace_version: read.header.trace_version,
            rocksdb_version: read.header.rocksdb_version,
            header_unix_us: read.header.unix_us,
            footer: read.footer,
            damage: read.damage,
            records: self.records,
            operations: self.operations,
            first_unix_us: first,
            last_unix_us: last,
            duration_s: last.zip(first).map_or(0.0, |(b, a)| (b - a) as f64 / 1e6),
            out_of_order: self.time.out_of_order,
            elapsed_s,
            records_per_s: ratio(self.records as f64, elapsed_s).unwrap_or(0.0),
            record_counts: named(&RECORDS, &self.record_counts),
            operation_counts: named(&OPERATIONS, &self.operation_counts),
            markers: self.markers,
            batch_entries: self.batch_entries.summary(),
            multi_get_keys: self.multi_get_keys.summary(),
            key_sizes: histograms(&groups),
            value_sizes: histograms(&[("put", &self.put_sizes), ("merge", &self.merge_sizes)]),
            scan_lengths: None,
            seek_bounds: self.seek_bounds,
            inter_arrival_us: self.time.gaps_us.summary(),
            sampling: self.sampling(),
            keys: self.distinct_keys(),
            overwrites: self.overwrites(),
            gets_of_written: self.gets_of_written(),
            get_after_write: self.get_after_write.summary(),
            ascending: ascending.into(),
            hotness: self.hotness(),
            key_space: self.key_space(),
            keys_without_number: self.numbers.without(),
            ranges_by_number: span.map_or_else(Vec::new, |span| by_number(&placed, span, ranges)),
            ranges_by_rank: by_rank(&placed, RANK_PARTS),
            prefixes: self.prefixes.summary(self.numbers.prefix()),
            windows: self.windows.summary(self.keys.distinct()),
            reuse: [("get", self.reuse_of_gets), ("all", self.reuse_of_all)]
                .into_iter()
                .filter_map(|(name, reuse)| Some((name.to_owned(), reuse.summary()?)))
                .collect(),
            column_families: self.families.into_iter().collect(),
            column_families_other: self.families_other,
        }
    }

    /// The keys to estimate from: the hottest ones, which stand for themselves, and the sampled
    /// ones among the others, each of which stands for several.
    fn strata(&self) -> Vec<(Option<u64>, f64, [u32; 3])> {
        let mut all = Vec::new();
        let mut certain = std::collections::HashSet::new();
        for (hash, key) in self.heavy.iter().flat_map(Heavy::certain) {
            certain.insert(hash);
            all.push((key.number, 1.0, key.counts));
        }
        let weight = self.keys.weight() as f64;
        let sampled = self.keys.iter().filter(|(hash, _)| !certain.contains(hash));
        all.extend(sampled.map(|(_, key)| (key.number, weight, key.counts)));
        all
    }

    /// Those that have a number, in the order of those.
    fn placed(&self) -> Vec<Placed> {
        let strata = self.strata().into_iter();
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

    fn hotness(&self) -> BTreeMap<String, Curve> {
        let strata = self.strata();
        let of = |count: &dyn Fn(&[u32; 3]) -> u64, accesses: u64| {
            let weighted =
                |(_, weight, counts): &(_, f64, [u32; 3])| (count(counts) as f64, *weight);
            let keys: Vec<Weighted> = strata.iter().map(weighted).collect();
            curve(keys, accesses)
        };
        let sum = |counts: &[u32; 3]| counts.iter().map(|&count| u64::from(count)).sum();
        let all = ("all", of(&sum, self.keyed.iter().sum()));
        let groups = Group::ALL.map(|(group, name)| {
            let one = |counts: &[u32; 3]| u64::from(counts[group as usize]);
            (name, of(&one, self.keyed[group as usize]))
        });
        std::iter::once(all)
            .chain(groups)
            .filter_map(|(name, curve)| Some((name.to_owned(), curve?)))
            .collect()
    }

    /// Distinct keys of which `which` holds.
    fn count_keys(&self, which: impl Fn(&Key) -> bool) -> f64 {
        let kept = self.keys.iter().filter(|(_, key)| which(key)).count();
        kept as f64 * self.keys.weight() as f64
    }

    fn distinct_keys(&self) -> DistinctKeys {
        let has = |key: &Key, group: Group| key.counts[group as usize] > 0;
        DistinctKeys {
            distinct: self.keys.distinct(),
            read: self.count_keys(|key| has(key, Group::Get)),
            written: self.count_keys(|key| has(key, Group::Write)),
            sought: self.count_keys(|key| has(key, Group::Seek)),
            read_and_written: self.count_keys(|key| has(key, Group::Get) && has(key, Group::Write)),
        }
    }

    fn overwrites(&self) -> Overwrites {
        let writes = self.keyed[Group::Write as usize];
        let written = self.count_keys(|key| key.counts[Group::Write as usize] > 0);
        let repeated = (writes as f64 - written).max(0.0);
        Overwrites {
            writes,
            repeated,
            share: ratio(repeated, writes as f64),
        }
    }

    fn gets_of_written(&self) -> GetsOfWritten {
        let share = ratio(self.gets_of_written as f64, self.gets_sampled as f64);
        let gets = self.keyed[Group::Get as usize] as f64;
        GetsOfWritten {
            gets: share.unwrap_or(0.0) * gets,
            share,
        }
    }

    fn key_space(&self) -> KeySpace {
        let (min, max) = self.numbers.range().unwrap_or((0, 0));
        KeySpace {
            common_prefix_hex: hex(self.numbers.prefix()),
            common_prefix_bytes: self.numbers.prefix_bytes() as u64,
            number: self.numbers.name().to_owned(),
            window_offset_bytes: self.numbers.offset_bytes() as u64,
            min: min.to_string(),
            max: max.to_string(),
        }
    }

    fn sampling(&self) -> Sampling {
        let kept = self.keys.iter().count() as u64;
        let weight = self.keys.weight();
        let accesses: u64 = self.keyed.iter().sum();
        let (method, standard_error, text) = match &self.heavy {
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
        let unseen = self.heavy.as_ref().map_or(0, Heavy::unseen_max);
        Sampling {
            method: method.to_owned(),
            keys_kept: kept,
            share: 1.0 / weight as f64,
            standard_error,
            heavy_counters: self.heavy.as_ref().map_or(0, |_| COUNTERS as u64),
            heavy_error: ratio(unseen as f64, accesses as f64).unwrap_or(0.0),
            text,
        }
    }
}

fn ratio(numerator: f64, denominator: f64) -> Option<f64> {
    (denominator > 0.0).then(|| numerator / denominator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::PROTOCOL_VERSION;
    use crate::random::{encode_key, mix};
    use crate::trace::{BatchBuilder, TraceVersion, TraceWriter};

    fn request() -> InspectRequest {
        InspectRequest {
            protocol_version: PROTOCOL_VERSION,
            path: "a.trace".into(),
            key_number: None,
            prefix_bytes: None,
            ranges: 16,
            seed: 0,
        }
    }

    fn summary(bytes: &[u8], keys_max: usize) -> TraceSummary {
        let length = bytes.len() as u64;
        inspect_keeping(bytes, length, &request(), keys_max, &mut |_| true).unwrap()
    }

    /// A power law over 100,000 keys: the share of the first x of them is `x ^ 0.3`. The lower
    /// half of the key space gets half as many gets as the upper one; every tenth is a put.
    fn skewed() -> Vec<u8> {
        let mut trace = TraceWriter::new(Vec::new(), TraceVersion::V0_2, "10.2", 0).unwrap();
        let (mut key, mut batch) = ([b'0'; 16], BatchBuilder::default());
        for operation in 0..300_000u64 {
            let uniform = mix(operation) as f64 / u64::MAX as f64;
            let rank = (uniform.powf(1.0 / 0.3) * 1e5) as u64;
            let number = mix(rank + 7) % 100_000;
            encode_key(&mut key, number);
            if operation % 10 == 0 {
                batch.clear();
                trace
                    .write(operation * 10, batch.put(0, &key, b"value"))
                    .unwrap();
            } else if number >= 50_000 || operation % 2 == 0 {
                trace.get(operation * 10, 0, &key).unwrap();
            }
        }
        trace.finish(0).unwrap()
    }

    fn near(sampled: f64, exact: f64, tolerance: f64, what: &str) {
        let error = (sampled - exact).abs() / exact;
        assert!(error <= tolerance, "{what}: {sampled} instead of {exact}");
    }

    #[test]
    fn a_sample_of_the_keys_says_nearly_what_all_of_them_say() {
        let trace = skewed();
        let (exact, sampled) = (summary(&trace, 1 << 20), summary(&trace, 4096));
        assert_eq!(
            (&*exact.sampling.method, &*sampled.sampling.method),
            ("exact", "sampled")
        );
        assert!(sampled.sampling.keys_kept <= 4096);
        near(sampled.keys.distinct, exact.keys.distinct, 0.06, "keys");
        near(
            sampled.overwrites.repeated,
            exact.overwrites.repeated,
            0.06,
            "overwrites",
        );
        let (one, other) = (&sampled.hotness["all"], &exact.hotness["all"]);
        assert_eq!(one.accesses, other.accesses);
        for rank in [1.0, 10.0, 100.0, 1000.0, 10_000.0] {
            let share = |curve: &Curve| {
                let reached = curve.points.iter().find(|point| point.0 >= rank);
                reached.unwrap().2
            };
            near(
                share(one),
                share(other),
                0.1,
                &format!("share of the first {rank}"),
            );
        }
        assert_eq!(sampled.ranges_by_number.len(), 16);
        for (one, other) in sampled.ranges_by_number.iter().zip(&exact.ranges_by_number) {
            assert_eq!(one.0, other.0);
            near(one.1, other.1, 0.25, "keys of a range");
            near(one.2, other.2, 0.25, "gets of a range");
        }
        assert_eq!(sampled.record_counts, exact.record_counts);
        let share = |summary: &TraceSummary| summary.gets_of_written.share.unwrap();
        near(share(&sampled), share(&exact), 0.2, "gets of written keys");
    }

    #[test]
    fn ranges_and_windows_add_up_to_the_operations() {
        let trace = skewed();
        let summary = summary(&trace, 1 << 20);
        let gets = summary.operation_counts["get"] as f64;
        for ranges in [&summary.ranges_by_number, &summary.ranges_by_rank] {
            assert_eq!(ranges.iter().map(|range| range.2).sum::<f64>(), gets);
            assert_eq!(ranges.iter().map(|range| range.3).sum::<f64>(), 30_000.0);
            assert_eq!(
                ranges.iter().map(|range| range.1).sum::<f64>(),
                summary.keys.distinct
            );
        }
        let steps = &summary.windows.steps;
        assert_eq!(steps.iter().map(|step| step.0).sum::<u64>() as f64, gets);
        assert_eq!(steps.last().unwrap().4, summary.keys.distinct);
        let upper: f64 = summary.ranges_by_number[8..]
            .iter()
            .map(|range| range.2)
            .sum();
        near(
            upper / (gets - upper),
            2.0,
            0.15,
            "upper half to lower half",
        );
        assert_eq!(summary.key_space.common_prefix_hex, "0000000000");
        assert_eq!(summary.value_sizes["put"].buckets, [(5, 5, 30_000)]);
        // Hits of an LRU cache of all keys: everything but first accesses.
        let last = summary.reuse["all"].miss_ratio.last().unwrap();
        near(
            last.1,
            summary.keys.distinct / summary.records as f64,
            0.05,
            "cold misses",
        );
    }

    #[test]
    fn damage_ends_the_summary_and_does_not_prevent_it() {
        let trace = skewed();
        let summary = summary(&trace[..trace.len() / 3 + 1], 1 << 20);
        let damage = summary.damage.unwrap();
        assert_eq!(summary.bytes, damage.offset_bytes);
        assert_eq!(summary.records + 1, damage.record);
        assert!(!summary.footer && summary.records > 50_000);
    }

    #[test]
    fn a_trace_without_operations_has_a_summary() {
        let trace = TraceWriter::new(Vec::new(), TraceVersion::V0_1, "6.0", 5).unwrap();
        let summary = summary(&trace.finish(6).unwrap(), 10);
        assert!(summary.footer && summary.records == 0 && summary.hotness.is_empty());
        assert!(summary.ranges_by_number.is_empty() && summary.windows.steps.is_empty());
        assert_eq!((summary.first_unix_us, summary.duration_s), (None, 0.0));
    }

    #[test]
    fn whoever_has_heard_enough_ends_it() {
        let mut trace = TraceWriter::new(Vec::new(), TraceVersion::V0_2, "10.2", 0).unwrap();
        for operation in 0..LOOK_EVERY {
            trace.get(operation, 0, b"key").unwrap();
        }
        let bytes = trace.finish(0).unwrap();
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                std::thread::sleep(REPORT_EVERY);
                self.0.read(buffer)
            }
        }
        let ended = inspect(Slow(&bytes), 0, &request(), &mut |_| false);
        assert!(matches!(ended, Err(InspectError::Stopped)));
    }

    #[test]
    fn the_same_bytes_in_two_column_families_are_two_keys() {
        let mut trace = TraceWriter::new(Vec::new(), TraceVersion::V0_2, "10.2", 0).unwrap();
        let mut batch = BatchBuilder::default();
        batch
            .put(0, b"key", b"1")
            .put(3, b"key", b"2")
            .put(3, b"key", b"3")
            .log_data(b"x");
        trace.write(1, &batch).unwrap();
        trace.get(2, 3, b"key").unwrap();
        let summary = summary(&trace.finish(0).unwrap(), 10);
        assert_eq!(summary.keys.distinct, 2.0);
        assert_eq!(summary.column_families, [(0, 1), (3, 3)]);
        assert_eq!((summary.overwrites.repeated, summary.markers), (1.0, 1));
        assert_eq!(summary.gets_of_written.share, Some(1.0));
        let since = summary.get_after_write.unwrap();
        assert_eq!((since.count, since.min), (1, 1));
    }
}
