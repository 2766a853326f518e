//! Which key an operation uses, and how a key number becomes bytes.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Permutation;

/// Bytes of a key that hold its number.
pub const KEY_NUMBER_BYTES: usize = 8;

/// Key numbers for one thread.
#[derive(Debug, Clone)]
pub struct KeyStream(Order);

#[derive(Debug, Clone)]
enum Order {
    Sequential {
        next: u64,
        num: u64,
    },
    Uniform {
        random: Xoshiro256PlusPlus,
        num: u64,
    },
    Unique {
        order: Permutation,
        next: u64,
        num: u64,
    },
}

/// Streams over the keys `0..num`, of which there is at least one.
impl KeyStream {
    /// 0, 1, 2 ... and again from 0.
    pub fn sequential(num: u64) -> Self {
        KeyStream(Order::Sequential { next: 0, num })
    }

    /// Each draw uniform and independent.
    pub fn uniform(num: u64, seed: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        KeyStream(Order::Uniform { random, num })
    }

    /// Every key once per round, in random order.
    ///
    /// `share` is (this thread, all threads). Threads with the same seed divide the keys among
    /// themselves, so that each key comes up once over all of them. As with operations
    /// (`Phase::operations_of`), the first threads have one key more.
    pub fn unique(num: u64, seed: u64, (thread, threads): (usize, usize)) -> Self {
        KeyStream(Order::Unique {
            order: Permutation::new(num, seed),
            next: first_of_share(num, thread as u64, threads as u64),
            num,
        })
    }

    /// A unique stream goes on at `position` of its permutation.
    #[must_use]
    pub fn at(mut self, position: u64) -> Self {
        if let Order::Unique { next, num, .. } = &mut self.0 {
            *next = position % *num;
        }
        self
    }

    /// The next key number.
    #[inline]
    pub fn next_key(&mut self) -> u64 {
        match &mut self.0 {
            Order::Sequential { next, num } => advance(next, *num),
            Order::Uniform { random, num } => random.random_range(0..*num),
            Order::Unique { order, next, num } => order.get(advance(next, *num)),
        }
    }
}

/// The first of the `num` positions that belong to `thread` of `threads`.
fn first_of_share(num: u64, thread: u64, threads: u64) -> u64 {
    (thread * (num / threads) + thread.min(num % threads)) % num
}

#[inline]
fn advance(next: &mut u64, num: u64) -> u64 {
    let current = *next;
    *next = if current + 1 == num { 0 } else { current + 1 };
    current
}

/// Writes key number `index` to the front of `key`, which already ends in `0` characters. The
/// number is written as eight big-endian bytes, so that byte order is number order. This is the
/// format of RocksDB's db_bench.
#[inline]
pub fn encode_key(key: &mut [u8], index: u64) {
    key[..KEY_NUMBER_BYTES].copy_from_slice(&index.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::distributions::testing::assert_fits;
    use super::*;
    use crate::protocol::Phase;
    use proptest::prelude::*;

    fn take(mut stream: KeyStream, count: usize) -> Vec<u64> {
        (0..count).map(|_| stream.next_key()).collect()
    }

    #[test]
    fn sequential_wraps() {
        assert_eq!(take(KeyStream::sequential(3), 5), [0, 1, 2, 0, 1]);
    }

    #[test]
    fn uniform_is_uniform() {
        let mut counts = [0; 64];
        for key in take(KeyStream::uniform(64, 3), 200_000) {
            counts[key as usize] += 1;
        }
        assert_fits("uniform", &counts, &[1.0 / 64.0; 64]);
    }

    proptest! {
        /// Threads began at `num * thread / threads`, and the first of them did what could not be
        /// divided evenly: 10 keys by 4 threads left one key out and wrote another one twice.
        #[test]
        fn unique_visits_every_key_once_over_all_threads(num in 1u64..200, threads in 1usize..20) {
            let phase = serde_json::json!({
                "name": "fill", "kind": "load", "operations": num, "threads": threads,
            });
            let phase: Phase = serde_json::from_value(phase).unwrap();
            let keys_of = |thread| {
                let stream = KeyStream::unique(num, 3, (thread, threads));
                let count = phase.operations_of(thread).unwrap();
                (0..count).scan(stream, |stream, _| Some(stream.next_key()))
            };
            let mut keys: Vec<u64> = (0..threads).flat_map(keys_of).collect();
            keys.sort_unstable();
            prop_assert_eq!(keys, (0..num).collect::<Vec<_>>());
        }

        #[test]
        fn byte_order_is_number_order(a: u64, b: u64, key_bytes in 8usize..64) {
            let (mut x, mut y) = (vec![b'0'; key_bytes], vec![b'0'; key_bytes]);
            encode_key(&mut x, a);
            encode_key(&mut y, b);
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        }

        #[test]
        fn same_seed_same_keys(seed: u64, num in 1u64..1_000_000) {
            let keys = || take(KeyStream::uniform(num, seed), 20);
            prop_assert_eq!(keys(), keys());
        }
    }
}
