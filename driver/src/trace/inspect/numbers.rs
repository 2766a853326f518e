//! Numbers of keys: eight bytes that keep the order of the keys, so that ranges can be counted
//! without keeping keys.

use serde::{Deserialize, Serialize};

/// Where the number of a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KeyNumber {
    /// Its first byte.
    pub offset_bytes: usize,
    /// How many bytes it has; 1 to 8 of a big-endian number, 1 to 19 of decimal digits.
    #[cfg_attr(test, schemars(range(min = 1, max = 19)))]
    pub bytes: usize,
    /// How it is written.
    pub format: NumberFormat,
}

/// How the number of a key is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NumberFormat {
    /// Highest byte first, as db_bench does.
    BigEndian,
    /// Decimal digits.
    Decimal,
}

impl NumberFormat {
    /// The most bytes of a number.
    pub fn bytes_max(self) -> usize {
        match self {
            NumberFormat::BigEndian => 8,
            NumberFormat::Decimal => 19,
        }
    }

    fn name(self) -> &'static str {
        match self {
            NumberFormat::BigEndian => "big_endian",
            NumberFormat::Decimal => "decimal",
        }
    }
}

/// The longest common prefix of all keys so far, and the numbers that follow from it.
///
/// Unless the request says where the number is, the number of a key is the eight bytes after that
/// prefix. When a key arrives that does not begin with the prefix, the prefix becomes shorter. The
/// numbers of earlier keys are then shifted to what they would have been with the shorter prefix.
#[derive(Debug, Default)]
pub struct Numbers {
    asked: Option<KeyNumber>,
    prefix: Option<Vec<u8>>,
    range: Option<(u64, u64)>,
    without: u64,
}

impl Numbers {
    /// Takes numbers from where they were `asked` for, or else after the common prefix.
    pub fn new(asked: Option<KeyNumber>) -> Self {
        Numbers {
            asked,
            ..Numbers::default()
        }
    }

    /// Looks at a key. If the prefix becomes shorter, returns the bytes that it lost.
    #[inline]
    pub fn look(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        match &self.prefix {
            Some(prefix) if key.starts_with(prefix) => None,
            _ => self.shorten(key),
        }
    }

    #[cold]
    fn shorten(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let Some(prefix) = &mut self.prefix else {
            self.prefix = Some(key.to_vec());
            return None;
        };
        let pairs = prefix.iter().zip(key);
        let common = pairs.take_while(|(one, two)| one == two).count();
        let cut = prefix.split_off(common);
        if self.asked.is_none() {
            let range = self.range;
            self.range = range.map(|(min, max)| (shifted(min, &cut), shifted(max, &cut)));
        }
        Some(cut)
    }

    /// Whether numbers shift with the prefix.
    pub fn shifts(&self) -> bool {
        self.asked.is_none()
    }

    /// The number of a key that was looked at; `None` if it has none.
    #[inline]
    pub fn number(&mut self, key: &[u8]) -> Option<u64> {
        let number = match self.asked {
            None => Some(window(key, self.prefix_bytes())),
            Some(asked) => asked_number(key, asked),
        };
        match number {
            None => self.without += 1,
            Some(number) => {
                self.range = Some(match self.range {
                    None => (number, number),
                    Some((min, max)) => (min.min(number), max.max(number)),
                });
            }
        }
        number
    }

    /// Bytes of the prefix that all keys have in common.
    #[inline]
    pub fn prefix_bytes(&self) -> usize {
        self.prefix.as_ref().map_or(0, Vec::len)
    }

    /// The prefix that all keys have in common.
    pub fn prefix(&self) -> &[u8] {
        self.prefix.as_deref().unwrap_or_default()
    }

    /// Smallest and largest number.
    pub fn range(&self) -> Option<(u64, u64)> {
        self.range
    }

    /// Operations on keys without a number.
    pub fn without(&self) -> u64 {
        self.without
    }

    /// The kind of the numbers.
    pub fn name(&self) -> &'static str {
        self.asked.map_or("window", |asked| asked.format.name())
    }

    /// The offset at which they begin.
    pub fn offset_bytes(&self) -> usize {
        self.asked
            .map_or_else(|| self.prefix_bytes(), |asked| asked.offset_bytes)
    }
}

/// What `number` becomes when the common prefix loses `cut`.
pub fn shifted(number: u64, cut: &[u8]) -> u64 {
    match cut.len() {
        bytes @ 0..8 => number >> (8 * bytes) | window(cut, 0),
        _ => window(cut, 0),
    }
}

/// Eight bytes from `offset` on, zeros beyond the end.
#[inline]
fn window(key: &[u8], offset: usize) -> u64 {
    let rest = key.get(offset..).unwrap_or_default();
    match rest.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            bytes[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(bytes)
        }
    }
}

fn asked_number(key: &[u8], asked: KeyNumber) -> Option<u64> {
    let rest = key.get(asked.offset_bytes..)?;
    match asked.format {
        NumberFormat::BigEndian => {
            let bytes = rest.get(..asked.bytes)?;
            Some(
                bytes
                    .iter()
                    .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
            )
        }
        NumberFormat::Decimal => {
            let digits = &rest[..asked.bytes.min(rest.len())];
            let count = digits
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            std::str::from_utf8(&digits[..count]).ok()?.parse().ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// In whatever order keys arrive, their numbers end up the same.
        #[test]
        fn shifted_numbers_are_those_of_the_shorter_prefix(
            tails in proptest::collection::vec(proptest::collection::vec(0u8..3, 0..12), 1..20),
        ) {
            let keys: Vec<Vec<u8>> = tails.iter().map(|tail| [b"user", &tail[..]].concat()).collect();
            let mut numbers = Numbers::new(None);
            let mut known: Vec<u64> = Vec::new();
            for key in &keys {
                if let Some(cut) = numbers.look(key) {
                    known.iter_mut().for_each(|number| *number = shifted(*number, &cut));
                }
                known.push(numbers.number(key).unwrap());
            }
            let offset = numbers.prefix_bytes();
            prop_assert!(offset >= 4 && keys.iter().all(|key| key.starts_with(numbers.prefix())));
            for (key, number) in keys.iter().zip(&known) {
                prop_assert_eq!(*number, window(key, offset));
            }
            let range = (*known.iter().min().unwrap(), *known.iter().max().unwrap());
            prop_assert_eq!(numbers.range(), Some(range));
        }
    }

    #[test]
    fn numbers_that_are_asked_for_are_taken_as_they_are() {
        let asked = |offset_bytes, bytes, format| KeyNumber {
            offset_bytes,
            bytes,
            format,
        };
        let mut numbers = Numbers::new(Some(asked(4, 19, NumberFormat::Decimal)));
        for (key, number) in [
            (&b"user0042"[..], Some(42)),
            (b"user7x", Some(7)),
            (b"use", None),
            (b"userx", None),
        ] {
            numbers.look(key);
            assert_eq!(numbers.number(key), number);
        }
        assert_eq!((numbers.without(), numbers.range()), (2, Some((7, 42))));
        let mut numbers = Numbers::new(Some(asked(0, 8, NumberFormat::BigEndian)));
        assert_eq!(numbers.number(b"\0\0\0\0\0\0\x01\x0200000000"), Some(258));
    }
}
