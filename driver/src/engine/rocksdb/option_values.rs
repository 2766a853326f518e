//! Values of options as text: what RocksDB accepts as a number, and which texts mean the same
//! value.

use super::nested;

/// Whether `text` begins as a number but is none. RocksDB stops reading at the first character that
/// is no digit: it takes `12GG` as 12 GiB, and `4XB` as 4.
pub fn garbled_number(text: &str) -> bool {
    let text = text.trim();
    let begins = text
        .trim_start_matches(['-', '+'])
        .starts_with(|c: char| c.is_ascii_digit());
    begins && number(text).is_none()
}

/// Whether the engine's own text for an option's value is a number.
pub fn is_number(effective: &str) -> bool {
    number(effective).is_some()
}

/// Whether two texts mean the same value to RocksDB.
pub fn same(requested: &str, effective: &str) -> bool {
    let (requested, effective) = (requested.trim(), effective.trim());
    if requested == effective {
        return true;
    }
    match (nested::split(requested), nested::split(effective)) {
        (Some(parts), Some(effective_parts)) => {
            return parts.iter().all(|(name, text)| {
                effective_parts
                    .iter()
                    .any(|(known, value)| known == name && same(text, value))
            });
        }
        (Some(parts), None) => {
            return parts.iter().all(|(name, text)| {
                part_of_object(effective, name).is_some_and(|value| same(text, &value))
            });
        }
        // A value without braces stands for the part that names or sizes the object.
        (None, Some(effective_parts)) => {
            return effective_parts
                .iter()
                .any(|(name, value)| matches!(*name, "id" | "capacity") && same(requested, value));
        }
        (None, None) => {}
    }
    // RocksDB writes words for truths: a number 1 must not equal one that was asked for as `true`.
    if matches!(effective, "true" | "false") {
        return matches!((requested, effective), ("1", "true") | ("0", "false"));
    }
    if let (Some(requested), Some(effective)) = (number(requested), number(effective)) {
        return requested.equals(effective);
    }
    same_object(requested, effective)
}

#[derive(Debug, Clone, Copy)]
enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    fn equals(self, other: Self) -> bool {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a == b,
            // RocksDB writes six decimals.
            (a, b) => (a.real() - b.real()).abs() <= 5e-7 * a.real().abs().max(1.0),
        }
    }

    #[allow(clippy::cast_precision_loss)] // compared with a tolerance that covers the loss
    const fn real(self) -> f64 {
        match self {
            Self::Whole(value) => value as f64,
            Self::Real(value) => value,
        }
    }
}

