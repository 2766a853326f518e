//! YCSB's Zipfian: ranks with a share of very nearly `1 / k^theta`.

use super::zeta::Zeta;

/// Ranks `0..items`, the first one the most frequent.
///
/// The algorithm is that of Gray, Sundaresan, Englert, Baclawski and Weinberger ("Quickly
/// generating billion-record synthetic databases", SIGMOD 1994, section 3), which YCSB uses. The
/// first two ranks have exactly their shares. The other ranks divide the rest by a power law that
/// is close to Zipf's. [`Zipfian::share_below`] is its closed form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zipfian {
    zeta: Zeta,
    theta: f64,
    alpha: f64,
    /// Sum of the first two terms.
    zeta_2: f64,
    items: u64,
    zeta_n: f64,
    eta: f64,
}

impl Zipfian {
    /// Covers `items` ranks (at least one); `theta` must be above 0 and not 1.
    pub fn new(items: u64, theta: f64) -> Self {
        let mut zipfian = Zipfian {
            zeta: Zeta::new(theta),
            theta,
            alpha: 1.0 / (1.0 - theta),
            zeta_2: 1.0 + 0.5f64.powf(theta),
            items: 0,
            zeta_n: 0.0,
            eta: 0.0,
        };
        zipfian.resize(items);
        zipfian
    }

    /// The same over another number of ranks; free if the number is the same.
    #[inline]
    pub fn resize(&mut self, items: u64) {
        if items != self.items {
            self.recompute(items.max(1));
        }
    }

    #[cold]
    fn recompute(&mut self, items: u64) {
        self.items = items;
        self.zeta_n = self.zeta.at(items);
        let beyond_2 = (2.0 / items as f64).powf(1.0 - self.theta);
        self.eta = (1.0 - beyond_2) / (1.0 - self.zeta_2 / self.zeta_n);
    }

    /// The rank for `u`, which is from 0 to below 1. This inverts the distribution function of the
    /// approximation, not that of Zipf's law.
    #[inline]
    pub fn rank(&self, u: f64) -> u64 {
        let uz = u * self.zeta_n;
        if uz < 1.0 {
            0
        } else if uz < self.zeta_2 {
            1.min(self.items - 1)
        } else {
            let share = (self.eta * (u - 1.0) + 1.0).powf(self.alpha);
            ((self.items as f64 * share) as u64).min(self.items - 1)
        }
    }

    /// The share of the draws that go to ranks below `rank`.
    #[cfg(test)]
    pub fn share_below(&self, rank: u64) -> f64 {
        match rank {
            0 => 0.0,
            rank if rank >= self.items => 1.0,
            1 => 1.0 / self.zeta_n,
            2 => self.zeta_2 / self.zeta_n,
            rank => {
                let part = rank as f64 / self.items as f64;
                (part.powf(1.0 - self.theta) - 1.0) / self.eta + 1.0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_fits, counts, zipf_shares};
    use super::super::unit;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frequencies_are_those_of_the_closed_form() {
        for (items, theta) in [(1000, 0.99), (1000, 0.5), (50, 1.5), (2, 0.99), (3, 2.0)] {
            let zipfian = Zipfian::new(items, theta);
            let counts = counts(items, 300_000, |bits| zipfian.rank(unit(bits)));
            let what = format!("zipfian of {items}, theta {theta}");
            assert_fits(&what, &counts, &zipf_shares(items, theta));
        }
    }

    /// How far the approximation is from Zipf's law itself: exact for two ranks, close beyond.
    #[test]
    fn the_closed_form_is_near_the_law_of_zipf() {
        let (items, theta) = (10_000, 0.99);
        let zipfian = Zipfian::new(items, theta);
        let zeta = Zeta::new(theta);
        for rank in [1, 2, 10, 100, 1000, 10_000] {
            let law = zeta.at(rank) / zeta.at(items);
            let error = zipfian.share_below(rank) - law;
            assert!(error.abs() < 0.06, "{rank}: {error}");
        }
        assert_eq!(zipfian.share_below(1), 1.0 / zeta.at(items));
    }

    proptest! {
        #[test]
        fn ranks_are_below_the_number_of_items(
            items in 1u64..1 << 40, theta in 0.01f64..5.0, bits: u64,
        ) {
            prop_assume!((theta - 1.0).abs() > 1e-6);
            let zipfian = Zipfian::new(items, theta);
            prop_assert!(zipfian.rank(unit(bits)) < items);
            prop_assert!(zipfian.rank(0.0) == 0);
            prop_assert!(zipfian.rank(unit(u64::MAX)) < items);
        }

        #[test]
        fn growing_comes_to_the_same_as_starting_large(
            small in 1u64..1000, large in 1u64..1_000_000, bits: u64,
        ) {
            let mut grown = Zipfian::new(small, 0.99);
            grown.resize(large);
            prop_assert_eq!(grown, Zipfian::new(large, 0.99));
            prop_assert_eq!(grown.rank(unit(bits)), Zipfian::new(large, 0.99).rank(unit(bits)));
        }
    }
}
