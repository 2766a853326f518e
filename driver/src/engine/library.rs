//! Loads an engine's shared library and looks up its functions.

use std::ffi::{c_char, CStr, CString};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::{EngineError, Result};

/// Declares a table of C function pointers. A field has the name of its symbol without the prefix
/// that all symbols of the library have. What the table `includes` counts as its own.
///
/// `load(library, prefix, missing)` returns the table. If `library` lacks required symbols, it adds
/// these to `missing` and returns `None`. Symbols under `optional` become `Option<fn>`.
macro_rules! c_api {
    (
        $(#[$meta:meta])*
        pub struct $table:ident {
            $( includes $part:ident: $included:ident; )?
            required { $( fn $name:ident($($argument:ty),* $(,)?) $(-> $returned:ty)?; )* }
            optional { $( fn $maybe:ident($($maybe_argument:ty),* $(,)?) $(-> $maybe_returned:ty)?; )* }
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        #[allow(non_snake_case)] // the engines' own spelling
        pub struct $table {
            $( $part: $included, )?
            $( pub $name: unsafe extern "C" fn($($argument),*) $(-> $returned)?, )*
            $( pub $maybe: Option<unsafe extern "C" fn($($maybe_argument),*) $(-> $maybe_returned)?>, )*
        }

        $( impl std::ops::Deref for $table {
            type Target = $included;

            #[inline]
            fn deref(&self) -> &$included {
                &self.$part
            }
        } )?

        impl $table {
            /// Looks every symbol up, and adds the required ones that `library` lacks to `missing`.
            #[allow(non_snake_case)]
            pub fn load(
                library: &'static libloading::Library,
                prefix: &str,
                missing: &mut Vec<String>,
            ) -> Option<Self> {
                $( let $part = $included::load(library, prefix, missing); )?
                $( let $name = $crate::engine::library::required(
                    library, format!("{prefix}{}", stringify!($name)), missing,
                ); )*
                Some(Self {
                    $( $part: $part?, )?
                    // SAFETY: the symbol was found; its type is that of the engine's published C
                    // header, and the library stays loaded for ever, so the pointer stays valid.
                    $( $name: unsafe { std::mem::transmute::<
                        *const (),
                        unsafe extern "C" fn($($argument),*) $(-> $returned)?,
                    >($name?) }, )*
                    // SAFETY: as above.
                    $( $maybe: $crate::engine::library::symbol(
                        library, &format!("{prefix}{}", stringify!($maybe)),
                    ).map(
                        |address| unsafe { std::mem::transmute::<
                            *const (),
                            unsafe extern "C" fn($($maybe_argument),*) $(-> $maybe_returned)?,
                        >(address) },
                    ), )*
                })
            }
        }
    };
}
pub(super) use c_api;

/// Declares types that exist only behind pointers.
macro_rules! opaque {
    ($($name:ident),* $(,)?) => { $(
        /// A type of the engine, only ever seen behind a pointer.
        #[repr(C)]
        #[derive(Debug)]
        pub struct $name { _private: [u8; 0] }
    )* };
}
pub(super) use opaque;

/// The address of `name` in `library`, if it exports one.
pub(super) fn symbol(library: &'static libloading::Library, name: &str) -> Option<*const ()> {
    // SAFETY: only the address is taken here; the code that makes a function of it says why that is
    // sound.
    let symbol = unsafe { library.get::<*const ()>(name) }.ok()?;
    let address = *symbol;
    (!address.is_null()).then_some(address)
}

/// The address of `name` in `library`; adds the name to `missing` if there is none.
pub(super) fn required(
    library: &'static libloading::Library,
    name: String,
    missing: &mut Vec<String>,
) -> Option<*const ()> {
    let address = symbol(library, &name);
    if address.is_none() {
        missing.push(name);
    }
    address
}

/// Loads the library of `engine` at `path`, and looks up the functions of a table by its `load`.
/// Both stay for ever.
pub(super) fn functions<Api>(
    engine: &str,
    path: Option<&Path>,
    load: impl FnOnce(&'static libloading::Library, &str, &mut Vec<String>) -> Option<Api>,
) -> Result<&'static Api> {
    let (library, mut missing) = (open(engine, path)?, Vec::new());
    match load(library, &format!("{engine}_"), &mut missing) {
        Some(api) => Ok(Box::leak(Box::new(api))),
        None => Err(lacks(engine, path.unwrap_or(Path::new("")), &missing)),
    }
}

/// Loads the shared library at `path` for the engine called `engine`, and keeps it loaded.
///
/// The library is leaked on purpose. Engines leave background threads and thread-local destructors
/// behind. After an unload these would run code that is no longer mapped.
///
/// `librocksdb.snappy.so` beside `librocksdb.so` takes the place of the Snappy inside it
/// (`preload/snappy`): that of some releases was compiled without optimisation.
pub(super) fn open(engine: &str, path: Option<&Path>) -> Result<&'static libloading::Library> {
    let Some(path) = path else {
        return Err(EngineError::Library(format!(
            "engine {engine} needs a library: none given; needed: the path of its shared library"
        )));
    };
    check_file(engine, path)?;
    open_snappy(path)?;
    // SAFETY: loading runs the initialisers of the library. The user named this library as an
    // engine, and so asked for this.
    match unsafe { libloading::Library::new(path) } {
        Ok(library) => Ok(Box::leak(Box::new(library))),
        Err(error) => Err(EngineError::Library(format!(
            "library {}: cannot be loaded: {}; needed: a shared library of {engine} for this machine",
            path.display(),
            one_line(&cause(&error)),
        ))),
    }
}

/// Loads the Snappy beside the library at `path`, if there is one.
///
/// It is global, and so comes first where the engine's own calls are bound.
fn open_snappy(path: &Path) -> Result<()> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    let beside = path.with_extension("snappy.so");
    if path.extension().is_none_or(|text| text != "so") || !beside.is_file() {
        return Ok(());
    }
    // SAFETY: loading runs the initialisers of the library, those of Rust's runtime. Whoever laid
    // it beside the engine, under its name, asked for this.
    let own = unsafe { Library::open(Some(&beside), RTLD_NOW | RTLD_GLOBAL) }.map_err(|error| {
        EngineError::Library(format!(
            "library {}: cannot be loaded: {}; needed: lsmtune's Snappy for this machine, or no such file",
            beside.display(),
            one_line(&cause(&error)),
        ))
    })?;
    std::mem::forget(own);
    Ok(())
}

