"""`page_cache: direct` is a matter of options, which the result has to carry."""

from __future__ import annotations

import pytest

from lsmtune.engines.workload_options import with_page_cache
from lsmtune.errors import InputError
from lsmtune.model.config import Config
from lsmtune.model.workload import PageCache

GIVEN = Config({"write_buffer_size": 1 << 20}, "mine")


@pytest.mark.parametrize("page_cache", [PageCache.WARM, PageCache.COLD])
def test_warm_and_cold_need_no_option(page_cache: PageCache) -> None:
    assert with_page_cache(GIVEN, "rocksdb", page_cache, "-w") is GIVEN


def test_direct_sets_both_of_rocksdbs_options_and_keeps_the_rest() -> None:
    config = with_page_cache(GIVEN, "rocksdb", PageCache.DIRECT, "-w")
    assert config.label == "mine"
    assert config.options == {
        "write_buffer_size": 1 << 20,
        "use_direct_reads": True,
        "use_direct_io_for_flush_and_compaction": True,
    }
    assert with_page_cache(config, "rocksdb", PageCache.DIRECT, "-w").options == config.options


def test_leveldb_cannot_go_past_the_page_cache() -> None:
    with pytest.raises(InputError, match="-w: page_cache: found 'direct'; allowed: warm, cold"):
        with_page_cache(GIVEN, "leveldb", PageCache.DIRECT, "-w")


@pytest.mark.parametrize("value", [True, "true", 1])
def test_an_option_that_says_the_same_in_other_words_is_no_opposite(value: bool | str) -> None:
    """`use_direct_reads=1` was refused, which is true to RocksDB."""
    config = with_page_cache(Config({"use_direct_reads": value}), "rocksdb", PageCache.DIRECT, "-w")
    assert config.options["use_direct_reads"] is True


@pytest.mark.parametrize("value", [False, "false"])
def test_an_option_that_says_the_opposite_is_refused(value: bool | str) -> None:
    config = Config({"use_direct_reads": value})
    with pytest.raises(InputError, match="-w: use_direct_reads: found 'false'; allowed: true"):
        with_page_cache(config, "rocksdb", PageCache.DIRECT, "-w")
