//! RocksDB, through its C interface: any version from 6 on.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use super::c_store::{for_existing, OpenDb};
use super::flusher::Flusher;
use super::library::functions;
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
    listed: options::Listed,
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
            listed: OnceLock::new(),
        })
    }
}

impl Engine for RocksDb {
    fn open(&self, directory: &Path, options: &Options, durability: Durability) -> OpenResult {
        let parent = directory.parent().unwrap_or_else(|| Path::new("."));
        let handle = options::apply(self.api, options, parent, &self.listed)?;
        let opened = match self.families {
            1 => {
                open_database(self.api, directory, &handle).map(|db| (db, Families::none(self.api)))
            }
            count => families::open(self.api, directory, &handle, count),
        };
        let (db, families) = opened.map_err(|error| {
            if error.is_of_the_disk() {
                return error;
            }
            options::unusable(self.api, options, error, parent, &self.listed)
        })?;
        let watch = Watch::start(self.api, db.handle, directory)?;
        let written = OptionsFile::newest_in(directory);
        let is_on = |name: &str| {
            let value = written.as_ref().and_then(|file| file.value(name));
            value.as_deref() == Some("true")
        };
        Ok(Box::new(RocksDatabase {
            api: self.api,
            identity: Identity {
                name: "rocksdb".into(),
                version: written.as_ref().and_then(|file| file.version.clone()),
                library: Some(self.library.clone()),
            },
            not_taken: options_file::not_taken(options, written.as_ref()),
            // A database that compacts only on request reports pending compactions that never run.
            compacts: !is_on("disable_auto_compactions"),
            maps_reads: is_on("allow_mmap_reads"),
            durability,
            shape: (self.families == 1)
                .then(|| tables::Shape::of(directory, written.as_ref()))
                .flatten(),
            watch,
            flusher: Flusher::default(),
            families,
            db,
            options: handle,
        }))
    }

    fn reopen(&self, directory: &Path, options: &Options, durability: Durability) -> OpenResult {
        self.open(directory, &for_existing(directory, options)?, durability)
    }

    fn with_column_families(&self, count: usize) -> Option<Box<dyn Engine>> {
        Some(Box::new(Self {
            api: self.api,
            library: self.library.clone(),
            families: count,
            listed: self.listed.clone(),
        }))
    }

    fn background_work(&self, directory: &Path, from_us: u64, to_us: u64) -> BackgroundWork {
        events::background_work(directory, from_us..to_us).unwrap_or_default()
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
            options::apply(self.api, &options, &directory, &self.listed)
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
        let known = options::known(self.api, scratch, &self.listed)?;
        Ok(known.all.clone().into_iter().collect())
    }
}

/// Opens or creates the database in `directory`.
fn open_database(api: &'static Api, directory: &Path, options: &Handle) -> Result<OpenDb> {
    options.set_create_if_missing();
    // SAFETY: options and path are alive.
    OpenDb::open(api, directory, |path, error| unsafe {
        (api.open)(options.raw, path, error)
    })
}

/// An open RocksDB.
struct RocksDatabase {
    api: &'static Api,
    identity: Identity,
    not_taken: Vec<OptionNotTaken>,
    compacts: bool,
    maps_reads: bool,
    durability: Durability,
    /// What tables are like that are written in the order of their keys; `None` if there are none.
    shape: Option<tables::Shape>,
    // Dropped in this order: the database after the threads and handles that use it.
    watch: Watch,
    flusher: Flusher,
    families: Families,
    db: OpenDb,
    /// Kept because it may own objects that the database shares.
    options: Handle,
}

// SAFETY: the options object is only read between open and drop; all else is `Send` and `Sync`.
unsafe impl Send for RocksDatabase {}
// SAFETY: as above.
unsafe impl Sync for RocksDatabase {}

impl RocksDatabase {
    /// An empty write. It fails if the engine has stopped accepting writes. It never waits.
    fn try_write(&self) -> Result<()> {
        // SAFETY: the database is open, and the options are new.
        unsafe {
            let options = session::write_options(self.api, self.durability);
            (self.api.writeoptions_set_no_slowdown)(options, 1);
            self.api.write_nothing(self.db.get(), options)
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
        let mut sessions: Vec<_> = self.families.raw().into_iter().map(session).collect();
        if sessions.len() == 1 {
            return sessions.remove(0);
        }
        Box::new(PartsSession::new(sessions))
    }

    fn drain(&self, cancelled: &dyn Fn() -> bool) -> Result<Duration> {
        self.wait_until_drained(cancelled)
            .map_err(|error| match error {
                EngineError::Cancelled => error,
                other => self.watch.explain(other),
            })
    }

    /// Of the default column family.
    fn hold_compactions(&self, hold: bool) -> Result<bool> {
        if !self.compacts {
            return Ok(false);
        }
        let value = if hold { c"true" } else { c"false" };
        let (names, values) = ([c"disable_auto_compactions".as_ptr()], [value.as_ptr()]);
        let (names, values, set) = (names.as_ptr(), values.as_ptr(), self.api.set_options);
        // SAFETY: the database is open, and the texts are constants.
        self.api
            .call(|error| unsafe { set(self.db.get(), 1, names, values, error) })?;
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
        self.db.property(name)
    }
}

impl Drop for RocksDatabase {
    fn drop(&mut self) {
        // A flush that a cancelled drain left behind is told to stop, before it is waited for.
        if self.flusher.is_running() {
            // SAFETY: the database is open until its field is dropped.
            unsafe { (self.api.cancel_all_background_work)(self.db.get(), 0) }
        }
    }
}
