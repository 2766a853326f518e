//! Tables that are written in the order of their keys, and that the database takes as they are.
//!
//! This leaves out what makes a load slow: memtables, flushes, and compactions of what was compacted
//! before. (`SstFileWriter` and `IngestExternalFile`: rocksdb/sst_file_writer.h, rocksdb/db.h.)

use std::ffi::c_char;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::api::{Api, EnvOptions, SstFileWriter};
use super::options_file::OptionsFile;
use super::RocksDatabase;
use crate::engine::c_bytes::text;
use crate::engine::library::path_text;
use crate::engine::scratch::Scratch;
use crate::engine::{Database, PutEntry, Result, SortedTables};

/// Options with which a compaction leaves the tables that are written here: of one size, in the
/// last level, with nothing that only a compaction knows. With a dictionary, a table is in memory
/// until it is finished, and its size is not known; with several threads it is an estimate.
const NEEDED: [(&str, &str); 12] = [
    ("compaction_style", "kCompactionStyleLevel"),
    ("level_compaction_dynamic_level_bytes", "true"),
    ("disable_auto_compactions", "false"),
    ("target_file_size_multiplier", "1"),
    ("optimize_filters_for_hits", "false"),
    ("comparator", "leveldb.BytewiseComparator"),
    ("table_factory", "BlockBasedTable"),
    ("compression_opts.max_dict_bytes", "0"),
    ("bottommost_compression_opts.max_dict_bytes", "0"),
    ("compression_opts.parallel_threads", "1"),
    ("bottommost_compression_opts.parallel_threads", "1"),
    // Else memtables are written out before they are full.
    ("db_write_buffer_size", "0"),
];

/// The same of options that not every version writes to its OPTIONS file, or only if they are set.
/// Of compressions by level, a compaction takes that of the level's place above the last one.
const NEEDED_IF_WRITTEN: [(&str, &str); 3] = [
    ("enable_blob_files", "false"),
    ("target_file_size_is_upper_bound", "false"),
    ("compression_per_level", ""),
];

/// What such tables are like in a database.
#[derive(Debug)]
pub struct Shape {
    directory: PathBuf,
    /// Bytes of a table.
    table_bytes: u64,
    cycle_bytes: u64,
}

impl Shape {
    /// For the database in `directory`, whose options the engine has `written`; `None` if a
    /// compaction would leave other tables.
    pub fn of(directory: &Path, written: Option<&OptionsFile>) -> Option<Self> {
        let written = written?;
        let is_needed =
            |(name, value): &(&str, &str)| written.value(name).as_deref() == Some(value);
        let is_allowed =
            |(name, value): &(&str, &str)| written.value(name).is_none_or(|found| found == *value);
        if !NEEDED.iter().all(is_needed) || !NEEDED_IF_WRITTEN.iter().all(is_allowed) {
            return None;
        }
        let whole = |name: &str| written.value(name)?.parse::<u64>().ok();
        let memtables = whole("min_write_buffer_number_to_merge")?;
        let flush_bytes = whole("write_buffer_size")?.saturating_mul(memtables).max(1);
        // Level 0 is compacted when it has so many tables, or as many bytes as the next level may.
        let base = whole("max_bytes_for_level_base")?
            .div_ceil(flush_bytes)
            .max(1);
        let tables = whole("level0_file_num_compaction_trigger")?.min(base);
        Some(Shape {
            directory: directory.to_path_buf(),
            table_bytes: whole("target_file_size_base")?,
            cycle_bytes: flush_bytes.saturating_mul(tables),
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
    /// See [`crate::engine::Database::sorted_tables`]. Beside other entries they would not come into
    /// the last level.
    pub(super) fn open_tables(&self) -> Result<Option<Box<dyn SortedTables + '_>>> {
        let is_empty = self.property("rocksdb.estimate-num-keys").as_deref() == Some("0");
        let Some(shape) = self.shape.as_ref().filter(|_| is_empty) else {
            return Ok(None);
        };
        Ok(Some(Box::new(OpenTables {
            database: self,
            shape,
            scratch: Scratch::only_inside(&shape.directory)?,
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
        let (db, ingest) = (database.db.get(), api.ingest_external_file);
        // SAFETY: the database is open, the names live until the call returns, and the options
        // object is destroyed once.
        let taken = unsafe {
            let options = (api.ingestexternalfileoptions_create)();
            (api.ingestexternalfileoptions_set_move_files)(options, 1);
            let taken = api.call(|error| ingest(db, names.as_ptr(), names.len(), options, error));
            (api.ingestexternalfileoptions_destroy)(options);
            taken
        };
        taken.map_err(|error| database.watch.explain(error))
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
            let environment = (api.envoptions_create)();
            Writer {
                tables,
                environment,
                writer: (api.sstfilewriter_create)(environment, database.options.raw),
                is_open: false,
                done: Vec::new(),
            }
        }
    }

    fn api(&self) -> &'static Api {
        self.tables.database.api
    }

    fn open(&mut self) -> Result<()> {
        let number = self.tables.made.fetch_add(1, Ordering::Relaxed);
        let path = self.tables.scratch.database(&format!("{number}.sst"));
        let (name, open) = (path_text(&path)?, self.api().sstfilewriter_open);
        // SAFETY: the writer is alive, and the name lives until the call returns.
        self.api()
            .call(|error| unsafe { open(self.writer, name.as_ptr(), error) })?;
        self.is_open = true;
        self.done.push(path);
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        let finish = self.api().sstfilewriter_finish;
        // SAFETY: the writer is alive, and has an open table.
        self.api()
            .call(|error| unsafe { finish(self.writer, error) })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if !self.is_open {
            self.open()?;
        }
        let (api, writer, mut bytes) = (self.api(), self.writer, 0);
        let (key, key_bytes, value, value_bytes) = (text(key), key.len(), text(value), value.len());
        // SAFETY: the writer is alive, and copies key and value.
        api.call(|error| unsafe {
            (api.sstfilewriter_put)(writer, key, key_bytes, value, value_bytes, error);
            (api.sstfilewriter_file_size)(writer, &raw mut bytes);
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
            (self.api().sstfilewriter_destroy)(self.writer);
            (self.api().envoptions_destroy)(self.environment);
        }
    }
}
