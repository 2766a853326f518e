//! The hotness of keys in production, as Cao, Dong, Vemuri and Du model it ("Characterizing,
//! modeling, and benchmarking RocksDB key-value workloads at Facebook", FAST 2020, section 6), with
//! the parameters of db_bench's `mixgraph`.

use super::super::{mix, Permutation};
use super::{below, unit, Shares};

/// The hash from ranks to keys is the same in all phases and runs, so hot keys stay hot.
const SCATTER: u64 = 0x686f_746e_6573_7321;
/// db_bench takes a smaller share as zero.
const SHARE_MIN: f64 = 1e-16;
/// Above this, floats cannot represent every whole number.
const RANK_MAX: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;

/// Ranks of a power law: the first x of them together have a share of `a x^b` (`key_dist_a`,
/// `key_dist_b`).
///
/// The last rank is the one at which that share reaches 1, whatever the number of keys. As in
/// db_bench (`PowerCdfInversion`, `MixGraph` and `DistGetKeyID` of tools/db_bench_tool.cc), a hash
/// maps each rank to a key. The share of a key is therefore the sum of the shares `a (r^b - (r -
/// 1)^b)` of its ranks r. If there are many times as many ranks as keys, a few keys are hot, and
/// all others are nearly alike.
///
/// db_bench takes the remainder of a random number as u, so that u has only as many values as there
/// are keys. Among high ranks, a value of u then stands for one rank, and its many neighbours are
/// never drawn. If most ranks are high, no value leads to a given key with a probability of `1 /
/// e`. `grains` is the number of these values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerLaw {
    a: f64,
    inverse_b: f64,
    grains: Option<u64>,
}

impl PowerLaw {
    /// `a` and `b` must be above 0, `a` at most 1, and `grains` at least 1.
    pub fn new(a: f64, b: f64, grains: Option<u64>) -> Self {
        PowerLaw {
            a,
            inverse_b: 1.0 / b,
            grains,
        }
    }

    /// One of `items` keys (at least one), chosen by 64 random bits. Each `place` has its own hash
    /// from ranks to keys.
    #[inline]
    pub fn key(&self, bits: u64, items: u64, place: u64) -> u64 {
        let u = match self.grains {
            None => unit(bits),
            Some(grains) => below(bits, grains) as f64 / grains as f64,
        };
        let rank = self.rank(u);
        let number = if rank <= RANK_MAX {
            rank as u64
        } else {
            // For so high a rank every u has a rank of its own, and a float may not be able to
            // represent it.
            u.to_bits()
        };
        below(mix(number ^ mix(SCATTER ^ place)), items)
    }

    /// The rank for `u`, which is from 0 to below 1: a whole number (0 only if `u` is 0), or
    /// infinite.
    #[inline]
    fn rank(&self, u: f64) -> f64 {
        (u / self.a).powf(self.inverse_b).ceil()
    }
}

/// Key ranges of (nearly) equal width. The k-th hottest range has a share in proportion to `a exp(b
/// k) + c exp(d k)` (`keyrange_dist_a` to `_d`, `keyrange_num`). Within a range, the keys have the
/// shares of [`PowerLaw`], or equal shares.
#[derive(Debug, Clone)]
pub struct Ranges {
    items: u64,
    count: u64,
    shares: Shares,
    order: Permutation,
    power: Option<PowerLaw>,
}

/// The weights of the ranges, by rank; the first one is the hottest if the weights decrease.
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
    /// `count` ranges of `items` keys, of which there are at least as many. `abcd` must give a
    /// weight to at least one range. Keys of a range have equal shares if there is no `power`.
    pub fn new(items: u64, count: u64, abcd: [f64; 4], power: Option<PowerLaw>) -> Self {
        Ranges {
            items,
            count,
            shares: Shares::new(range_weights(count, abcd)),
            order: Permutation::new(count, SCATTER),
            power,
        }
    }

    /// A key, chosen by 64 random bits for its range and 64 for its position in the range.
    #[inline]
    pub fn key(&self, range_bits: u64, key_bits: u64) -> u64 {
        let range = self.order.get(self.shares.pick(range_bits) as u64);
        let start = self.start(range);
        let width = self.start(range + 1) - start;
        start
            + match self.power {
                None => below(key_bits, width),
                Some(law) => law.key(key_bits, width, range),
            }
    }

    fn start(&self, range: u64) -> u64 {
        let start = u128::from(self.items) * u128::from(range) / u128::from(self.count);
        start as u64 // at most `items`
    }
}

/// The closed form: the shares of `items` keys if each rank goes to the key that `key_of` returns.
#[cfg(test)]
pub fn folded_shares(a: f64, b: f64, items: u64, key_of: impl Fn(u64) -> u64) -> Vec<f64> {
    let upto = |rank: u64| (a * (rank as f64).powf(b)).min(1.0);
    let mut shares = vec![0.0; items as usize];
    let mut rank = 0;
    while upto(rank) < 1.0 {
        rank += 1;
        shares[key_of(rank) as usize] += upto(rank) - upto(rank - 1);
    }
    shares
}

