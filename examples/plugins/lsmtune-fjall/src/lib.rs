//! fjall behind `lsmtune_engine.h`: what lsmtune's driver loads with `--engine fjall`.
//!
//! A database is a keyspace with one partition. The defaults are fjall's own, but for its threads:
//! fjall takes one less than there are cores, at most four, and here it is one of each kind.

#![allow(non_upper_case_globals)] // the names are the header's
#![allow(clippy::missing_safety_doc)] // the header says what a caller has to do

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::time::Duration;

use fjall::compaction::{Leveled, SizeTiered, Strategy};
use fjall::{
    AbstractTree, CompressionType, Config, Keyspace, PartitionCreateOptions, PartitionHandle,
    PersistMode, Snapshot, UserKey, UserValue,
};

// --- what the library is

const OPTIONS: &[u8] = concat!(include_str!("options.json"), "\0").as_bytes();

const fn array<const N: usize>(text: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    let mut index = 0;
    while index < N {
        bytes[index] = text[index];
        index += 1;
    }
    bytes
}

#[no_mangle]
pub static lsmtune_engine_interface: u32 = 1;
#[no_mangle]
pub static lsmtune_engine_name: [u8; 6] = *b"fjall\0";
#[no_mangle]
pub static lsmtune_engine_release: [u8; 7] = *b"2.11.2\0";
#[no_mangle]
pub static lsmtune_engine_durabilities: u32 = SYNC | WAL;
#[no_mangle]
pub static lsmtune_engine_options: [u8; OPTIONS.len()] = array(OPTIONS);

const SYNC: u32 = 1;
const WAL: u32 = 2;

// --- what crosses the border

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slice {
    data: *const c_char,
    size: usize,
}

impl Slice {
    fn of(bytes: &[u8]) -> Self {
        Slice {
            data: bytes.as_ptr().cast(),
            size: bytes.len(),
        }
    }

    /// The caller has promised that the bytes stay for the call.
    unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.data.is_null() {
            return &[];
        }
        // SAFETY: promised by the caller.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.size) }
    }
}

#[repr(C)]
pub struct Entry {
    key: Slice,
    value: Slice,
}

type Failure = Box<dyn std::error::Error>;

/// What `work` returns; where it fails, `other`, and its error on one line in `error`.
unsafe fn told<T>(
    error: *mut *mut c_char,
    other: T,
    work: impl FnOnce() -> Result<T, Failure>,
) -> T {
    match work() {
        Ok(value) => value,
        Err(failure) => {
            let line = failure.to_string().replace(['\n', '\0'], " ");
            // SAFETY: the caller gives a place for it.
            unsafe { *error = CString::new(line).unwrap_or_default().into_raw() };
            other
        }
    }
}

/// The operating system's own words where it was the one that refused.
fn plain(failure: fjall::Error) -> Failure {
    match failure {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => {
            Box::new(error)
        }
        other => Box::new(other),
    }
}

// --- databases

pub struct Database {
    partition: PartitionHandle,
    keyspace: Keyspace,
    sync: bool,
    /// fjall does not keep a second process, or a second handle, from opening a keyspace.
    _lock: File,
}

fn open(
    path: &Path,
    options: &[(&str, &str)],
    durability: u32,
    create: bool,
) -> Result<Database, Failure> {
    let place = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    if !create && !path.join("version").is_file() {
        return Err(place(&"holds no database").into());
    }
    match std::fs::create_dir(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(place(&error).into());
        }
        _ => {}
    }
    let lock = File::create(path.join("lsmtune.lock")).map_err(|error| place(&error))?;
    // SAFETY: the descriptor is open.
    if unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        return Err(place(&"is open already").into());
    }
    let (config, partition) = configured(path, options)?;
    let keyspace = config.open().map_err(|error| place(&plain(error)))?;
    let partition = keyspace
        .open_partition("default", partition)
        .map_err(|error| place(&plain(error)))?;
    Ok(Database {
        partition,
        keyspace,
        sync: durability == SYNC,
        _lock: lock,
    })
}

