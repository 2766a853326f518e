//! Options by dotted name, combined into the nested text that RocksDB parses.

use std::collections::BTreeMap;

use super::nested;
use crate::engine::{EngineError, Options, Result};

/// An option's value, or the options nested in it.
#[derive(Debug, Default)]
pub struct Tree {
    pub value: Option<String>,
    pub parts: BTreeMap<String, Tree>,
}

/// The options as the engine takes them: dotted names are combined below their first part.
pub fn compose(options: &Options) -> Result<BTreeMap<String, Tree>> {
    let mut root = Tree::default();
    for (name, value) in options {
        root.insert(name, name, value)?;
    }
    root.settle("")?;
    Ok(root.parts)
}

/// The part that a value without braces means, for an option with parts: for the engine `vector` is
/// `{id=vector}`, and a block cache of `8M` is `{capacity=8M}`.
pub fn principal(name: &str) -> &'static str {
    if name.rsplit('.').next() == Some("block_cache") {
        "capacity"
    } else {
        "id"
    }
}

impl Tree {
    fn insert(&mut self, path: &str, name: &str, value: &str) -> Result<()> {
        let (part, rest) = path
            .split_once('.')
            .map_or((path, None), |(a, b)| (a, Some(b)));
        let below = self.parts.entry(part.to_owned()).or_default();
        if let Some(rest) = rest {
            return below.insert(rest, name, value);
        }
        if let Some(parts) = nested::split(value) {
            for (part, value) in parts {
                below.insert(part, &format!("{name}.{part}"), value)?;
            }
            return Ok(());
        }
        match &below.value {
            Some(other) if other != value => Err(EngineError::bad_value(
                name,
                value,
                &format!("one value; it is also set to {other}"),
            )),
            _ => {
                below.value = Some(value.to_owned());
                Ok(())
            }
        }
    }

    /// If a plain value stands beside parts, makes it one of the parts.
    fn settle(&mut self, name: &str) -> Result<()> {
        if !self.parts.is_empty() {
            if let Some(value) = self.value.take() {
                self.insert(principal(name), name, &value)?;
            }
        }
        for (part, tree) in &mut self.parts {
            let below = if name.is_empty() {
                part.clone()
            } else {
                format!("{name}.{part}")
            };
            tree.settle(&below)?;
        }
        Ok(())
    }

    /// The text `name=value` that the engine parses.
    pub fn assignment(&self, name: &str) -> String {
        if let (Some(value), true) = (&self.value, self.parts.is_empty()) {
            // Without braces, a semicolon would end the value and begin another option.
            let bare = !value.contains(';') || nested::braced(value).is_some();
            return if bare {
                format!("{name}={value}")
            } else {
                format!("{name}={{{value}}}")
            };
        }
        let inside: Vec<String> = self
            .parts
            .iter()
            .map(|(name, tree)| tree.assignment(name))
            .collect();
        format!("{name}={{{}}}", inside.join(";"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composed(options: &[(&str, &str)]) -> Result<Vec<String>> {
        let options = options
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let trees = compose(&options)?;
        Ok(trees
            .iter()
            .map(|(name, tree)| tree.assignment(name))
            .collect())
    }

    #[test]
    fn dotted_names_are_gathered_in_braces() {
        let texts = composed(&[
            ("write_buffer_size", "4194304"),
            ("block_based_table_factory.block_size", "8192"),
            ("block_based_table_factory.block_cache", "8M"),
            (
                "block_based_table_factory.metadata_cache_options.partition_pinning",
                "kAll",
            ),
            ("compaction_options_universal.size_ratio", "2"),
        ]);
        assert_eq!(
            texts.unwrap(),
            [
                "block_based_table_factory={block_cache=8M;block_size=8192;metadata_cache_options={partition_pinning=kAll}}",
                "compaction_options_universal={size_ratio=2}",
                "write_buffer_size=4194304",
            ]
        );
    }

    #[test]
    fn dotted_names_are_merged_with_an_explicit_value() {
        let texts = composed(&[
            (
                "block_based_table_factory",
                "{block_cache=8M;block_size=8192;}",
            ),
            ("block_based_table_factory.block_size", "8192"),
            ("block_based_table_factory.checksum", "kCRC32c"),
        ]);
        assert_eq!(
            texts.unwrap(),
            ["block_based_table_factory={block_cache=8M;block_size=8192;checksum=kCRC32c}"]
        );
    }

    #[test]
    fn a_plain_value_beside_parts_is_one_of_them() {
        let texts = composed(&[
            ("block_based_table_factory.block_cache", "8M"),
            ("block_based_table_factory.block_cache.num_shard_bits", "2"),
            ("memtable_factory", "vector"),
            ("memtable_factory.count", "7"),
        ]);
        assert_eq!(
            texts.unwrap(),
            [
                "block_based_table_factory={block_cache={capacity=8M;num_shard_bits=2}}",
                "memtable_factory={count=7;id=vector}",
            ]
        );
        let error = composed(&[("a", "vector"), ("a.id", "skip_list")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "option a: found vector; allowed: one value; it is also set to skip_list"
        );
    }

    #[test]
    fn two_values_for_one_option_are_refused() {
        let error = composed(&[("a", "{b=1}"), ("a.b", "2")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "option a.b: found 2; allowed: one value; it is also set to 1"
        );
    }

    #[test]
    fn a_value_cannot_smuggle_a_second_option_in() {
        for value in ["1;max_open_files=20", "{x};max_open_files=20"] {
            let texts = composed(&[("write_buffer_size", value)]).unwrap();
            assert_eq!(texts, [format!("write_buffer_size={{{value}}}")]);
        }
    }
}
