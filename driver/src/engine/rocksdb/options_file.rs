//! The OPTIONS file that RocksDB writes when it opens a database: the options that it really uses.
//! Comparing them with the request shows which options it did not take.
//!
//! The file does not contain the block cache. That is read from the options that RocksDB prints
//! into its LOG.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::nested;
use super::option_values::{part_of_object, same};
use crate::engine::{OptionNotTaken, Options};

/// Options of the table factory have names below this one.
pub const TABLE: &str = "block_based_table_factory";

/// The names of the two kinds of block caches.
pub const LRU: &str = "lru_cache";
/// See [`LRU`].
pub const HYPER_CLOCK: &str = "hyper_clock_cache";

/// A value that leaves the choice to the engine, which then reports its choice.
const ENGINES_CHOICE: (&str, &str) = ("block_based_table_factory.block_cache.num_shard_bits", "-1");

/// The LOG has its database's options in its beginning. To read all of it would be counted as memory
/// that the run took.
const LOG_BYTES_MAX: u64 = 1 << 20;

/// Names that every RocksDB accepts but no OPTIONS file lists.
const UNLISTED: [&str; 2] = [
    "block_based_table_factory",
    "block_based_table_factory.block_cache",
];

/// The parts of an OPTIONS file that concern the default column family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptionsFile {
    /// `rocksdb_version` of `[Version]`.
    pub version: Option<String>,
    /// Every listed option with its value, by full name, including the parts of nested ones.
    pub all: BTreeMap<String, String>,
}

impl OptionsFile {
    /// The newest OPTIONS file in `directory`, with the block cache, which only the LOG beside it
    /// describes. `None` if no file can be read.
    pub fn newest_in(directory: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(newest(directory)?).ok()?;
        let mut file = Self::parse(&text);
        let cache = cache_in_use(directory);
        if !cache.is_empty() {
            file.insert(format!("{TABLE}.block_cache"), nested::join(&cache));
        }
        Some(file)
    }

    /// Reads the text of an OPTIONS file. Ignores sections and lines that do not concern the
    /// default column family.
    pub fn parse(text: &str) -> Self {
        let mut file = Self::default();
        let mut section = "";
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.starts_with('[') {
                section = line;
            } else if let Some((name, value)) = line.split_once('=') {
                file.take(section, name.trim(), unescaped(value.trim()));
            }
        }
        file
    }

    fn take(&mut self, section: &str, name: &str, value: String) {
        match section {
            "[Version]" if name == "rocksdb_version" => self.version = Some(value),
            // No name is in both.
            "[DBOptions]" | "[CFOptions \"default\"]" => self.insert(name.to_owned(), value),
            "[TableOptions/BlockBasedTable \"default\"]" => {
                self.insert(format!("{TABLE}.{name}"), value);
            }
            _ => {}
        }
    }

    fn insert(&mut self, name: String, value: String) {
        for (part, value) in nested::split(&value).unwrap_or_default() {
            self.insert(format!("{name}.{part}"), value.to_owned());
        }
        self.all.insert(name, value);
    }

    /// The value of an option by its full, dotted name. The value of `block_based_table_factory` is
    /// the whole table section.
    pub fn value(&self, name: &str) -> Option<String> {
        if name == TABLE {
            let parts = self.all.iter().filter_map(|(name, value)| {
                let part = name.strip_prefix(TABLE)?.strip_prefix('.')?;
                (!part.contains('.')).then(|| (part.to_owned(), value.clone()))
            });
            let parts: BTreeMap<String, String> = parts.collect();
            return (!parts.is_empty()).then(|| nested::join(&parts));
        }
        if let Some(value) = self.all.get(name) {
            return Some(value.clone());
        }
        let (head, last) = name.rsplit_once('.')?;
        let object = self.all.get(head)?;
        match nested::split(object) {
            Some(_) => None,
            None => part_of_object(object, last),
        }
    }

    /// Every name known to the engine that wrote this file.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.all.keys().cloned().collect();
        names.extend(UNLISTED.map(String::from));
        names.sort();
        names.dedup();
        names
    }
}

/// The file `OPTIONS-NNNNNN` with the greatest number.
fn newest(directory: &Path) -> Option<PathBuf> {
    std::fs::read_dir(directory)
        .ok()?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let number = path.file_name()?.to_str()?.strip_prefix("OPTIONS-")?;
            Some((number.parse::<u64>().ok()?, path))
        })
        .max_by_key(|(number, _)| *number)
        .map(|(_, path)| path)
}

