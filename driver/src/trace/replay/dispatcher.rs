//! Reads the trace ahead of the workers and gives each of them its records.

use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

use xxhash_rust::xxh3::xxh3_64;

use crate::protocol::ReplayReply;
use crate::trace::{TraceError, TraceReader};

use super::chunk::{first_key, Chunk};
use super::worker::Common;

/// A chunk is sent when it has this many bytes ...
const CHUNK_BYTES: usize = 64 << 10;
/// ... or this many records ...
const CHUNK_COMMANDS: usize = 256;
/// ... or when the current record is due this much later than its first record.
const CHUNK_NS: u64 = 5_000_000;
/// How far the trace is read ahead of time.
const AHEAD_NS: u64 = 1_000_000_000;
/// The most chunks that wait for a worker.
pub const QUEUE: usize = 16;

/// The channels of one worker.
#[derive(Debug)]
pub struct Lane {
    /// Takes its chunks.
    pub chunks: SyncSender<Chunk>,
    /// Returns its used chunks.
    pub used: Receiver<Chunk>,
    /// The chunk that is being filled.
    pub filling: Chunk,
}

impl Lane {
    /// A used chunk, or a new one.
    fn next_chunk(&self) -> Chunk {
        let mut chunk = self.used.try_recv().unwrap_or_default();
        chunk.clear(CHUNK_BYTES * 2);
        chunk
    }

    /// Sends the filled chunk if there is room. Returns false if the worker is gone.
    fn try_flush(&mut self) -> bool {
        if self.filling.commands().is_empty() {
            return true;
        }
        match self.chunks.try_send(std::mem::take(&mut self.filling)) {
            Ok(()) => {
                self.filling = self.next_chunk();
                true
            }
            Err(TrySendError::Full(chunk)) => {
                self.filling = chunk;
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    /// Sends the filled chunk, and waits for room. Returns false if the worker is gone.
    fn flush(&mut self) -> bool {
        if self.filling.commands().is_empty() {
            return true;
        }
        let next = self.next_chunk();
        let full = std::mem::replace(&mut self.filling, next);
        self.chunks.send(full).is_ok()
    }

    fn is_full(&self) -> bool {
        self.filling.bytes() >= CHUNK_BYTES || self.filling.commands().len() >= CHUNK_COMMANDS
    }
}

/// The dispatcher of one phase.
pub struct Dispatcher<'a, R> {
    pub reader: TraceReader<R>,
    pub lanes: Vec<Lane>,
    /// The most records to dispatch.
    pub records_max: u64,
    pub common: &'a Common<'a>,
}

impl<R: Read> Dispatcher<'_, R> {
    /// Dispatches the whole trace, or what comes before damage, until somebody stops it. Returns
    /// what could not be dispatched.
    pub fn run(mut self) -> Result<ReplayReply, TraceError> {
        let common = self.common;
        let (mut records, mut reply) = (0, ReplayReply::default());
        let mut first_us = None;
        let mut flushed_ns = 0;
        while records < self.records_max && !(common.stop)() {
            let entry = match self.reader.next_entry() {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                Err(TraceError::Damaged(damage)) => {
                    reply.damage = Some(damage);
                    break;
                }
                Err(error) => return Err(error),
            };
            let since_us = entry
                .unix_us
                .saturating_sub(*first_us.get_or_insert(entry.unix_us));
            let due_ns = common
                .speed
                .map_or(0, |speed| (since_us as f64 * 1e3 / speed) as u64);
            if due_ns >= common.duration_ns {
                break;
            }
            if due_ns >= flushed_ns + CHUNK_NS {
                flushed_ns = due_ns;
                let until_ns = due_ns.saturating_sub(AHEAD_NS);
                if !wait(&mut self.lanes, common, until_ns) {
                    break;
                }
            }
            let worker = (xxh3_64(first_key(&entry.record)) % self.lanes.len() as u64) as usize;
            let lane = &mut self.lanes[worker];
            let (chunk, skipped) = (&mut lane.filling, &mut reply.skipped);
            let something = chunk.push(due_ns, entry.record, skipped);
            records += u64::from(something);
            if lane.is_full() && !flush(&mut self.lanes, worker) {
                break;
            }
        }
        // While a worker has no room yet, the others get their last records.
        for lane in &mut self.lanes {
            lane.try_flush();
        }
        for lane in &mut self.lanes {
            // A worker that is gone has already returned its error, or its time is over.
            let _ = lane.flush();
        }
        Ok(reply)
    }
}

/// Waits until `until_ns`. Workers that have no room yet get their chunks meanwhile, because these
/// may be due before. Returns false if a worker is gone, or if somebody stops the phase.
fn wait(lanes: &mut [Lane], common: &Common<'_>, until_ns: u64) -> bool {
    let holds = |lane: &Lane| !lane.filling.commands().is_empty();
    while lanes.iter_mut().all(Lane::try_flush) {
        let next_ns = if lanes.iter().any(holds) {
            until_ns.min(common.time.now_ns() + CHUNK_NS)
        } else {
            until_ns
        };
        if !common.time.wait(next_ns, common.stop) {
            return false;
        }
        if next_ns == until_ns {
            return true;
        }
    }
    false
}

/// Sends the full chunk of `worker`. While it waits for room, the other workers still get theirs.
fn flush(lanes: &mut [Lane], worker: usize) -> bool {
    lanes[worker].try_flush()
        && (!lanes[worker].is_full()
            || (lanes.iter_mut().all(Lane::try_flush) && lanes[worker].flush()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::mpsc::{channel, sync_channel};
    use std::time::Duration;

    use super::*;
    use crate::measure::{PhaseTime, Ticks};
    use crate::trace::{TraceVersion, TraceWriter};

    /// They came when a worker before it had room, however late that was, and were filed with the
    /// wait.
    #[test]
    fn the_last_records_of_a_worker_wait_for_no_other() {
        let mut trace = TraceWriter::new(Vec::new(), TraceVersion::V0_2, "10.2", 0).unwrap();
        for key in 0..64 {
            trace.get(0, 0, &[key]).unwrap();
        }
        let bytes = trace.finish(0).unwrap();
        let ticks = Ticks::default();
        let common = Common {
            time: PhaseTime {
                started: ticks.now(),
                ticks,
            },
            speed: None,
            duration_ns: u64::MAX,
            seek_nexts: 0,
            stop: &|| false,
            known: &HashMap::new(),
        };
        let lane = |chunks| Lane {
            chunks,
            used: channel().1,
            filling: Chunk::default(),
        };
        let ((full, late), (room, other)) = (sync_channel(0), sync_channel(1));
        let dispatcher = Dispatcher {
            reader: TraceReader::new(&bytes[..]).unwrap(),
            lanes: vec![lane(full), lane(room)],
            records_max: u64::MAX,
            common: &common,
        };
        let most = Duration::from_secs(60);
        let (other, late) = std::thread::scope(|scope| {
            scope.spawn(move || dispatcher.run());
            (other.recv_timeout(most), late.recv_timeout(most))
        });
        let (other, late) = (other.unwrap(), late.unwrap());
        assert!(!other.commands().is_empty() && !late.commands().is_empty());
        assert_eq!(other.commands().len() + late.commands().len(), 64);
    }
}
