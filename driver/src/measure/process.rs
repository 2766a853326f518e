//! What this process has used: CPU time, resident memory, bytes read; and the size of a folder.

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

/// Bytes of all files below `directory`. Files that vanish meanwhile are skipped, because engines
/// delete obsolete ones in the background.
pub fn directory_bytes(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some(if metadata.is_dir() {
                directory_bytes(&entry.path())
            } else {
                metadata.len()
            })
        })
        .sum()
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
    fn the_peak_sees_memory_that_is_gone() {
        ProcessCounters::reset_rss_peak();
        let before = ProcessCounters::rss_bytes();
        drop(std::hint::black_box(vec![1u8; 64 << 20]));
        assert!(ProcessCounters::rss_bytes_max() >= before + (60 << 20));
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
