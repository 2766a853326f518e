//! The first part of a load that nobody measures: written in the order of its keys, into the tables
//! that compactions would have made of it.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::engine::{EngineError, Result, SortedTables};
use crate::measure::read_in;
use crate::protocol::{Operation, Phase};
use crate::random::{KeyWriter, Version};

use super::bulk::HELD;
use super::ledger::{KeyState, ThreadLedger};
use super::mix::Records;
use super::phase::{join, run_phase, PhaseContext, PhaseObservation, Watcher};
use super::read_check::Notes;
use super::streams::key_stream;

/// Entries that are sorted at once, each of which takes 32 bytes of memory until it is written.
const ENTRIES_MAX: u64 = 1 << 21;

/// Bytes of an entry in a memtable beside its key and value: sequence number, lengths, and the
/// pointers of a skip list (`db/memtable.cc` and `memtable/inlineskiplist.h` of RocksDB).
const ENTRY_BYTES: u64 = 24;

/// Runs phase `index`, which is bulk and whose threads write as one.
pub fn run_bulk(
    context: &PhaseContext<'_>,
    index: usize,
    phase: &Phase,
    watcher: &mut dyn Watcher,
) -> Result<PhaseObservation> {
    let started = Instant::now();
    let load = Load {
        context,
        index,
        phase,
    };
    let (written, parts) = match context.holds_compactions {
        true => load.write_first()?,
        false => (0, Vec::new()),
    };
    let elapsed_s = started.elapsed().as_secs_f64();
    // Where little was sorted, the rest is made fast by other means. Else it is written as in any
    // load: several threads would be ahead of the compactions, which then leave other levels.
    let mostly = written >= phase.operations_whole().unwrap_or(0).div_ceil(3).max(1);
    let rest = Phase {
        threads: if mostly { 1 } else { phase.threads },
        operations: phase.operations.map(|whole| whole - written),
        ..phase.clone()
    };
    let after = PhaseContext {
        as_one: Some(written),
        holds_compactions: context.holds_compactions && !mostly,
        ..*context
    };
    let mut all = run_phase(&after, index, &rest, watcher)?;
    all.observation.operations += written;
    all.observation.elapsed_s += elapsed_s;
    for part in parts {
        all.observation.counts.bytes_written += part.bytes_written;
        all.notes.push(Notes {
            written: Some(part.ledger),
            read: None,
        });
    }
    Ok(all)
}

/// A phase that loads.
struct Load<'a> {
    context: &'a PhaseContext<'a>,
    index: usize,
    phase: &'a Phase,
}

/// An entry of the load: how its key begins, the number of its key, and its place in the load.
#[derive(Debug, Clone, Copy)]
struct Entry {
    begins: u128,
    number: u64,
    place: u64,
}

/// What one thread wrote.
struct Part {
    tables: Vec<PathBuf>,
    bytes_written: u64,
    ledger: ThreadLedger,
}

