//! An engine that does nothing. It shows the cost of the driver itself.

use std::path::Path;
use std::time::Duration;

use super::memory::{built_in, no_options};
use super::{
    BatchEntry, Cursor, Database, Durability, Engine, Identity, OpenResult, Options, Result,
    Session,
};

/// Accepts every write and forgets it. Finds every key, with an empty value. After a seek, its
/// cursor stays on the same entry for ever. Nothing can be verified with it.
#[derive(Debug, Clone, Copy)]
pub struct Noop;

/// The key at the cursor, as long as the keys of the default workloads.
const KEY: [u8; 16] = [0; 16];

impl Engine for Noop {
    fn open(&self, _directory: &Path, options: &Options, _durability: Durability) -> OpenResult {
        no_options(options)?;
        Ok(Box::new(Self))
    }

    fn reopen(&self, directory: &Path, options: &Options, durability: Durability) -> OpenResult {
        self.open(directory, options, durability)
    }

    fn keeps_files(&self) -> bool {
        false
    }
}

impl Database for Noop {
    fn identity(&self) -> Identity {
        built_in("noop")
    }

    fn keeps_data(&self) -> bool {
        false
    }

    fn session(&self) -> Box<dyn Session + '_> {
        Box::new(Self)
    }

    fn drain(&self, _cancelled: &dyn Fn() -> bool) -> Result<Duration> {
        Ok(Duration::ZERO)
    }

    fn stall_s(&self) -> Option<f64> {
        Some(0.0)
    }

    fn pending_compaction_bytes(&self) -> Option<u64> {
        Some(0)
    }
}

impl Session for Noop {
    fn put(&mut self, _key: &[u8], _value: &[u8]) -> Result<()> {
        Ok(())
    }

    fn delete(&mut self, _key: &[u8]) -> Result<()> {
        Ok(())
    }

    fn write(&mut self, _batch: &[BatchEntry<'_>]) -> Result<()> {
        Ok(())
    }

    fn get(&mut self, _key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        read(&[]);
        Ok(true)
    }

    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        Ok(Box::new(NoopCursor { valid: false }))
    }
}

struct NoopCursor {
    valid: bool,
}

impl Cursor for NoopCursor {
    fn seek_to_first(&mut self) {
        self.valid = true;
    }

    fn seek(&mut self, _key: &[u8]) {
        self.valid = true;
    }

    fn next(&mut self) {}

    fn valid(&self) -> bool {
        self.valid
    }

    fn key(&self) -> &[u8] {
        &KEY
    }

    fn value(&self) -> &[u8] {
        &[]
    }

    fn status(&self) -> Result<()> {
        Ok(())
    }
}
