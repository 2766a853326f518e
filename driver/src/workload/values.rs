//! The values of a workload. The value of a write is a function of its version.

use std::collections::BTreeMap;

use crate::protocol::{Mix, Operation, Phase, Workload};
use crate::random::{mix, Sizes, ValuePool, Version};

/// Makes the hash that draws a value's size independent of the hash that places its window.
const SIZE_SALT: u64 = 0x7661_6c5f_6c65_6e67;

/// The values of every phase of a workload.
#[derive(Debug)]
pub struct Values {
    /// By the largest value that each is for. One for all phases would make the values of a load
    /// depend on the phases after it, which the run that loaded the database did not have.
    pools: BTreeMap<u64, ValuePool>,
    phases: Vec<Vec<ThreadGroup>>,
    /// Of versions that no phase writes.
    default: ThreadGroup,
}

/// Threads of a phase whose value sizes have the same distribution.
#[derive(Debug)]
struct ThreadGroup {
    /// Number of the first thread after the group.
    end: usize,
    sizes: Sizes,
    /// The largest of these sizes, and at least the workload's own.
    largest: u64,
}

impl ThreadGroup {
    fn new(workload: &Workload, end: usize, mix: Option<&Mix>) -> Self {
        let own = workload.value_bytes as u64;
        let sizes = match mix.and_then(|mix| mix.value_sizes.as_ref()) {
            Some(sizes) => Sizes::new(sizes),
            None => Sizes::always(own),
        };
        ThreadGroup {
            end,
            largest: sizes.largest().max(own),
            sizes,
        }
    }
}

impl Values {
    /// The values of `workload` in runs with `load_seed`.
    pub fn new(workload: &Workload, load_seed: u64) -> Self {
        let phases: Vec<Vec<ThreadGroup>> = workload
            .phases
            .iter()
            .map(|phase| groups(workload, phase))
            .collect();
        let default = ThreadGroup::new(workload, usize::MAX, None);
        let seed = mix(load_seed ^ 0x7661_6c75_6573);
        let pool =
            |largest: u64| ValuePool::new(largest as usize, workload.compression_ratio, seed);
        let mut pools = BTreeMap::new();
        for ThreadGroup { largest, .. } in phases.iter().flatten().chain([&default]) {
            pools.entry(*largest).or_insert_with(|| pool(*largest));
        }
        Values {
            pools,
            phases,
            default,
        }
    }

    /// The value of `version`.
    pub fn value(&self, version: Version) -> &[u8] {
        self.of(version.phase(), version.thread()).value(version)
    }

    /// The values of one thread of one phase.
    pub fn of(&self, phase: usize, thread: usize) -> ThreadValues<'_> {
        let groups = self.phases.get(phase).map_or(&[][..], Vec::as_slice);
        let group = groups.iter().find(|group| thread < group.end);
        let group = group.unwrap_or(&self.default);
        ThreadValues {
            pool: &self.pools[&group.largest],
            sizes: &group.sizes,
        }
    }
}

/// The threads of `phase` in the order of their numbers, as in its tasks: its own, the writer of
/// `readwhilewriting`, then those of each companion in turn.
fn groups(workload: &Workload, phase: &Phase) -> Vec<ThreadGroup> {
    let mut end = phase.threads;
    let mut groups = vec![ThreadGroup::new(workload, end, phase.mix.as_ref())];
    if phase.operation == Some(Operation::ReadWhileWriting) {
        end += 1;
        groups.push(ThreadGroup::new(workload, end, None));
    }
    for companion in &phase.companions {
        end += companion.threads;
        groups.push(ThreadGroup::new(workload, end, companion.mix.as_ref()));
    }
    groups
}

/// The values of one thread: what [`Values`] looks up once for all its versions.
#[derive(Debug, Clone, Copy)]
pub struct ThreadValues<'a> {
    pool: &'a ValuePool,
    sizes: &'a Sizes,
}

impl<'a> ThreadValues<'a> {
    /// The value of `version`, which must be this thread's.
    #[inline]
    pub fn value(&self, version: Version) -> &'a [u8] {
        let size = self.sizes.constant();
        let size = size.unwrap_or_else(|| self.sizes.at(mix(version.bits() ^ SIZE_SALT)));
        self.pool.window(version, size as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn workload() -> Workload {
        let mix = |low: u64, high: u64| {
            json!({
                "operations": {"put": 1.0}, "keys": {"distribution": "uniform"}, "records": 10,
                "value_sizes": {"distribution": "uniform", "low": low, "high": high},
            })
        };
        let beside = json!({"name": "beside", "mix": mix(300, 400), "threads": 2});
        serde_json::from_value(json!({
            "key_bytes": 16, "value_bytes": 100, "compression_ratio": 0.5, "num": 10,
            "durability": "wal",
            "phases": [
                {"name": "one", "kind": "load", "operation": "fillseq", "operations": 1},
                {"name": "two", "kind": "measure", "mix": mix(20, 50), "operations": 1,
                 "threads": 2, "companions": [beside]},
                {"name": "three", "kind": "measure", "operation": "readwhilewriting",
                 "operations": 1, "threads": 2, "companions": [beside]},
            ],
        }))
        .unwrap()
    }

    #[test]
    fn sizes_are_those_of_phase_and_thread() {
        let values = Values::new(&workload(), 1);
        let sizes = |phase, thread| -> Vec<usize> {
            let version = |count| Version::new(phase, thread, count);
            (0..500)
                .map(|count| values.value(version(count)).len())
                .collect()
        };
        assert!(sizes(0, 0).iter().all(|size| *size == 100));
        for thread in 0..2 {
            let drawn = sizes(1, thread);
            assert!(drawn.iter().all(|size| (20..=50).contains(size)));
            assert!((20..=50).all(|size| drawn.contains(&size)));
        }
        assert!(sizes(2, 2).iter().all(|size| *size == 100));
        assert!(sizes(2, 3).iter().all(|size| *size >= 300));
        for thread in 2..4 {
            assert!(sizes(1, thread)
                .iter()
                .all(|size| (300..=400).contains(size)));
        }
    }

    #[test]
    fn a_value_is_a_function_of_its_version_and_the_load_seed() {
        let (one, two) = (Values::new(&workload(), 1), Values::new(&workload(), 1));
        let other = Values::new(&workload(), 2);
        for count in 0..100 {
            let version = Version::new(1, 1, count);
            assert_eq!(one.value(version), two.value(version));
            assert_eq!(one.of(1, 1).value(version), one.value(version));
            assert_ne!(one.value(version), other.value(version));
        }
    }

    /// A run on a copy of a loaded database has phases that the load had not. If one of them wrote
    /// larger values, all that had been loaded seemed to be wrong (`data_loss`).
    #[test]
    fn what_a_phase_writes_does_not_depend_on_the_phases_after_it() {
        for value_bytes in [20, 100] {
            let mut whole = workload();
            whole.value_bytes = value_bytes;
            let mut load = whole.clone();
            load.phases.truncate(1);
            let (load, whole) = (Values::new(&load, 1), Values::new(&whole, 1));
            for count in 0..100 {
                let version = Version::new(0, 0, count);
                assert_eq!(load.value(version), whole.value(version), "{version:?}");
            }
        }
    }
}
