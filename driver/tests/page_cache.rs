//! A cold start: the kernel has forgotten the database when a measure phase begins, and says so.

mod conversation;

use std::path::Path;

use conversation::{
    background_work, engines, failure, finished, last_phase, leveldb, load, measure, phases,
    replace, verified, workload, Conversation, Target,
};
use lsmtune_driver::measure::{cached_share, drop_cached};
use lsmtune_driver::protocol::{Message, Outcome, PhaseKind};
use serde_json::{json, Value};
use tempfile::TempDir;

const NUM: u64 = 200_000;

/// A folder on a disk, which the system's folder for temporary files need not be.
fn on_disk() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A file system in memory keeps every page, whatever it is asked.
fn in_memory(folder: &Path) -> bool {
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    u64::try_from(rustix::fs::statfs(folder).unwrap().f_type).unwrap() == TMPFS_MAGIC
}

fn run(target: &Target, place: &TempDir, page_cache: &str, more: &[Value]) -> Vec<Message> {
    let mut phases = vec![load(NUM), json!({"name": "settle", "kind": "settle"})];
    phases.extend_from_slice(more);
    let mut workload = workload(NUM, Value::Array(phases));
    replace(&mut workload, &json!({"page_cache": page_cache}));
    let directory = json!({"directory": place.path().join("db")});
    Conversation::start(target, workload, directory).messages()
}

fn read() -> Value {
    measure("readrandom", json!({"operations_per_thread": 1000}))
}

#[test]
fn files_leave_the_cache_with_what_was_not_yet_written() {
    let folder = on_disk();
    assert_eq!(cached_share(folder.path()).unwrap(), None);
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    std::fs::write(folder.path().join("empty"), "").unwrap();
    assert_eq!(cached_share(folder.path()).unwrap(), None);
    std::fs::write(folder.path().join("inner/file"), vec![1; 10 << 20]).unwrap();
    assert_eq!(cached_share(folder.path()).unwrap(), Some(1.0));
    if in_memory(folder.path()) {
        return;
    }
    drop_cached(folder.path()).unwrap();
    assert_eq!(cached_share(folder.path()).unwrap(), Some(0.0));
    // Asking reads nothing in.
    assert_eq!(cached_share(folder.path()).unwrap(), Some(0.0));
    assert_eq!(
        std::fs::read(folder.path().join("inner/file"))
            .unwrap()
            .len(),
        10 << 20
    );
    assert_eq!(cached_share(folder.path()).unwrap(), Some(1.0));
    assert!(cached_share(&folder.path().join("none")).is_err());
}

#[test]
fn the_lock_of_a_database_is_not_opened() {
    let folder = on_disk();
    std::fs::write(folder.path().join("LOCK"), "a page").unwrap();
    assert_eq!(cached_share(folder.path()).unwrap(), None);
}

#[test]
fn a_measure_phase_begins_cold_with_what_its_predecessors_wrote() {
    // LevelDB compacts a file that 100 reads searched in vain, beside them (`seek compaction`): fewer
    // reads change no tree.
    const READS: u64 = 50;
    for target in engines() {
        let name = target.name;
        let place = on_disk();
        let few = measure("readrandom", json!({"operations_per_thread": READS}));
        let mut again = few.clone();
        again["name"] = json!("again");
        let messages = run(&target, &place, "cold", &[few, again]);
        finished(&messages);
        let phases = phases(&messages);
        for phase in &phases {
            let share = phase.page_cache_cached_share;
            if phase.kind != PhaseKind::Measure {
                assert_eq!(share, None);
                continue;
            }
            assert_eq!(phase.keys_found, Some(READS));
            assert!(
                share.unwrap() < 0.02 || in_memory(place.path()),
                "{name}: {share:?}"
            );
        }
        assert_eq!(phases[2].files_per_level, phases[1].files_per_level);
        assert_eq!(verified(&messages).1, 0);
        // The logs of all openings together tell of the load.
        let flushes = messages.iter().filter_map(|message| match message {
            Message::BackgroundWork { flushes, .. } => Some(flushes.unwrap()),
            _ => None,
        });
        assert!(flushes.sum::<u64>() > 0, "{name}");
        assert_eq!(background_work(&messages).flushes, Some(0));
    }
}

#[test]
fn a_warm_start_leaves_the_cache_alone() {
    let target = leveldb();
    let messages = run(&target, &on_disk(), "warm", &[read()]);
    assert_eq!(last_phase(&messages).page_cache_cached_share, None);
    let memory = run(&Target::built_in("memory"), &on_disk(), "cold", &[read()]);
    assert_eq!(last_phase(&memory).page_cache_cached_share, None);
    assert_eq!(last_phase(&memory).keys_found, Some(1000));
}

/// The engine does it by options of its own, which the tuner sets.
#[test]
fn direct_is_not_for_the_driver() {
    let target = leveldb();
    let (outcome, message) = failure(&run(&target, &on_disk(), "direct", &[read()]));
    assert_eq!(outcome, Outcome::Invalid);
    assert!(
        message.contains("`direct`, expected `warm` or `cold`"),
        "{message}"
    );
}
