//! The keys of db_bench's operations. They are functions of the seed, so that a later process knows
//! what an earlier process wrote.

use crate::protocol::Operation;
use crate::random::{stream_seed, KeyStream};

/// A thread of a phase, and the seed of the phase.
#[derive(Debug, Clone, Copy)]
pub struct StreamOf {
    /// The thread's number, from 0, among the threads that divide the keys, and their count.
    pub share: (usize, usize),
    /// Position of the phase in the workload.
    pub index: usize,
    /// Position of the thread in the phase.
    pub thread: usize,
    /// Seed of the run, or of its load phases.
    pub seed: u64,
}

/// The keys of one thread that repeats `operation`, in the order in which it uses them.
pub fn key_stream(num: u64, operation: Operation, of: StreamOf) -> KeyStream {
    let seed = |thread| stream_seed(of.seed, of.index, thread);
    match operation {
        Operation::FillSeq | Operation::ReadSeq => KeyStream::sequential(num),
        // Threads that divide the keys among themselves must use the same permutation.
        Operation::FillUniqueRandom
        | Operation::ReadUniqueRandom
        | Operation::DeleteUniqueRandom => KeyStream::unique(num, seed(0), of.share),
        Operation::ReadHot => KeyStream::uniform(num.div_ceil(100), seed(of.thread)),
        _ => KeyStream::uniform(num, seed(of.thread)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_keys_are_the_first_hundredth() {
        let of = StreamOf {
            share: (0, 1),
            index: 0,
            thread: 0,
            seed: 3,
        };
        let mut stream = key_stream(1050, Operation::ReadHot, of);
        let keys: Vec<u64> = (0..1000).map(|_| stream.next_key()).collect();
        assert!(keys.iter().all(|&key| key < 11) && keys.contains(&10));
    }
}
