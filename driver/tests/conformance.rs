//! One suite, every engine a fixture.
//!
//! `make test` sets the variables that name the engines' libraries. Those that begin with
//! `LSMTUNE_TEST_PLUGIN` are of an engine of another package: `lsmtune.testing.engines` sets them.

mod suite;

use lsmtune_driver::engine::{load, Durability};
use suite::Fixture;

pub(crate) use suite::conformance;

const ROCKSDB: &str = "LSMTUNE_TEST_ROCKSDB";
const LEVELDB: &str = "LSMTUNE_TEST_LEVELDB";
/// Without its variable, a test fails.
const OPTIONAL: bool = false;

/// An engine behind `include/lsmtune_engine.h`. `NAME` and `LIBRARY` are needed; `SMALL` is an option
/// `name=value`, `MISTYPED` and `BAD_VALUES` are several, `DURABILITIES` words of the protocol.
fn plugin() -> Option<Fixture> {
    let variable = |name: &str| -> Option<&'static str> {
        let value = std::env::var(format!("LSMTUNE_TEST_PLUGIN_{name}")).ok()?;
        Some(Box::leak(value.into_boxed_str()))
    };
    let Some(library) = variable("LIBRARY") else {
        eprintln!("LSMTUNE_TEST_PLUGIN_LIBRARY is not set: nothing was tested");
        return None;
    };
    let pairs = |name: &str| -> Vec<(&'static str, &'static str)> {
        let text = variable(name).unwrap_or_default();
        let pairs = text.split(',').filter(|pair| !pair.is_empty());
        pairs.map(|pair| pair.split_once('=').unwrap()).collect()
    };
    let durabilities: Vec<Durability> = variable("DURABILITIES")
        .unwrap_or("sync,wal,none")
        .split(',')
        .map(|word| serde_json::from_value(word.into()).unwrap())
        .collect();
    Some(Fixture {
        engine: load(variable("NAME").unwrap(), Some(library.as_ref())).unwrap(),
        persistent: true,
        small_memtable: pairs("SMALL").first().copied(),
        mistyped: Box::leak(pairs("MISTYPED").into()),
        bad_values: Box::leak(pairs("BAD_VALUES").into()),
        durabilities: Box::leak(durabilities.into()),
        tells_work: false,
        refuses_existing: None,
    })
}

conformance! {
    memory => Some(crate::suite::memory());
    rocksdb => crate::suite::rocksdb();
    leveldb => crate::suite::leveldb();
    plugin => crate::plugin();
}
