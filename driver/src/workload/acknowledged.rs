//! After a driver was killed in the middle of a load: its database must hold every write that was
//! reported as done, and nothing that nobody wrote.

use crate::engine::{Database, EngineError, Result, Session};
use crate::protocol::{Operation, Workload};
use crate::random::{DecodedKey, KeyStream, KeyWriter, Version};

use super::streams::key_stream;
use super::values::Values;

/// Keys that are looked up between two checks for a cancel.
const STOP_CHECK: u64 = 256;

/// A load of one thread in which every key is written once: the first phase of a workload.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    /// Its workload.
    pub workload: &'a Workload,
    /// `fillseq` or `filluniquerandom`.
    pub operation: Operation,
    /// Seed of its keys.
    pub seed: u64,
    /// Operations of the whole load.
    pub operations: u64,
    /// How many of them were reported as done: the first ones.
    pub acknowledged: u64,
}

impl Load<'_> {
    /// The numbers of the keys, in the order of the operations.
    fn numbers(&self) -> KeyStream {
        key_stream(self.workload.num, self.operation, self.seed, 0, 0, (0, 1))
    }
}

/// What the database holds of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Acknowledged keys that are missing.
    pub keys_lost: u64,
    /// Keys with bytes that nobody wrote, and keys that nobody wrote: those of the look-ups or those
    /// of the scan, whichever are more.
    pub keys_wrong: u64,
    /// Keys after the acknowledged ones, up to the first that is missing.
    pub keys_beyond: u64,
    /// Keys of the load that a scan of the whole database finds; `None` where the engine cannot
    /// scan it.
    pub keys_scanned: Option<u64>,
}

/// Looks up every acknowledged key of `load`, and the keys after them until one is missing; then
/// scans the database for keys that were never written.
pub fn verify_load(
    database: &dyn Database,
    load: &Load<'_>,
    values: &Values,
    stop: &dyn Fn() -> bool,
) -> Result<Recovered> {
    let mut session = database.session();
    let (mut numbers, mut keys) = (load.numbers(), KeyWriter::new(load.workload));
    let mut recovered = Recovered::default();
    for count in 0..load.operations {
        if count % STOP_CHECK == 0 && stop() {
            return Err(EngineError::Cancelled);
        }
        let value = values.value(Version::new(0, 0, count));
        let mut right = false;
        let key = keys.write(numbers.next_key());
        let found = session.get(key, &mut |bytes| right = bytes == value)?;
        match (found, count < load.acknowledged) {
            (true, _) if !right => recovered.keys_wrong += 1,
            (true, true) => {}
            (true, false) => recovered.keys_beyond += 1,
            (false, true) => recovered.keys_lost += 1,
            (false, false) => break,
        }
    }
    scan_load(&mut *session, load, values, stop, &mut recovered)?;
    Ok(recovered)
}

const NEVER: u64 = u64::MAX;

/// Compares every entry of the database with the load, unless the engine cannot scan it.
fn scan_load(
    session: &mut dyn Session,
    load: &Load<'_>,
    values: &Values,
    stop: &dyn Fn() -> bool,
    recovered: &mut Recovered,
) -> Result<()> {
    // By the number of a key, which of the operations wrote it.
    let mut written = vec![NEVER; load.workload.num as usize];
    let mut numbers = load.numbers();
    for count in 0..load.operations {
        written[numbers.next_key() as usize] = count;
    }
    let keys = KeyWriter::new(load.workload);
    let mut cursor = session.whole_cursor()?;
    cursor.seek_to_first();
    // The look-ups went well: an engine that cannot even begin has tables without an order.
    if cursor.status().is_err() {
        return Ok(());
    }
    let (mut scanned, mut wrong, mut last, mut entries) = (0, 0, Vec::new(), 0);
    while cursor.valid() {
        if entries % STOP_CHECK == 0 && stop() {
            return Err(EngineError::Cancelled);
        }
        let key = cursor.key();
        let ordered = entries == 0 || key > &last[..];
        let of = match keys.decode(key) {
            DecodedKey::Known(number) => written.get(number as usize).copied().unwrap_or(NEVER),
            DecodedKey::Hashed | DecodedKey::Foreign => NEVER,
        };
        let known = of != NEVER && ordered;
        let right = known && values.value(Version::new(0, 0, of)) == cursor.value();
        scanned += u64::from(known);
        wrong += u64::from(!right);
        entries += 1;
        last.clear();
        last.extend_from_slice(key);
        cursor.next();
    }
    cursor.status()?;
    recovered.keys_wrong = recovered.keys_wrong.max(wrong);
    recovered.keys_scanned = Some(scanned);
    Ok(())
}
