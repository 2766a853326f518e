//! Chooses one of several by weight.

use super::unit;

/// Cumulative weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Shares {
    /// The sum of the weights up to and including each; the last one is the sum of all.
    upto: Vec<f64>,
    /// The last one with a weight above 0.
    last: usize,
}

impl Shares {
    /// `weights` must not be negative, and not all 0.
    pub fn new(weights: impl IntoIterator<Item = f64>) -> Self {
        let (mut upto, mut sum, mut last) = (Vec::new(), 0.0, 0);
        for (index, weight) in weights.into_iter().enumerate() {
            sum += weight;
            upto.push(sum);
            if weight > 0.0 {
                last = index;
            }
        }
        Shares { upto, last }
    }

    /// The index chosen by 64 random bits.
    #[inline]
    pub fn pick(&self, bits: u64) -> usize {
        let at = unit(bits) * self.upto[self.upto.len() - 1];
        if self.upto.len() <= 16 {
            // For a short table, a linear search is quicker than a binary one.
            self.upto.iter().take_while(|upto| **upto <= at).count()
        } else {
            self.upto.partition_point(|upto| *upto <= at)
        }
        .min(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_fits, counts};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_is_picked_by_its_weight() {
        for weights in [
            vec![0.5, 0.45, 0.05],
            vec![3.0],
            vec![1.0; 40],
            vec![0.0, 2.0, 0.0, 6.0],
        ] {
            let shares = Shares::new(weights.iter().copied());
            let pick = |bits| shares.pick(bits) as u64;
            let counts = counts(weights.len() as u64, 100_000, pick);
            let sum: f64 = weights.iter().sum();
            if weights.len() == 1 {
                assert_eq!(counts, [100_000]);
            } else {
                let parts: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
                assert_fits("weights", &counts, &parts);
            }
        }
    }

    proptest! {
        #[test]
        fn what_weighs_nothing_is_never_picked(
            weights in prop::collection::vec(0u8..4, 1..40), bits: u64,
        ) {
            prop_assume!(weights.iter().any(|weight| *weight > 0));
            let shares = Shares::new(weights.iter().map(|weight| f64::from(*weight)));
            for bits in [bits, 0, u64::MAX] {
                prop_assert!(weights[shares.pick(bits)] > 0);
            }
        }
    }
}
