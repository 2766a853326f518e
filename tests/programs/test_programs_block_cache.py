"""The block cache that db_bench runs with is that of the configuration, however that says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmtune.errors import InputError
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.request import Limits, RunRequest
from lsmtune.programs.db_bench import ROCKSDB_PROGRAM
from lsmtune.programs.program import FoundProgram
from lsmtune.workloads.stated import make_workload

TABLE = "block_based_table_factory"
WORKLOAD = make_workload("fillrandom", {"num": 1000}, "test")


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({}, []),
        ({f"{TABLE}.block_size": 8192}, []),
        ({f"{TABLE}.block_cache": 8 << 20}, ["--cache_size=8388608"]),
        ({f"{TABLE}.block_cache": "8M"}, ["--cache_size=8388608"]),
        ({TABLE: "{block_cache=8M;block_size=8K;}"}, ["--cache_size=8388608"]),
        ({f"{TABLE}.no_block_cache": True}, ["--cache_size=0"]),
        ({TABLE: "{no_block_cache=1;}"}, ["--cache_size=0"]),
    ],
)
def test_db_bench_is_told_the_cache_however_the_configuration_says_it(
    options: dict[str, OptionValue], flags: list[str]
) -> None:
    """In the text of an object it was not seen: the run had the 8 or 32 MiB of db_bench itself.

    So had a run without a block cache. RocksDB's own `8M` was passed on, which is no number there.
    """
    limits = Limits(20.0, 1 << 30, 1 << 30)
    config = Config(options)
    request = RunRequest(EngineIdentity("rocksdb"), config, WORKLOAD, 1, Path("/r"), limits)
    found = FoundProgram("rocksdb-db_bench", Path("/db_bench"))
    for step in ROCKSDB_PROGRAM.plan(request, found).steps:
        said = [argument for argument in step.arguments if argument.startswith("--cache_size")]
        assert said == flags


@pytest.mark.parametrize(
    ("options", "known", "flags"),
    [
        ({f"{TABLE}.block_cache": "8M"}, ("cache_type",), ["--cache_type=lru_cache"]),
        ({f"{TABLE}.block_cache": "8M"}, ("use_clock_cache",), []),
        ({f"{TABLE}.no_block_cache": True}, ("cache_type",), []),
        ({}, ("cache_type",), []),
    ],
)
def test_a_cache_of_a_stated_size_is_of_the_kind_that_the_library_makes_of_it(
    options: dict[str, OptionValue], known: tuple[str, ...], flags: list[str]
) -> None:
    """Newer db_bench made a hyper clock cache of a size that is an LRU cache's to the library."""
    limits = Limits(20.0, 1 << 30, 1 << 30)
    config = Config(options)
    request = RunRequest(EngineIdentity("rocksdb"), config, WORKLOAD, 1, Path("/r"), limits)
    found = FoundProgram("rocksdb-db_bench", Path("/db_bench"), flags=known)
    for step in ROCKSDB_PROGRAM.plan(request, found).steps:
        said = [argument for argument in step.arguments if argument.startswith("--cache_type")]
        assert said == flags


def test_a_size_that_db_bench_cannot_be_told_is_refused() -> None:
    """`8.5M` was dropped, and the run had the 8 or 32 MiB of db_bench itself."""
    limits = Limits(20.0, 1 << 30, 1 << 30)
    config = Config({f"{TABLE}.block_cache": "8.5M"})
    request = RunRequest(EngineIdentity("rocksdb"), config, WORKLOAD, 1, Path("/r"), limits)
    with pytest.raises(InputError, match=r"options\..*block_cache: found '8\.5M'; allowed"):
        ROCKSDB_PROGRAM.plan(request, FoundProgram("rocksdb-db_bench", Path("/db_bench")))