/// A number as RocksDB reads it: K, M, G and T are powers of 1024.
fn number(text: &str) -> Option<Number> {
    let (digits, shift) = match text.as_bytes().last()?.to_ascii_lowercase() {
        b'k' => (&text[..text.len() - 1], 10),
        b'm' => (&text[..text.len() - 1], 20),
        b'g' => (&text[..text.len() - 1], 30),
        b't' => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    if let Ok(whole) = digits.parse::<i128>() {
        return whole.checked_mul(1 << shift).map(Number::Whole);
    }
    // `inf` and `nan` are names to RocksDB, not numbers.
    let real = digits.parse::<f64>().ok().filter(|_| shift == 0)?;
    real.is_finite().then_some(Number::Real(real))
}

/// A whole number as RocksDB reads it.
pub fn whole_number(text: &str) -> Option<i128> {
    match number(text.trim())? {
        Number::Whole(whole) => Some(whole),
        Number::Real(_) => None,
    }
}

/// A part of an object that the engine writes in a short form: `SkipListFactory:16`.
pub fn part_of_object(text: &str, part: &str) -> Option<String> {
    let (name, argument) = text.split_once(':').unwrap_or((text, "0"));
    match part {
        "id" => Some(text.to_owned()),
        // `SkipListFactory::GetId` (`memtable/skiplistrep.cc`) omits a lookahead of 0.
        "lookahead" if class(name) == "skiplist" => Some(argument.to_owned()),
        _ => None,
    }
}

/// A request names an object by a nickname (`skip_list`). The engine writes its class name
/// (`SkipListFactory`), with arguments after a colon, including the defaults.
fn same_object(requested: &str, effective: &str) -> bool {
    let (requested, effective) = (nicknamed(requested), nicknamed(effective));
    let mut requested_words = requested.split(':');
    let mut effective_words = effective.split(':');
    let (Some(requested_name), Some(effective_name)) =
        (requested_words.next(), effective_words.next())
    else {
        return false;
    };
    class(requested_name) == class(effective_name)
        && requested_words.all(|argument| {
            effective_words
                .next()
                .is_some_and(|other| same(argument, other))
        })
}

/// Prefix extractors are written with a dot before their length (`util/slice.cc`).
fn nicknamed(text: &str) -> String {
    [
        ("rocksdb.FixedPrefix.", "fixed:"),
        ("rocksdb.CappedPrefix.", "capped:"),
    ]
    .iter()
    .find_map(|(class, nickname)| Some(format!("{nickname}{}", text.strip_prefix(class)?)))
    .unwrap_or_else(|| text.to_owned())
}

fn class(name: &str) -> String {
    let bare: String = name
        .chars()
        .filter(|character| *character != '_')
        .map(|character| character.to_ascii_lowercase())
        .collect();
    let bare = bare.strip_suffix("factory").unwrap_or(&bare);
    let bare = bare.strip_suffix("rep").unwrap_or(bare);
    match bare {
        "prefixhash" => "hashskiplist".into(),
        "hashlinkedlist" => "hashlinklist".into(),
        "put" | "putv1" => "putoperator".into(),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_with_a_tail_is_garbled() {
        for text in ["12abc", "12GG", "4XB", "1048576;max_open_files=20", "-1x"] {
            assert!(garbled_number(text), "{text}");
        }
        for text in [
            "64K",
            "1",
            "-1",
            "1.5",
            "1e3",
            "vector",
            "kZSTD",
            "{block_size=1}",
            "",
        ] {
            assert!(!garbled_number(text), "{text}");
        }
    }

    #[test]
    fn texts_that_mean_the_same() {
        for (requested, effective) in [
            ("4194304", "4194304"),
            ("4M", "4194304"),
            ("1g", "1073741824"),
            ("10", "10.000000"),
            ("0.25", "0.250000"),
            ("1e1", "10.000000"),
            ("1", "true"),
            ("true", "true"),
            ("skip_list", "SkipListFactory"),
            ("skip_list:16", "SkipListFactory:16"),
            ("vector", "VectorRepFactory"),
            ("bloomfilter:10", "bloomfilter:10:false"),
            ("bloomfilter:10.0:false", "bloomfilter:10:false"),
            ("fixed:8", "rocksdb.FixedPrefix.8"),
            ("capped:8", "rocksdb.CappedPrefix.8"),
            ("vector", "{id=VectorRepFactory;count=7;}"),
            ("put", "PutOperator"),
            ("put_v1", "PutOperator"),
            ("PutOperator", "{id=PutOperator;}"),
            ("8M", "{capacity=8388608;id=lru_cache}"),
            ("{id=skip_list;lookahead=4}", "SkipListFactory:4"),
            ("{lookahead=0}", "SkipListFactory"),
            (
                "ribbonfilter:10",
                "{id=ribbonfilter:10:0;bloom_before_level=0;}",
            ),
            ("{size_ratio=2}", "{min_merge_width=2;size_ratio=2;}"),
            (
                "{block_size=8K;}",
                "{block_size=8192;whole_key_filtering=true;}",
            ),
        ] {
            assert!(same(requested, effective), "{requested} {effective}");
        }
    }

    #[test]
    fn texts_that_differ() {
        for (requested, effective) in [
            ("5", "20"),
            ("12abc", "65536"),
            ("-1", "18446744073709551615"),
            ("0", "true"),
            ("2", "true"),
            ("foo", "SkipListFactory"),
            ("skip_list:8", "SkipListFactory:16"),
            ("bloomfilter:5", "bloomfilter:10:false"),
            ("kZSTD", "kSnappyCompression"),
            ("{size_ratio=2}", "{size_ratio=3;}"),
            ("fixed:8", "rocksdb.FixedPrefix.9"),
            ("fixed:8", "rocksdb.CappedPrefix.8"),
            ("vector", "{id=HashSkipListRepFactory;bucket_count=7;}"),
            ("9M", "{capacity=8388608;id=lru_cache}"),
            ("{id=skip_list;lookahead=4}", "SkipListFactory"),
            ("put", "UInt64AddOperator"),
            ("{nosuch=2}", "{size_ratio=2;}"),
            ("0.25", "0.26"),
        ] {
            assert!(!same(requested, effective), "{requested} {effective}");
        }
    }

    proptest! {
        #[test]
        fn a_whole_number_equals_itself_only(a in any::<u64>(), b in any::<u64>()) {
            prop_assert!(same(&a.to_string(), &a.to_string()));
            prop_assert_eq!(same(&a.to_string(), &b.to_string()), a == b);
        }

        #[test]
        fn any_text_can_be_compared(a in ".{0,20}", b in ".{0,20}") {
            prop_assert!(same(&a, &a));
            let _ = same(&a, &b);
        }
    }
}
