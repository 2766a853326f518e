//! Tables that are written in the order of their keys, and that the database takes as they are.
//!
//! This leaves out what makes a load slow: memtables, flushes, and compactions of what was compacted
//! before. (`SstFileWriter` and `IngestExternalFile`: rocksdb/sst_file_writer.h, rocksdb/db.h.)

use std::ffi::c_char;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::api::{Api, EnvOptions, SstFileWriter};
use super::options_file::OptionsFile;
use super::RocksDatabase;
use crate::engine::c_bytes::text;
use crate::engine::library::path_text;
use crate::engine::scratch::Scratch;
use crate::engine::{PutEntry, Result, SortedTables};

/// Options with which a compaction leaves the tables that are written here: of one size, in the
/// last level, with nothing that only a compaction knows.
const NEEDED: [(&str, &str); 7] = [
    ("compaction_style", "kCompactionStyleLevel"),
    ("level_compaction_dynamic_level_bytes", "true"),
    ("disable_auto_compactions", "false"),
    ("target_file_size_multiplier", "1"),
    ("optimize_filters_for_hits", "false"),
    ("comparator", "leveldb.BytewiseComparator"),
    ("table_factory", "BlockBasedTable"),
];

/// Tells the size of the table that is being written.
type FileSize = unsafe extern "C" fn(*mut SstFileWriter, *mut u64);

/// What such tables are like in a database.
#[derive(Debug)]
pub struct Shape {
    directory: PathBuf,
    file_size: FileSize,
    /// Bytes of a table.
    table_bytes: u64,
    cycle_bytes: u64,
}

impl Shape {
    /// For the database in `directory`, whose options the engine has `written`; `None` if a
    /// compaction would leave other tables, or if the library cannot write them.
    pub fn of(api: &Api, directory: &Path, written: Option<&OptionsFile>) -> Option<Self> {
        let written = written?;
        let is = |name: &str, value: &str| written.value(name).as_deref() == Some(value);
        let is_known = NEEDED.iter().all(|(name, value)| is(name, value));
        if !is_known || is("enable_blob_files", "true") {
            return None;
        }
        let whole = |name: &str| written.value(name)?.parse::<u64>().ok();
        let flush_bytes = whole("write_buffer_size")? * whole("min_write_buffer_number_to_merge")?;
        Some(Shape {
            directory: directory.to_path_buf(),
            file_size: api.rocksdb_sstfilewriter_file_size?,
            table_bytes: whole("target_file_size_base")?,
            cycle_bytes: flush_bytes * whole("level0_file_num_compaction_trigger")?,
        })
    }
}

/// The tables of an open database, in a folder that is gone with this.
struct OpenTables<'db> {
    database: &'db RocksDatabase,
    shape: &'db Shape,
    scratch: Scratch,
    made: AtomicUsize,
}

impl RocksDatabase {
    /// See [`crate::engine::Database::sorted_tables`].
    pub(super) fn open_tables(&self) -> Result<Option<Box<dyn SortedTables + '_>>> {
        let Some(shape) = &self.shape else {
            return Ok(None);
        };
        Ok(Some(Box::new(OpenTables {
            database: self,
            shape,
            scratch: Scratch::inside(&shape.directory)?,
            made: AtomicUsize::new(0),
        })))
    }
}

impl SortedTables for OpenTables<'_> {
    fn cycle_bytes(&self) -> u64 {
        self.shape.cycle_bytes
    }

    fn write(&self, fill: &mut dyn FnMut(&mut PutEntry<'_>) -> Result<()>) -> Result<Vec<PathBuf>> {
        let mut writer = Writer::new(self);
        fill(&mut |key, value| writer.put(key, value))?;
        writer.close()?;
        Ok(std::mem::take(&mut writer.done))
    }

    fn take(&self, tables: &[PathBuf]) -> Result<()> {
        let paths = tables.iter().map(|path| path_text(path));
        let paths = paths.collect::<Result<Vec<_>>>()?;
        let names: Vec<*const c_char> = paths.iter().map(|path| path.as_ptr()).collect();
        let (database, api) = (self.database, self.database.api);
        let mut error = null_mut();
        // SAFETY: the database is open, the names live until the call returns, and the options
        // object is destroyed once.
        unsafe {
            let options = (api.rocksdb_ingestexternalfileoptions_create)();
            (api.rocksdb_ingestexternalfileoptions_set_move_files)(options, 1);
            (api.rocksdb_ingest_external_file)(
                database.handle.get(),
                names.as_ptr(),
                names.len(),
                options,
                &raw mut error,
            );
            (api.rocksdb_ingestexternalfileoptions_destroy)(options);
            api.check(error).map_err(|why| database.explain(why))
        }
    }
}

/// Writes the tables of one thread, one after the other.
struct Writer<'a> {
    tables: &'a OpenTables<'a>,
    environment: *mut EnvOptions,
    writer: *mut SstFileWriter,
    /// Whether a table is open.
    is_open: bool,
    done: Vec<PathBuf>,
}

impl<'a> Writer<'a> {
    fn new(tables: &'a OpenTables<'a>) -> Self {
        let (database, api) = (tables.database, tables.database.api);
        // SAFETY: the options live as long as the database, which outlives the writer; both objects
        // are destroyed in `drop`.
        unsafe {
            let environment = (api.rocksdb_envoptions_create)();
            Writer {
                tables,
                environment,
                writer: (api.rocksdb_sstfilewriter_create)(environment, database.options.raw),
                is_open: false,
                done: Vec::new(),
            }
        }
    }

    fn api(&self) -> &'static Api {
        self.tables.database.api
    }

    /// Calls the engine with the writer and a place for its error.
    fn call(&self, call: impl FnOnce(*mut SstFileWriter, *mut *mut c_char)) -> Result<()> {
        let mut error = null_mut();
        call(self.writer, &raw mut error);
        // SAFETY: null, or set by the call.
        unsafe { self.api().check(error) }
    }

    fn open(&mut self) -> Result<()> {
        let number = self.tables.made.fetch_add(1, Ordering::Relaxed);
        let path = self.tables.scratch.database(&format!("{number}.sst"));
        let (name, open) = (path_text(&path)?, self.api().rocksdb_sstfilewriter_open);
        // SAFETY: the writer is alive, and the name lives until the call returns.
        self.call(|writer, error| unsafe { open(writer, name.as_ptr(), error) })?;
        self.is_open = true;
        self.done.push(path);
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        let finish = self.api().rocksdb_sstfilewriter_finish;
        // SAFETY: the writer is alive, and has an open table.
        self.call(|writer, error| unsafe { finish(writer, error) })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if !self.is_open {
            self.open()?;
        }
        let (put, file_size) = (
            self.api().rocksdb_sstfilewriter_put,
            self.tables.shape.file_size,
        );
        let mut bytes = 0;
        // SAFETY: the writer is alive, and copies key and value.
        self.call(|writer, error| unsafe {
            put(
                writer,
                text(key),
                key.len(),
                text(value),
                value.len(),
                error,
            );
            file_size(writer, &raw mut bytes);
        })?;
        if bytes >= self.tables.shape.table_bytes {
            self.close()?;
        }
        Ok(())
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once; an open table is given up.
        unsafe {
            (self.api().rocksdb_sstfilewriter_destroy)(self.writer);
            (self.api().rocksdb_envoptions_destroy)(self.environment);
        }
    }
}