/// The key to which a rank goes.
#[cfg(test)]
pub fn key_of_rank(rank: u64, items: u64, place: u64) -> u64 {
    below(mix(rank ^ mix(SCATTER ^ place)), items)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_fits, counts};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_power_law_is_folded_onto_the_keys() {
        // ZippyDB of FAST 2020 with 40 million ranks, except for its factor; a law that ends before
        // the last key; and one that gets steeper.
        for (items, a, b) in [(1000, 0.02, 0.3467), (500, 0.05, 0.5), (300, 1e-8, 1.5)] {
            let law = PowerLaw::new(a, b, None);
            let counts = counts(items, 300_000, |bits| law.key(bits, items, 7));
            let shares = folded_shares(a, b, items, |rank| key_of_rank(rank, items, 7));
            assert_fits("power", &counts, &shares);
        }
    }

    /// The hottest of as many keys as a range has in db_bench's command for ZippyDB. The ranks
    /// folded onto them count little beside their own ranks.
    #[test]
    fn the_hottest_keys_have_the_shares_of_the_first_ranks() {
        let (items, a, b) = (166_666, 0.002_312, 0.346_7);
        let law = PowerLaw::new(a, b, None);
        let draws = 4_000_000;
        let mut counts = counts(items, draws, |bits| law.key(bits, items, 0));
        counts.sort_unstable_by(|one, other| other.cmp(one));
        for rank in [1, 10, 100] {
            let drawn = counts[..rank].iter().sum::<u64>() as f64 / draws as f64;
            let due = a * (rank as f64).powf(b) + rank as f64 * (1.0 - a) / items as f64;
            assert!((drawn / due - 1.0).abs() < 0.05, "{rank}: {drawn} {due}");
        }
    }

    /// Each grain gives its share to the key of its rank; most ranks have no grain.
    #[test]
    fn grains_are_drawn_alike_and_leave_keys_out() {
        let (items, a, b, grains) = (1000, 0.002_312, 0.346_7, 1000);
        let law = PowerLaw::new(a, b, Some(grains));
        let mut shares = vec![0.0; items as usize];
        for grain in 0..grains {
            let rank = (grain as f64 / grains as f64 / a).powf(1.0 / b).ceil() as u64;
            shares[key_of_rank(rank, items, 3) as usize] += 1.0 / grains as f64;
        }
        let left_out = shares.iter().filter(|share| **share == 0.0).count();
        assert!((330..410).contains(&left_out), "{left_out}");
        let counts = counts(items, 300_000, |bits| law.key(bits, items, 3));
        assert_fits("grains", &counts, &shares);
    }

    #[test]
    fn ranks_that_no_float_can_hold_fall_on_all_keys() {
        let law = PowerLaw::new(1e-300, 0.1, None);
        let counts = counts(50, 100_000, |bits| law.key(bits, 50, 0));
        assert_fits("far ranks", &counts, &[0.02; 50]);
    }

    #[test]
    fn ranges_have_their_shares_and_keep_to_their_bounds() {
        let (items, count, exponentials) = (1003, 30, [14.18, -2.917, 0.0164, -0.08082]);
        let power = Some(PowerLaw::new(0.05, 0.6, None));
        let ranges = Ranges::new(items, count, exponentials, power);
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
        // Within the hottest range.
        let hottest = order.get(0);
        let (from, to) = (ranges.start(hottest), ranges.start(hottest + 1));
        let within = folded_shares(0.05, 0.6, to - from, |rank| {
            key_of_rank(rank, to - from, hottest)
        });
        assert_fits("within", &by_key[from as usize..to as usize], &within);
    }

    proptest! {
        #[test]
        fn keys_are_below_the_number_of_items(
            items in 1u64..1 << 50, count in 1u64..1000, bits: (u64, u64), a in 1e-6f64..1.0,
            b in 0.01f64..3.0,
        ) {
            let count = count.min(items);
            let laws = [None, Some(items)].map(|grains| PowerLaw::new(a, b, grains));
            for power in [None, Some(laws[0]), Some(laws[1])] {
                let ranges = Ranges::new(items, count, [1.0, -0.01, 0.0, 0.0], power);
                prop_assert!(ranges.key(bits.0, bits.1) < items);
                prop_assert!(ranges.key(u64::MAX, u64::MAX) < items);
            }
            let law = laws[0];
            prop_assert!(law.key(bits.0, items, bits.1) < items);
            prop_assert!(law.key(u64::MAX, items, 0) < items);
            prop_assert_eq!(law.rank(0.0), 0.0);
            prop_assert!(law.rank(unit(bits.0)) <= law.rank(unit(u64::MAX)));
        }
    }
}
