//! What the C interfaces of RocksDB and LevelDB have in common, since RocksDB's began as LevelDB's:
//! functions whose names differ only in their prefix, and what is made of them alone.

use std::ffi::{c_char, c_uchar, c_void, CString};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::null_mut;

use super::c_bytes::{slice, text, Slice};
use super::library::{c_api, opaque, path_text, status_error, take_text};
use super::{Cursor, EngineError, Options, Result};

opaque!(
    Db,
    DbOptions,
    ReadOptions,
    WriteOptions,
    WriteBatch,
    Iterator,
);

c_api! {
    /// Functions of a loaded library. The required ones exist since RocksDB 6 and LevelDB 1.20.
    pub struct StoreApi {
        required {
            fn open(*const DbOptions, *const c_char, *mut *mut c_char) -> *mut Db;
            fn close(*mut Db);
            fn options_create() -> *mut DbOptions;
            fn options_destroy(*mut DbOptions);
            fn options_set_create_if_missing(*mut DbOptions, c_uchar);
            fn readoptions_create() -> *mut ReadOptions;
            fn readoptions_destroy(*mut ReadOptions);
            fn writeoptions_create() -> *mut WriteOptions;
            fn writeoptions_destroy(*mut WriteOptions);
            fn writeoptions_set_sync(*mut WriteOptions, c_uchar);
            fn writebatch_create() -> *mut WriteBatch;
            fn writebatch_destroy(*mut WriteBatch);
            fn writebatch_clear(*mut WriteBatch);
            fn writebatch_put(*mut WriteBatch, *const c_char, usize, *const c_char, usize);
            fn writebatch_delete(*mut WriteBatch, *const c_char, usize);
            fn write(*mut Db, *const WriteOptions, *mut WriteBatch, *mut *mut c_char);
            fn create_iterator(*mut Db, *const ReadOptions) -> *mut Iterator;
            fn iter_destroy(*mut Iterator);
            fn iter_valid(*const Iterator) -> c_uchar;
            fn iter_seek_to_first(*mut Iterator);
            fn iter_seek(*mut Iterator, *const c_char, usize);
            fn iter_next(*mut Iterator);
            fn iter_key(*const Iterator, *mut usize) -> *const c_char;
            fn iter_value(*const Iterator, *mut usize) -> *const c_char;
            fn iter_get_error(*const Iterator, *mut *mut c_char);
            fn property_value(*mut Db, *const c_char) -> *mut c_char;
            fn free(*mut c_void);
        }
        optional {
            // Since RocksDB 10.9; the older functions return the length through memory.
            fn iter_key_slice(*const Iterator) -> Slice;
            fn iter_value_slice(*const Iterator) -> Slice;
        }
    }
}

impl StoreApi {
    /// Copies a C string of the engine and frees it.
    ///
    /// # Safety
    /// `text` came from a function of this library that hands over a `malloc`ed string.
    pub unsafe fn take(&self, text: *mut c_char) -> String {
        // SAFETY: promised by the caller; `free` is what the headers say to free with.
        unsafe { take_text(text, |text| (self.free)(text.cast())) }
    }

    /// What `call` returns. It hands a function of this library the place where that sets an error.
    #[inline]
    pub fn call<T>(&self, call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T> {
        let mut error = null_mut();
        let returned = call(&raw mut error);
        if error.is_null() {
            return Ok(returned);
        }
        // SAFETY: a function of this library has set it.
        Err(status_error(&unsafe { self.take(error) }))
    }

    /// An empty write, which fails if the engine has stopped accepting writes.
    ///
    /// # Safety
    /// The database is open, and `options`, which are destroyed here, are of this library.
    pub unsafe fn write_nothing(&self, db: *mut Db, options: *mut WriteOptions) -> Result<()> {
        // SAFETY: promised by the caller; the batch lives until it is destroyed here.
        unsafe {
            let batch = (self.writebatch_create)();
            let written = self.call(|error| (self.write)(db, options, batch, error));
            (self.writebatch_destroy)(batch);
            (self.writeoptions_destroy)(options);
            written
        }
    }
}

/// `options` for the database in `directory`, which must exist: without the one that refuses
/// existing databases.
pub fn for_existing(directory: &Path, options: &Options) -> Result<Options> {
    // Databases of both engines name their newest manifest in this file. Without this check, both
    // would leave a lock and a log behind before they notice, or make a new database.
    if !directory.join("CURRENT").is_file() {
        return Err(EngineError::failed(format!(
            "{}: holds no database (no file CURRENT)",
            directory.display()
        )));
    }
    let mut options = options.clone();
    options.remove("error_if_exists");
    Ok(options)
}

/// A handle that every thread may use.
#[derive(Debug, Clone, Copy)]
pub struct DbHandle(pub *mut Db);

impl DbHandle {
    pub const fn get(self) -> *mut Db {
        self.0
    }
}

// SAFETY: both headers say that many threads may use a database without locking. It is closed only
// when nobody borrows the `RocksDatabase` or the `LevelDatabase` any more.
unsafe impl Send for DbHandle {}
// SAFETY: as above.
unsafe impl Sync for DbHandle {}

/// An open database. Dropping it closes it.
#[derive(Debug)]
pub struct OpenDb {
    api: &'static StoreApi,
    pub handle: DbHandle,
}

impl OpenDb {
    /// The database that `open` opens at the path of `directory`. An error is the engine's own.
    pub fn open(
        api: &'static StoreApi,
        directory: &Path,
        open: impl FnOnce(*const c_char, *mut *mut c_char) -> *mut Db,
    ) -> Result<Self> {
        let path = path_text(directory)?;
        let handle = DbHandle(api.call(|error| open(path.as_ptr(), error))?);
        Ok(OpenDb { api, handle })
    }

