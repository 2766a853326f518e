//! Any engine whose library exports the C interface of `include/lsmtune_engine.h`.
//!
//! Names and values of options are checked here, by the list that the library has of them, so that
//! every such engine refuses them in the same words.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void, CStr, CString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::library::{self, one_line, path_text, take_text};
use super::{
    Database, Durability, Engine, EngineError, Identity, LevelSize, OpenResult, Options, Result,
    Session,
};
use api::{Api, RawDatabase};
use options::ListedOptions;

mod api;
mod options;
mod session;

/// The version of `lsmtune_engine.h`.
const INTERFACE: u32 = 1;

/// A loaded library.
pub struct Foreign {
    api: &'static Api,
    name: String,
    release: String,
    library: PathBuf,
    durabilities: u32,
    options: ListedOptions,
}

impl Foreign {
    /// Loads the library at `path`, which has to be of the engine `name`.
    pub fn load(name: &str, path: &Path) -> Result<Self> {
        let refuse = |what: String| {
            let what = one_line(&what);
            EngineError::Library(format!("library {}: {what}", path.display()))
        };
        let loaded = library::open(name, Some(path))?;
        let Some(interface) = library::symbol(loaded, "lsmtune_engine_interface") else {
            let header = "lsmtune_engine.h";
            return Err(refuse(format!(
                "not of {name}: lacks lsmtune_engine_interface; needed: what {header} lists"
            )));
        };
        // SAFETY: the header says that this symbol is a 32-bit number in every version.
        let interface = unsafe { interface.cast::<u32>().read_unaligned() };
        if interface != INTERFACE {
            return Err(refuse(format!(
                "speaks version {interface} of lsmtune_engine.h; this driver speaks {INTERFACE}"
            )));
        }
        let mut missing = Vec::new();
        let Some(api) = Api::load(loaded, "lsmtune_engine_", &mut missing) else {
            return Err(library::lacks(name, path, &missing));
        };
        let data = |symbol: &str| {
            let lacks = || library::lacks(name, path, &[symbol.to_owned()]);
            library::symbol(loaded, symbol).ok_or_else(lacks)
        };
        let text = |symbol| {
            // SAFETY: in version 1, which was asked for, these are NUL-terminated texts.
            data(symbol).map(|at| unsafe { CStr::from_ptr(at.cast()) }.to_string_lossy())
        };
        let own = text("lsmtune_engine_name")?;
        if own != name {
            return Err(refuse(format!("is of the engine {own}, not of {name}")));
        }
        // SAFETY: in version 1 this is a 32-bit number.
        let durabilities = unsafe {
            data("lsmtune_engine_durabilities")?
                .cast::<u32>()
                .read_unaligned()
        };
        let options = ListedOptions::parse(&text("lsmtune_engine_options")?)
            .map_err(|why| refuse(format!("lsmtune_engine_options: {why}")))?;
        Ok(Self {
            api: Box::leak(Box::new(api)),
            name: name.to_owned(),
            release: text("lsmtune_engine_release")?.into_owned(),
            library: path.to_path_buf(),
            durabilities,
            options,
        })
    }

    fn open_at(
        &self,
        directory: &Path,
        options: &Options,
        durability: Durability,
        create: bool,
    ) -> Result<Box<dyn Database>> {
        let (bit, word) = match durability {
            Durability::Sync => (1, "sync"),
            Durability::Wal => (2, "wal"),
            Durability::None => (4, "none"),
        };
        if self.durabilities & bit == 0 {
            let allowed = format!("another one: {} does not have it", self.name);
            return Err(EngineError::bad_value("durability", word, &allowed));
        }
        self.options.check(options)?;
        let path = path_text(directory)?;
        let text = |text: &String| CString::new(text.as_str()).unwrap_or_default();
        let names: Vec<_> = options.keys().map(text).collect();
        let values: Vec<_> = options.values().map(text).collect();
        let pointers = |of: &[CString]| of.iter().map(|each| each.as_ptr()).collect::<Vec<_>>();
        let (names_at, values_at) = (pointers(&names), pointers(&values));
        // SAFETY: all texts live until the call returns, and both lists have as many as are said.
        let raw = self.api.call(|error| unsafe {
            let (path, names_at, values_at) =
                (path.as_ptr(), names_at.as_ptr(), values_at.as_ptr());
            let (open, count, create) = (self.api.open, names.len(), create.into());
            open(path, names_at, values_at, count, bit, create, error)
        })?;
        if raw.is_null() {
            let message = format!("{}: not opened, and no error given", directory.display());
            return Err(EngineError::failed(message));
        }
        Ok(Box::new(ForeignDatabase {
            api: self.api,
            raw,
            identity: Identity {
                name: self.name.clone(),
                version: Some(self.release.clone()),
                library: Some(self.library.clone()),
            },
        }))
    }
}

