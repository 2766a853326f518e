//! Sizes and lengths by quantile functions: a size is a function of the random bits that draw it.

use crate::protocol::SizeDistribution;
use crate::random::mix;

use super::continuous::{Normal, Pareto};
use super::{below, unit, Shares, Zipfian};

/// Makes the lengths of a row's fields independent.
const FIELD_SALT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Bytes per field in which YCSB-cpp keeps the lengths of its name and value.
const FIELD_OVERHEAD: u64 = 8;

/// A [`SizeDistribution`], ready to draw from.
#[derive(Debug, Clone)]
pub struct Sizes {
    low: u64,
    high: u64,
    /// `None` where there is only one size.
    law: Option<Box<Law>>,
}

#[derive(Debug, Clone)]
enum Law {
    Uniform,
    Zipfian(Zipfian),
    Normal(Normal),
    Pareto(Pareto),
    Row {
        fields: u64,
        overhead: u64,
        length: Sizes,
    },
    Table {
        sizes: Vec<u64>,
        shares: Shares,
    },
}

impl Sizes {
    /// The distribution must have been checked.
    pub fn new(of: &SizeDistribution) -> Self {
        let (low, high, law) = match *of {
            SizeDistribution::Constant { size } => return Self::always(size),
            SizeDistribution::Uniform { low, high } => (low, high, Law::Uniform),
            SizeDistribution::Zipfian { low, high, theta } => {
                let ranks = Zipfian::new(high - low + 1, theta);
                (low, high, Law::Zipfian(ranks))
            }
            SizeDistribution::Normal {
                mean,
                sd,
                low,
                high,
            } => (low, high, Law::Normal(Normal::new(mean, sd, low, high))),
            SizeDistribution::Pareto {
                theta,
                k,
                sigma,
                low,
                high,
            } => {
                let pareto = Pareto::new([theta, k, sigma], low, high);
                (low, high, Law::Pareto(pareto))
            }
            SizeDistribution::Row {
                fields,
                names_bytes,
                ref length,
            } => {
                let (length, overhead) =
                    (Sizes::new(length), fields * FIELD_OVERHEAD + names_bytes);
                let (low, high) = (length.low * fields, length.high * fields);
                let law = Law::Row {
                    fields,
                    overhead,
                    length,
                };
                (overhead + low, overhead + high, law)
            }
            SizeDistribution::Table { ref sizes } => {
                let shares = Shares::new(sizes.iter().map(|(_, weight)| *weight));
                let sizes: Vec<u64> = sizes.iter().map(|(size, _)| *size).collect();
                let low = sizes.iter().copied().min().unwrap_or(0);
                let high = sizes.iter().copied().max().unwrap_or(0);
                (low, high, Law::Table { sizes, shares })
            }
        };
        Sizes {
            low,
            high,
            law: (low < high).then(|| Box::new(law)),
        }
    }

    /// One size.
    pub fn always(size: u64) -> Self {
        Sizes {
            low: size,
            high: size,
            law: None,
        }
    }

    /// The size, if there is only one.
    #[inline]
    pub fn constant(&self) -> Option<u64> {
        self.law.is_none().then_some(self.low)
    }

    /// The size for 64 random bits.
    #[inline]
    pub fn at(&self, bits: u64) -> u64 {
        match &self.law {
            None => self.low,
            Some(law) => self.draw(law, bits),
        }
    }

    fn draw(&self, law: &Law, bits: u64) -> u64 {
        match law {
            Law::Uniform => self.low + below(bits, self.high - self.low + 1),
            Law::Zipfian(ranks) => self.low + ranks.rank(unit(bits)),
            // Rounding may leave the bounds by one.
            Law::Normal(normal) => normal.at(unit(bits)).clamp(self.low, self.high),
            Law::Pareto(pareto) => pareto.at(unit(bits)).clamp(self.low, self.high),
            Law::Row {
                fields,
                overhead,
                length,
            } => {
                let lengths = (1..=*fields)
                    .map(|field| length.at(mix(bits ^ field.wrapping_mul(FIELD_SALT))));
                overhead + lengths.sum::<u64>()
            }
            Law::Table { sizes, shares } => sizes[shares.pick(bits)],
        }
    }

    /// The smallest possible size.
    pub fn smallest(&self) -> u64 {
        self.low
    }

    /// The largest possible size.
    pub fn largest(&self) -> u64 {
        self.high
    }

