//! Hotness by key range.

use super::summary::Range;

/// A key that was kept: its number, the number of keys that it represents, and their operations by
/// group.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    /// Its number.
    pub number: u64,
    /// The number of keys that it represents.
    pub weight: f64,
    /// Operations on it, by group.
    pub counts: [u32; 3],
}

/// Divides the numbers from `min` to `max` into `parts` parts of equal width.
pub fn by_number(keys: &[Placed], (min, max): (u64, u64), parts: usize) -> Vec<Range> {
    let numbers = u128::from(max - min) + 1;
    let parts = (parts as u128).min(numbers);
    // Part k begins at the first number whose `offset * parts / numbers` is k.
    let start = |part: u128| min + (part * numbers).div_ceil(parts) as u64;
    let mut ranges: Vec<Range> = (0..parts).map(|part| empty(start(part))).collect();
    for key in keys {
        let part = u128::from(key.number - min) * parts / numbers;
        add(&mut ranges[part as usize], key);
    }
    ranges
}

/// Divides the keys, which are ordered by number, into `parts` parts with equally many keys.
pub fn by_rank(keys: &[Placed], parts: usize) -> Vec<Range> {
    let all: f64 = keys.iter().map(|key| key.weight).sum();
    let mut ranges: Vec<Range> = Vec::new();
    let (mut before, mut current) = (0.0, usize::MAX);
    for key in keys {
        let part = (before / all * parts as f64) as usize;
        if part != current {
            ranges.push(empty(key.number));
            current = part;
        }
        if let Some(range) = ranges.last_mut() {
            add(range, key);
        }
        before += key.weight;
    }
    ranges
}

fn empty(first: u64) -> Range {
    (first.to_string(), 0.0, 0.0, 0.0, 0.0)
}

fn add(range: &mut Range, key: &Placed) {
    let [gets, writes, seeks] = key.counts.map(|count| f64::from(count) * key.weight);
    range.1 += key.weight;
    range.2 += gets;
    range.3 += writes;
    range.4 += seeks;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_key_is_in_the_range_that_begins_before_it(
            numbers in proptest::collection::btree_set(proptest::num::u64::ANY, 1..40),
            parts in 1usize..30,
        ) {
            let place = |number: &u64| Placed { number: *number, weight: 1.0, counts: [1, 0, 0] };
            let keys: Vec<Placed> = numbers.iter().map(place).collect();
            let span = (keys[0].number, keys[keys.len() - 1].number);
            for ranges in [by_number(&keys, span, parts), by_rank(&keys, parts)] {
                let firsts: Vec<u64> = ranges.iter().map(|range| range.0.parse().unwrap()).collect();
                prop_assert!(firsts.len() <= parts && firsts.windows(2).all(|pair| pair[0] < pair[1]));
                for (index, range) in ranges.iter().enumerate() {
                    let end = firsts.get(index + 1).copied();
                    let inside = |number: &&u64| **number >= firsts[index] && end.is_none_or(|end| **number < end);
                    prop_assert_eq!(range.2 as usize, numbers.iter().filter(inside).count());
                }
            }
        }
    }
}
