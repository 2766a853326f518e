//! Distributions of keys, sizes and lengths: pure functions of random bits.
//!
//! Each is tested against its closed form. `docs/measuring.md` names the source of each formula.

mod continuous;
mod hotness;
mod keys;
mod shares;
mod sizes;
mod zeta;
mod zipfian;

pub use hotness::range_weights;
pub use keys::{KeyChooser, Span};
pub use shares::Shares;
pub use sizes::Sizes;
pub use zipfian::Zipfian;

/// Converts 64 random bits into a number from 0 (included) to 1 (excluded); it uses 53 of them.
#[inline]
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Converts 64 random bits into a number below `count` (Lemire: Fast random integer generation in
/// an interval, ACM TOMACS 29, 2019; without its rejection, so the bias is less than `count /
/// 2^64`).
#[inline]
pub fn below(bits: u64, count: u64) -> u64 {
    ((u128::from(bits) * u128::from(count)) >> 64) as u64
}

#[cfg(test)]
pub(crate) mod testing {
    //! What the tests of the distributions share.

    use super::Zipfian;
    use crate::random::mix;
    use statrs::distribution::{ChiSquared, ContinuousCDF};

    /// How often `draw` makes each number below `numbers` of random bits, in `draws` draws.
    pub fn counts(numbers: u64, draws: u64, draw: impl Fn(u64) -> u64) -> Vec<u64> {
        let mut counts = vec![0; numbers as usize];
        for number in (0..draws).map(|index| draw(mix(index))) {
            counts[number as usize] += 1;
        }
        counts
    }

    /// The shares of the ranks of a [`Zipfian`], by its closed form.
    pub fn zipf_shares(items: u64, theta: f64) -> Vec<f64> {
        let ranks = Zipfian::new(items, theta);
        (0..items)
            .map(|rank| ranks.share_below(rank + 1) - ranks.share_below(rank))
            .collect()
    }

    /// Fails unless `counts` are likely draws of `shares`, by Pearson's chi-square test at 0.1 %.
    /// Cells that expect fewer than five draws are merged.
    pub fn assert_fits(what: &str, counts: &[u64], shares: &[f64]) {
        assert_eq!(counts.len(), shares.len(), "{what}");
        let whole: f64 = shares.iter().sum();
        assert!(
            (whole - 1.0).abs() < 1e-6,
            "{what}: shares add up to {whole}"
        );
        let draws = counts.iter().sum::<u64>() as f64;
        let (mut statistic, mut cells) = (0.0, 0);
        let (mut observed, mut expected) = (0.0, 0.0);
        let mut close = |observed: &mut f64, expected: &mut f64| {
            statistic += (*observed - *expected).powi(2) / *expected;
            cells += 1;
            (*observed, *expected) = (0.0, 0.0);
        };
        for (count, share) in counts.iter().zip(shares) {
            observed += *count as f64;
            expected += share * draws;
            if expected >= 5.0 {
                close(&mut observed, &mut expected);
            }
        }
        if expected > 1.0 {
            close(&mut observed, &mut expected);
        } else {
            assert!(
                observed <= expected + 6.0,
                "{what}: {observed} draws where none are due"
            );
        }
        assert!(cells > 1, "{what}: nothing to compare");
        let law = ChiSquared::new(f64::from(cells - 1)).unwrap();
        let critical = law.inverse_cdf(0.999);
        assert!(
            statistic < critical,
            "{what}: chi-square {statistic} of {cells} cells, critical {critical}"
        );
    }
}
