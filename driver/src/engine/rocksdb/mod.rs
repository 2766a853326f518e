//! RocksDB, through its C interface: any version from 6 on.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::Duration;

use super::c_store::{Db, DbHandle};
use super::existing;
use super::flusher::Flusher;
use super::library::{functions, path_text};
use super::parts::PartsSession;
use super::scratch::Scratch;
use super::{
    BackgroundWork, Database, Durability, Engine, EngineError, Identity, LevelSize, OpenResult,
    OptionNotTaken, Options, Result, Session, SortedTables,
};
use api::{Api, Handle};
use families::Families;
use options_file::OptionsFile;
use stuck::Watch;

mod api;
mod block_cache;
pub(crate) mod drain;
pub(crate) mod events;
mod families;
mod levels;
pub(crate) mod nested;
pub(crate) mod option_values;
mod options;
pub(crate) mod options_file;
mod session;
mod stuck;
mod tables;
mod tree;

/// Short names of compressions, and RocksDB's own names.
const COMPRESSIONS: [(&str, &str); 7] = [
    ("none", "kNoCompression"),
    ("snappy", "kSnappyCompression"),
    ("zlib", "kZlibCompression"),
    ("bzip2", "kBZip2Compression"),
    ("lz4", "kLZ4Compression"),
    ("lz4hc", "kLZ4HCCompression"),
    ("zstd", "kZSTD"),
];

/// A loaded RocksDB library.
pub struct RocksDb {
    api: &'static Api,
    library: PathBuf,
    /// Column families of each database.
    families: usize,
    cache_bytes: options::CacheBytes,
}

impl RocksDb {
    /// Loads the library at `library`.
    pub fn load(library: Option<&Path>) -> Result<Self> {
        let api = functions("rocksdb", library, Api::load)?;
        let library = library.map(Path::to_path_buf).unwrap_or_default();
        Ok(Self {
            api,
            library,
            families: 1,
            cache_bytes: OnceLock::new(),
        })
    }
}

impl Engine for RocksDb {
    fn identity(&self) -> Identity {
        Identity {
            name: "rocksdb".into(),
            version: None,
            library: Some(self.library.clone()),
        }
    }

    fn open(&self, directory: &Path, options: &Options, durability: Durability) -> OpenResult {
        let parent = directory.parent().unwrap_or_else(|| Path::new("."));
        let handle = options::apply(self.api, options, parent, &self.cache_bytes)?;
        let opened = match self.families {
            1 => open_database(self.api, directory, &handle)
                .map(|open| (open, Families::none(self.api))),
            count => families::open(self.api, directory, &handle, count),
        };
        let (open, families) = opened.map_err(|error| {
            if error.is_of_the_disk() {
                return error;
            }
            options::unusable(self.api, options, error, parent)
        })?;
        let written = OptionsFile::newest_in(directory);
        let is_on = |name: &str| {
            let value = written.as_ref().and_then(|file| file.value(name));
            value.as_deref() == Some("true")
        };
        Ok(Box::new(RocksDatabase {
            api: self.api,
            identity: Identity {
                version: written.as_ref().and_then(|file| file.version.clone()),
                ..self.identity()
            },
            not_taken: options_file::not_taken(options, written.as_ref()),
            // A database that compacts only on request reports pending compactions that never run.
            compacts: !is_on("disable_auto_compactions"),
            maps_reads: is_on("allow_mmap_reads"),
            durability,
            flusher: Flusher::default(),
            watch: Some(Watch::start(self.api, DbHandle(open.raw), directory)?),
            handle: DbHandle(open.into_raw()),
            families: Some(families),
            shape: (self.families == 1)
                .then(|| tables::Shape::of(directory, written.as_ref()))
                .flatten(),
            options: handle,
        }))
    }

    fn reopen(&self, directory: &Path, options: &Options, durability: Durability) -> OpenResult {
        existing::require_database(directory)?;
        self.open(directory, &existing::for_existing(options), durability)
    }

    fn with_column_families(&self, count: usize) -> Option<Box<dyn Engine>> {
        Some(Box::new(Self {
            api: self.api,
            library: self.library.clone(),
            families: count,
            cache_bytes: self.cache_bytes.clone(),
        }))
    }

    fn background_work(&self, directory: &Path, from_us: u64, to_us: u64) -> BackgroundWork {
        events::background_work(directory, from_us..to_us)
    }

    fn compressions(&self, scratch: &Path) -> Result<Vec<String>> {
        let scratch = Scratch::inside(scratch)?;
        // If no database opens with the defaults, a failure says nothing about compression.
        let defaults = Handle::defaults(self.api);
        drop(open_database(
            self.api,
            &scratch.database("defaults"),
            &defaults,
        )?);
        let opens = |short: &str, name: &str| {
            let options = Options::from([("compression".to_owned(), name.to_owned())]);
            let directory = scratch.database(short);
            options::apply(self.api, &options, &directory, &self.cache_bytes)
                .and_then(|handle| open_database(self.api, &directory, &handle))
                .is_ok()
        };
        Ok(COMPRESSIONS
            .into_iter()
            .filter(|(short, name)| opens(short, name))
            .map(|(short, _)| short.to_owned())
            .collect())
    }

    fn known_options(&self, scratch: &Path) -> Result<Vec<(String, String)>> {
        Ok(options::known(self.api, scratch)?
            .all()
            .into_iter()
            .collect())
    }
}

/// A database handle that closes itself unless somebody takes it over.
struct Opened {
    api: &'static Api,
    raw: *mut Db,
}

