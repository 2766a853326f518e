//! One suite, every engine a fixture.
//!
//! `make test` sets the variables that name the engines' libraries.

mod suite;

pub(crate) use suite::conformance;

const ROCKSDB: &str = "LSMTUNE_TEST_ROCKSDB";
const LEVELDB: &str = "LSMTUNE_TEST_LEVELDB";
/// Without its variable, a test fails.
const OPTIONAL: bool = false;

conformance! {
    memory => Some(crate::suite::memory());
    rocksdb => crate::suite::rocksdb();
    leveldb => crate::suite::leveldb();
}
