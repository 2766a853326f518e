//! The suite once more, over the libraries of the distribution: other versions than those that
//! `make setup` installs. In a process of its own, because two versions of one C++ library in one
//! process share some of their static data.
//!
//! `make test` sets the variables where the distribution's packages are installed.

mod suite;

pub(crate) use suite::conformance;

const ROCKSDB: &str = "LSMTUNE_TEST_ROCKSDB_DEBIAN";
const LEVELDB: &str = "LSMTUNE_TEST_LEVELDB_DEBIAN";
/// Without its variable, a test says that it did nothing: not every machine has the packages.
const OPTIONAL: bool = true;

conformance! {
    rocksdb => crate::suite::rocksdb();
    leveldb => crate::suite::leveldb();
}