fn configured(
    path: &Path,
    options: &[(&str, &str)],
) -> Result<(Config, PartitionCreateOptions), Failure> {
    let mut config = Config::new(path).compaction_workers(1).flush_workers(1);
    let mut partition = PartitionCreateOptions::default();
    let mut leveled = Leveled::default();
    let mut tiered = None;
    for (name, value) in options {
        match *name {
            "max_memtable_size" => partition = partition.max_memtable_size(value.parse()?),
            "max_write_buffer_size" => config = config.max_write_buffer_size(value.parse()?),
            "cache_size" => config = config.cache_size(value.parse()?),
            "max_journaling_size" => config = config.max_journaling_size(value.parse()?),
            "block_size" => partition = partition.block_size(value.parse()?),
            "bloom_filter_bits" => {
                let bits: u8 = value.parse()?;
                partition = partition.bloom_filter_bits((bits > 0).then_some(bits));
            }
            "compression" => {
                partition = partition.compression(match *value {
                    "none" => CompressionType::None,
                    "miniz" => CompressionType::Miniz(6),
                    _ => CompressionType::Lz4,
                });
            }
            "compaction" => tiered = (*value == "tiered").then(SizeTiered::default),
            "level_ratio" => leveled.level_ratio = value.parse()?,
            "l0_threshold" => leveled.l0_threshold = value.parse()?,
            "target_size" => leveled.target_size = value.parse()?,
            "compaction_workers" => config = config.compaction_workers(value.parse()?),
            "flush_workers" => config = config.flush_workers(value.parse()?),
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let strategy = match tiered {
        Some(mut tiered) => {
            tiered.level_ratio = leveled.level_ratio;
            tiered.base_size = leveled.target_size;
            Strategy::SizeTiered(tiered)
        }
        None => Strategy::Leveled(leveled),
    };
    Ok((config, partition.compaction_strategy(strategy)))
}

#[no_mangle]
pub unsafe extern "C" fn lsmtune_engine_open(
    path: *const c_char,
    names: *const *const c_char,
    values: *const *const c_char,
    count: usize,
    durability: u32,
    create: c_int,
    error: *mut *mut c_char,
) -> *mut Database {
    // SAFETY: the header promises texts, and `count` of each list.
    unsafe {
        told(error, null_mut(), || {
            let text = |at: *const c_char| CStr::from_ptr(at).to_str();
            let options = (0..count)
                .map(|index| Ok((text(*names.add(index))?, text(*values.add(index))?)))
                .collect::<Result<Vec<_>, Failure>>()?;
            let database = open(Path::new(text(path)?), &options, durability, create != 0)?;
            Ok(Box::into_raw(Box::new(database)))
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn lsmtune_engine_close(database: *mut Database) {
    // SAFETY: it is from `lsmtune_engine_open`, and nobody uses it any more.
    drop(unsafe { Box::from_raw(database) });
}

impl Database {
    fn written(&self, done: fjall::Result<()>) -> Result<(), Failure> {
        done.map_err(plain)?;
        if self.sync {
            self.keyspace.persist(PersistMode::SyncAll).map_err(plain)?;
        }
        Ok(())
    }

    /// Writes the memtable out, and waits until nothing is flushed and nothing compacted.
    fn drain(&self, cancelled: impl Fn() -> bool) -> Result<(), Failure> {
        const PAUSE: Duration = Duration::from_millis(5);
        /// A worker that ends a compaction looks for the next one at once.
        const QUIET: u32 = 4;
        self.partition.rotate_memtable().map_err(plain)?;
        let mut known = None;
        let mut quiet = 0;
        while quiet < QUIET && !cancelled() {
            let busy = self.partition.tree.sealed_memtable_count() > 0
                || self.keyspace.active_compactions() > 0;
            let done = Some(self.keyspace.compactions_completed());
            quiet = if busy || done != known { 0 } else { quiet + 1 };
            known = done;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

#[no_mangle]
pub unsafe extern "C" fn lsmtune_engine_put(
    database: *mut Database,
    key: Slice,
    value: Slice,
    error: *mut *mut c_char,
) {
    // SAFETY: the header promises an open database, and bytes that stay for the call.
    unsafe {
        let database = &*database;
        told(error, (), || {
            database.written(database.partition.insert(key.bytes(), value.bytes()))
        });
    }
}

#[no_mangle]
pub unsafe extern "C" fn lsmtune_engine_delete(
    database: *mut Database,
    key: Slice,
    error: *mut *mut c_char,
) {
    // SAFETY: as above.
    unsafe {
        let database = &*database;
        told(error, (), || {
            database.written(database.partition.remove(key.bytes()))
        });
    }
}

#[no_mangle]
pub unsafe extern "C" fn lsmtune_engine_write(
    database: *mut Database,
    entries: *const Entry,
    count: usize,
    error: *mut *mut c_char,
) {
    // SAFETY: as above, and there are `count` entries.
    unsafe {
        let database = &*database;
        told(error, (), || {
            let mut batch = database.keyspace.batch();
            for index in 0..count {
                let Entry { key, value } = &*entries.add(index);
                if value.data.is_null() {
                    batch.remove(&database.partition, key.bytes());
                } else {
                    batch.insert(&database.partition, key.bytes(), value.bytes());
                }
            }
            database.written(batch.commit())
        });
    }
}

#[no_mangle]
pub unsafe extern "C" fn lsmtune_engine_get(
    database: *mut Database,
    key: Slice,
    read: unsafe extern "C" fn(*mut c_void, Slice),
    context: *mut c_void,
    error: *mut *mut c_char,
) -> c_int {
    // SAFETY: as above; `read` takes `context`.
    unsafe {
        let database = &*database;
        told(error, 0, || {
            let Some(value) = database.partition.get(key.bytes()).map_err(plain)? else {
                return Ok(0);
            };
            read(context, Slice::of(&value));
            Ok(1)
        })
    }
}

// --- cursors

type Entries = Box<dyn Iterator<Item = fjall::Result<(UserKey, UserValue)>>>;

pub struct Cursor {
    snapshot: Snapshot,
    entries: Option<Entries>,
    here: Option<(UserKey, UserValue)>,
}

impl Cursor {
    fn next(&mut self) -> Result<bool, Failure> {
        let next = self.entries.as_mut().and_then(Iterator::next);
        self.here = next.transpose().map_err(plain)?;
        Ok(self.here.is_some())
    }

    fn say(&self, key_at: *mut Slice, value_at: *mut Slice) -> c_int {
        let Some((key, value)) = &self.here else {
            return 0;
        };
        // SAFETY: the caller gives two places; the bytes stay until the cursor moves.
        unsafe {
            *key_at = Slice::of(key);
            *value_at = Slice::of(value);
        }
        1
    }
}

#[no_mangle]
pub unsafe extern "C" fn lsmtune_engine_cursor(
    database: *mut Database,
    _error: *mut *mut c_char,
) -> *mut Cursor {
    // SAFETY: the header promises an open database.
    let database = unsafe { &*database };
    // `PartitionHandle::snapshot` is of the newest sequence number, of whose batch it may see half.
    let snapshot = database.partition.snapshot_at(database.keyspace.instant());
    Box::into_raw(Box::new(Cursor {
        snapshot,
        entries: None,
        here: None,
    }))
}

#[no_mangle]
pub unsafe extern "C" fn lsmtune_engine_cursor_close(cursor: *mut Cursor) {
    // SAFETY: it is from `lsmtune_engine_cursor`, and nobody uses it any more.
    drop(unsafe { Box::from_raw(cursor) });
}

#[no_mangle]
pub unsafe extern "C" fn lsmtune_engine_cursor_seek(
    cursor: *mut Cursor,
    from: Slice,
    key: *mut Slice,
    value: *mut Slice,
    error: *mut *mut c_char,
) -> c_int {
    // SAFETY: one thread uses the cursor; `from` stays for the call.
    unsafe {
        let cursor = &mut *cursor;
        told(error, 0, || {
            let found = cursor.snapshot.range(from.bytes()..);
            cursor.entries = Some(Box::new(found.map(|entry| entry.map_err(Into::into))));
            cursor.next()?;
            Ok(cursor.say(key, value))
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn lsmtune_engine_cursor_next(
    cursor: *mut Cursor,
    key: *mut Slice,
    value: *mut Slice,
    error: *mut *mut c_char,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let cursor = &mut *cursor;
        told(error, 0, || {
            cursor.next()?;
            Ok(cursor.say(key, value))
        })
    }
}

// --- the rest

#[no_mangle]
pub unsafe extern "C" fn lsmtune_engine_drain(
    database: *mut Database,
    cancelled: unsafe extern "C" fn(*mut c_void) -> c_int,
    context: *mut c_void,
    error: *mut *mut c_char,
) {
    // SAFETY: the header promises an open database, and that `cancelled` takes `context`.
    unsafe {
        let database = &*database;
        told(error, (), || database.drain(|| cancelled(context) != 0));
    }
}

#[no_mangle]
pub unsafe extern "C" fn lsmtune_engine_stats(database: *mut Database) -> *mut c_char {
    // SAFETY: as above.
    let Database {
        partition,
        keyspace,
        ..
    } = unsafe { &*database };
    let figures = [
        ("flushes", keyspace.flushes_completed() as u64),
        ("compactions", keyspace.compactions_completed() as u64),
        (
            "compacting_us",
            u64::try_from(keyspace.time_compacting().as_micros()).unwrap_or(u64::MAX),
        ),
        ("segments", partition.segment_count() as u64),
        ("journals", keyspace.journal_count() as u64),
        ("write_buffer_bytes", keyspace.write_buffer_size()),
        ("disk_bytes", keyspace.disk_space()),
    ];
    let lines: String = figures
        .iter()
        .map(|(name, figure)| format!("{name}={figure}\n"))
        .collect();
    CString::new(lines).map_or(null_mut(), CString::into_raw)
}

#[no_mangle]
pub unsafe extern "C" fn lsmtune_engine_free(text: *mut c_char) {
    if text.cast_const() != null() {
        // SAFETY: every text that is handed out was made by `CString::into_raw`.
        drop(unsafe { CString::from_raw(text) });
    }
}
