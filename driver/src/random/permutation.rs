//! A permutation of `0..n` that needs no table: invertible mixing of k bits, with cycle walking.
//!
//! Cycle walking is by Black and Rogaway ("Ciphers with Arbitrary Finite Domains", CT-RSA 2002):
//! permute the next power of two, and repeat while the result is outside `0..n`. Fewer than two
//! rounds are expected, because the domain is less than twice as large as `n`. The rounds alternate
//! a multiplication by an odd number with a shift-xor. Each is invertible on k bits, as in the
//! finalisers of hash functions.

use super::mix;

const ROUNDS: usize = 3;

/// A random-looking bijection on `0..n`.
#[derive(Debug, Clone)]
pub struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// A permutation of `0..n`, different for each seed; `n` must be at least 1.
    pub fn new(n: u64, seed: u64) -> Self {
        let bits = (64 - (n - 1).leading_zeros()).max(1);
        Permutation {
            n,
            mask: u64::MAX >> (64 - bits),
            shift: bits.div_ceil(2),
            keys: std::array::from_fn(|round| mix(seed.wrapping_add(round as u64 + 1))),
        }
    }

    /// The image of `index`, which must be below `n`.
    #[inline]
    pub fn get(&self, index: u64) -> u64 {
        let mut image = self.shuffle(index);
        while image >= self.n {
            image = self.shuffle(image);
        }
        image
    }

    #[inline]
    fn shuffle(&self, block: u64) -> u64 {
        self.keys.iter().fold(block, |bits, key| {
            let bits = (bits ^ key).wrapping_mul(key | 1) & self.mask;
            bits ^ (bits >> self.shift)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_element_is_hit_once(n in 1u64..5000, seed: u64) {
            let permutation = Permutation::new(n, seed);
            let mut images: Vec<u64> = (0..n).map(|index| permutation.get(index)).collect();
            images.sort_unstable();
            prop_assert_eq!(images, (0..n).collect::<Vec<_>>());
        }

        #[test]
        fn huge_domains_stay_inside(n in 1u64 << 40..1u64 << 62, index: u64, seed: u64) {
            prop_assert!(Permutation::new(n, seed).get(index % n) < n);
        }
    }

    #[test]
    fn order_is_not_the_identity_and_depends_on_the_seed() {
        let take = |seed| {
            let permutation = Permutation::new(1000, seed);
            (0..1000).map(|i| permutation.get(i)).collect::<Vec<_>>()
        };
        let (one, two) = (take(1), take(2));
        let fixed = |order: &[u64]| {
            order
                .iter()
                .enumerate()
                .filter(|(i, v)| *i as u64 == **v)
                .count()
        };
        // A random permutation has one fixed point on average.
        assert!(fixed(&one) < 10 && fixed(&two) < 10);
        assert_ne!(one, two);
    }
}
