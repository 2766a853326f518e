//! Full and read-only file systems, on small ones in memory: each fault must be told for what it
//! is, by whatever the driver was doing. Without the right to mount, a test says that it did
//! nothing.

mod conversation;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use conversation::{
    engines, failure, finished, last_phase, load, measure, replace, rocksdb, workload,
    Conversation, Target,
};
use lsmtune_driver::protocol::{Message, Outcome};
use serde_json::{json, Value};
use tempfile::TempDir;

const NUM: u64 = 200_000;

/// A file system of its own, unmounted when dropped.
struct Mounted {
    folder: TempDir,
}

impl Mounted {
    fn new(size: &str) -> Option<Self> {
        Mounted::with(&format!("size={size}"))
    }

    fn with(options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let done = mount(&["-t", "tmpfs", "-o", options, "tmpfs"], folder.path());
        if !done {
            eprintln!("no right to mount: nothing was tested");
        }
        done.then_some(Mounted { folder })
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("db")
    }

    /// Leaves no room for anything but `free` bytes.
    fn fill(&self, free: usize) {
        use std::io::Write;
        let mut ballast = std::fs::File::create(self.folder.path().join("ballast")).unwrap();
        while ballast.write_all(&[1; 4096]).is_ok() {}
        let held = ballast.metadata().unwrap().len();
        ballast
            .set_len(held - u64::try_from(free).unwrap())
            .unwrap();
    }

    fn make_read_only(&self) {
        assert!(mount(&["-o", "remount,ro"], self.folder.path()));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _status = Command::new("umount").arg(self.folder.path()).status();
    }
}

fn mount(arguments: &[&str], place: &Path) -> bool {
    let mut mount = Command::new("mount");
    mount.args(arguments).arg(place).stderr(Stdio::null());
    mount.status().is_ok_and(|status| status.success())
}

fn run(target: &Target, mounted: &Mounted, workload: Value, more: Value) -> Vec<Message> {
    let mut request = json!({"directory": mounted.database()});
    replace(&mut request, &more);
    let mut conversation = Conversation::start(target, workload, request);
    let messages = conversation.messages();
    // Nothing can be unmounted while the process has files open there.
    conversation.child.wait().unwrap();
    messages
}

fn assert_fails(messages: &[Message], expected: Outcome, words: &str, what: &str) {
    let (outcome, message) = failure(messages);
    assert_eq!(outcome, expected, "{what}: {message}");
    assert!(message.contains(words), "{what}: {message}");
    assert!(!message.contains('\n'), "{what}: {message}");
}

const FULL: &str = "No space left on device";

/// The folder of one of several databases is made by lsmtune itself, and its failure was taken for
/// one of the engine (`crashed`).
#[test]
fn a_device_without_room_for_the_folder_of_a_database_is_full() {
    for target in engines() {
        // One for the root, one for the folder of the run.
        let Some(mounted) = Mounted::with("nr_inodes=2") else {
            return;
        };
        let mut several = workload(1000, json!([load(1000)]));
        several["databases"] = json!(2);
        let messages = run(&target, &mounted, several, json!({}));
        assert_fails(&messages, Outcome::DiskFull, FULL, target.name);
    }
}

#[test]
fn a_device_that_fills_up_while_the_run_writes_is_full() {
    for target in engines() {
        let options = [
            json!({}),
            json!({"write_buffer_size": "262144"}),
            json!({"write_buffer_size": "67108864"}),
        ];
        for options in options {
            let Some(mounted) = Mounted::new("8m") else {
                return;
            };
            let fill = measure("fillrandom", json!({"operations_per_thread": NUM}));
            let workload = workload(NUM, json!([fill]));
            let messages = run(&target, &mounted, workload, json!({"options": options}));
            let what = format!("{} {options}", target.name);
            assert_fails(&messages, Outcome::DiskFull, FULL, &what);
        }
    }
}

/// Without a log, only flushes and compactions fill the device.
#[test]
fn a_device_that_fills_up_in_the_background_is_full() {
    let rocksdb = rocksdb();
    for write_buffer_size in ["262144", "67108864"] {
        let Some(mounted) = Mounted::new("8m") else {
            return;
        };
        let fill = measure("fillrandom", json!({"operations_per_thread": NUM}));
        let mut workload = workload(NUM, json!([fill]));
        workload["durability"] = json!("none");
        let options = json!({
            "options": {"write_buffer_size": write_buffer_size, "compression": "kNoCompression"},
        });
        let messages = run(&rocksdb, &mounted, workload, options);
        assert_fails(&messages, Outcome::DiskFull, FULL, write_buffer_size);
    }
}

