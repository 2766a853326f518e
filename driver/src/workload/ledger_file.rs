//! A ledger in a file, so that a run on a copy of a database knows what the database must hold.
//!
//! The first line has the format, its version and the CRC-32 of the rest. The rest is one JSON
//! document. A file is either complete or absent: it is written under another name, synced and
//! renamed.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::protocol::{self, KeyFormat, SizeDistribution};

use super::ledger::{KeyState, Ledger};

const FORMAT: &str = "lsmtune-ledger";
const VERSION: u32 = 1;

/// What keys and values were made from, as the workload says. A ledger is of no use for other
/// origins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origins {
    pub key_bytes: usize,
    pub value_bytes: usize,
    pub compression_ratio: f64,
    pub num: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<KeyFormat>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_sizes: Option<SizeDistribution>,
    #[serde(default = "protocol::one", skip_serializing_if = "protocol::is_one")]
    pub databases: usize,
    #[serde(default = "protocol::one", skip_serializing_if = "protocol::is_one")]
    pub column_families: usize,
    /// Sizes of the values of the executed phases, if they are not `value_bytes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub value_sizes: Vec<Option<SizeDistribution>>,
    /// Seed of the load phases and of all values.
    pub load_seed: u64,
    /// Phases that were executed.
    pub phases: usize,
}

/// Why a run cannot use a file as its ledger.
#[derive(Debug, thiserror::Error)]
pub enum LedgerFileError {
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    /// The file is not what [`save_ledger`] wrote.
    #[error("{0}")]
    Damaged(String),
    /// The file belongs to another database, or to a run that noted too few keys.
    #[error("{field}: found {found} in the ledger, {needed} in the request")]
    Other {
        /// What differs.
        field: &'static str,
        /// What the ledger has.
        found: String,
        /// What the run needs.
        needed: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    origins: Origins,
    mask: u64,
    keys: Vec<(u64, Vec<KeyState>)>,
}

/// The text of a file that holds `ledger`.
pub fn ledger_text(origins: &Origins, ledger: &Ledger) -> io::Result<String> {
    let keys = ledger.expectations().into_iter();
    Ok(with_checksum(&serde_json::to_string(&Body {
        origins: origins.clone(),
        mask: ledger.mask(),
        keys: keys.map(|(key, states)| (key, states.to_vec())).collect(),
    })?))
}

/// A file's text around its body.
pub fn with_checksum(body: &str) -> String {
    let crc = crc32fast::hash(body.as_bytes());
    format!("{FORMAT} {VERSION} {crc:08x}\n{body}\n")
}

/// Writes `ledger` to `path`, completely or not at all.
pub fn save_ledger(path: &Path, origins: &Origins, ledger: &Ledger) -> io::Result<()> {
    let text = ledger_text(origins, ledger)?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let written = write_synced(Path::new(&beside), text.as_bytes())
        .and_then(|()| std::fs::rename(&beside, path))
        .and_then(|()| sync_folder(path));
    if written.is_err() {
        // A partial file is of no use, and may not even exist.
        drop(std::fs::remove_file(&beside));
    }
    written
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes a rename in the folder of `path` survive a power failure.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
}

/// Reads the ledger at `path` for a run with `origins` that reads back at least `keys_min` keys.
pub fn load_ledger(
    path: &Path,
    origins: &Origins,
    keys_min: usize,
) -> Result<Ledger, LedgerFileError> {
    read_ledger(&std::fs::read(path)?, origins, keys_min)
}

/// As [`load_ledger`], from the file's bytes.
pub fn read_ledger(
    bytes: &[u8],
    origins: &Origins,
    keys_min: usize,
) -> Result<Ledger, LedgerFileError> {
    let body = read_body(bytes)?;
    same(&body.origins, origins)?;
    let count = body.keys.len();
    if body.mask != 0 && count < keys_min {
        return Err(LedgerFileError::Other {
            field: "verify_keys",
            found: format!("a sample of {count} keys"),
            needed: keys_min.to_string(),
        });
    }
    let (seed, num) = (origins.load_seed, origins.num);
    Ledger::restored(seed, keys_min, num, body.mask, body.keys)
        .ok_or_else(|| damaged("holds keys that are not in its sample"))
}

fn read_body(bytes: &[u8]) -> Result<Body, LedgerFileError> {
    let text = std::str::from_utf8(bytes).map_err(|_| damaged("is not text"))?;
    let (head, body) = text
        .split_once('\n')
        .ok_or_else(|| damaged("has no first line"))?;
    let mut words = head.split(' ');
    if words.next() != Some(FORMAT) {
        return Err(damaged("does not begin like a ledger"));
    }
    let version = words.next().unwrap_or_default();
    if version != VERSION.to_string() {
        let what = format!("is of version {version}; this driver reads {VERSION}");
        return Err(damaged(&what));
    }
    let body = body.strip_suffix('\n').unwrap_or(body);
    let crc = format!("{:08x}", crc32fast::hash(body.as_bytes()));
    if words.next() != Some(&crc) || words.next().is_some() {
        return Err(damaged("is damaged or cut off: its checksum is another"));
    }
    serde_json::from_str(body).map_err(|error| damaged(&format!("cannot be read: {error}")))
}

fn damaged(what: &str) -> LedgerFileError {
    LedgerFileError::Damaged(what.to_owned())
}

/// Checks that keys and values of `needed` are those of `found`.
fn same(found: &Origins, needed: &Origins) -> Result<(), LedgerFileError> {
    let fields = |of: &Origins| {
        [
            ("workload.key_bytes", of.key_bytes.to_string()),
            ("workload.value_bytes", of.value_bytes.to_string()),
            (
                "workload.compression_ratio",
                of.compression_ratio.to_string(),
            ),
            ("workload.num", of.num.to_string()),
            ("workload.keys", json(&of.keys)),
            ("workload.key_sizes", json(&of.key_sizes)),
            ("workload.databases", of.databases.to_string()),
            ("workload.column_families", of.column_families.to_string()),
            ("workload.phases.mix.value_sizes", json(&of.value_sizes)),
            ("load_seed", of.load_seed.to_string()),
            ("prepared.phases", of.phases.to_string()),
        ]
    };
    for ((field, found), (_, needed)) in fields(found).into_iter().zip(fields(needed)) {
        if found != needed {
            return Err(LedgerFileError::Other {
                field,
                found,
                needed,
            });
        }
    }
    Ok(())
}

fn json(value: &impl Serialize) -> String {
    // A value of words and numbers can always be written.
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Version;
    use proptest::prelude::*;

    fn origins() -> Origins {
        Origins {
            key_bytes: 16,
            value_bytes: 100,
            compression_ratio: 0.3,
            num: 1_000_000,
            keys: None,
            key_sizes: None,
            databases: 1,
            column_families: 1,
            value_sizes: Vec::new(),
            load_seed: u64::MAX,
            phases: 2,
        }
    }

    /// A ledger of `keys` written keys, every third of them deleted again.
    fn ledger(keys: u64) -> Ledger {
        let mut ledger = Ledger::new(origins().load_seed, 1000, origins().num);
        let mut thread = ledger.thread();
        for key in 0..keys {
            let state = KeyState::Written(Version::new(1, 2, key));
            thread.note(
                key,
                if key % 3 == 0 {
                    KeyState::Deleted
                } else {
                    state
                },
            );
        }
        ledger.add_phase(vec![thread]);
        ledger
    }

    fn saved(ledger: &Ledger) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        save_ledger(&path, &origins(), ledger).unwrap();
        (folder, path)
    }

