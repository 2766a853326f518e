"""What the tests of exports share: options to export, and which of them RocksDB says it took."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from importer_parts import config
from option_cases import batches, cases_of, rules_of

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.option_names import TABLE_OPTION
from lsmtune.model.config import OptionValue
from lsmtune.space.parameter import same_value

DEBIAN = "7.8.3"  # of RocksDB's headers, library and db_bench in Debian 12
CACHE = f"{TABLE_OPTION}.block_cache"
# What no OPTIONS file tells. The size of the cache is compared in another way.
UNTOLD = (CACHE, "rate_limiter_bytes_per_sec", "memtable_factory")


@functools.cache
def most(version: str) -> dict[str, OptionValue]:
    """Three quarters of RocksDB's options at once, each at another value than its default."""
    rules = rules_of(option_catalogue("rocksdb"), version)
    cases = [case for info in rules.catalogue.values() for case in cases_of(rules, info)]
    together = batches(rules, [c for c in cases if c.value != rules.defaults.get(c.name)])[0]
    options = {name: value for case in together for name, value in case.options.items()}
    assert len(options) > 110
    told = {name: value for name, value in options.items() if not name.startswith(UNTOLD)}
    return {**told, CACHE: options[CACHE]}


def written(database: Path) -> str:
    """The OPTIONS file that RocksDB wrote last."""
    return max(database.glob("OPTIONS-*")).read_text()


def used_by(database: Path) -> Mapping[str, OptionValue]:
    """All options that RocksDB wrote last."""
    return config(written(database), "rocksdb-options", keep=True).options


def version_of(database: Path) -> str:
    """The version of the RocksDB that wrote last."""
    return written(database).partition("rocksdb_version=")[2].split()[0]


def check_took(database: Path, asked: Mapping[str, OptionValue]) -> None:
    """Every option that was asked for is in the OPTIONS file; the cache's size never is."""
    used = used_by(database)
    others = {
        name: (value, used.get(name))
        for name, value in asked.items()
        if name != CACHE and not (name in used and same_value(used[name], value))
    }
    assert not others, f"asked and used: {others}"


def run(*command: str | Path, said: str | None = None, **environment: str) -> str:
    """Standard output of a program that reads `said` and ends well."""
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        input=said,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


LEVELDB: dict[str, OptionValue] = {
    "write_buffer_size": 1 << 20,
    "max_file_size": 4 << 20,
    "block_size": 8192,
    "block_restart_interval": 8,
    "max_open_files": 100,
    "compression": "none",
    "cache_size": 1 << 20,
    "filter_bits": 10,
}
