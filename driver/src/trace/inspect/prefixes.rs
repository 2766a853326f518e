//! Operations by the prefixes of keys.

use std::collections::HashMap;

use super::summary::Prefixes;
use super::Group;

/// The most prefixes that are counted separately.
const PREFIXES_MAX: usize = 4096;
/// The most prefixes in a summary.
const TOP: usize = 256;

type Counts = [u64; 3];

/// Counts by prefix: by a given length, or by the byte after the common prefix of all keys.
#[derive(Debug)]
pub enum PrefixCounts {
    /// By a given length; shorter keys count as a whole.
    Given {
        bytes: usize,
        counts: HashMap<Vec<u8>, Counts>,
        other: Counts,
    },
    /// By the byte after the common prefix; the last counts are of keys that end there.
    Next(Box<[Counts; 257]>),
}

impl Default for PrefixCounts {
    fn default() -> Self {
        PrefixCounts::Next(Box::new([[0; 3]; 257]))
    }
}

impl PrefixCounts {
    /// Counts by the first `bytes` bytes, or by the common prefix and one more byte.
    pub fn new(bytes: Option<usize>) -> Self {
        match bytes {
            Some(bytes) => PrefixCounts::Given {
                bytes,
                counts: HashMap::new(),
                other: [0; 3],
            },
            None => PrefixCounts::default(),
        }
    }

    /// Notes an operation on `key`, whose first `common` bytes all keys have.
    #[inline]
    pub fn note(&mut self, key: &[u8], common: usize, group: Group) {
        let count = match self {
            PrefixCounts::Next(counts) => {
                &mut counts[key.get(common).map_or(256, |byte| usize::from(*byte))]
            }
            PrefixCounts::Given {
                bytes,
                counts,
                other,
            } => {
                let prefix = &key[..key.len().min(*bytes)];
                if !counts.contains_key(prefix) && counts.len() < PREFIXES_MAX {
                    counts.insert(prefix.to_vec(), [0; 3]);
                }
                counts.get_mut(prefix).unwrap_or(other)
            }
        };
        count[group as usize] += 1;
    }

    /// The common prefix became shorter by `cut`: in all keys so far, the first byte of `cut`
    /// follows the new prefix.
    pub fn shorten(&mut self, cut: &[u8]) {
        if let (PrefixCounts::Next(counts), Some(first)) = (self, cut.first()) {
            let sum = counts.iter().fold([0; 3], |sum, count| add(sum, *count));
            counts.fill([0; 3]);
            counts[usize::from(*first)] = sum;
        }
    }

    /// The hottest prefixes; `common` is the prefix of all keys.
    pub fn summary(self, common: &[u8]) -> Prefixes {
        let (prefix_bytes, mut all, mut other) = match self {
            PrefixCounts::Given {
                bytes,
                counts,
                other,
            } => (bytes, counts.into_iter().collect(), other),
            PrefixCounts::Next(counts) => {
                let extend = |byte: usize| {
                    let next = u8::try_from(byte).ok();
                    common.iter().copied().chain(next).collect()
                };
                let numbered = counts.into_iter().enumerate();
                let used = numbered.filter(|(_, count)| *count != [0; 3]);
                let all: Vec<(Vec<u8>, Counts)> =
                    used.map(|(byte, count)| (extend(byte), count)).collect();
                (common.len() + 1, all, [0; 3])
            }
        };
        let exact = other == [0; 3];
        let distinct = all.len() as u64;
        all.sort_unstable_by(|(one, a), (two, b)| {
            let (a, b): (u64, u64) = (a.iter().sum(), b.iter().sum());
            b.cmp(&a).then_with(|| one.cmp(two))
        });
        for (_, count) in all.drain(TOP.min(all.len())..) {
            other = add(other, count);
        }
        Prefixes {
            prefix_bytes: prefix_bytes as u64,
            distinct,
            top: all
                .into_iter()
                .map(|(prefix, [gets, writes, seeks])| (hex(&prefix), gets, writes, seeks))
                .collect(),
            other: other.into(),
            exact,
        }
    }
}

fn add(one: Counts, two: Counts) -> Counts {
    [one[0] + two[0], one[1] + two[1], one[2] + two[2]]
}

/// Hexadecimal, two digits per byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_after_the_common_prefix_is_counted_however_late_it_is_known() {
        let mut counts = PrefixCounts::new(None);
        counts.note(b"user12", 6, Group::Get);
        counts.shorten(b"2");
        counts.note(b"user13", 5, Group::Get);
        counts.shorten(b"1");
        counts.note(b"user24", 4, Group::Write);
        counts.note(b"user", 4, Group::Seek);
        let summary = counts.summary(b"user");
        let row = |hex: &str, gets, writes, seeks| (hex.to_owned(), gets, writes, seeks);
        assert_eq!(
            summary.top,
            [
                row("7573657231", 2, 0, 0),
                row("75736572", 0, 0, 1),
                row("7573657232", 0, 1, 0)
            ]
        );
        assert!(summary.exact && summary.prefix_bytes == 5);
    }

    #[test]
    fn too_many_prefixes_are_counted_together() {
        let mut counts = PrefixCounts::new(Some(4));
        for number in 0..10_000u32 {
            counts.note(&number.to_be_bytes(), 0, Group::Write);
        }
        let summary = counts.summary(b"");
        assert!(!summary.exact && summary.top.len() == TOP && summary.distinct == 4096);
        let listed: u64 = summary.top.iter().map(|(_, _, writes, _)| writes).sum();
        assert_eq!(listed + summary.other.1, 10_000);
    }
}