    /// Whether no size between its bounds has a share.
    pub fn is_empty(&self) -> bool {
        match self.law.as_deref() {
            Some(Law::Normal(normal)) => normal.is_empty(),
            Some(Law::Pareto(pareto)) => pareto.is_empty(),
            Some(Law::Row { length, .. }) => length.is_empty(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::continuous::pareto_beyond;
    use super::super::testing::{assert_fits, counts, zipf_shares};
    use super::*;
    use proptest::prelude::*;
    use statrs::distribution::{ContinuousCDF, Normal as NormalLaw};

    const DRAWS: u64 = 200_000;

    fn constant(size: u64) -> SizeDistribution {
        SizeDistribution::Constant { size }
    }

    fn fits(of: &SizeDistribution, low: u64, shares: &[f64]) {
        let sizes = Sizes::new(of);
        let counts = counts(shares.len() as u64, DRAWS, |bits| sizes.at(bits) - low);
        assert_fits(&format!("{of:?}"), &counts, shares);
    }

    /// The shares of `low ... high` by a distribution function, conditional on the bounds.
    fn conditioned(low: u64, high: u64, below: impl Fn(u64) -> f64) -> Vec<f64> {
        let whole = below(high + 1) - below(low);
        (low..=high)
            .map(|size| (below(size + 1) - below(size)) / whole)
            .collect()
    }

    #[test]
    fn uniform_and_table_have_their_shares() {
        fits(
            &SizeDistribution::Uniform { low: 10, high: 49 },
            10,
            &[1.0 / 40.0; 40],
        );
        let sizes = vec![(3, 1.0), (4, 2.0), (6, 5.0)];
        fits(
            &SizeDistribution::Table { sizes },
            3,
            &[0.125, 0.25, 0.0, 0.625],
        );
    }

    #[test]
    fn zipfian_has_the_shares_of_its_closed_form() {
        let (low, high, theta) = (5, 104, 0.99);
        let shares = zipf_shares(100, theta);
        fits(
            &SizeDistribution::Zipfian { low, high, theta },
            low,
            &shares,
        );
    }

    #[test]
    fn normal_is_conditioned_on_its_bounds() {
        // In the middle, cut off on one side, and far out on either side.
        for (mean, sd, low, high) in [
            (100.0, 10.0, 50, 150),
            (20.0, 15.0, 10, 40),
            (10.0, 20.0, 120, 150),
            (500.0, 40.0, 200, 260),
        ] {
            let law = NormalLaw::new(mean, sd).unwrap();
            // Above the mean the survival function is the precise one.
            let below = |size: u64| {
                let x = size as f64 - 0.5;
                if (low as f64) > mean {
                    -law.sf(x)
                } else {
                    law.cdf(x)
                }
            };
            let shares = conditioned(low, high, below);
            let of = SizeDistribution::Normal {
                mean,
                sd,
                low,
                high,
            };
            fits(&of, low, &shares);
        }
    }

    #[test]
    fn pareto_is_conditioned_on_its_bounds() {
        // Values and scans of ZippyDB in FAST 2020, and shapes at and below 0.
        for (theta, k, sigma, low, high) in [
            (0.0, 0.2615, 25.45, 1, 500),
            (0.0, 2.517, 14.236, 1, 300),
            (5.0, 0.0, 20.0, 0, 200),
            (0.0, -0.5, 40.0, 10, 200),
        ] {
            let shares = conditioned(low, high, |size| {
                1.0 - pareto_beyond(size as f64, theta, k, sigma)
            });
            let of = SizeDistribution::Pareto {
                theta,
                k,
                sigma,
                low,
                high,
            };
            fits(&of, low, &shares);
        }
    }

    /// A law as in RocksDB's mixgraph: without bounds its mean is `theta + sigma / (1 - k)`.
    #[test]
    fn pareto_has_the_mean_of_the_law() {
        let of = SizeDistribution::Pareto {
            theta: 0.0,
            k: 0.2615,
            sigma: 25.45,
            low: 0,
            high: 1 << 20,
        };
        let sizes = Sizes::new(&of);
        let sum: u64 = (0..DRAWS).map(|draw| sizes.at(mix(draw))).sum();
        let (mean, due) = (sum as f64 / DRAWS as f64, 25.45 / (1.0 - 0.2615) - 0.5);
        assert!((mean / due - 1.0).abs() < 0.01, "{mean}, {due}");
    }

    #[test]
    fn a_row_is_its_fields_and_their_names() {
        let row = |length| SizeDistribution::Row {
            fields: 10,
            names_bytes: 60,
            length: Box::new(length),
        };
        assert_eq!(Sizes::new(&row(constant(100))).constant(), Some(1140));
        // Ten lengths of 0 or 1: a binomial distribution.
        let binomial = [
            1.0, 10.0, 45.0, 120.0, 210.0, 252.0, 210.0, 120.0, 45.0, 10.0, 1.0,
        ];
        let shares = binomial.map(|ways| ways / 1024.0);
        fits(
            &row(SizeDistribution::Uniform { low: 0, high: 1 }),
            140,
            &shares,
        );
    }

    fn any_distribution() -> impl Strategy<Value = SizeDistribution> {
        let bounds = (0u64..10_000, 0u64..10_000).prop_map(|(low, more)| (low, low + more));
        let simple = prop_oneof![
            (0u64..10_000).prop_map(constant),
            bounds
                .clone()
                .prop_map(|(low, high)| SizeDistribution::Uniform { low, high }),
            (bounds.clone(), 0.1f64..0.99).prop_map(|((low, high), theta)| {
                SizeDistribution::Zipfian { low, high, theta }
            }),
            (bounds.clone(), 0.0f64..20_000.0, 0.5f64..5000.0).prop_map(
                |((low, high), mean, sd)| SizeDistribution::Normal {
                    mean,
                    sd,
                    low,
                    high
                }
            ),
            (bounds, -1.0f64..3.0, 1.0f64..500.0).prop_map(|((low, high), k, sigma)| {
                SizeDistribution::Pareto {
                    theta: 0.0,
                    k,
                    sigma,
                    low,
                    high,
                }
            }),
            prop::collection::vec((0u64..10_000, 0.1f64..5.0), 1..5)
                .prop_map(|sizes| SizeDistribution::Table { sizes }),
        ];
        (simple, 1u64..12, any::<bool>()).prop_map(|(length, fields, row)| {
            if row {
                SizeDistribution::Row {
                    fields,
                    names_bytes: 7,
                    length: Box::new(length),
                }
            } else {
                length
            }
        })
    }

    proptest! {
        #[test]
        fn sizes_keep_to_their_bounds_and_to_their_bits(of in any_distribution(), bits: u64) {
            let sizes = Sizes::new(&of);
            prop_assume!(!sizes.is_empty());
            for bits in [bits, 0, u64::MAX] {
                let size = sizes.at(bits);
                prop_assert!((sizes.smallest()..=sizes.largest()).contains(&size), "{}", size);
                prop_assert_eq!(Sizes::new(&of).at(bits), size);
            }
        }
    }
}