#[test]
fn a_device_that_is_full_from_the_start_is_full() {
    for target in engines() {
        for free in [0, 4096, 16_384] {
            let Some(mounted) = Mounted::new("1m") else {
                return;
            };
            mounted.fill(free);
            let workload = workload(1000, json!([load(1000)]));
            let messages = run(&target, &mounted, workload, json!({}));
            let what = format!("{} {free}", target.name);
            assert_fails(&messages, Outcome::DiskFull, FULL, &what);
        }
    }
}

#[test]
fn a_device_without_room_for_a_folder_is_full() {
    // One inode is that of the file system itself.
    let Some(mounted) = Mounted::with("nr_inodes=1") else {
        return;
    };
    for target in engines() {
        let workload = workload(1000, json!([load(1000)]));
        let messages = run(&target, &mounted, workload, json!({}));
        assert_fails(&messages, Outcome::DiskFull, FULL, target.name);
    }
}

/// By a throw-away database the driver finds out what size a block cache has by default. That there
/// was no room for one was held against the options (`invalid`).
#[test]
fn a_device_without_room_for_a_throw_away_database_is_full() {
    // One inode for the root, one for the folder of the run.
    let Some(mounted) = Mounted::with("nr_inodes=2") else {
        return;
    };
    let shards = json!({"block_based_table_factory.block_cache.num_shard_bits": "2"});
    let more = json!({"directory": mounted.database(), "options": shards});
    let temporary = [("TMPDIR", mounted.folder.path().display().to_string())];
    let workload = workload(1000, json!([load(1000)]));
    let mut run = Conversation::start_in(&rocksdb(), workload, more, &temporary);
    let messages = run.messages();
    run.child.wait().unwrap();
    assert_fails(&messages, Outcome::DiskFull, FULL, "rocksdb");
}

/// A run that fits, and a run that only reads it back.
#[test]
fn a_device_that_is_full_when_the_database_is_opened_again_is_full() {
    for target in engines() {
        let Some(mounted) = Mounted::new("8m") else {
            return;
        };
        let num = 30_000;
        let ledger = mounted.folder.path().join("ledger");
        let phases = || json!([load(num), measure("readrandom", json!({"duration_s": 0.1}))]);
        let saves = json!({"save_ledger": ledger});
        finished(&run(&target, &mounted, workload(num, phases()), saves));
        mounted.fill(0);
        let prepared = json!({"prepared": {"ledger": ledger, "phases": 2}});
        let messages = run(&target, &mounted, workload(num, phases()), prepared);
        assert_fails(&messages, Outcome::DiskFull, FULL, target.name);
    }
}

#[test]
fn a_ledger_for_which_there_is_no_room_is_a_full_device() {
    let rocksdb = rocksdb();
    let Some(mounted) = Mounted::new("1m") else {
        return;
    };
    mounted.fill(8192);
    let place = tempfile::tempdir().unwrap();
    let ledger = mounted.folder.path().join("ledger");
    let more = json!({"directory": place.path().join("db"), "save_ledger": ledger});
    let messages = run(
        &rocksdb,
        &mounted,
        workload(20_000, json!([load(20_000)])),
        more,
    );
    assert_fails(&messages, Outcome::DiskFull, FULL, "ledger");
    let left: Vec<_> = std::fs::read_dir(mounted.folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_folder_that_cannot_be_written_to_is_invalid() {
    for target in engines() {
        let Some(mounted) = Mounted::new("8m") else {
            return;
        };
        let workload = || workload(1000, json!([load(1000)]));
        finished(&run(&target, &mounted, workload(), json!({})));
        mounted.make_read_only();
        // A new folder, an empty one, and one with a database.
        for name in ["new", "db"] {
            let directory = json!({"directory": mounted.folder.path().join(name)});
            let messages = run(&target, &mounted, workload(), directory);
            let what = format!("{} {name}", target.name);
            assert_fails(&messages, Outcome::Invalid, "Read-only file system", &what);
        }
    }
}

/// What a cold start would drop cannot be dropped here, which is said.
#[test]
fn a_file_system_in_memory_is_never_cold() {
    for target in engines() {
        let Some(mounted) = Mounted::new("16m") else {
            return;
        };
        let read = measure("readrandom", json!({"operations_per_thread": 100}));
        let mut workload = workload(1000, json!([load(1000), read]));
        workload["page_cache"] = json!("cold");
        let messages = run(&target, &mounted, workload, json!({}));
        finished(&messages);
        assert_eq!(last_phase(&messages).page_cache_cached_share, Some(1.0));
    }
}
