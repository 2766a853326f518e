//! Latency histograms per operation type: HDR, three significant digits, kept whole.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::protocol::LatencyReply;

const SIGNIFICANT_DIGITS: u8 = 3;

/// What kind of call a latency belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperationKind {
    /// Set a key.
    Put,
    /// Read a key.
    Get,
    /// Remove a key.
    Delete,
    /// One step of a scan.
    Next,
    /// Open a cursor, seek, and step.
    Seek,
    /// Set a new key, as one of several operations.
    Insert,
    /// Read a row and set it.
    Update,
    /// Read a row, then update it.
    ReadModifyWrite,
    /// Open a cursor, seek, and read entries, as one of several operations.
    Scan,
    /// Hand a key an operand.
    Merge,
}

impl OperationKind {
    /// Whether it looks for keys.
    pub fn reads(self) -> bool {
        matches!(
            self,
            OperationKind::Get
                | OperationKind::Next
                | OperationKind::Seek
                | OperationKind::Update
                | OperationKind::ReadModifyWrite
                | OperationKind::Scan
        )
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            OperationKind::Put => "put",
            OperationKind::Get => "get",
            OperationKind::Delete => "delete",
            OperationKind::Next => "next",
            OperationKind::Seek => "seek",
            OperationKind::Insert => "insert",
            OperationKind::Update => "update",
            OperationKind::ReadModifyWrite => "read_modify_write",
            OperationKind::Scan => "scan",
            OperationKind::Merge => "merge",
        }
    }
}

/// The histogram of one thread and one operation type. Its size grows with the largest latency, not
/// with the number of operations.
#[derive(Debug, Clone)]
pub struct Recorder {
    histogram_ns: Histogram<u64>,
}

impl Default for Recorder {
    fn default() -> Self {
        // The library takes 0 to 5 digits, so this cannot fail.
        let histogram_ns = Histogram::new(SIGNIFICANT_DIGITS).expect("3 digits are valid");
        Recorder { histogram_ns }
    }
}

impl Recorder {
    /// Counts one operation of `ns` nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.histogram_ns += ns;
    }

    /// Adds what another recorder counted.
    pub fn add(&mut self, other: &Recorder) {
        self.histogram_ns += &other.histogram_ns;
    }

    /// The summary to report; `None` without operations.
    pub fn reply(&self) -> Option<LatencyReply> {
        (self.count() > 0).then(|| LatencyReply::of(&self.histogram_ns))
    }

    /// Operations counted.
    pub fn count(&self) -> u64 {
        self.histogram_ns.len()
    }
}

/// Recorders by operation type, of one thread or of several threads together.
#[derive(Debug, Default)]
pub struct Recorders {
    by_kind: BTreeMap<OperationKind, Recorder>,
}

impl Recorders {
    /// The recorder of a type; an empty one is made if there was none.
    #[inline]
    pub fn of(&mut self, kind: OperationKind) -> &mut Recorder {
        self.by_kind.entry(kind).or_default()
    }

    /// Adds what other recorders counted.
    pub fn add(&mut self, others: &Recorders) {
        for (kind, recorder) in &others.by_kind {
            self.of(*kind).add(recorder);
        }
    }

    /// All types in one recorder.
    pub fn total(&self) -> Recorder {
        let mut total = Recorder::default();
        self.by_kind.values().for_each(|each| total.add(each));
        total
    }

    /// Operations by the type's name.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let each = self.by_kind.iter();
        each.map(|(kind, recorder)| (kind.name().to_owned(), recorder.count()))
            .collect()
    }

    /// Whether any of the types looks for keys.
    pub fn reads(&self) -> bool {
        self.by_kind.keys().any(|kind| kind.reads())
    }

    /// The summaries to report, by the type's name; types without operations are left out.
    pub fn replies(&self) -> BTreeMap<String, LatencyReply> {
        let each = self.by_kind.iter();
        each.filter_map(|(kind, recorder)| Some((kind.name().to_owned(), recorder.reply()?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use hdrhistogram::serialization::Deserializer;

    #[test]
    fn percentiles_are_within_three_digits_and_the_histogram_survives() {
        let mut threads = [Recorder::default(), Recorder::default()];
        for ns in 1..=100_000u64 {
            threads[(ns % 2) as usize].record(ns);
        }
        let mut all = Recorders::default();
        for thread in &threads {
            all.of(OperationKind::Put).add(thread);
        }
        let reply = &all.replies()["put"];
        assert_eq!(reply.count, 100_000);
        assert!(
            (reply.statistics.latency_us_p99 - 99.0).abs() / 99.0 < 1e-3,
            "{reply:?}"
        );
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(&reply.histogram_ns_base64)
            .unwrap();
        let back: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
        assert_eq!(back.len(), 100_000);
        assert_eq!(back.max() as f64 / 1000.0, reply.statistics.latency_us_max);
    }

    #[test]
    fn very_long_operations_are_kept_not_clamped() {
        let mut recorder = Recorder::default();
        recorder.record(3_600_000_000_000);
        let mut all = Recorders::default();
        all.of(OperationKind::Get).add(&recorder);
        let hour_us = all.replies()["get"].statistics.latency_us_max;
        assert!((hour_us - 3.6e9).abs() / 3.6e9 < 1e-3);
    }

    #[test]
    fn types_without_operations_are_left_out() {
        let mut all = Recorders::default();
        all.of(OperationKind::Seek);
        assert!(all.replies().is_empty());
    }
}
