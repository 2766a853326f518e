//! RocksDB's nested values: `{name=value;other={inner=1;};}`.

use std::collections::BTreeMap;

/// Readers of nested values call themselves for each level; RocksDB's own values have three.
const DEPTH_MAX: usize = 32;

/// The names and values inside `{...}`; `None` if `text` is not such a value, or one that is nested
/// beyond reason.
pub fn split(text: &str) -> Option<Vec<(&str, &str)>> {
    let inside = braced(text)?;
    let mut parts = Vec::new();
    for part in at_top_level(inside) {
        let part = part.trim();
        if !part.is_empty() {
            let (name, value) = part.split_once('=')?;
            parts.push((name.trim(), value.trim()));
        }
    }
    Some(parts)
}

/// The inverse of [`split`].
pub fn join(parts: &BTreeMap<String, String>) -> String {
    let inside: Vec<String> = parts
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!("{{{}}}", inside.join(";"))
}

/// The text between the braces, if one pair of braces encloses the whole of `text`.
pub fn braced(text: &str) -> Option<&str> {
    let text = text.trim();
    let inside = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut depth = 0_usize;
    for character in inside.chars() {
        match character {
            '{' if depth == DEPTH_MAX => return None,
            '{' => depth += 1,
            '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    (depth == 0).then_some(inside)
}

fn at_top_level(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |character| {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ';' && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_split_at_their_own_level_only() {
        assert_eq!(
            split("{a=1;b={c=2;d={e=3;};};f=x:y;}"),
            Some(vec![("a", "1"), ("b", "{c=2;d={e=3;};}"), ("f", "x:y")])
        );
        assert_eq!(split("{}"), Some(vec![]));
        assert_eq!(split("{ a = 1 }"), Some(vec![("a", "1")]));
    }

    #[test]
    fn what_is_not_nested_is_left_alone() {
        for text in [
            "1",
            "",
            "{a=1};b=2",
            "{a=1};{b=2}",
            "{Listener:Listener}",
            "{a",
            "a}",
        ] {
            assert_eq!(split(text), None, "{text}");
        }
        let deep = format!("{}{}", "{a=".repeat(100_000), "}".repeat(100_000));
        assert_eq!(split(&deep), None, "beyond what a stack can hold");
    }
}
