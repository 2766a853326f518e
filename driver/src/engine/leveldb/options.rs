//! LevelDB's options by name: one per setter of `leveldb/c.h`.
//!
//! LevelDB does not report the values that it uses, and it silently clips some of them to a range
//! (`SanitizeOptions` in its `db_impl.cc`). The driver refuses a value that LevelDB would clip.

use std::ffi::c_int;
use std::ops::RangeInclusive;
use std::ptr::null_mut;

use super::api::{Api, Cache, FilterPolicy};
use crate::engine::c_store::DbOptions;
use crate::engine::nearest::nearest;
use crate::engine::{EngineError, Options, Result};

/// Every option with LevelDB's default (`leveldb/options.h`; that of the cache is in `db_impl.cc`).
pub const DEFAULTS: [(&str, &str); 11] = [
    ("block_restart_interval", "16"),
    ("block_size", "4096"),
    ("cache_size", "8388608"),
    ("compression", "snappy"),
    ("create_if_missing", "true"),
    ("error_if_exists", "false"),
    ("filter_bits", "0"),
    ("max_file_size", "2097152"),
    ("max_open_files", "1000"),
    ("paranoid_checks", "false"),
    ("write_buffer_size", "4194304"),
];

const KIB: i64 = 1 << 10;
const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;
const INT_MAX: i64 = i32::MAX as i64;

/// An options object, with the cache and the filter policy of a database that is opened with it.
#[derive(Debug)]
pub struct Handle {
    api: &'static Api,
    pub raw: *mut DbOptions,
    cache: *mut Cache,
    filter: *mut FilterPolicy,
}

impl Handle {
    /// LevelDB's defaults with `options` applied; missing databases are created.
    pub fn new(api: &'static Api, options: &Options) -> Result<Self> {
        // SAFETY: no arguments; the object is destroyed once, in `drop`.
        let raw = unsafe { (api.options_create)() };
        let mut handle = Self {
            api,
            raw,
            cache: null_mut(),
            filter: null_mut(),
        };
        for (name, value) in options {
            handle.set(name, value)?;
        }
        // SAFETY: the object is alive.
        unsafe { (api.options_set_create_if_missing)(raw, 1) };
        Ok(handle)
    }

    fn set(&mut self, name: &str, text: &str) -> Result<()> {
        let (api, raw) = (self.api, self.raw);
        let int = |range| integer::<c_int>(name, text, range);
        let size = |range| integer::<usize>(name, text, range);
        // SAFETY: the options object is alive, and the values are ones that LevelDB takes.
        unsafe {
            match name {
                "block_restart_interval" => {
                    (api.options_set_block_restart_interval)(raw, int(1..=INT_MAX)?);
                }
                "block_size" => (api.options_set_block_size)(raw, size(KIB..=4 * MIB)?),
                "cache_size" => self.set_cache(size(0..=i64::MAX)?),
                "compression" => (api.options_set_compression)(raw, compression(text)?),
                "create_if_missing" if matches!(text, "true" | "1") => {}
                "create_if_missing" => {
                    let allowed = "true, because a run creates its database";
                    return Err(EngineError::bad_value(name, text, allowed));
                }
                "error_if_exists" => {
                    (api.options_set_error_if_exists)(raw, truth(name, text)?.into());
                }
                "filter_bits" => self.set_filter(int(0..=INT_MAX)?),
                "max_file_size" => (api.options_set_max_file_size)(raw, size(MIB..=GIB)?),
                "max_open_files" => {
                    (api.options_set_max_open_files)(raw, int(74..=50_000)?);
                }
                "paranoid_checks" => {
                    (api.options_set_paranoid_checks)(raw, truth(name, text)?.into());
                }
                "write_buffer_size" => {
                    (api.options_set_write_buffer_size)(raw, size(64 * KIB..=GIB)?);
                }
                _ => return Err(unknown(name)),
            }
        }
        Ok(())
    }

    fn set_cache(&mut self, bytes: usize) {
        // SAFETY: the cache is destroyed in `drop`, after the database that uses it was closed.
        unsafe {
            self.cache = (self.api.cache_create_lru)(bytes);
            (self.api.options_set_cache)(self.raw, self.cache);
        }
    }

    fn set_filter(&mut self, bits_per_key: c_int) {
        if bits_per_key == 0 {
            return;
        }
        // SAFETY: as for the cache.
        unsafe {
            self.filter = (self.api.filterpolicy_create_bloom)(bits_per_key);
            (self.api.options_set_filter_policy)(self.raw, self.filter);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by this library and destroyed only here. The database that was opened with
        // these options is closed by now, because it owns this object.
        unsafe {
            (self.api.options_destroy)(self.raw);
            if !self.cache.is_null() {
                (self.api.cache_destroy)(self.cache);
            }
            if !self.filter.is_null() {
                (self.api.filterpolicy_destroy)(self.filter);
            }
        }
    }
}

fn integer<T: TryFrom<i64>>(name: &str, text: &str, range: RangeInclusive<i64>) -> Result<T> {
    text.parse::<i64>()
        .ok()
        .filter(|value| range.contains(value))
        .and_then(|value| T::try_from(value).ok())
        .ok_or_else(|| {
            let allowed = format!("an integer from {} to {}", range.start(), range.end());
            EngineError::bad_value(name, text, &allowed)
        })
}

fn truth(name: &str, text: &str) -> Result<bool> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(EngineError::bad_value(name, text, "true or false")),
    }
}

/// The number of a compression in `leveldb/c.h`.
fn compression(name: &str) -> Result<c_int> {
    match name {
        "none" | "no" => Ok(0),
        "snappy" => Ok(1),
        // Only in libraries newer than 1.23. Older ones write empty blocks if asked for it.
        "zstd" => Ok(2),
        _ => {
            let allowed = "none, snappy, zstd";
            Err(EngineError::bad_value("compression", name, allowed))
        }
    }
}

/// The names of some of these options in db_bench and options.h.
const SYNONYMS: [(&str, &str); 5] = [
    ("block_cache", "cache_size"),
    ("bloom_bits", "filter_bits"),
    ("bloom_filter_bits", "filter_bits"),
    ("filter_policy", "filter_bits"),
    ("open_files", "max_open_files"),
];

fn unknown(name: &str) -> EngineError {
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == name);
    EngineError::UnknownOption {
        name: name.to_owned(),
        nearest: match synonym {
            Some((_, known)) => vec![(*known).to_owned()],
            None => nearest(name, DEFAULTS.iter().map(|(known, _)| *known)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_outside_their_range_are_refused_with_the_range() {
        let within = |text| integer::<c_int>("max_open_files", text, 74..=50_000);
        assert_eq!(within("74"), Ok(74));
        assert_eq!(within("50000"), Ok(50_000));
        for text in ["73", "50001", "", "1.5", "4M", "-1", "99999999999999999999"] {
            let error = within(text).unwrap_err().to_string();
            assert!(
                error.ends_with("allowed: an integer from 74 to 50000"),
                "{error}"
            );
        }
    }

    #[test]
    fn names_are_in_order_for_whoever_reads_them() {
        assert!(DEFAULTS.is_sorted());
    }
}
