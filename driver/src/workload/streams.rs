//! The keys of db_bench's operations. They are functions of the seed, so that a later process knows
//! what an earlier process wrote.

use crate::protocol::Operation;
use crate::random::{stream_seed, KeyOrder, KeyStream};

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
    let order = match operation {
        Operation::FillSeq | Operation::ReadSeq => KeyOrder::Sequential,
        Operation::FillUniqueRandom
        | Operation::ReadUniqueRandom
        | Operation::DeleteUniqueRandom => KeyOrder::Unique,
        Operation::ReadHot => KeyOrder::Hot,
        _ => KeyOrder::Uniform,
    };
    // Threads that divide the keys among themselves must use the same permutation.
    let stream = if order == KeyOrder::Unique {
        0
    } else {
        of.thread
    };
    let seed = stream_seed(of.seed, of.index, stream);
    KeyStream::new(order, num, seed, of.share)
}