/// RocksDB writes `\#`, `\\` and a few others for characters with a meaning in the file.
fn unescaped(value: &str) -> String {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => plain.push('\n'),
                Some('r') => plain.push('\r'),
                Some(other) => plain.push(other),
                None => plain.push('\\'),
            },
            other => plain.push(other),
        }
    }
    plain
}

/// The parts of the block cache in use, from the LOG of the database in `directory`; empty if there
/// is no LOG.
fn cache_in_use(directory: &Path) -> BTreeMap<String, String> {
    let mut bytes = Vec::new();
    let log = File::open(directory.join("LOG"));
    match log.and_then(|log| log.take(LOG_BYTES_MAX).read_to_end(&mut bytes)) {
        Ok(_) => cache_in_log(&String::from_utf8_lossy(&bytes)),
        Err(_) => BTreeMap::new(),
    }
}

/// As [`cache_in_use`], from the text of the LOG.
pub fn cache_in_log(text: &str) -> BTreeMap<String, String> {
    let mut cache = BTreeMap::new();
    let Some((before, after)) = text.split_once("  block_cache_options:\n") else {
        return cache;
    };
    let kind = before.rsplit_once("block_cache_name: ");
    let kind = kind.map(|(_, kind)| kind.trim());
    let hyper_clock = kind.is_some_and(|kind| kind.ends_with("HyperClockCache"));
    let id = if hyper_clock { HYPER_CLOCK } else { LRU };
    cache.insert("id".to_owned(), id.to_owned());
    // The options of the cache are indented deeper than those of the table.
    for line in after.lines().take_while(|line| line.starts_with("    ")) {
        if let Some((name, value)) = line.split_once(':') {
            let (name, value) = (name.trim(), value.trim());
            let listed = match name {
                "capacity" | "num_shard_bits" => true,
                "high_pri_pool_ratio" | "low_pri_pool_ratio" => !hyper_clock,
                _ => false,
            };
            if listed {
                cache.insert(name.to_owned(), value.to_owned());
            }
        }
    }
    cache
}

/// The requested options whose effective value is different or not known.
pub fn not_taken(requested: &Options, written: Option<&OptionsFile>) -> Vec<OptionNotTaken> {
    requested
        .iter()
        .filter_map(|(name, text)| {
            let effective = written.and_then(|file| file.value(name));
            let taken = effective.as_deref().is_some_and(|effective| {
                same(text, effective) || (name.as_str(), text.as_str()) == ENGINES_CHOICE
            });
            (!taken).then(|| OptionNotTaken {
                name: name.clone(),
                requested: text.clone(),
                effective: effective.filter(|effective| comparable(text, effective)),
            })
        })
        .collect()
}