    pub const fn get(&self) -> *mut Db {
        self.handle.get()
    }

    /// The text of a property; `None` if there is none.
    pub fn property(&self, name: &str) -> Option<String> {
        let name = CString::new(name).ok()?;
        // SAFETY: the database is open, and the engine hands over a string or null.
        unsafe {
            let text = (self.api.property_value)(self.get(), name.as_ptr());
            (!text.is_null()).then(|| self.api.take(text))
        }
    }
}

impl Drop for OpenDb {
    fn drop(&mut self) {
        // SAFETY: opened in `open`, and closed only here.
        unsafe { (self.api.close)(self.get()) }
    }
}

/// The engines' iterators read from a snapshot, which they take when they are made.
pub struct StoreCursor<'session> {
    api: &'static StoreApi,
    iterator: *mut Iterator,
    session: PhantomData<&'session ()>,
}

impl StoreCursor<'_> {
    /// Moves `iterator`, and destroys it in the end.
    ///
    /// # Safety
    /// The library of `api` made it for nobody else, and what it reads outlives the cursor.
    #[inline]
    pub const unsafe fn new(api: &'static StoreApi, iterator: *mut Iterator) -> Self {
        StoreCursor {
            api,
            iterator,
            session: PhantomData,
        }
    }
}

impl Cursor for StoreCursor<'_> {
    fn seek_to_first(&mut self) {
        // SAFETY: the iterator is alive.
        unsafe { (self.api.iter_seek_to_first)(self.iterator) }
    }

    fn seek(&mut self, key: &[u8]) {
        // SAFETY: the iterator is alive and copies the key.
        unsafe { (self.api.iter_seek)(self.iterator, text(key), key.len()) }
    }

    #[inline]
    fn next(&mut self) {
        debug_assert!(self.valid(), "next() of a cursor that is not valid");
        // SAFETY: the iterator is alive and, as the caller promises, valid.
        unsafe { (self.api.iter_next)(self.iterator) }
    }

    #[inline]
    fn valid(&self) -> bool {
        // SAFETY: the iterator is alive.
        unsafe { (self.api.iter_valid)(self.iterator) != 0 }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        // SAFETY: the key stays until the iterator moves, which needs a mutable borrow.
        unsafe {
            if let Some(key) = self.api.iter_key_slice {
                return key(self.iterator).bytes();
            }
            let mut length = 0;
            let data = (self.api.iter_key)(self.iterator, &raw mut length);
            slice(data, length)
        }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        // SAFETY: as for the key.
        unsafe {
            if let Some(value) = self.api.iter_value_slice {
                return value(self.iterator).bytes();
            }
            let mut length = 0;
            let data = (self.api.iter_value)(self.iterator, &raw mut length);
            slice(data, length)
        }
    }

    fn status(&self) -> Result<()> {
        let get = self.api.iter_get_error;
        // SAFETY: the iterator is alive.
        self.api.call(|error| unsafe { get(self.iterator, error) })
    }
}

impl Drop for StoreCursor<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody else destroys it, as the maker of this cursor promised.
        unsafe { (self.api.iter_destroy)(self.iterator) }
    }
}
