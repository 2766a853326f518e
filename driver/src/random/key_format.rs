//! How the number of a key becomes its bytes.

use crate::protocol::{KeyFormat, KeyPlacement, Workload};

use super::distributions::Sizes;
use super::{encode_key, fnv1a, mix};

/// Makes the hash that draws a key's length independent of other hashes of the same number.
const LENGTH_SALT: u64 = 0x6b65_795f_6c65_6e67;

/// Writes one key after another into a buffer that is allocated once.
#[derive(Debug, Clone)]
pub struct KeyWriter {
    form: Form,
    /// Bytes by which its keys are longer than those of the workload.
    extra: usize,
    buffer: Vec<u8>,
    length: usize,
}

#[derive(Debug, Clone)]
enum Form {
    /// Eight big-endian bytes, then `0`s; of various lengths if there are sizes.
    Number(Option<Sizes>),
    /// A prefix, then decimal digits.
    Ycsb {
        prefix: usize,
        zero_padding: usize,
        hashed: bool,
    },
}

/// What the bytes of a key tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodedKey {
    /// The number that it was made from.
    Known(u64),
    /// It may be made from some number, of which it shows only a hash.
    Hashed,
    /// It is made from no number.
    Foreign,
}

impl KeyWriter {
    /// The keys of `workload`.
    pub fn new(workload: &Workload) -> Self {
        Self::with(workload, 0)
    }

    /// Keys that no writer of `workload` makes: one byte longer than those that it makes, as in
    /// db_bench.
    pub fn never_written(workload: &Workload) -> Self {
        Self::with(workload, 1)
    }

    fn with(workload: &Workload, extra: usize) -> Self {
        let (form, buffer) = match &workload.keys {
            None => {
                let sizes = workload.key_sizes.as_ref().map(Sizes::new);
                let buffer = vec![b'0'; workload.key_bytes + extra];
                (Form::Number(sizes), buffer)
            }
            Some(KeyFormat::Ycsb {
                prefix,
                zero_padding,
                order,
            }) => {
                let digits = itoa::Buffer::new().format(u64::MAX).len();
                let mut buffer = prefix.as_bytes().to_vec();
                buffer.resize(prefix.len() + digits.max(*zero_padding) + 1, b'0');
                let form = Form::Ycsb {
                    prefix: prefix.len(),
                    zero_padding: *zero_padding,
                    hashed: *order == KeyPlacement::Hashed,
                };
                (form, buffer)
            }
        };
        KeyWriter {
            form,
            extra,
            length: buffer.len(),
            buffer,
        }
    }

    /// Makes the key of `number` the current one, and returns it.
    #[inline]
    pub fn write(&mut self, number: u64) -> &[u8] {
        match &self.form {
            Form::Number(sizes) => {
                encode_key(&mut self.buffer, number);
                if let Some(sizes) = sizes {
                    self.length = drawn_length(sizes, number) + self.extra;
                }
            }
            Form::Ycsb {
                prefix,
                zero_padding,
                hashed,
            } => {
                let mut digits = itoa::Buffer::new();
                let shown = if *hashed { fnv1a(number) } else { number };
                let digits = digits.format(shown).as_bytes();
                let end = prefix + digits.len().max(*zero_padding);
                self.buffer[*prefix..end - digits.len()].fill(b'0');
                self.buffer[end - digits.len()..end].copy_from_slice(digits);
                // All other keys end with a digit.
                self.buffer[end] = b'-';
                self.length = end + self.extra;
            }
        }
        self.current()
    }

    /// The number of the key that has these bytes.
    pub fn decode(&self, key: &[u8]) -> DecodedKey {
        let number = match &self.form {
            Form::Number(sizes) => key.split_first_chunk().and_then(|(head, zeros)| {
                let number = u64::from_be_bytes(*head);
                let drawn = |sizes| drawn_length(sizes, number) + self.extra;
                let length = sizes.as_ref().map_or(self.length, drawn);
                let whole = key.len() == length && zeros.iter().all(|byte| *byte == b'0');
                whole.then_some(number)
            }),
            Form::Ycsb {
                prefix,
                zero_padding,
                ..
            } => key
                .strip_prefix(&self.buffer[..*prefix])
                .filter(|digits| digits.iter().all(u8::is_ascii_digit))
                .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
                .filter(|shown: &u64| {
                    let digits = itoa::Buffer::new().format(*shown).len();
                    key.len() == prefix + digits.max(*zero_padding)
                }),
        };
        match (number, &self.form) {
            (None, _) => DecodedKey::Foreign,
            (Some(_), Form::Ycsb { hashed: true, .. }) => DecodedKey::Hashed,
            (Some(number), _) => DecodedKey::Known(number),
        }
    }