    fn why(path: &Path) -> String {
        match load_ledger(path, &origins(), 1000) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("loaded"),
        }
    }

    #[test]
    fn a_loaded_ledger_says_and_goes_on_as_the_saved_one() {
        for keys in [0, 1, 900, 300_000] {
            let mut before = ledger(keys);
            let (folder, path) = saved(&before);
            let mut after = load_ledger(&path, &origins(), 1000).unwrap();
            for _ in 0..2 {
                assert_eq!(after.expectations(), before.expectations());
                let keys = |ledger: &Ledger| ledger.estimate(|_, _| 1);
                assert_eq!(keys(&after), keys(&before));
                for ledger in [&mut before, &mut after] {
                    let mut thread = ledger.thread();
                    (0..50_000).for_each(|key| thread.note(key, KeyState::Deleted));
                    ledger.add_phase(vec![thread]);
                }
            }
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
            assert!(std::fs::metadata(&path).unwrap().len() < 2_000_000);
        }
    }

    #[test]
    fn another_workload_is_named() {
        let (_folder, path) = saved(&ledger(100));
        let mut other = origins();
        other.value_bytes = 200;
        let error = load_ledger(&path, &other, 1000).unwrap_err().to_string();
        assert_eq!(
            error,
            "workload.value_bytes: found 100 in the ledger, 200 in the request"
        );
    }

    #[test]
    fn a_sample_that_is_too_small_is_refused() {
        let (_folder, path) = saved(&ledger(300_000));
        let error = load_ledger(&path, &origins(), 100_000).unwrap_err();
        assert!(error.to_string().starts_with("verify_keys: "), "{error}");
    }

    #[test]
    fn what_is_no_ledger_is_refused_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        assert!(why(&path).contains("No such file"));
        for (text, words) in [
            ("", "no first line"),
            ("{}\n", "does not begin like a ledger"),
            ("lsmtune-ledger 2 00000000\n{}\n", "is of version 2"),
            ("lsmtune-ledger 1 00000000\n{}\n", "checksum"),
        ] {
            std::fs::write(&path, text).unwrap();
            let said = why(&path);
            assert!(said.contains(words) && !said.contains('\n'), "{said}");
        }
    }

    proptest! {
        #[test]
        fn any_cut_or_flipped_bit_is_noticed(at in 0.0..1.0f64, bit in 0..8u32) {
            let (_folder, path) = saved(&ledger(500));
            let whole = std::fs::read(&path).unwrap();
            let at = (whole.len() as f64 * at) as usize;
            // The last byte only ends the line.
            std::fs::write(&path, &whole[..at.min(whole.len() - 2)]).unwrap();
            why(&path);
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << bit;
            std::fs::write(&path, &flipped).unwrap();
            prop_assert!(load_ledger(&path, &origins(), 1000).is_err() || flipped == whole);
        }
    }
}
