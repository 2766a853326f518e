"""Which program a file is, by its answer to `--help`: both db_benches have one name.

RocksDB's db_bench  help of gflags with `-benchmarks (`, on stdout
LevelDB's db_bench  "Invalid flag '--help'", on stderr
YCSB-cpp            "Usage:" and "-load: run the loading phase of the workload", on stdout
ekvsb               help of clap with its commands `run`, `workload`, `summary` and `plot`
"""

from __future__ import annotations

import re

ROCKSDB_DB_BENCH = "rocksdb-db_bench"
LEVELDB_DB_BENCH = "leveldb-db_bench"
YCSB_CPP = "ycsb-cpp"
EKVSB = "ekvsb"

_ANSWERS = (
    (ROCKSDB_DB_BENCH, re.compile(r"^ +-benchmarks \(", re.MULTILINE)),
    (LEVELDB_DB_BENCH, re.compile(r"^Invalid flag '--help'", re.MULTILINE)),
    (YCSB_CPP, re.compile(r"^ *-load: run the loading phase of the workload", re.MULTILINE)),
    (EKVSB, re.compile(r"^ +summary +Shows summary of a benchmark result", re.MULTILINE)),
)
_VERSION = re.compile(r"db_bench version (?P<version>[0-9.]+)")


def recognised(answer: str) -> str | None:
    """The program that says `answer`, stdout and stderr, when asked for `--help`; None: another."""
    return next((name for name, pattern in _ANSWERS if pattern.search(answer)), None)


def stated_version(answer: str) -> str | None:
    """The version that RocksDB's db_bench says when asked for `--version`."""
    match = _VERSION.search(answer)
    return None if match is None else match["version"]
