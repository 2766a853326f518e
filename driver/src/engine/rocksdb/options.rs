//! Applies options by name, and finds the option at fault when the engine refuses.

use std::path::Path;
use std::sync::OnceLock;

use super::api::{Api, Handle};
use super::block_cache;
use super::nested;
use super::open_database;
use super::option_values::{garbled_number, is_number};
use super::options_file::OptionsFile;
use super::tree::compose;
use crate::engine::nearest::nearest;
use crate::engine::scratch::Scratch;
use crate::engine::{EngineError, Options, Result};

/// Options that make RocksDB keep files outside the database's directory. A run keeps everything in
/// its own directory: it must neither touch nor leave anything outside.
const PATH_OPTIONS: [&str; 4] = ["cf_paths", "db_log_dir", "db_paths", "wal_dir"];

/// What the engine lists by default, once it was asked: how long a database takes to open is
/// measured.
pub type Listed = OnceLock<OptionsFile>;

/// The engine's defaults with `options` applied one name at a time. The error names the option that
/// the engine refuses. To find out why, and what is `listed`, a throw-away database may be made in
/// `parent`.
pub fn apply(
    api: &'static Api,
    options: &Options,
    parent: &Path,
    listed: &Listed,
) -> Result<Handle> {
    let mut applied = Handle::defaults(api);
    // Empty for an option that the engine does not list.
    let default_of = |name: &str| -> Result<String> {
        Ok(known(api, parent, listed)?.value(name).unwrap_or_default())
    };
    for (name, value) in options {
        if PATH_OPTIONS.contains(&name.as_str()) {
            return Err(EngineError::bad_value(
                name,
                value,
                "not an option of a run, which keeps all its files in its own directory",
            ));
        }
        if !plausible(name) {
            return Err(unknown(name, known(api, parent, listed)?));
        }
        if garbled_number(value) && is_number(&default_of(name)?) {
            return Err(EngineError::bad_value(
                name,
                value,
                "a number, with K, M, G or T at most",
            ));
        }
    }
    let mut trees = compose(options)?;
    let capacity = || default_of(block_cache::CAPACITY);
    if let Some(cache) = block_cache::requested(&mut trees, capacity)? {
        cache.set(api, &applied)?;
    }
    for (root, tree) in trees {
        applied = match applied.with(&tree.assignment(&root)) {
            Ok(changed) => changed,
            Err(status) => {
                let written = known(api, parent, listed)?;
                return Err(refused(api, options, &root, &status, written)?);
            }
        };
    }
    Ok(applied)
}