impl Engine for Foreign {
    fn open(&self, directory: &Path, options: &Options, durability: Durability) -> OpenResult {
        self.open_at(directory, options, durability, true)
    }

    fn reopen(&self, directory: &Path, options: &Options, durability: Durability) -> OpenResult {
        self.open_at(directory, options, durability, false)
    }

    fn known_options(&self, _scratch: &Path) -> Result<Vec<(String, String)>> {
        Ok(self.options.defaults())
    }
}

struct ForeignDatabase {
    api: &'static Api,
    raw: *mut RawDatabase,
    identity: Identity,
}

// SAFETY: the header says that many threads call all functions of a database at once. It is closed
// only when nobody borrows it any more.
unsafe impl Send for ForeignDatabase {}
// SAFETY: as above.
unsafe impl Sync for ForeignDatabase {}

impl ForeignDatabase {
    /// The numbers that the library tells, by their keys.
    fn figures(&self) -> BTreeMap<String, u64> {
        // SAFETY: the database is open; the text is the library's, and is freed once.
        let stats = unsafe {
            let text = (self.api.stats)(self.raw);
            if text.is_null() {
                return BTreeMap::new();
            }
            take_text(text, |text| (self.api.free)(text))
        };
        let lines = stats.lines().filter_map(|line| line.split_once('='));
        lines
            .filter_map(|(key, value)| Some((key.trim().to_owned(), value.trim().parse().ok()?)))
            .collect()
    }
}

impl Database for ForeignDatabase {
    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn session(&self) -> Box<dyn Session + '_> {
        Box::new(session::ForeignSession::new(self))
    }

    fn drain(&self, cancelled: &dyn Fn() -> bool) -> Result<Duration> {
        unsafe extern "C" fn asked(context: *mut c_void) -> c_int {
            // SAFETY: `context` is the reference below, which outlives the call that asks.
            let cancelled = unsafe { &*context.cast::<&dyn Fn() -> bool>() };
            c_int::from(cancelled())
        }
        let mut context = cancelled;
        let context = (&raw mut context).cast();
        // SAFETY: the database is open; the library asks only until it returns.
        self.api
            .call(|error| unsafe { (self.api.drain)(self.raw, asked, context, error) })?;
        if cancelled() {
            return Err(EngineError::Cancelled);
        }
        Ok(Duration::ZERO)
    }

    fn stall_s(&self) -> Option<f64> {
        let stall_us = *self.figures().get("stall_us")?;
        Some(stall_us as f64 / 1e6)
    }

    fn levels(&self) -> Option<Vec<LevelSize>> {
        let figures = self.figures();
        let figure = |name: String| figures.get(&name).copied();
        let levels: Vec<LevelSize> = (0..)
            .map_while(|level| {
                Some(LevelSize {
                    files: figure(format!("level.{level}.files"))?,
                    bytes: figure(format!("level.{level}.bytes"))?,
                })
            })
            .collect();
        (!levels.is_empty()).then_some(levels)
    }

    fn pending_compaction_bytes(&self) -> Option<u64> {
        self.figures().get("pending_compaction_bytes").copied()
    }
}

impl Drop for ForeignDatabase {
    fn drop(&mut self) {
        // SAFETY: nobody borrows the database any more, and it is closed once.
        unsafe { (self.api.close)(self.raw) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTIONS: [&str; 13] = [
        "open",
        "close",
        "put",
        "delete",
        "write",
        "get",
        "cursor",
        "cursor_close",
        "cursor_seek",
        "cursor_next",
        "drain",
        "stats",
        "free",
    ];

    /// The library of this C source.
    fn load(source: &str) -> Result<Foreign> {
        let folder = tempfile::tempdir().unwrap();
        let (c, library) = (folder.path().join("a.c"), folder.path().join("a.so"));
        std::fs::write(&c, source).unwrap();
        let built = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &c])
            .status()
            .expect("a C compiler: run `make setup`");
        assert!(built.success());
        Foreign::load("mine", &library)
    }

