//! Column families of an open database, all with the same options.

use std::ffi::{c_char, c_int, CStr, CString};
use std::path::Path;
use std::ptr::{null_mut, NonNull};

use super::api::{Api, ColumnFamily, Handle};
use super::stuck;
use crate::engine::c_store::{DbHandle, OpenDb};
use crate::engine::Result;

/// The handles of a database's families; none if it was opened without families.
#[derive(Debug)]
pub struct Families {
    api: &'static Api,
    handles: Vec<NonNull<ColumnFamily>>,
}

// SAFETY: a handle is only a name for the engine, which does its own locking. The handles are
// destroyed only when nobody borrows the database any more.
unsafe impl Send for Families {}
// SAFETY: as above.
unsafe impl Sync for Families {}

impl Families {
    /// The families of a database that was opened without families.
    pub fn none(api: &'static Api) -> Self {
        let handles = Vec::new();
        Families { api, handles }
    }

    /// The handle of each family, or one null for the default family of a database that was opened
    /// without families.
    pub fn raw(&self) -> Vec<*mut ColumnFamily> {
        if self.handles.is_empty() {
            return vec![null_mut()];
        }
        self.handles.iter().map(|handle| handle.as_ptr()).collect()
    }

    /// The sum of a property over all families; `None` if the engine does not have it.
    pub fn number(&self, handle: DbHandle, property: &CStr) -> Option<u64> {
        if self.handles.is_empty() {
            return stuck::number(self.api, handle, property);
        }
        let number = |family: &NonNull<ColumnFamily>| {
            let mut value = 0;
            let get = self.api.property_int_cf;
            // SAFETY: database and family are open and the name ends with NUL.
            let status = unsafe {
                let family = family.as_ptr();
                get(handle.get(), family, property.as_ptr(), &raw mut value)
            };
            (status == 0).then_some(value)
        };
        self.handles.iter().map(number).sum()
    }
}

impl Drop for Families {
    fn drop(&mut self) {
        for handle in &self.handles {
            // SAFETY: handed over by the engine, destroyed once, before the database is closed.
            unsafe { (self.api.column_family_handle_destroy)(handle.as_ptr()) }
        }
    }
}

/// Opens or creates the database in `directory` with `count` families: `default`, `family-1` ...
pub fn open(
    api: &'static Api,
    directory: &Path,
    options: &Handle,
    count: usize,
) -> Result<(OpenDb, Families)> {
    options.set_create_if_missing();
    let names = (0..count).map(name).collect::<Vec<_>>();
    let names: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    let each = vec![options.raw.cast_const(); count];
    let mut handles = vec![null_mut(); count];
    let opened = OpenDb::open(api, directory, |path, error| {
        let (options, open, count) = (options.raw, api.open_column_families, count as c_int);
        let (names, each, handles) = (names.as_ptr(), each.as_ptr(), handles.as_mut_ptr());
        // SAFETY: options, path and the three lists of `count` entries are alive; handles are used
        // only if there is no error.
        unsafe {
            (api.options_set_create_missing_column_families)(options, 1);
            open(options, path, count, names, each, handles, error)
        }
    })?;
    let handles = handles.into_iter().filter_map(NonNull::new).collect();
    Ok((opened, Families { api, handles }))
}

fn name(number: usize) -> CString {
    let name = match number {
        0 => "default".to_owned(),
        _ => format!("family-{number}"),
    };
    CString::new(name).unwrap_or_default()
}
