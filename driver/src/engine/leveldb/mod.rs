//! LevelDB, through its C interface.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use super::c_store::{for_existing, OpenDb};
use super::flusher::Flusher;
use super::library::{functions, status_error};
use super::scratch::Scratch;
use super::{
    BackgroundWork, Database, Durability, Engine, EngineError, Identity, LevelSize, OpenResult,
    Options, Result, Session,
};
use api::Api;
use options::Handle;

mod api;
mod drain;
pub(crate) mod log;
mod old_log;
mod options;
mod session;

/// A loaded LevelDB library.
pub struct LevelDb {
    api: &'static Api,
    library: PathBuf,
    /// Whether it has zstd, once that was tried.
    zstd: OnceLock<bool>,
}

impl LevelDb {
    /// Loads the library at `library`.
    pub fn load(library: Option<&Path>) -> Result<Self> {
        let api = functions("leveldb", library, Api::load)?;
        let library = library.map(Path::to_path_buf).unwrap_or_default();
        let zstd = OnceLock::new();
        Ok(Self { api, library, zstd })
    }

    fn open_with(
        &self,
        directory: &Path,
        options: Handle,
        durability: Durability,
    ) -> Result<LevelDatabase> {
        // SAFETY: options and path are alive.
        let db = OpenDb::open(self.api, directory, |path, error| unsafe {
            (self.api.open)(options.raw, path, error)
        })?;
        // SAFETY: both functions take nothing and return a constant.
        let (major, minor) = unsafe { ((self.api.major_version)(), (self.api.minor_version)()) };
        Ok(LevelDatabase {
            api: self.api,
            directory: directory.to_path_buf(),
            identity: Identity {
                name: "leveldb".into(),
                version: Some(format!("{major}.{minor}")),
                library: Some(self.library.clone()),
            },
            durability,
            flusher: Flusher::default(),
            db,
            _options: options,
        })
    }

    /// Whether the library has zstd. Tried once: how long a database takes to open is measured.
    fn has_zstd(&self, parent: &Path) -> Result<bool> {
        if let Some(has) = self.zstd.get() {
            return Ok(*has);
        }
        let has = self.compresses("zstd", parent)?;
        Ok(*self.zstd.get_or_init(|| has))
    }

    /// Whether tables written with `compression` are smaller and can be read back. LevelDB does not
    /// say what it was built with. Without Snappy it silently writes plain blocks. With a number
    /// that it does not know it writes blocks that it then calls corrupt.
    fn compresses(&self, compression: &str, parent: &Path) -> Result<bool> {
        let scratch = Scratch::inside(parent)?;
        let directory = scratch.database(compression);
        match self.write_zeroes(compression, &directory) {
            Err(error) if error.is_of_the_disk() => return Err(error),
            Err(_) => return Ok(false),
            Ok(()) => {}
        }
        Ok(table_bytes(&directory) < ZEROES_BYTES / 2)
    }

    /// Writes [`ZEROES_BYTES`] of zeroes to a new database and reads them back.
    fn write_zeroes(&self, compression: &str, directory: &Path) -> Result<()> {
        const VALUE: [u8; 4096] = [0; 4096];
        let keys = 0..ZEROES_BYTES / VALUE.len() as u64;
        let options = Options::from([("compression".to_owned(), compression.to_owned())]);
        let handle = Handle::new(self.api, &options)?;
        let database = self.open_with(directory, handle, Durability::Wal)?;
        let mut session = database.session();
        for key in keys.clone() {
            session.put(&key.to_be_bytes(), &VALUE)?;
        }
        database.drain(&|| false)?;
        for key in keys {
            let mut same = false;
            session.get(&key.to_be_bytes(), &mut |value| same = value == VALUE)?;
            if !same {
                let message = format!("compression {compression} loses data");
                return Err(EngineError::failed(message));
            }
        }
        Ok(())
    }
}

/// Enough data to show the effect of any compression.
const ZEROES_BYTES: u64 = 1 << 20;

/// Bytes of the table files in `directory`.
fn table_bytes(directory: &Path) -> u64 {
    std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|name| name == "ldb"))
        .filter_map(|entry| Some(entry.metadata().ok()?.len()))
        .sum()
}

impl Engine for LevelDb {
    fn open(&self, directory: &Path, options: &Options, durability: Durability) -> OpenResult {
        if durability == Durability::None {
            let allowed = "sync, wal: LevelDB always writes its log";
            return Err(EngineError::bad_value("durability", "none", allowed));
        }
        let handle = Handle::new(self.api, options)?;
        let parent = directory.parent().unwrap_or_else(|| Path::new("."));
        // A library without zstd would lose the data: try zstd first.
        let zstd = options
            .get("compression")
            .is_some_and(|name| name == "zstd");
        if zstd && !self.has_zstd(parent)? {
            let allowed = "none, snappy: this library was built without zstd";
            return Err(EngineError::bad_value("compression", "zstd", allowed));
        }
        Ok(Box::new(self.open_with(directory, handle, durability)?))
    }

    fn reopen(&self, directory: &Path, options: &Options, durability: Durability) -> OpenResult {
        let options = for_existing(directory, options)?;
        old_log::keep(directory).map_err(|error| {
            status_error(&format!("{}: its logs: {error}", directory.display()))
        })?;
        self.open(directory, &options, durability)
    }

    fn background_work(&self, directory: &Path, from_us: u64, to_us: u64) -> BackgroundWork {
        log::background_work(directory, from_us..to_us).unwrap_or_default()
    }

    fn compressions(&self, scratch: &Path) -> Result<Vec<String>> {
        let mut compressions = vec!["none".to_owned()];
        for name in ["snappy", "zstd"] {
            if self.compresses(name, scratch)? {
                compressions.push(name.to_owned());
            }
        }
        Ok(compressions)
    }

    fn known_options(&self, _scratch: &Path) -> Result<Vec<(String, String)>> {
        Ok(options::DEFAULTS
            .map(|(name, default)| (name.to_owned(), default.to_owned()))
            .to_vec())
    }
}

/// An open LevelDB.
struct LevelDatabase {
    api: &'static Api,
    directory: PathBuf,
    identity: Identity,
    durability: Durability,
    // Dropped in this order: a flush that a cancelled drain left behind still uses the database.
    flusher: Flusher,
    db: OpenDb,
    /// Owns the cache and the filter policy, which the database uses.
    _options: Handle,
}

// SAFETY: the options object is never touched between open and drop; all else is `Send` and `Sync`.
unsafe impl Send for LevelDatabase {}
// SAFETY: as above.
unsafe impl Sync for LevelDatabase {}

impl Database for LevelDatabase {
    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn session(&self) -> Box<dyn Session + '_> {
        Box::new(session::LevelSession::new(self))
    }

    fn drain(&self, cancelled: &dyn Fn() -> bool) -> Result<Duration> {
        self.wait_until_drained(cancelled)?;
        Ok(Duration::ZERO)
    }

    fn stall_s(&self) -> Option<f64> {
        None
    }

    fn levels(&self) -> Option<Vec<LevelSize>> {
        self.tree()
    }

    fn property(&self, name: &str) -> Option<String> {
        self.db.property(name)
    }
}
