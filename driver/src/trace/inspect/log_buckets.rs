//! Weights by the logarithm of a value: exact below 16, then eight buckets per power of two.

const EXACT: u64 = 16;
const PER_POWER: usize = 8;
const BUCKETS: usize = EXACT as usize + 60 * PER_POWER;

/// Sums of weights by value.
#[derive(Debug)]
pub struct LogBuckets {
    weights: Vec<f64>,
}

impl Default for LogBuckets {
    fn default() -> Self {
        LogBuckets {
            weights: vec![0.0; BUCKETS],
        }
    }
}

impl LogBuckets {
    /// Adds `weight` to the bucket of `value`.
    #[inline]
    pub fn add(&mut self, value: u64, weight: f64) {
        self.weights[index(value)] += weight;
    }

    /// The lowest and highest value and the weight of each bucket with a weight, lowest first.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, f64)> + '_ {
        self.weights
            .iter()
            .enumerate()
            .filter(|(_, weight)| **weight != 0.0)
            .map(|(index, weight)| {
                let (low, high) = bounds(index);
                (low, high, *weight)
            })
    }

    /// Adds `difference` to the bucket of 0. A negative one is taken from the lowest buckets, none of
    /// which becomes less than nothing.
    pub fn correct(&mut self, mut difference: f64) {
        for weight in &mut self.weights {
            let corrected = *weight + difference;
            *weight = corrected.max(0.0);
            difference = corrected.min(0.0);
        }
    }

    /// Sum of all weights.
    pub fn total(&self) -> f64 {
        self.weights.iter().sum()
    }
}

#[inline]
fn index(value: u64) -> usize {
    if value < EXACT {
        return value as usize;
    }
    let power = 63 - value.leading_zeros();
    let eighth = (value >> (power - 3)) as usize & (PER_POWER - 1);
    EXACT as usize + (power as usize - 4) * PER_POWER + eighth
}

fn bounds(index: usize) -> (u64, u64) {
    let Some(above) = index.checked_sub(EXACT as usize) else {
        return (index as u64, index as u64);
    };
    let power = above / PER_POWER + 4;
    let step = 1u64 << (power - 3);
    let low = (1u64 << power) + step * (above % PER_POWER) as u64;
    (low, low + (step - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_lies_within_the_bounds_of_its_bucket(value: u64) {
            let (low, high) = bounds(index(value));
            prop_assert!(low <= value && value <= high);
            prop_assert!((high - low) as f64 <= value as f64 / 8.0);
        }
    }
}