impl Load<'_> {
    /// Writes the first operations, and returns how many. Zero if the engine takes no sorted tables,
    /// if the load is over before a compaction, or if it is cancelled.
    fn write_first(&self) -> Result<(u64, Vec<Part>)> {
        let Some(tables) = self.context.database.sorted_tables()? else {
            return Ok((0, Vec::new()));
        };
        let whole = self.phase.operations_whole().unwrap_or(0);
        let written = first_operations(whole, self.cycle(tables.cycle_bytes(), whole));
        if written == 0 {
            return Ok((0, Vec::new()));
        }
        let entries = self.entries(written);
        let share = entries.len().div_ceil(self.phase.threads);
        let parts: Result<Vec<_>> = std::thread::scope(|scope| {
            let write = |part| {
                let tables = &*tables;
                let work = move || self.write(part, tables);
                let started = std::thread::Builder::new().spawn_scoped(scope, work);
                started.map_err(|error| {
                    EngineError::failed(format!("a thread of the load cannot start: {error}"))
                })
            };
            let threads: Result<Vec<_>> = entries.chunks(share).map(write).collect();
            threads?.into_iter().map(join).collect()
        });
        match parts {
            Ok(parts) => {
                take(&*tables, &parts)?;
                Ok((written, parts))
            }
            Err(EngineError::Cancelled) => Ok((0, Vec::new())),
            Err(error) => Err(error),
        }
    }

    /// Operations that write `cycle_bytes`, by the mean of the first of all `whole` ones.
    fn cycle(&self, cycle_bytes: u64, whole: u64) -> u64 {
        let mut keys = KeyWriter::new(self.context.workload);
        let values = self.context.values.of(self.index, 0);
        let count = whole.clamp(1, 1000);
        let bytes = (0..count).zip(self.numbers()).map(|(place, number)| {
            let value = values.value(Version::new(self.index, 0, place));
            (keys.write(number).len() + value.len()) as u64 + ENTRY_BYTES
        });
        (cycle_bytes.saturating_mul(count) / bytes.sum::<u64>()).max(1)
    }

    /// The number of the key at each place of the load, without an end.
    fn numbers(&self) -> Box<dyn Iterator<Item = u64>> {
        if let Some(mix) = &self.phase.mix {
            let records = Records::new(mix, false);
            return Box::new((0..).map(move |place| records.inserted(place)));
        }
        let (num, seed) = (self.context.workload.num, self.context.seed);
        let unique = Operation::FillUniqueRandom;
        let mut stream = key_stream(num, unique, seed, self.index, 0, (0, 1));
        Box::new(std::iter::repeat_with(move || stream.next_key()))
    }

    /// The first entries, in the order of their keys; of equal ones the last.
    fn entries(&self, operations: u64) -> Vec<Entry> {
        let writer = || KeyWriter::new(self.context.workload);
        let mut keys = writer();
        let entry = |(place, number)| {
            let begins = beginning(keys.write(number));
            Entry {
                begins,
                number,
                place,
            }
        };
        let mut entries: Vec<_> = (0..operations).zip(self.numbers()).map(entry).collect();
        let pair = RefCell::new((writer(), writer()));
        let by_key = |one: &Entry, other: &Entry| {
            one.begins.cmp(&other.begins).then_with(|| {
                let (first, second) = &mut *pair.borrow_mut();
                first.write(one.number).cmp(second.write(other.number))
            })
        };
        entries.sort_unstable_by(|one, other| by_key(one, other).then(other.place.cmp(&one.place)));
        entries.dedup_by(|next, kept| by_key(next, kept).is_eq());
        entries
    }

    fn write(&self, entries: &[Entry], tables: &dyn SortedTables) -> Result<Part> {
        let Load { context, index, .. } = *self;
        let (values, mut ledger) = (context.values.of(index, 0), context.ledger.thread());
        let (mut keys, mut bytes_written) = (KeyWriter::new(context.workload), 0);
        let tables = tables.write(&mut |put| {
            for entry in entries {
                if context.cancelled.load(Ordering::Relaxed) {
                    return Err(EngineError::Cancelled);
                }
                let version = Version::new(index, 0, entry.place);
                let (key, value) = (keys.write(entry.number), values.value(version));
                put(key, value)?;
                bytes_written += (key.len() + value.len()) as u64;
                ledger.note(entry.number, KeyState::Written(version));
            }
            Ok(())
        })?;
        Ok(Part {
            tables,
            bytes_written,
            ledger,
        })
    }
}

/// Gives the tables of all threads to the database.
fn take(tables: &dyn SortedTables, parts: &[Part]) -> Result<()> {
    let paths: Vec<_> = parts.iter().flat_map(|part| part.tables.clone()).collect();
    // RocksDB drops the pages of tables that it wrote so (`invalidate_page_cache` of
    // rocksdb/sst_file_writer.h). After a load, they are in the page cache as far as it has room.
    if let Some(folder) = paths.first().and_then(|path| path.parent()) {
        read_in(folder)
            .map_err(|error| EngineError::failed(format!("{}: {error}", folder.display())))?;
    }
    tables.take(&paths)
}

/// How many operations of a load are written in order: as many whole cycles as fit into the share
/// during which compactions wait, and at least one cycle of a load that has more: its first
/// compaction moves all of it, however much that is. What is left makes the levels above, and about
/// as many tables of level 0 as in any load.
fn first_operations(whole: u64, cycle: u64) -> u64 {
    let most = ENTRIES_MAX.min((whole as f64 * HELD) as u64);
    let operations = (most / cycle).max(1) * cycle;
    if operations < whole && operations <= ENTRIES_MAX {
        operations
    } else {
        0
    }
}

/// The first 16 bytes of `key`; shorter keys end in zeros.
fn beginning(key: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let length = key.len().min(bytes.len());
    bytes[..length].copy_from_slice(&key[..length]);
    u128::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_cycles_are_written_in_order_and_some_is_left() {
        assert_eq!(first_operations(900, 100), 600);
        assert_eq!(first_operations(899, 100), 500);
        assert_eq!(first_operations(900, 250), 500);
        // A single compaction makes all that is in the last level, whatever its share.
        assert_eq!(first_operations(900, 700), 700);
        assert_eq!(first_operations(900, 900), 0);
        assert_eq!(first_operations(900, 1000), 0);
        assert_eq!(first_operations(0, 1), 0);
    }

    #[test]
    fn what_is_sorted_at_once_is_bounded() {
        assert_eq!(first_operations(u64::MAX, ENTRIES_MAX), ENTRIES_MAX);
        assert_eq!(first_operations(u64::MAX, 1 << 20), ENTRIES_MAX);
        assert_eq!(first_operations(u64::MAX, ENTRIES_MAX + 1), 0);
    }

    #[test]
    fn beginnings_are_in_the_order_of_keys() {
        let keys: [&[u8]; 6] = [b"", b"a", b"a\x01", b"b", b"b0123456789abcdef", b"c"];
        assert!(keys
            .windows(2)
            .all(|pair| beginning(pair[0]) <= beginning(pair[1])));
        assert_eq!(beginning(keys[4]), beginning(b"b0123456789abcde"));
    }
}