/// Whether two texts can be compared. A nested value with parts that the file does not list cannot;
/// every other listed value can.
fn comparable(requested: &str, effective: &str) -> bool {
    let (Some(parts), Some(effective_parts)) = (nested::split(requested), nested::split(effective))
    else {
        return true;
    };
    parts
        .iter()
        .all(|(name, _)| effective_parts.iter().any(|(known, _)| known == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(path: &str) -> Option<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../shared/data")
            .join(path);
        std::fs::read_to_string(path).ok()
    }

    const SMALL: &str = "# comment\n[Version]\n  rocksdb_version=7.8.3\n  options_file_version=1.1\n\n\
        [DBOptions]\n  max_open_files=-1\n  listeners={ErrorHandlerListener:ErrorHandlerListener}\n\
        [CFOptions \"default\"]\n  write_buffer_size=67108864\n\
        \x20 compaction_options_universal={size_ratio=1;stop_style=kCompactionStopStyleTotalSize;}\n\
        [TableOptions/BlockBasedTable \"default\"]\n  block_size=4096\n\
        \x20 metadata_cache_options={partition_pinning=kFallback;}\n\
        [CFOptions \"other\"]\n  write_buffer_size=1\n";

    #[test]
    fn values_are_found_by_full_name() {
        let file = OptionsFile::parse(SMALL);
        let value = |name: &str| file.value(name);
        assert_eq!(file.version.as_deref(), Some("7.8.3"));
        assert_eq!(value("write_buffer_size").as_deref(), Some("67108864"));
        assert_eq!(value("max_open_files").as_deref(), Some("-1"));
        assert_eq!(
            value("compaction_options_universal.size_ratio").as_deref(),
            Some("1")
        );
        assert_eq!(
            value("block_based_table_factory.block_size").as_deref(),
            Some("4096")
        );
        let pinning = "block_based_table_factory.metadata_cache_options.partition_pinning";
        assert_eq!(value(pinning).as_deref(), Some("kFallback"));
        assert_eq!(value("block_size"), None);
        assert_eq!(value("nosuch.part"), None);
        assert_eq!(value("write_buffer_size.part"), None);
        let table = value(TABLE).unwrap();
        assert!(table.contains("block_size=4096"), "{table}");
    }

    #[test]
    fn names_are_listed_with_their_parts() {
        let names = OptionsFile::parse(SMALL).names();
        for name in [
            "write_buffer_size",
            "compaction_options_universal",
            "compaction_options_universal.size_ratio",
            "block_based_table_factory",
            "block_based_table_factory.block_cache",
            "block_based_table_factory.metadata_cache_options.partition_pinning",
        ] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
        assert!(!names.iter().any(|name| name.starts_with("listeners.")));
    }

    #[test]
    fn real_files_of_other_versions_are_read() {
        // The files are collected data, which not every checkout has beside it.
        if let Some(text) = shared("peer-output/OPTIONS-000007") {
            let file = OptionsFile::parse(&text);
            assert_eq!(file.version.as_deref(), Some("7.8.3"));
            assert_eq!(
                file.value("block_based_table_factory.filter_policy")
                    .as_deref(),
                Some("bloomfilter:10:false")
            );
            assert_eq!(
                file.value("compaction_options_fifo.age_for_warm")
                    .as_deref(),
                Some("0")
            );
            assert!(file.names().len() > 180, "{}", file.names().len());
        }
        if let Some(text) = shared("rocksdb/OPTIONS-000005") {
            let file = OptionsFile::parse(&text);
            assert_eq!(file.version.as_deref(), Some("5.14.0"));
            assert!(file.value("write_buffer_size").is_some());
        }
    }

    #[test]
    fn the_newest_file_is_the_one_with_the_greatest_number() {
        let folder = tempfile::tempdir().unwrap();
        for (name, version) in [
            ("OPTIONS-000009", "a"),
            ("OPTIONS-000012", "b"),
            ("OPTIONS-x", "c"),
        ] {
            let text = format!("[Version]\nrocksdb_version={version}\n");
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let file = OptionsFile::newest_in(folder.path()).unwrap();
        assert_eq!(file.version.as_deref(), Some("b"));
        assert_eq!(OptionsFile::newest_in(&folder.path().join("none")), None);
    }

    #[test]
    fn escapes_are_taken_off() {
        assert_eq!(unescaped(r"a\#b\\c"), r"a#b\c");
        assert_eq!(unescaped("end\\"), "end\\");
    }

    #[test]
    fn only_what_did_not_take_is_reported() {
        let written = OptionsFile::parse(
            "[DBOptions]\nmax_open_files=20\n[CFOptions \"default\"]\nwrite_buffer_size=4194304\n\
             [TableOptions/BlockBasedTable \"default\"]\nblock_size=4096\n",
        );
        let requested = [
            ("max_open_files", "5"),
            ("write_buffer_size", "4M"),
            ("block_based_table_factory.block_cache", "8M"),
            (
                "block_based_table_factory",
                "{block_size=4K;block_cache=8M}",
            ),
        ]
        .map(|(name, text)| (name.to_owned(), text.to_owned()));
        let reported = not_taken(&Options::from(requested), Some(&written));
        let reported: Vec<_> = reported
            .iter()
            .map(|option| (option.name.as_str(), option.effective.as_deref()))
            .collect();
        assert_eq!(
            reported,
            [
                ("block_based_table_factory", None),
                ("block_based_table_factory.block_cache", None),
                ("max_open_files", Some("20")),
            ]
        );
    }

    #[test]
    fn the_cache_in_use_is_in_the_log() {
        let log =
            "x\n  block_cache: 0x1\n  block_cache_name: LRUCache\n  block_cache_options:\n    \
            capacity : 8388608\n    num_shard_bits : 4\n    memory_allocator : None\n    \
            high_pri_pool_ratio: 0.500\n  block_size: 4096\n";
        let cache = cache_in_log(log);
        let cache: Vec<_> = cache
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        assert_eq!(
            cache,
            [
                ("capacity", "8388608"),
                ("high_pri_pool_ratio", "0.500"),
                ("id", "lru_cache"),
                ("num_shard_bits", "4"),
            ]
        );
        let other = log.replace("LRUCache", "AutoHyperClockCache");
        assert_eq!(cache_in_log(&other)["id"], "hyper_clock_cache");
        assert!(cache_in_log("  block_cache: (nil)\n").is_empty());
    }
}
