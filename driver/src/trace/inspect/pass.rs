//! The pass over a trace, and its progress.

use std::io::Read;
use std::time::{Duration, Instant};

use crate::protocol::InspectRequest;
use crate::trace::{TraceError, TraceReader};

use super::inspector::Inspector;
use super::keys::KEYS_MAX;
use super::summarise::summarise;
use super::summary::TraceSummary;

/// The number of records between two looks at the clock.
const LOOK_EVERY: u64 = 1 << 14;
/// The time between two reports. The caller can end the pass at each of them, so they must be
/// frequent.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// The progress of the pass.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Bytes read.
    pub bytes_read: u64,
    /// Records read.
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
    /// The caller ended the pass.
    #[error("stopped")]
    Stopped,
}

/// Summarises the trace in `source`, which has `bytes_total` bytes. `report` gets the progress ten
/// times a second and returns whether to continue. Damage after the header is part of the summary.
pub fn inspect(
    source: impl Read,
    bytes_total: u64,
    request: &InspectRequest,
    report: &mut dyn FnMut(Progress) -> bool,
) -> Result<TraceSummary, InspectError> {
    inspect_keeping(source, bytes_total, request, KEYS_MAX, report)
}

/// The same; keeps at most `keys_max` keys.
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
    Ok(summarise(
        inspector,
        request,
        &reader,
        bytes_total,
        damage,
        started,
    ))
}

#[cfg(test)]
mod tests {
    use super::super::summary::Curve;
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

    /// A power law over 100,000 keys: the first x of them have a share of `x ^ 0.3`. The lower half
    /// of the key space gets half as many gets as the upper half; every tenth operation is a put.
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
        // An LRU cache of all keys hits on everything but first accesses.
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
