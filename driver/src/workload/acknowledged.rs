//! After a driver was killed in the middle of a load: its database must hold every write that was
//! reported as done, and nothing that nobody wrote.

use crate::engine::{Database, EngineError, Result, Session};
use crate::protocol::Operation;
use crate::random::{DecodedKey, KeyWriter, Version};

use super::streams::{key_stream, StreamOf};
use super::values::Values;

/// Keys that are looked up between two checks for a cancel.
const STOP_CHECK: u64 = 256;

/// A load of one thread in which every key is written once.
#[derive(Debug, Clone)]
pub struct Load {
    /// The keys of its thread, in the order of the operations.
    pub stream: StreamOf,
    /// `fillseq` or `filluniquerandom`.
    pub operation: Operation,
    /// Keys in the key space.
    pub num: u64,
    /// Makes the keys.
    pub keys: KeyWriter,
    /// Operations of the whole load.
    pub operations: u64,
    /// How many of them were reported as done: the first ones.
    pub acknowledged: u64,
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
    load: &Load,
    values: &Values,
    stop: &dyn Fn() -> bool,
) -> Result<Recovered> {
    let mut session = database.session();
    let mut numbers = key_stream(load.num, load.operation, load.stream);
    let mut keys = load.keys.clone();
    let mut recovered = Recovered::default();
    for count in 0..load.operations {
        if count % STOP_CHECK == 0 && stop() {
            return Err(EngineError::Cancelled);
        }
        let key = keys.write(numbers.next_key());
        let version = Version::new(load.stream.index, load.stream.thread, count);
        match look_up(&mut *session, key, values.value(version))? {
            LookUp::Wrong => recovered.keys_wrong += 1,
            LookUp::Nothing if count < load.acknowledged => recovered.keys_lost += 1,
            LookUp::Nothing => break,
            LookUp::Right if count < load.acknowledged => {}
            LookUp::Right => recovered.keys_beyond += 1,
        }
    }
    if let Some(scanned) = scan_load(&mut *session, load, values, stop)? {
        recovered.keys_wrong = recovered.keys_wrong.max(scanned.wrong);
        recovered.keys_scanned = Some(scanned.found);
    }
    Ok(recovered)
}

#[derive(Default)]
struct Scanned {
    found: u64,
    wrong: u64,
}

const NEVER: u64 = u64::MAX;

/// Compares every entry of the database with the load; `None` if the engine cannot scan it.
fn scan_load(
    session: &mut dyn Session,
    load: &Load,
    values: &Values,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Scanned>> {
    // By the number of a key, which of the operations wrote it.
    let mut written = vec![NEVER; load.num as usize];
    let mut numbers = key_stream(load.num, load.operation, load.stream);
    for count in 0..load.operations {
        written[numbers.next_key() as usize] = count;
    }
    let mut cursor = session.whole_cursor()?;
    cursor.seek_to_first();
    // The look-ups went well: an engine that cannot even begin has tables without an order.
    if cursor.status().is_err() {
        return Ok(None);
    }
    let (mut scanned, mut last, mut entries) = (Scanned::default(), Vec::new(), 0);
    while cursor.valid() {
        if entries % STOP_CHECK == 0 && stop() {
            return Err(EngineError::Cancelled);
        }
        let key = cursor.key();
        let ordered = entries == 0 || key > &last[..];
        let of = match load.keys.decode(key) {
            DecodedKey::Known(number) => written.get(number as usize).copied().unwrap_or(NEVER),
            DecodedKey::Hashed | DecodedKey::Foreign => NEVER,
        };
        let known = of != NEVER && ordered;
        let version = || Version::new(load.stream.index, load.stream.thread, of);
        let right = known && values.value(version()) == cursor.value();
        scanned.found += u64::from(known);
        scanned.wrong += u64::from(!right);
        entries += 1;
        last.clear();
        last.extend_from_slice(key);
        cursor.next();
    }
    cursor.status()?;
    Ok(Some(scanned))
}

enum LookUp {
    Nothing,
    Right,
    Wrong,
}

fn look_up(session: &mut dyn Session, key: &[u8], value: &[u8]) -> Result<LookUp> {
    let mut right = false;
    let found = session.get(key, &mut |bytes| right = bytes == value)?;
    Ok(match (found, right) {
        (false, _) => LookUp::Nothing,
        (true, true) => LookUp::Right,
        (true, false) => LookUp::Wrong,
    })
}