/// Whether `name` can be a name. Anything else could smuggle in a second option.
fn plausible(name: &str) -> bool {
    name.split('.').all(|part| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// Why the engine refused the options below `root`: tries each of them by itself.
fn refused(
    api: &'static Api,
    options: &Options,
    root: &str,
    status: &str,
    written: &OptionsFile,
) -> Result<EngineError> {
    let names = written.names();
    let prefix = format!("{root}.");
    let mut whole = None;
    for (name, value) in options {
        if name != root && !name.starts_with(&prefix) {
            continue;
        }
        for (name, value) in leaves(name, value) {
            let single = Options::from([(name.clone(), value.clone())]);
            let mut trees = compose(&single)?;
            let capacity = || Ok(written.value(block_cache::CAPACITY).unwrap_or_default());
            block_cache::requested(&mut trees, capacity)?;
            let text: Vec<String> = trees
                .iter()
                .map(|(root, tree)| tree.assignment(root))
                .collect();
            if let Err(status) = Handle::defaults(api).with(&text.join(";")) {
                return Ok(if names.contains(&name) {
                    EngineError::bad_value(&name, &value, &allowed(written, &name, &status))
                } else if object(&names, &name) {
                    EngineError::bad_value(root, &value, &allowed(written, root, &status))
                } else {
                    unknown(&name, written)
                });
            }
            whole = Some((name, value));
        }
    }
    // The engine accepts each of them alone, so it refuses the combination.
    let (name, value) = whole.unwrap_or_else(|| (root.to_owned(), String::new()));
    Ok(EngineError::bad_value(
        &name,
        &value,
        &format!("other values together; the engine says: {status}"),
    ))
}

/// An option and, for a value in braces, each option inside it, down to plain values.
fn leaves(name: &str, value: &str) -> Vec<(String, String)> {
    match nested::split(value) {
        Some(parts) if !parts.is_empty() => parts
            .into_iter()
            .flat_map(|(part, value)| leaves(&format!("{name}.{part}"), value))
            .collect(),
        _ => vec![(name.to_owned(), value.to_owned())],
    }
}

/// Whether `name` is inside an option whose parts the engine does not list, such as an object.
fn object(names: &[String], name: &str) -> bool {
    let Some((head, _)) = name.rsplit_once('.') else {
        return false;
    };
    let prefix = format!("{head}.");
    names.iter().any(|known| known == head) && !names.iter().any(|known| known.starts_with(&prefix))
}

/// What a value must look like, judged from the engine's default value.
fn allowed(written: &OptionsFile, name: &str, status: &str) -> String {
    let Some(default) = written.value(name) else {
        return format!("what the engine can parse; it says: {status}");
    };
    let kind = if default == "true" || default == "false" {
        "true or false".to_owned()
    } else if default.parse::<i128>().is_ok() {
        format!("an integer such as {default}")
    } else if default.parse::<f64>().is_ok() {
        format!("a number such as {default}")
    } else if default.starts_with('{') {
        "{name=value;...} of its own options".to_owned()
    } else {
        format!("values such as {default}")
    };
    format!("{kind}; the engine says: {status}")
}

/// What the engine lists when it opens a database with its defaults.
pub fn known<'a>(api: &'static Api, parent: &Path, listed: &'a Listed) -> Result<&'a OptionsFile> {
    if let Some(file) = listed.get() {
        return Ok(file);
    }
    let scratch = Scratch::inside(parent)?;
    let directory = scratch.database("defaults");
    drop(open_database(api, &directory, &Handle::defaults(api))?);
    let file = OptionsFile::newest_in(&directory)
        .ok_or_else(|| EngineError::failed("the engine wrote no OPTIONS file"))?;
    Ok(listed.get_or_init(|| file))
}

/// Why a database could not be opened with `options`, although each option could be parsed.
///
/// This is found by trying, not from the status text. If a throw-away database opens with the same
/// options, the directory is at fault, and `status` stands. Otherwise options are left out as long
/// as opening still fails; the error names those that remain.
pub fn unusable(
    api: &'static Api,
    options: &Options,
    status: EngineError,
    parent: &Path,
    listed: &Listed,
) -> EngineError {
    let Ok(scratch) = Scratch::inside(parent) else {
        return status;
    };
    let mut count = 0_u32;
    let mut refusal = |options: &Options| -> Option<EngineError> {
        count += 1;
        let directory = scratch.database(&count.to_string());
        let handle = apply(api, options, parent, listed).ok()?;
        open_database(api, &directory, &handle).err()
    };
    if refusal(&Options::new()).is_some() {
        return status;
    }
    let Some(mut why) = refusal(options) else {
        return status;
    };
    let mut guilty = options.clone();
    for name in options.keys() {
        let mut fewer = guilty.clone();
        fewer.remove(name);
        if let Some(refused) = refusal(&fewer) {
            guilty = fewer;
            why = refused;
        }
    }
    let Some((name, value)) = guilty.pop_first() else {
        return status;
    };
    let others: String = guilty
        .iter()
        .map(|(name, value)| format!(" with {name}={value}"))
        .collect();
    EngineError::bad_value(
        &name,
        &value,
        &format!("another value{others}; the engine says: {why}"),
    )
}

fn unknown(name: &str, written: &OptionsFile) -> EngineError {
    let names = written.names();
    EngineError::UnknownOption {
        name: name.to_owned(),
        nearest: nearest(name, names.iter().map(String::as_str)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_smuggle_a_second_option_in() {
        assert!(plausible("block_based_table_factory.block_size"));
        for name in ["a=1;b", "a b", "", ".", "a.", "a;b", "a}"] {
            assert!(!plausible(name), "{name}");
        }
    }
}
