from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.errors import InputError
from lsmtune.experiment.database_key import layout_of
from lsmtune.model.config import Config, OptionValue

CATALOGUE = option_catalogue("rocksdb")
SOME = st.dictionaries(st.sampled_from([*CATALOGUE, "an_option_of_a_fork"]), st.integers(0, 9))


@given(SOME)
def test_an_option_of_the_layout_keeps_its_value(options: dict[str, int]) -> None:
    assert layout_of(Config(options), "rocksdb").options.items() <= options.items()


@given(SOME)
def test_no_option_of_the_layout_is_left_to_the_run(options: dict[str, int]) -> None:
    runtime = options.keys() - layout_of(Config(options), "rocksdb").options.keys()
    assert all(CATALOGUE[name].effect == "runtime" for name in runtime)


@given(SOME)
def test_the_layout_of_a_layout_is_itself(options: dict[str, int]) -> None:
    layout = layout_of(Config(options), "rocksdb")
    assert layout_of(layout, "rocksdb") == layout


@pytest.mark.parametrize(
    ("option", "side"),
    [
        ("compression", "layout"),
        ("write_buffer_size", "layout"),
        ("max_write_buffer_number", "layout"),
        ("block_based_table_factory.filter_policy", "layout"),
        ("block_based_table_factory.format_version", "layout"),
        ("num_levels", "layout"),
        ("max_subcompactions", "layout"),
        ("comparator", "layout"),
        ("block_based_table_factory.block_cache", "runtime"),
        ("max_background_jobs", "runtime"),
        ("max_open_files", "runtime"),
        ("level0_slowdown_writes_trigger", "runtime"),
    ],
)
def test_where_an_option_belongs(option: str, side: str) -> None:
    layout = layout_of(Config({option: 1}), "rocksdb")
    assert (option in layout.options) == (side == "layout")


@pytest.mark.parametrize(
    ("option", "side"),
    [
        ("block_size", "layout"),
        ("max_file_size", "layout"),
        ("filter_bits", "layout"),
        ("compression", "layout"),
        ("write_buffer_size", "layout"),
        ("cache_size", "runtime"),
        ("max_open_files", "runtime"),
    ],
)
def test_where_an_option_of_leveldb_belongs(option: str, side: str) -> None:
    layout = layout_of(Config({option: 1}), "leveldb")
    assert (option in layout.options) == (side == "layout")


def test_what_a_layout_cannot_do_without_goes_with_it() -> None:
    vector: dict[str, OptionValue] = {
        "memtable_factory.id": "vector",
        "allow_concurrent_memtable_write": False,
    }
    assert layout_of(Config(vector), "rocksdb").options == vector
    alone = Config({"allow_concurrent_memtable_write": False})
    assert not layout_of(alone, "rocksdb").options


def test_what_is_tied_through_another_option_goes_with_it_too() -> None:
    triggers = {
        "level0_file_num_compaction_trigger": 30,
        "level0_slowdown_writes_trigger": 40,
        "level0_stop_writes_trigger": 50,
    }
    config = Config({**triggers, "max_background_jobs": 4})
    assert layout_of(config, "rocksdb").options == triggers


def test_an_engine_without_a_catalogue_is_refused() -> None:
    with pytest.raises(InputError, match="memory"):
        layout_of(Config(), "memory")
