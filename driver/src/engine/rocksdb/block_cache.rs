//! The block cache that an options string cannot request.
//!
//! `Cache::CreateFromString` (`cache/cache.cc`, 7.8 to 11.8) makes LRU caches only. The driver
//! therefore makes a `hyper_clock_cache` through the C interface.

use std::collections::BTreeMap;

use super::api::{Api, Handle};
use super::option_values::whole_number;
use super::options_file::{HYPER_CLOCK, LRU, TABLE};
use super::tree::Tree;
use crate::engine::{EngineError, Result};

/// The full name of the cache's size.
pub const CAPACITY: &str = "block_based_table_factory.block_cache.capacity";

/// RocksDB's own choice of the number of shards.
const SHARD_BITS_DEFAULT: i32 = -1;

/// A hyper clock cache that a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct HyperClock {
    capacity: usize,
    num_shard_bits: i32,
}

/// Takes a hyper clock cache out of the options; the engine parses the rest.
///
/// The kind of an LRU cache is taken out, too, because the engine has no name for it. A cache
/// without a size gets `default_capacity`; the engine would give it no bytes.
pub fn requested(
    options: &mut BTreeMap<String, Tree>,
    default_capacity: impl FnOnce() -> Result<String>,
) -> Result<Option<HyperClock>> {
    let Some(table) = options.get_mut(TABLE) else {
        return Ok(None);
    };
    let Some(cache) = table.parts.get_mut("block_cache") else {
        return Ok(None);
    };
    if cache.parts.is_empty() {
        return Ok(None);
    }
    if !cache.parts.contains_key("capacity") {
        let capacity = Tree {
            value: Some(default_capacity()?),
            ..Tree::default()
        };
        cache.parts.insert("capacity".to_owned(), capacity);
    }
    let kind = cache.parts.remove("id").and_then(|tree| tree.value);
    match kind.as_deref() {
        None | Some(LRU) => Ok(None),
        Some(HYPER_CLOCK) => {
            let made = HyperClock::from_parts(&cache.parts)?;
            table.parts.remove("block_cache");
            if table.parts.is_empty() {
                options.remove(TABLE);
            }
            Ok(Some(made))
        }
        Some(other) => Err(EngineError::bad_value(
            &name("id"),
            other,
            &format!("{LRU} or {HYPER_CLOCK}"),
        )),
    }
}

fn said((part, tree): (&String, &Tree)) -> (String, String) {
    (part.clone(), tree.value.clone().unwrap_or_default())
}

fn name(part: &str) -> String {
    format!("{TABLE}.block_cache.{part}")
}

impl HyperClock {
    fn from_parts(parts: &BTreeMap<String, Tree>) -> Result<Self> {
        let mut made = Self {
            capacity: 0,
            num_shard_bits: SHARD_BITS_DEFAULT,
        };
        for (part, text) in parts.iter().map(said) {
            let wrong = |allowed: &str| EngineError::bad_value(&name(&part), &text, allowed);
            let number = whole_number(&text);
            match part.as_str() {
                "capacity" => {
                    made.capacity = number
                        .and_then(|number| number.try_into().ok())
                        .ok_or_else(|| wrong("a number of bytes, with K, M, G or T at most"))?;
                }
                "num_shard_bits" => {
                    made.num_shard_bits = number
                        .and_then(|number| number.try_into().ok())
                        .filter(|bits| (SHARD_BITS_DEFAULT..20).contains(bits))
                        .ok_or_else(|| wrong("-1 to 19"))?;
                }
                _ => return Err(wrong(&format!("not an option of a {HYPER_CLOCK}"))),
            }
        }
        Ok(made)
    }

    /// Makes the cache and a table factory that uses it; later options change that factory.
    pub fn set(&self, api: &Api, options: &Handle) -> Result<()> {
        let (Some(create), Some(destroy), Some(set_bits), Some(make)) = (
            api.hyper_clock_cache_options_create,
            api.hyper_clock_cache_options_destroy,
            api.hyper_clock_cache_options_set_num_shard_bits,
            api.cache_create_hyper_clock_opts,
        ) else {
            let allowed = format!("{LRU}; this library cannot make another (RocksDB 8.7 can)");
            return Err(EngineError::bad_value(&name("id"), HYPER_CLOCK, &allowed));
        };
        // SAFETY: every object is made and destroyed here, once; the factory shares the cache.
        unsafe {
            // With a charge of 0, the cache needs no estimate of the size of its entries.
            let wanted = create(self.capacity, 0);
            set_bits(wanted, self.num_shard_bits);
            let cache = make(wanted);
            destroy(wanted);
            let table = (api.block_based_options_create)();
            (api.block_based_options_set_block_cache)(table, cache);
            (api.options_set_block_based_table_factory)(options.raw, table);
            (api.block_based_options_destroy)(table);
            (api.cache_destroy)(cache);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::rocksdb::tree::compose;
    use crate::engine::Options;

    fn request(options: &[(&str, &str)]) -> Result<(Option<HyperClock>, Vec<String>)> {
        let options: Options = options
            .iter()
            .map(|(part, value)| {
                let name = format!("block_based_table_factory.{part}");
                (name, (*value).to_owned())
            })
            .collect();
        let mut trees = compose(&options)?;
        let made = requested(&mut trees, || Ok("32M".to_owned()))?;
        let rest = trees.iter().map(|(name, tree)| tree.assignment(name));
        Ok((made, rest.collect()))
    }

    #[test]
    fn an_lru_cache_is_left_to_the_engine() {
        let (made, rest) = request(&[("block_cache", "8M")]).unwrap();
        assert_eq!(made, None);
        assert_eq!(rest, ["block_based_table_factory={block_cache=8M}"]);
        let (made, rest) =
            request(&[("block_cache", "8M"), ("block_cache.id", "lru_cache")]).unwrap();
        assert_eq!(made, None);
        assert_eq!(
            rest,
            ["block_based_table_factory={block_cache={capacity=8M}}"]
        );
    }

    #[test]
    fn a_hyper_clock_cache_is_taken_out() {
        let whole = ("block_cache", "{id=hyper_clock_cache;capacity=8M}");
        let expected = HyperClock {
            capacity: 8 << 20,
            num_shard_bits: -1,
        };
        let (made, rest) = request(&[whole]).unwrap();
        assert_eq!((made.as_ref(), rest.len()), (Some(&expected), 0));
        let (made, rest) = request(&[
            ("block_cache", "8M"),
            ("block_cache.id", "hyper_clock_cache"),
            ("block_cache.num_shard_bits", "3"),
            ("block_size", "8K"),
        ])
        .unwrap();
        assert_eq!(made.unwrap().num_shard_bits, 3);
        assert_eq!(rest, ["block_based_table_factory={block_size=8K}"]);
    }

    #[test]
    fn a_cache_keeps_the_size_that_it_has_by_default() {
        let (made, rest) = request(&[("block_cache.num_shard_bits", "2")]).unwrap();
        assert_eq!(made, None);
        assert_eq!(
            rest,
            ["block_based_table_factory={block_cache={capacity=32M;num_shard_bits=2}}"]
        );
    }

    #[test]
    fn what_makes_no_cache_is_refused() {
        for options in [
            &[("block_cache", "8M"), ("block_cache.id", "clock_cache")][..],
            &[
                ("block_cache", "8X"),
                ("block_cache.id", "hyper_clock_cache"),
            ],
            &[
                ("block_cache", "{capacity=8M;id=hyper_clock_cache}"),
                ("block_cache.high_pri_pool_ratio", "0.5"),
            ],
        ] {
            assert!(request(options).is_err(), "{options:?}");
        }
    }
}
