//! What this process has used: CPU time, resident memory, bytes read; and the size of a folder.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use rustix::time::{clock_gettime, ClockId};

/// Counters of this process, read from `/proc/self`.
#[derive(Debug, Clone, Copy)]
pub struct ProcessCounters {
    /// User and system CPU seconds of all threads.
    pub cpu_s: f64,
    /// Bytes that read system calls returned; `None` where the kernel does not count them.
    pub read_bytes: Option<u64>,
}

impl ProcessCounters {
    /// Reads the counters.
    pub fn now() -> Self {
        ProcessCounters {
            cpu_s: process_cpu_s(),
            read_bytes: field("/proc/self/io", "rchar:"),
        }
    }

    /// Resident bytes now.
    pub fn rss_bytes() -> u64 {
        let pages = fs::read_to_string("/proc/self/statm")
            .ok()
            .and_then(|statm| statm.split_whitespace().nth(1)?.parse::<u64>().ok());
        pages.unwrap_or(0) * rustix::param::page_size() as u64
    }

    /// Peak resident bytes since the last [`ProcessCounters::reset_rss_peak`] that worked.
    pub fn rss_bytes_max() -> u64 {
        field("/proc/self/status", "VmHWM:").unwrap_or(0) * 1024
    }

    /// Starts a new peak (`proc(5)`: writing 5 to `clear_refs`). If the kernel refuses, the peak
    /// remains that of the whole run, which is an upper bound.
    pub fn reset_rss_peak() {
        let _refused = fs::write("/proc/self/clear_refs", "5");
    }
}

/// User and system CPU seconds of all threads of this process.
pub fn process_cpu_s() -> f64 {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9
}

fn field(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Bytes that the threads with a name of one beginning have passed to write system calls.
#[derive(Debug)]
pub struct ThreadWrites {
    prefix: &'static str,
    before: Option<HashMap<String, u64>>,
}

impl ThreadWrites {
    /// Of the threads of this process whose names begin with `prefix`, counted from now.
    pub fn begin(prefix: &'static str) -> Self {
        let before = written_by_threads(Path::new(OWN_THREADS), prefix);
        ThreadWrites { prefix, before }
    }

    /// Bytes since the last step; `None` where the kernel does not tell. What a thread wrote between
    /// its last step and its end is lost.
    pub fn step(&mut self) -> Option<u64> {
        let now = written_by_threads(Path::new(OWN_THREADS), self.prefix);
        let before = std::mem::replace(&mut self.before, now)?;
        let since = |(thread, bytes): (&String, &u64)| {
            bytes.saturating_sub(before.get(thread).copied().unwrap_or(0))
        };
        self.before.as_ref().map(|now| now.iter().map(since).sum())
    }
}

const OWN_THREADS: &str = "/proc/self/task";

/// What each of `threads` has written, by its number, of those with a name that begins with
/// `prefix`; `None` if that of one is not told (not every kernel, and not to every user).
fn written_by_threads(threads: &Path, prefix: &str) -> Option<HashMap<String, u64>> {
    let mut all = HashMap::new();
    for thread in fs::read_dir(threads).ok()?.flatten() {
        let path = thread.path();
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        if !name.starts_with(prefix) {
            continue;
        }
        match field(path.join("io").to_str()?, "wchar:") {
            Some(bytes) => drop(all.insert(thread.file_name().into_string().ok()?, bytes)),
            None if path.exists() => return None,
            None => {} // it has ended meanwhile
        }
    }
    Some(all)
}

/// Bytes of all files below `directory`. Files that vanish meanwhile are skipped, because engines
/// delete obsolete ones in the background.
pub fn directory_bytes(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => directory_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_move_with_work() {
        let before = ProcessCounters::now();
        let bytes = fs::read("/proc/self/maps").unwrap();
        let mut sum = 0u64;
        for round in 0..20_000_000u64 {
            sum = sum.wrapping_add(round ^ bytes[0] as u64);
        }
        assert_ne!(sum, 1);
        let after = ProcessCounters::now();
        assert!(after.cpu_s > before.cpu_s);
        assert!(after.read_bytes.unwrap() >= before.read_bytes.unwrap() + bytes.len() as u64);
    }

    #[test]
    fn only_what_the_named_threads_wrote_is_counted() {
        let (step, stepped) = std::sync::mpsc::channel();
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let mut writes = ThreadWrites::begin("counted:");
        let write = |bytes: usize| {
            use std::io::Write;
            tempfile::tempfile()
                .unwrap()
                .write_all(&vec![7; bytes])
                .unwrap();
        };
        let thread = std::thread::Builder::new().name("counted:low".into());
        let thread = thread
            .spawn(move || {
                write(1000);
                step.send(()).unwrap();
                wait.recv().unwrap();
                write(200);
                step.send(()).unwrap();
                wait.recv().unwrap();
            })
            .unwrap();
        write(50_000);
        stepped.recv().unwrap();
        assert_eq!(writes.step(), Some(1000));
        assert_eq!(writes.step(), Some(0));
        go_on.send(()).unwrap();
        stepped.recv().unwrap();
        assert_eq!(writes.step(), Some(200));
        go_on.send(()).unwrap();
        thread.join().unwrap();
        assert_eq!(writes.step(), Some(0));
    }

    /// Some kernels do not count, and some sandboxes hide the counters: intervals had 0 bytes.
    #[test]
    fn what_threads_wrote_is_unknown_where_their_counters_cannot_be_read() {
        let threads = tempfile::tempdir().unwrap();
        let written = || written_by_threads(threads.path(), "counted:");
        assert_eq!(written(), Some(HashMap::new()), "no such thread");
        let folder = |number: &str, name: &str| {
            let folder = threads.path().join(number);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("comm"), name).unwrap();
            folder
        };
        folder("7", "another\n");
        let counted = folder("8", "counted:low\n");
        assert_eq!(written(), None);
        fs::write(counted.join("io"), "rchar: 1\nwchar: 23\n").unwrap();
        assert_eq!(written(), Some(HashMap::from([("8".into(), 23)])));
        let nowhere = threads.path().join("none");
        assert_eq!(written_by_threads(&nowhere, "counted:"), None);
    }

    #[test]
    fn the_peak_sees_memory_that_is_gone() {
        let rises = || {
            ProcessCounters::reset_rss_peak();
            let before = ProcessCounters::rss_bytes();
            drop(std::hint::black_box(vec![1u8; 64 << 20]));
            ProcessCounters::rss_bytes_max() >= before + (60 << 20)
        };
        // Other tests of this process give memory back, too, or begin a new peak.
        assert!((0..50).any(|_| rises()));
    }

    #[test]
    fn folders_are_summed_with_their_subfolders() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("inner")).unwrap();
        fs::write(folder.path().join("a"), [0; 10]).unwrap();
        fs::write(folder.path().join("inner/b"), [0; 5]).unwrap();
        assert_eq!(directory_bytes(folder.path()), 15);
        assert_eq!(directory_bytes(&folder.path().join("absent")), 0);
    }
}
