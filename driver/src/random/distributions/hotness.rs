//! The hotness of keys in production, as Cao, Dong, Vemuri and Du model it ("Characterizing,
//! modeling, and benchmarking RocksDB key-value workloads at Facebook", FAST 2020, section 6), with
//! the parameters of db_bench's `mixgraph`.

use super::super::{mix, Permutation};
use super::{below, unit, Shares};

/// Which key has which rank is the same in all phases and runs: hot keys stay hot.
const SCATTER: u64 = 0x686f_746e_6573_7321;
/// Below this db_bench takes a share for none.
const SHARE_MIN: f64 = 1e-16;

/// Ranks of a power law: the first x of them have a share of `a x^b` (`key_dist_a`, `key_dist_b`).
///
/// Where the shares of all ranks do not add up to one, the law is conditioned on them; where they
/// do so before the last, the ranks behind have none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerRanks {
    a: f64,
    inverse_b: f64,
    items: u64,
    whole: f64,
}

impl PowerRanks {
    /// Over `0..items`, of which there is at least one; `a` and `b` above 0, `a` at most 1.
    pub fn new(items: u64, a: f64, b: f64) -> Self {
        PowerRanks {
            a,
            inverse_b: 1.0 / b,
            items,
            whole: (a * (items as f64).powf(b)).min(1.0),
        }
    }

    /// The rank at `u`, from 0 to below 1.
    #[inline]
    pub fn rank(&self, u: f64) -> u64 {
        let upto = (u * self.whole / self.a).powf(self.inverse_b).ceil() as u64;
        upto.saturating_sub(1).min(self.items - 1)
    }
}

/// Key ranges of (nearly) equal width: the k-th hottest of them has a share in proportion to
/// `a exp(b k) + c exp(d k)` (`keyrange_dist_a` to `_d`, `keyrange_num`), and in each the keys have
/// those of [`PowerRanks`], or are all alike.
#[derive(Debug, Clone)]
pub struct Ranges {
    items: u64,
    count: u64,
    shares: Shares,
    power: Option<(f64, f64)>,
}

/// The parameters of [`Ranges`].
#[derive(Debug, Clone, Copy)]
pub struct RangesOf {
    /// Keys.
    pub items: u64,
    /// Ranges, at most as many.
    pub count: u64,
    /// `a`, `b`, `c`, `d`.
    pub exponentials: [f64; 4],
    /// `key_a`, `key_b`.
    pub power: Option<(f64, f64)>,
}

/// The weights of the ranges, the hottest rank first, where they decrease.
pub fn range_weights(count: u64, [a, b, c, d]: [f64; 4]) -> impl Iterator<Item = f64> {
    (1..=count).map(move |rank| {
        let rank = rank as f64;
        let weight = a * (b * rank).exp() + c * (d * rank).exp();
        if weight < SHARE_MIN {
            0.0
        } else {
            weight
        }
    })
}

impl Ranges {
    /// Ranges of which one weighs something at least.
    pub fn new(of: RangesOf) -> Self {
        Ranges {
            items: of.items,
            count: of.count,
            shares: Shares::new(range_weights(of.count, of.exponentials)),
            power: of.power,
        }
    }

    /// A key, by 64 random bits for its range and as many for its place there.
    #[inline]
    pub fn key(&self, range_bits: u64, key_bits: u64) -> u64 {
        let rank = self.shares.pick(range_bits) as u64;
        let range = Permutation::new(self.count, SCATTER).get(rank);
        let start = self.start(range);
        let width = self.start(range + 1) - start;
        start
            + match self.power {
                None => below(key_bits, width),
                Some((a, b)) => {
                    let rank = PowerRanks::new(width, a, b).rank(unit(key_bits));
                    Permutation::new(width, mix(SCATTER ^ range)).get(rank)
                }
            }
    }

    fn start(&self, range: u64) -> u64 {
        let start = u128::from(self.items) * u128::from(range) / u128::from(self.count);
        start as u64 // at most `items`
    }
}

/// The order in which [`PowerRanks`] over all keys are scattered over them.
pub fn scatter(items: u64) -> Permutation {
    Permutation::new(items, SCATTER)
}

#[cfg(test)]
mod tests {
    use super::super::testing::assert_fits;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn power_ranks_have_their_shares() {
        // The parameters of FAST 2020 for ZippyDB, and a law that ends before the last item.
        for (items, a, b) in [(1000, 0.002_312, 0.346_7), (500, 0.3, 0.5)] {
            let ranks = PowerRanks::new(items, a, b);
            let mut counts = vec![0; items as usize];
            for draw in 0..300_000 {
                counts[ranks.rank(unit(mix(draw))) as usize] += 1;
            }
            let upto = |x: u64| (a * (x as f64).powf(b)).min(1.0);
            let whole = upto(items);
            let shares: Vec<f64> = (0..items)
                .map(|rank| (upto(rank + 1) - upto(rank)) / whole)
                .collect();
            assert_fits("power", &counts, &shares);
        }
    }

    #[test]
    fn ranges_have_their_shares_and_keep_to_their_bounds() {
        let (items, count, exponentials) = (1003, 30, [14.18, -2.917, 0.0164, -0.08082]);
        let power = Some((0.05, 0.6));
        let of = RangesOf {
            items,
            count,
            exponentials,
            power,
        };
        let ranges = Ranges::new(of);
        let mut by_range = vec![0u64; count as usize];
        let mut by_key = vec![0u64; items as usize];
        for draw in 0..200_000 {
            let key = ranges.key(mix(2 * draw), mix(2 * draw + 1));
            by_key[key as usize] += 1;
            let range = (0..count).find(|r| key < ranges.start(r + 1)).unwrap();
            by_range[range as usize] += 1;
        }
        let sum: f64 = range_weights(count, exponentials).sum();
        let order = Permutation::new(count, SCATTER);
        let mut shares = vec![0.0; count as usize];
        for (rank, weight) in range_weights(count, exponentials).enumerate() {
            shares[order.get(rank as u64) as usize] = weight / sum;
        }
        assert_fits("ranges", &by_range, &shares);
        // The hottest key of the hottest range.
        let hottest = order.get(0);
        let (from, to) = (ranges.start(hottest), ranges.start(hottest + 1));
        let inside = &by_key[from as usize..to as usize];
        let first = *inside.iter().max().unwrap() as f64 / inside.iter().sum::<u64>() as f64;
        let due = 0.05 / (0.05 * ((to - from) as f64).powf(0.6)).min(1.0);
        assert!((first / due - 1.0).abs() < 0.05, "{first} {due}");
    }

    proptest! {
        #[test]
        fn keys_are_below_the_number_of_items(
            items in 1u64..1 << 50, count in 1u64..1000, bits: (u64, u64), a in 1e-6f64..1.0,
            b in 0.01f64..3.0,
        ) {
            let count = count.min(items);
            for power in [None, Some((a, b))] {
                let of = RangesOf { items, count, exponentials: [1.0, -0.01, 0.0, 0.0], power };
                prop_assert!(Ranges::new(of).key(bits.0, bits.1) < items);
                let last = Ranges::new(of).key(u64::MAX, u64::MAX);
                prop_assert!(last < items);
            }
            prop_assert!(PowerRanks::new(items, a, b).rank(unit(bits.0)) < items);
            prop_assert!(PowerRanks::new(items, a, b).rank(unit(u64::MAX)) < items);
            prop_assert_eq!(PowerRanks::new(items, a, b).rank(0.0), 0);
        }
    }
}
