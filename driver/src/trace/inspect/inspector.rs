//! The counts of a trace, kept while its records arrive.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::protocol::InspectRequest;
use crate::trace::{BatchItem, Record, WriteKind};

use super::counts::Counts;
use super::heavy::Heavy;
use super::keys::Keys;
use super::numbers::{shifted, Numbers};
use super::prefixes::PrefixCounts;
use super::reuse::ReuseDistances;
use super::summary::SeekBounds;
use super::windows::WindowSeries;
use super::Group;

/// The most column families that are counted separately.
const FAMILIES_MAX: usize = 64;

/// The counts, kept while records arrive.
#[derive(Default)]
pub struct Inspector {
    pub seed: u64,
    pub records: u64,
    pub operations: u64,
    pub record_counts: [u64; RECORDS.len()],
    pub operation_counts: [u64; OPERATIONS.len()],
    pub markers: u64,
    pub families: BTreeMap<u32, u64>,
    pub families_other: u64,
    pub time: Time,
    pub batch_entries: Counts,
    pub multi_get_keys: Counts,
    pub key_sizes: [Counts; 3],
    pub put_sizes: Counts,
    pub merge_sizes: Counts,
    pub seek_bounds: SeekBounds,
    pub windows: WindowSeries,
    pub keyed: [u64; 3],
    pub keys: Keys,
    pub heavy: Option<Heavy>,
    pub get_after_write: Counts,
    pub gets_sampled: u64,
    pub gets_of_written: u64,
    pub ascents: [Ascents; 3],
    pub numbers: Numbers,
    pub prefixes: PrefixCounts,
    pub reuse_of_gets: ReuseDistances,
    pub reuse_of_all: ReuseDistances,
}

/// Types of records, as the summary names them.
pub const RECORDS: [&str; 5] = ["write", "get", "multi_get", "seek", "seek_for_prev"];
/// Types of operations, as the summary names them.
pub const OPERATIONS: [&str; 11] = [
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
pub struct Time {
    pub range: Option<(u64, u64)>,
    pub previous: Option<u64>,
    pub out_of_order: u64,
    pub gaps_us: Counts,
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

/// How often a key was greater than the previous one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ascents {
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

    /// The share of the keys that were greater than the previous one.
    pub fn share(self) -> Option<f64> {
        ratio(self.ascents as f64, self.pairs as f64)
    }
}

impl Inspector {
    /// Begins with nothing counted; keeps at most `keys_max` keys.
    pub fn new(request: &InspectRequest, keys_max: usize) -> Self {
        Inspector {
            seed: request.seed,
            keys: Keys::new(keys_max),
            numbers: Numbers::new(request.key_number),
            prefixes: PrefixCounts::new(request.prefix_bytes),
            ..Inspector::default()
        }
    }

    /// Counts one record.
    #[inline]
    pub fn record(&mut self, unix_us: u64, record: Record<'_>) {
        self.records += 1;
        self.time.note(unix_us);
        let keys = &self.keys;
        self.windows.go_to(unix_us, || keys.distinct());
        match record {
            Record::Write(batch) => {
                self.record_counts[0] += 1;
                self.markers += u64::from(batch.markers());
                self.batch_entries.add(u64::from(batch.count()));
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
                self.multi_get_keys.add(u64::from(multi_get.count()));
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
    fn write(&mut self, item: BatchItem<'_>) {
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
            self.keys.shift(cut);
            if let Some(heavy) = &mut self.heavy {
                heavy.shift(cut);
            }
            for ascents in &mut self.ascents {
                ascents.last = ascents.last.map(|number| shifted(number, cut));
            }
        }
    }
}

/// A ratio; `None` if the denominator is not positive.
pub fn ratio(numerator: f64, denominator: f64) -> Option<f64> {
    (denominator > 0.0).then(|| numerator / denominator)
}
