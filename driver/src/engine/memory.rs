//! An ordered map in memory: the reference with which the other engines must agree.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use super::{
    BatchEntry, Cursor, Database, Durability, Engine, EngineError, Identity, OpenResult, Options,
    Result, Session,
};

type Entries = BTreeMap<Vec<u8>, Arc<[u8]>>;

/// Keeps its databases, by directory, as long as it lives. There is nothing on disk.
#[derive(Debug, Default)]
pub struct Memory {
    databases: Mutex<HashMap<PathBuf, Arc<Contents>>>,
}

/// What a directory would hold.
#[derive(Debug, Default)]
struct Contents {
    /// A cursor keeps the map as it is; the next write then goes to a copy.
    entries: RwLock<Arc<Entries>>,
    open: AtomicBool,
}

impl Contents {
    fn read(&self) -> RwLockReadGuard<'_, Arc<Entries>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for Memory {
    fn open(&self, directory: &Path, options: &Options, _durability: Durability) -> OpenResult {
        no_options(options)?;
        let mut databases = self
            .databases
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let contents = Arc::clone(databases.entry(directory.to_owned()).or_default());
        drop(databases);
        if contents.open.swap(true, Ordering::AcqRel) {
            return Err(EngineError::failed(format!(
                "{}: already open",
                directory.display()
            )));
        }
        Ok(Box::new(MemoryDatabase { contents }))
    }

    fn reopen(&self, directory: &Path, options: &Options, durability: Durability) -> OpenResult {
        self.open(directory, options, durability)
    }

    fn keeps_files(&self) -> bool {
        false
    }
}

/// An engine that is a part of the driver.
pub(super) fn built_in(name: &str) -> Identity {
    Identity {
        name: name.into(),
        version: Some(env!("CARGO_PKG_VERSION").into()),
        library: None,
    }
}

/// Refuses every option, for engines that have none.
pub(super) fn no_options(options: &Options) -> Result<()> {
    match options.keys().next() {
        None => Ok(()),
        Some(name) => Err(EngineError::UnknownOption {
            name: name.clone(),
            nearest: Vec::new(),
        }),
    }
}

#[derive(Debug)]
struct MemoryDatabase {
    contents: Arc<Contents>,
}

impl Database for MemoryDatabase {
    fn identity(&self) -> Identity {
        built_in("memory")
    }

    fn session(&self) -> Box<dyn Session + '_> {
        Box::new(&*self.contents)
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

impl Drop for MemoryDatabase {
    fn drop(&mut self) {
        self.contents.open.store(false, Ordering::Release);
    }
}

impl Session for &Contents {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(&[BatchEntry::Put(key, value)])
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.write(&[BatchEntry::Delete(key)])
    }

    fn write(&mut self, batch: &[BatchEntry<'_>]) -> Result<()> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let entries = Arc::make_mut(&mut entries);
        for entry in batch {
            match *entry {
                BatchEntry::Put(key, value) => drop(entries.insert(key.into(), value.into())),
                BatchEntry::Delete(key) => drop(entries.remove(key)),
            }
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let entries = self.read();
        let value = entries.get(key);
        if let Some(value) = value {
            read(value);
        }
        Ok(value.is_some())
    }

    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        Ok(Box::new(MemoryCursor {
            entries: Arc::clone(&self.read()),
            key: Vec::new(),
            value: None,
        }))
    }
}

struct MemoryCursor {
    entries: Arc<Entries>,
    key: Vec<u8>,
    /// The value at `key`; `None` if the cursor is at no entry.
    value: Option<Arc<[u8]>>,
}

impl MemoryCursor {
    fn move_to(&mut self, from: Bound<&[u8]>) {
        let entries = Arc::clone(&self.entries);
        let next = entries.range::<[u8], _>((from, Bound::Unbounded)).next();
        if let Some((key, value)) = next {
            self.key.clone_from(key);
            self.value = Some(Arc::clone(value));
        } else {
            self.value = None;
        }
    }
}

impl Cursor for MemoryCursor {
    fn seek_to_first(&mut self) {
        self.move_to(Bound::Unbounded);
    }

    fn seek(&mut self, key: &[u8]) {
        self.move_to(Bound::Included(key));
    }

    fn next(&mut self) {
        let here = std::mem::take(&mut self.key);
        self.move_to(Bound::Excluded(&here));
    }

    fn valid(&self) -> bool {
        self.value.is_some()
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn value(&self) -> &[u8] {
        self.value.as_deref().unwrap_or_default()
    }

    fn status(&self) -> Result<()> {
        Ok(())
    }
}