    /// The key that was written last.
    #[inline]
    pub fn current(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

/// The length of the key of `number`.
#[inline]
fn drawn_length(sizes: &Sizes, number: u64) -> usize {
    sizes.at(mix(number ^ LENGTH_SALT)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{json, Value};

    fn workload(more: Value) -> Workload {
        let mut workload = json!({
            "key_bytes": 16, "value_bytes": 100, "compression_ratio": 0.5, "num": 10,
            "durability": "wal", "phases": [],
        });
        for (field, value) in more.as_object().unwrap() {
            workload[field] = value.clone();
        }
        serde_json::from_value(workload).unwrap()
    }

    fn ycsb(zero_padding: usize, order: &str) -> Workload {
        let keys = json!({
            "format": "ycsb", "prefix": "user", "zero_padding": zero_padding, "order": order,
        });
        workload(json!({ "keys": keys }))
    }

    fn text(of: &Workload, number: u64) -> String {
        String::from_utf8(KeyWriter::new(of).write(number).to_vec()).unwrap()
    }

    /// The bytes that YCSB makes, by its definition.
    #[test]
    fn keys_are_those_of_ycsb() {
        assert_eq!(text(&ycsb(1, "ordered"), 0), "user0");
        assert_eq!(text(&ycsb(8, "ordered"), 42), "user00000042");
        assert_eq!(text(&ycsb(3, "ordered"), 12_345), "user12345");
        assert_eq!(text(&ycsb(1, "hashed"), 0), "user12161962213042174405");
        assert_eq!(text(&ycsb(24, "hashed"), 1), "user000009929646806074584996");
    }

    #[test]
    fn a_key_leaves_nothing_behind_in_the_next() {
        let mut keys = KeyWriter::new(&ycsb(4, "ordered"));
        keys.write(u64::MAX);
        assert_eq!(keys.write(7), b"user0007");
        assert_eq!(keys.current(), b"user0007");
    }

    #[test]
    fn numbers_are_those_of_db_bench() {
        let mut keys = KeyWriter::new(&workload(json!({})));
        assert_eq!(keys.write(258), b"\0\0\0\0\0\0\x01\x0200000000");
        let mut missing = KeyWriter::never_written(&workload(json!({})));
        assert_eq!(missing.write(258).len(), 17);
    }

    #[test]
    fn lengths_follow_their_distribution_and_the_number_alone() {
        let sizes = json!({"distribution": "uniform", "low": 10, "high": 13});
        let of = workload(json!({"key_sizes": sizes}));
        let mut keys = KeyWriter::new(&of);
        let mut counts = [0; 4];
        for number in 0..4000 {
            let length = keys.write(number).len();
            assert_eq!(KeyWriter::new(&of).write(number).len(), length);
            counts[length - 10] += 1;
        }
        assert!(counts.iter().all(|c| (850..1150).contains(c)), "{counts:?}");
    }

    proptest! {
        #[test]
        fn a_key_tells_its_number(number: u64, padding in 0usize..30) {
            let sizes = json!({"distribution": "uniform", "low": 10, "high": 13});
            for of in [ycsb(padding, "ordered"), workload(json!({})), workload(json!({"key_sizes": sizes}))] {
                let mut keys = KeyWriter::new(&of);
                let key = keys.write(number).to_vec();
                prop_assert_eq!(keys.decode(&key), DecodedKey::Known(number));
                let missing = KeyWriter::never_written(&of).write(number).to_vec();
                prop_assert_eq!(keys.decode(&missing), DecodedKey::Foreign);
            }
            let mut keys = KeyWriter::new(&workload(json!({})));
            let key = keys.write(number).to_vec();
            prop_assert_eq!(keys.decode(&key[1..]), DecodedKey::Foreign);
            let mut hashed = KeyWriter::new(&ycsb(padding, "hashed"));
            let key = hashed.write(number).to_vec();
            prop_assert_eq!(hashed.decode(&key), DecodedKey::Hashed);
        }

        #[test]
        fn different_numbers_have_different_keys(a: u64, b: u64, padding in 0usize..30) {
            for of in [ycsb(padding, "ordered"), ycsb(padding, "hashed"), workload(json!({}))] {
                let (mut one, mut two) = (KeyWriter::new(&of), KeyWriter::new(&of));
                prop_assert_eq!(one.write(a) == two.write(b), a == b);
            }
        }

        #[test]
        fn what_is_never_written_is_not_written(a: u64, b: u64) {
            for of in [ycsb(1, "ordered"), ycsb(1, "hashed"), workload(json!({}))] {
                let mut missing = KeyWriter::never_written(&of);
                let mut written = KeyWriter::new(&of);
                prop_assert_ne!(written.write(a), missing.write(b));
            }
        }
    }
}