impl Opened {
    const fn into_raw(self) -> *mut Db {
        let raw = self.raw;
        std::mem::forget(self);
        raw
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: opened by `open_database`, and nobody else has the handle.
        unsafe { (self.api.close)(self.raw) }
    }
}

/// Opens or creates the database in `directory`. The error is the engine's own.
fn open_database(api: &'static Api, directory: &Path, options: &Handle) -> Result<Opened> {
    options.set_create_if_missing();
    let path = path_text(directory)?;
    let mut error = null_mut();
    // SAFETY: options and path are alive; the handle is used only if there is no error.
    unsafe {
        let raw = (api.open)(options.raw, path.as_ptr(), &raw mut error);
        api.check(error)?;
        Ok(Opened { api, raw })
    }
}

/// An open RocksDB.
struct RocksDatabase {
    api: &'static Api,
    handle: DbHandle,
    /// `None` only while the database is being closed.
    families: Option<Families>,
    identity: Identity,
    not_taken: Vec<OptionNotTaken>,
    compacts: bool,
    maps_reads: bool,
    durability: Durability,
    flusher: Flusher,
    /// `None` only while the database is being closed.
    watch: Option<Watch>,
    /// What tables are like that are written in the order of their keys; `None` if there are none.
    shape: Option<tables::Shape>,
    /// Kept because it may own objects that the database shares.
    options: Handle,
}

// SAFETY: the options object is only read between open and drop; see `DbHandle` for the rest.
unsafe impl Send for RocksDatabase {}
// SAFETY: as above.
unsafe impl Sync for RocksDatabase {}

impl RocksDatabase {
    /// Why a call failed, if more is known than `error`, which the call returned.
    #[cold]
    fn explain(&self, error: EngineError) -> EngineError {
        match &self.watch {
            Some(watch) => watch.explain(error),
            None => error,
        }
    }

    fn family_handles(&self) -> Vec<*mut api::ColumnFamily> {
        self.families.as_ref().map_or_else(Vec::new, Families::raw)
    }

    /// An empty write. It fails if the engine has stopped accepting writes. It never waits.
    fn try_write(&self) -> Result<()> {
        let mut error = null_mut();
        // SAFETY: the database is open; the other objects live until they are destroyed here.
        unsafe {
            let options = session::write_options(self.api, self.durability);
            (self.api.writeoptions_set_no_slowdown)(options, 1);
            let batch = (self.api.writebatch_create)();
            (self.api.write)(self.handle.get(), options, batch, &raw mut error);
            (self.api.writebatch_destroy)(batch);
            (self.api.writeoptions_destroy)(options);
            self.api.check(error)
        }
    }
}

impl Database for RocksDatabase {
    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn options_not_taken(&self) -> Vec<OptionNotTaken> {
        self.not_taken.clone()
    }

    fn reads_by_system_call(&self) -> bool {
        !self.maps_reads
    }

    fn session(&self) -> Box<dyn Session + '_> {
        let session = |family| -> Box<dyn Session + '_> {
            Box::new(session::RocksSession::new(self, family))
        };
        let mut sessions: Vec<_> = self.family_handles().into_iter().map(session).collect();
        if sessions.len() == 1 {
            return sessions.remove(0);
        }
        Box::new(PartsSession::new(sessions))
    }

    fn drain(&self, cancelled: &dyn Fn() -> bool) -> Result<Duration> {
        self.wait_until_drained(cancelled)
            .map_err(|error| match error {
                EngineError::Cancelled => error,
                other => self.explain(other),
            })
    }

    /// Of the default column family.
    fn hold_compactions(&self, hold: bool) -> Result<bool> {
        if !self.compacts {
            return Ok(false);
        }
        let value = if hold { c"true" } else { c"false" };
        let (names, values) = ([c"disable_auto_compactions".as_ptr()], [value.as_ptr()]);
        let mut error = null_mut();
        // SAFETY: the database is open, and the texts are constants.
        unsafe {
            let set = self.api.set_options;
            set(
                self.handle.get(),
                1,
                names.as_ptr(),
                values.as_ptr(),
                &raw mut error,
            );
            self.api.check(error)?;
        }
        Ok(true)
    }

    fn sorted_tables(&self) -> Result<Option<Box<dyn SortedTables + '_>>> {
        self.open_tables()
    }

    fn stall_s(&self) -> Option<f64> {
        drain::stall_s(&self.property("rocksdb.dbstats")?)
    }

    fn levels(&self) -> Option<Vec<LevelSize>> {
        self.tree()
    }

    fn pending_compaction_bytes(&self) -> Option<u64> {
        self.pending_bytes().ok()
    }

    /// As `ThreadPoolImpl` in `util/threadpool_imp.cc` names them: `rocksdb:low`, `rocksdb:high`.
    fn background_threads(&self) -> &'static str {
        "rocksdb:"
    }

    fn property(&self, name: &str) -> Option<String> {
        self.api.property(self.handle, &CString::new(name).ok()?)
    }
}

impl Drop for RocksDatabase {
    fn drop(&mut self) {
        // SAFETY: nobody borrows the database any more. Two threads may still use it: a flush that
        // a cancelled drain left behind, and the watch. Both are told to stop, and waited for,
        // before the database closes.
        unsafe {
            drop(self.watch.take());
            if self.flusher.is_running() {
                (self.api.cancel_all_background_work)(self.handle.get(), 0);
            }
            self.flusher.join();
            drop(self.families.take());
            (self.api.close)(self.handle.get());
        }
    }
}