/// The error for a library that lacks `missing`. It names the first of these symbols.
pub(super) fn lacks(engine: &str, path: &Path, missing: &[String]) -> EngineError {
    let first = missing[..missing.len().min(3)].join(", ");
    let more = match missing.len().saturating_sub(3) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    EngineError::Library(format!(
        "library {}: not a usable {engine}: lacks {first}{more}; needed: a shared library that exports the C interface of {engine}",
        path.display(),
    ))
}

/// Checks the file first. dlopen's own messages for a file that is absent, or is no library, differ
/// per platform and never say what was needed.
fn check_file(engine: &str, path: &Path) -> Result<()> {
    let needed = format!("needed: a shared library of {engine}");
    let unusable = |what: String| {
        Err(EngineError::Library(format!(
            "library {}: {what}; {needed}",
            path.display()
        )))
    };
    if path.is_dir() {
        return unusable("is a directory".into());
    }
    let mut magic = [0; 4];
    match File::open(path).and_then(|mut file| file.read_exact(&mut magic)) {
        Ok(()) if magic == *b"\x7fELF" => Ok(()),
        Ok(()) => unusable("not a shared library (no ELF header)".into()),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            unusable("not a shared library (no ELF header)".into())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            unusable("no such file".into())
        }
        Err(error) => unusable(format!("cannot be read: {error}")),
    }
}

fn cause(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// `text` with every run of white space as one blank, because messages are one line.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `path` in the form that the engines take.
pub(super) fn path_text(path: &Path) -> Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| EngineError::failed(format!("path {}: contains a NUL byte", path.display())))
}

/// Copies the engine's C string out and frees it with the engine's own `free`.
///
/// # Safety
/// `text` is a NUL-terminated string that `free` releases, and nobody uses it afterwards.
pub(super) unsafe fn take_text(text: *mut c_char, free: impl FnOnce(*mut c_char)) -> String {
    // SAFETY: the caller promises a NUL-terminated string.
    let copied = unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned();
    free(text);
    copied
}

/// The error for an engine's status text. For ENOSPC and EDQUOT, the text contains the operating
/// system's own words. The C interfaces report nothing else.
pub(super) fn status_error(status: &str) -> EngineError {
    let message = one_line(status);
    let full = ["No space left on device", "Disk quota exceeded"]
        .iter()
        .any(|words| message.contains(words));
    if full {
        EngineError::DiskFull(message)
    } else {
        EngineError::failed(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(path: Option<&Path>) -> String {
        match open("rocksdb", path) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("loaded"),
        }
    }

    #[test]
    fn each_reason_why_a_library_cannot_be_loaded_is_one_clear_line() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text.so");
        std::fs::write(&text, "not a library\n").unwrap();
        let empty = folder.path().join("empty.so");
        std::fs::write(&empty, "").unwrap();
        let truncated = folder.path().join("truncated.so");
        std::fs::write(&truncated, b"\x7fELF").unwrap();
        for (path, words) in [
            (folder.path().join("none.so"), "no such file"),
            (folder.path().to_path_buf(), "is a directory"),
            (text, "no ELF header"),
            (empty, "no ELF header"),
            (truncated, "cannot be loaded"),
        ] {
            let said = message(Some(&path));
            assert!(said.contains(words), "{said}");
            assert!(said.contains(path.to_str().unwrap()), "{said}");
            assert!(
                said.contains("needed: a shared library of rocksdb"),
                "{said}"
            );
            assert!(!said.contains('\n'), "{said}");
        }
        assert!(message(None).contains("none given"));
    }

    #[test]
    fn a_failing_disk_is_told_from_a_failing_engine() {
        for (status, kind) in [
            ("IO error: /x/000003.log: Input/output error", "io_error"),
            ("IO error: /x/LOCK: Read-only file system", "io_error"),
            ("IO error: /x/000005.ldb: Too many open files", "engine"),
            ("Corruption: bad block", "engine"),
            (
                "IO error: /x/000003.log: No space left on device",
                "disk_full",
            ),
        ] {
            assert_eq!(
                crate::protocol::ErrorReply::from(&status_error(status)).kind,
                kind
            );
        }
    }

    #[test]
    fn a_full_device_is_told_from_other_failures() {
        let full = "IO error: No space left on device: While appending to file: /x/000007.log";
        assert!(matches!(status_error(full), EngineError::DiskFull(_)));
        let other = status_error("Corruption: bad\n block");
        assert_eq!(other, EngineError::failed("Corruption: bad block"));
    }
}