    /// What the library of this C source is refused with, or nothing.
    fn refusal(source: &str) -> String {
        match load(source) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    /// The C source of all functions but `others`, none of which does anything.
    fn idle_but(others: &[&str]) -> String {
        let idle = FUNCTIONS.iter().filter(|name| !others.contains(*name));
        idle.map(|name| format!("void lsmtune_engine_{name}(void) {{}}\n"))
            .collect()
    }

    /// An engine that opens databases, and has no cursors.
    fn opening(durabilities: u32) -> Foreign {
        let idle = idle_but(&["open", "cursor"]);
        load(&format!(
            "{idle}
            void *lsmtune_engine_open(void) {{ static int here; return &here; }}
            void *lsmtune_engine_cursor(void) {{ return 0; }}
            const unsigned lsmtune_engine_interface = 1;
            const unsigned lsmtune_engine_durabilities = {durabilities};
            const char lsmtune_engine_name[] = \"mine\", lsmtune_engine_release[] = \"1\",
            lsmtune_engine_options[] = \"{{}}\";"
        ))
        .unwrap()
    }

    /// The header lets a library return NULL where it fails. Without a text that was taken for a
    /// cursor, and handed back to the library.
    #[test]
    fn no_cursor_is_an_error_though_the_library_gives_none() {
        let folder = tempfile::tempdir().unwrap();
        let database = opening(2)
            .open(folder.path(), &Options::new(), Durability::Wal)
            .unwrap();
        let mut session = database.session();
        let error = session.cursor().err().unwrap();
        assert_eq!(error.to_string(), "no cursor, and no error given");
    }

    /// It was opened with a write-ahead log, whatever it has: one without could not be used at all.
    #[test]
    fn a_library_is_probed_under_a_durability_that_it_has() {
        for durabilities in [1, 2, 4] {
            let folder = tempfile::tempdir().unwrap();
            let probed = crate::engine::probe(&opening(durabilities), folder.path()).unwrap();
            assert_eq!(probed.identity.version.as_deref(), Some("1"));
        }
    }

    #[test]
    fn a_library_that_speaks_otherwise_is_refused_in_a_line_and_runs_nothing() {
        let interface =
            |number: u32| format!("const unsigned lsmtune_engine_interface = {number};");
        let functions = idle_but(&[]);
        let named = |name: &str, options: &str| {
            let one = interface(1);
            format!(
                "{one}{functions}const unsigned lsmtune_engine_durabilities = 1;
                const char lsmtune_engine_name[] = \"{name}\", lsmtune_engine_release[] = \"1\",
                lsmtune_engine_options[] = \"{options}\";"
            )
        };
        let typed = |fields: &str| named("mine", &format!("{{\\\"size\\\": {{{fields}}}}}"));
        for (source, said) in [
            (
                String::new(),
                "lacks lsmtune_engine_interface; needed: what lsmtune_engine.h lists",
            ),
            (
                interface(2),
                "speaks version 2 of lsmtune_engine.h; this driver speaks 1",
            ),
            (
                interface(1),
                "lacks lsmtune_engine_open, lsmtune_engine_close, lsmtune_engine_put",
            ),
            (named("yours", "{}"), "is of the engine yours, not of mine"),
            (
                named("mine", "[1]"),
                "lsmtune_engine_options: not an object of objects",
            ),
            (typed(""), "size.type: allowed: int, float, bool, enum"),
            (
                typed("\\\"type\\\": \\\"int\\\""),
                "size.default: is missing",
            ),
            (
                typed("\\\"type\\\": \\\"int\\\", \\\"default\\\": 3, \\\"least\\\": 4"),
                "size.default: allowed: a whole number from 4",
            ),
        ] {
            let refused = refusal(&source);
            assert!(refused.contains(said), "{refused} of {source}");
            assert!(refused.starts_with("library /"), "{refused}");
            assert!(!refused.contains('\n'), "{refused}");
        }
        assert_eq!(refusal(&named("mine", "{}")), "");
    }
}
