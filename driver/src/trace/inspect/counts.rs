//! How often each value occurred: exact below 2048, to three digits above.

use hdrhistogram::Histogram as Hdr;

use super::summary::Histogram;

const EXACT: usize = 2048;
/// The most buckets of a summary.
const BUCKETS_MAX: usize = 4096;

/// Counts of values. Its size grows with the logarithm of the largest value.
#[derive(Debug)]
pub struct Counts {
    small: Vec<u64>,
    large: Hdr<u64>,
    /// The smallest and the largest value in `large`, which has them to three digits alone.
    large_ends: (u64, u64),
    sum: f64,
}

impl Default for Counts {
    fn default() -> Self {
        Counts {
            small: vec![0; EXACT],
            // The library takes 0 to 5 digits, so this cannot fail.
            large: Hdr::new(3).expect("3 digits are valid"),
            large_ends: (u64::MAX, 0),
            sum: 0.0,
        }
    }
}

impl Counts {
    /// Counts `value` once.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.add_times(value, 1);
    }

    /// Counts `value` `times` times.
    #[inline]
    pub fn add_times(&mut self, value: u64, times: u64) {
        self.sum += value as f64 * times as f64;
        match self.small.get_mut(value as usize) {
            Some(count) => *count += times,
            None => {
                // The histogram grows up to the largest value that it can hold.
                let value = value.min(u64::MAX >> 2);
                let (least, most) = self.large_ends;
                self.large_ends = (least.min(value), most.max(value));
                let _ = self.large.record_n(value, times);
            }
        }
    }

    /// The counts in at most `BUCKETS_MAX` buckets; `None` if there are none.
    pub fn summary(&self) -> Option<Histogram> {
        let buckets = self.buckets();
        let count: u64 = buckets.iter().map(|(_, _, count)| count).sum();
        let (first, last) = (buckets.first()?, buckets.last()?);
        let (min, max) = (first.0, last.1);
        let at = |quantile: f64| {
            let wanted = (quantile * count as f64).ceil() as u64;
            let mut cumulative = 0;
            let reached = buckets.iter().find(|(_, _, count)| {
                cumulative += count;
                cumulative >= wanted
            });
            reached.map_or(max, |(_, high, _)| *high)
        };
        Some(Histogram {
            count,
            mean: self.sum / count as f64,
            min,
            max,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            buckets: merged(&buckets, BUCKETS_MAX),
        })
    }

    fn buckets(&self) -> Vec<(u64, u64, u64)> {
        let small = self.small.iter().enumerate();
        let small = small
            .filter(|(_, count)| **count > 0)
            .map(|(value, count)| (value as u64, value as u64, *count));
        let (least, most) = self.large_ends;
        let large = self.large.iter_recorded().map(|step| {
            let high = step.value_iterated_to();
            let low = self.large.lowest_equivalent(high).max(least);
            (low, high.min(most), step.count_since_last_iteration())
        });
        small.chain(large).collect()
    }
}

/// Merges neighbouring buckets until there are at most `most`.
fn merged(buckets: &[(u64, u64, u64)], most: usize) -> Vec<(u64, u64, u64)> {
    let each = buckets.len().div_ceil(most).max(1);
    let merge = |chunk: &[(u64, u64, u64)]| {
        let count = chunk.iter().map(|(_, _, count)| count).sum();
        Some((chunk.first()?.0, chunk.last()?.1, count))
    };
    buckets.chunks(each).filter_map(merge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_has_no_summary() {
        assert_eq!(Counts::default().summary(), None);
    }

    #[test]
    fn the_ends_are_exact() {
        let of = |values: &[u64]| {
            let mut counts = Counts::default();
            values.iter().for_each(|&value| counts.add(value));
            counts.summary().unwrap()
        };
        let values = of(&[4097, 5000, 1 << 20]);
        assert_eq!((values.min, values.max), (4097, 1 << 20));
        assert_eq!((values.p50, values.p999), (5003, 1 << 20));
        let pages = of(&[4096, 4096]);
        assert_eq!((pages.min, pages.p50, pages.max), (4096, 4096, 4096));
        assert_eq!(pages.buckets, [(4096, 4096, 2)]);
        let few = of(&[7, 4096]);
        assert_eq!(few.buckets, [(7, 7, 1), (4096, 4096, 1)]);
    }

    proptest! {
        #[test]
        fn every_value_lies_in_its_bucket(values in proptest::collection::vec(0u64..1 << 40, 1..50)) {
            let mut counts = Counts::default();
            values.iter().for_each(|&value| counts.add(value));
            let summary = counts.summary().unwrap();
            prop_assert_eq!(summary.count as usize, values.len());
            for value in &values {
                let bucket = summary.buckets.iter().find(|(low, high, _)| (low..=high).contains(&value));
                let (low, high, _) = bucket.unwrap();
                prop_assert!((high - low) as f64 <= 0.001 * *value as f64);
            }
            prop_assert!(summary.buckets.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }

    #[test]
    fn many_buckets_are_merged_and_nothing_is_lost() {
        let mut counts = Counts::default();
        (0..3_000_000u64)
            .step_by(7)
            .for_each(|value| counts.add(value));
        let summary = counts.summary().unwrap();
        assert!(summary.buckets.len() <= BUCKETS_MAX);
        let sum: u64 = summary.buckets.iter().map(|(_, _, count)| count).sum();
        assert_eq!(sum, summary.count);
        assert!((summary.mean / 1_500_000.0 - 1.0).abs() < 1e-3);
        assert!((summary.p90 as f64 / 2_700_000.0 - 1.0).abs() < 1e-3);
    }
}
