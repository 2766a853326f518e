//! Latency histograms per operation type: HDR, three significant digits, kept whole.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::protocol::LatencyReply;

const SIGNIFICANT_DIGITS: u8 = 3;

/// Latencies below this are counted by the nanosecond while threads run.
const SHORT_NS: usize = 4096;

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
        use OperationKind::{Delete, Insert, Merge, Put};
        !matches!(self, Put | Delete | Insert | Merge)
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
    /// Operations by nanoseconds, of those below [`SHORT_NS`]. Counting one in the histogram took
    /// a third of what the driver does in a step of a scan.
    short: Box<[u64]>,
    /// The longer ones.
    histogram_ns: Histogram<u64>,
    /// Those of both that were due and never begun.
    owed: u64,
}

impl Default for Recorder {
    fn default() -> Self {
        // The library takes 0 to 5 digits, so this cannot fail.
        let histogram_ns = Histogram::new(SIGNIFICANT_DIGITS).expect("3 digits are valid");
        Recorder {
            short: vec![0; SHORT_NS].into(),
            histogram_ns,
            owed: 0,
        }
    }
}

impl Recorder {
    /// Counts one operation of `ns` nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        match self.short.get_mut(ns as usize) {
            Some(count) => *count += 1,
            None => self.histogram_ns += ns,
        }
    }

    /// Counts `count` operations that waited for `ns` nanoseconds and were never begun.
    pub fn record_owed(&mut self, ns: u64, count: u64) {
        self.owed += count;
        // A histogram that grows by itself refuses no value.
        self.histogram_ns
            .record_n(ns, count)
            .expect("it grows by itself");
    }

    /// Adds what another recorder counted.
    pub fn add(&mut self, other: &Recorder) {
        for (count, others) in self.short.iter_mut().zip(&other.short) {
            *count += others;
        }
        self.histogram_ns += &other.histogram_ns;
        self.owed += other.owed;
    }

    /// The summary to report; `None` without operations.
    pub fn reply(&self) -> Option<LatencyReply> {
        (self.count() > 0).then(|| LatencyReply::of(&self.whole()))
    }

    /// All operations in one histogram.
    fn whole(&self) -> Histogram<u64> {
        let mut whole = self.histogram_ns.clone();
        for (ns, count) in self.short.iter().enumerate().filter(|each| *each.1 > 0) {
            // A histogram that grows by itself refuses no value.
            whole
                .record_n(ns as u64, *count)
                .expect("it grows by itself");
        }
        whole
    }

    /// Operations counted.
    pub fn count(&self) -> u64 {
        self.short.iter().sum::<u64>() + self.histogram_ns.len()
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

    /// Operations that were performed, by the type's name.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let performed = |recorder: &Recorder| recorder.count() - recorder.owed;
        let each = self.by_kind.iter();
        each.map(|(kind, recorder)| (kind.name().to_owned(), performed(recorder)))
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
    use crate::protocol::LatencyStatistics;
    use base64::Engine as _;
    use hdrhistogram::serialization::Deserializer;
    use proptest::prelude::*;

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

    /// Short operations are counted elsewhere until the histogram is reported.
    #[test]
    fn the_histogram_is_the_same_as_if_every_operation_went_into_it() {
        let short = SHORT_NS as u64;
        let latencies_ns = [0, 1, 1, 2047, 2048, short - 1, short, short + 1, 1 << 40];
        let (mut recorder, mut all) = (Recorder::default(), Recorder::default().histogram_ns);
        for ns in latencies_ns {
            recorder.record(ns);
            all += ns;
        }
        assert_eq!(recorder.whole(), all);
        assert_eq!(recorder.count(), latencies_ns.len() as u64);
    }

    #[test]
    fn what_is_owed_has_a_latency_and_is_no_operation() {
        let mut thread = Recorder::default();
        thread.record(1000);
        thread.record_owed(2_000_000, 9);
        let mut all = Recorders::default();
        all.of(OperationKind::Get).add(&thread);
        let reply = &all.replies()["get"];
        assert_eq!((reply.count, all.counts()["get"]), (10, 1));
        assert!((reply.statistics.latency_us_p50 / 2000.0 - 1.0).abs() < 1e-3);
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

    #[test]
    fn each_type_has_a_name_of_its_own_and_those_that_look_for_keys_are_known() {
        use OperationKind::{
            Delete, Get, Insert, Merge, Next, Put, ReadModifyWrite, Scan, Seek, Update,
        };
        let names = [
            (Put, "put", false),
            (Get, "get", true),
            (Delete, "delete", false),
            (Next, "next", true),
            (Seek, "seek", true),
            (Insert, "insert", false),
            (Update, "update", true),
            (ReadModifyWrite, "read_modify_write", true),
            (Scan, "scan", true),
            (Merge, "merge", false),
        ];
        for (kind, name, reads) in names {
            assert_eq!((kind.name(), kind.reads()), (name, reads));
            let mut one = Recorders::default();
            one.of(kind);
            assert_eq!(one.reads(), reads, "{name}");
        }
        assert!(!Recorders::default().reads());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))] // histograms are slow to write in tests

        #[test]
        fn threads_together_are_one_histogram_of_all_that_they_recorded(
            calls in proptest::collection::vec((0..3_usize, any::<bool>(), 1..1_u64 << 40), 1..200),
        ) {
            let mut threads = [(); 3].map(|()| Recorders::default());
            for (thread, get, ns) in &calls {
                let kind = if *get { OperationKind::Get } else { OperationKind::Put };
                threads[*thread].of(kind).record(*ns);
            }
            let mut all = Recorders::default();
            threads.iter().for_each(|thread| all.add(thread));
            let (total, count) = (all.total(), calls.len() as u64);
            prop_assert_eq!(total.count(), count);
            let reply = total.reply().unwrap();
            prop_assert_eq!(reply.count, count);
            let mut sorted: Vec<u64> = calls.iter().map(|(_, _, ns)| *ns).collect();
            sorted.sort_unstable();
            let near = |found_us: f64, ns: f64| (found_us * 1000.0 / ns - 1.0).abs() <= 1e-3;
            let at = |share: f64| sorted[(share * count as f64).ceil() as usize - 1] as f64;
            let mean = sorted.iter().map(|ns| *ns as f64).sum::<f64>() / count as f64;
            let statistics = reply.statistics;
            for (found, ns) in [
                (statistics.latency_us_mean, mean),
                (statistics.latency_us_p50, at(0.5)),
                (statistics.latency_us_p95, at(0.95)),
                (statistics.latency_us_p99, at(0.99)),
                (statistics.latency_us_p999, at(0.999)),
                (statistics.latency_us_max, at(1.0)),
            ] {
                prop_assert!(near(found, ns), "{found} us for {ns} ns");
            }
            let known = LatencyStatistics::known(Some(&reply));
            prop_assert_eq!(known.latency_us_p50, Some(statistics.latency_us_p50));
            prop_assert_eq!(LatencyStatistics::known(None).latency_us_max, None);
            let gets = calls.iter().filter(|(_, get, _)| *get).count() as u64;
            prop_assert_eq!(all.counts().get("get").copied().unwrap_or(0), gets);
            let replies = all.replies();
            prop_assert_eq!(replies.values().map(|reply| reply.count).sum::<u64>(), count);
            prop_assert_eq!(replies.contains_key("get"), gets > 0);
        }
    }
}
