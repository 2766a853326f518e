//! The keys of db_bench's operations. They are functions of the seed, so that a later process knows
//! what an earlier process wrote.

use crate::protocol::Operation;
use crate::random::{stream_seed, KeyStream};

/// The keys of `thread` of phase `index`, which repeats `operation` in a run with `seed`, in the
/// order in which it uses them. `share` is its number, from 0, among the threads that divide the keys
/// among themselves, and their count.
pub fn key_stream(
    num: u64,
    operation: Operation,
    seed: u64,
    index: usize,
    thread: usize,
    share: (usize, usize),
) -> KeyStream {
    let seed = |thread| stream_seed(seed, index, thread);
    match operation {
        Operation::FillSeq | Operation::ReadSeq => KeyStream::sequential(num),
        // Threads that divide the keys among themselves must use the same permutation.
        Operation::FillUniqueRandom
        | Operation::ReadUniqueRandom
        | Operation::DeleteUniqueRandom => KeyStream::unique(num, seed(0), share),
        Operation::ReadHot => KeyStream::uniform(num.div_ceil(100), seed(thread)),
        _ => KeyStream::uniform(num, seed(thread)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_keys_are_the_first_hundredth() {
        let mut stream = key_stream(1050, Operation::ReadHot, 3, 0, 0, (0, 1));
        let keys: Vec<u64> = (0..1000).map(|_| stream.next_key()).collect();
        assert!(keys.iter().all(|&key| key < 11) && keys.contains(&10));
    }
}
