"""A configuration at another scale of the data."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.engines.catalogue import catalogue_defaults
from lsmtune.engines.scaling import PAGE_BYTES, least_of, scaled, scaling_options, write_cycle
from lsmtune.model.config import OptionValue

MIB = 2**20
CACHE = "block_based_table_factory.block_cache"


def test_what_is_as_large_as_the_data_shrinks_with_it_and_nothing_else_does() -> None:
    options = {
        "write_buffer_size": 64 * MIB,
        "max_bytes_for_level_base": 256 * MIB,
        "target_file_size_base": 64 * MIB,
        CACHE: 1024 * MIB,
        "soft_pending_compaction_bytes_limit": 2**36,
        "max_total_wal_size": 2**30,
        "bytes_per_sync": MIB,
        "wal_bytes_per_sync": MIB,
        "arena_block_size": MIB,
        "block_based_table_factory.block_size": 16384,
        "block_based_table_factory.filter_policy": "bloomfilter:10",
        "level0_file_num_compaction_trigger": 4,
        "max_bytes_for_level_multiplier": 10.0,
        "max_write_buffer_number": 4,
        "max_background_jobs": 8,
        "compression": "kLZ4Compression",
    }
    eighth = scaled("rocksdb", options, 1 / 8)
    shrunk = set(list(options)[:9])
    for name, value in options.items():
        assert eighth[name] == (value / 8 if name in shrunk else value), name


def test_defaults_that_nobody_set_shrink_too() -> None:
    tenth = scaled("rocksdb", {}, 1 / 16, "8.1.1")
    assert tenth["write_buffer_size"] == 4 * MIB
    assert tenth[CACHE] == MIB // 2  # 8 MiB in that version, and 32 MiB later
    assert scaled("rocksdb", {}, 1 / 16)[CACHE] == 2 * MIB
    # RocksDB makes them from others while they are not set.
    assert not {"arena_block_size", "max_compaction_bytes"} & tenth.keys()
    # Of what does nothing here, nothing is said.
    assert "blob_file_size" not in tenth
    assert "blob_file_size" in scaled("rocksdb", {"enable_blob_files": True}, 1 / 16)
    assert CACHE not in scaled("rocksdb", {"block_based_table_factory.no_block_cache": True}, 0.5)


def test_a_size_in_rocksdbs_own_spelling_shrinks_as_any_other_does() -> None:
    """`1G` stayed as it was: a model of a sixteenth of the data had the cache of all of them."""
    small = scaled("rocksdb", {"write_buffer_size": "64M", CACHE: "1G"}, 1 / 16)
    assert (small["write_buffer_size"], small[CACHE]) == (4 * MIB, 64 * MIB)
    assert scaled("rocksdb", {CACHE: "nullptr"}, 1 / 16)[CACHE] == "nullptr"
    # LevelDB's options have no such letters, and its driver says so.
    assert scaled("leveldb", {"write_buffer_size": "64M"}, 1 / 16)["write_buffer_size"] == "64M"
    # `0` is false to the engine, so that the cache is there.
    no_cache = "block_based_table_factory.no_block_cache"
    assert scaled("rocksdb", {no_cache: 0}, 1 / 16)[CACHE] == 2 * MIB


@pytest.mark.parametrize(
    ("options", "shrunk"),
    [
        ({f"{CACHE}.capacity": "1G"}, {f"{CACHE}.capacity": 64 * MIB}),
        (
            {CACHE: "{capacity=1G;num_shard_bits=4;}"},
            {f"{CACHE}.capacity": 64 * MIB, f"{CACHE}.num_shard_bits": "4"},
        ),
        (
            {"block_based_table_factory": "{block_cache={capacity=1G};block_size=16K}"},
            {f"{CACHE}.capacity": 64 * MIB, "block_based_table_factory.block_size": "16K"},
        ),
        ({"block_based_table_factory": "{block_cache=1G;}"}, {CACHE: 64 * MIB}),
        (
            {"block_based_table_factory": "{block_size=16K}"},
            {CACHE: 2 * MIB, "block_based_table_factory.block_size": "16K"},
        ),
        ({CACHE: f"{{{CACHE}"}, {CACHE: f"{{{CACHE}"}),
    ],
)
def test_a_cache_in_the_text_of_an_object_shrinks_as_any_other_does(
    options: dict[str, OptionValue], shrunk: dict[str, OptionValue]
) -> None:
    """The cache of a model was that of the target, or had the default's size beside its own."""
    small = scaled("rocksdb", options, 1 / 16)
    table = "block_based_table_factory"
    assert {name: value for name, value in small.items() if name.startswith(table)} == shrunk
    assert scaled("rocksdb", options, 1.0) == options


def test_what_a_size_means_beside_its_number_stays() -> None:
    options = {"max_total_wal_size": 0, "bytes_per_sync": 0, "max_open_files": -1}
    small = scaled("rocksdb", options, 0.01)
    assert {name: small[name] for name in options} == options


def test_no_size_falls_below_what_the_engine_takes() -> None:
    small = scaled("rocksdb", {"write_buffer_size": MIB}, 0.001)
    assert small["write_buffer_size"] == 65536
    assert scaled("leveldb", {}, 0.001) == {
        "write_buffer_size": 65536,
        "max_file_size": MIB,
        "cache_size": 8192,
    }
    # What was smaller before is left to the engine as it is.
    assert scaled("rocksdb", {"write_buffer_size": 1000}, 0.5)["write_buffer_size"] == 1000


def test_the_whole_scale_and_unknown_engines_change_nothing() -> None:
    options = {"write_buffer_size": 5 * MIB + 1}
    assert scaled("rocksdb", options, 1.0) == options
    assert scaled("memory", options, 0.1) == options


def test_a_size_of_no_whole_pages_does_not_grow_at_a_scale_near_one() -> None:
    """32,893,257 bytes are 8,030.6 pages, and 0.99999 of them 8,030.5: the nearest is larger."""
    found = scaled("rocksdb", {"max_bytes_for_level_base": 32_893_257}, 0.99999)
    assert found["max_bytes_for_level_base"] == 8030 * PAGE_BYTES


@given(st.sampled_from(["rocksdb", "leveldb"]), st.floats(1e-6, 1.0), st.data())
def test_sizes_are_whole_pages_and_never_grow(
    engine: str, scale: float, data: st.DataObject
) -> None:
    options = {}
    for name, info in scaling_options(engine).items():
        if info.type == "int" and data.draw(st.booleans()):
            options[name] = data.draw(st.integers(int(info.low), int(info.high)))
    for name, value in scaled(engine, options, scale).items():
        info = scaling_options(engine)[name]
        before = options.get(name, catalogue_defaults(engine).get(name))
        assert value <= before
        assert value == before or value % PAGE_BYTES == 0
        assert value >= min(before, least_of(info))


def test_what_an_engine_collects_before_it_flushes_and_compacts() -> None:
    known = catalogue_defaults("rocksdb", None)
    assert write_cycle("rocksdb", {}, known) == (64 * MIB, 4)
    merged = {"write_buffer_size": 32 * MIB, "min_write_buffer_number_to_merge": 3}
    trigger = {"level0_file_num_compaction_trigger": 9}
    assert write_cycle("rocksdb", {**merged, **trigger}, known) == (96 * MIB, 9)
    assert write_cycle("leveldb", {}, catalogue_defaults("leveldb", None)) == (4 * MIB, 4)
    assert write_cycle("rocksdb", {"write_buffer_size": "8M"}, known) == (8 * MIB, 4)
    off = "disable_auto_compactions"
    for never in ({"level0_file_num_compaction_trigger": -1}, {off: True}, {off: 1}):
        assert write_cycle("rocksdb", never, known) == (64 * MIB, sys.maxsize)
    assert write_cycle("own-program", {"write_buffer_size": MIB}, {}) == (1, 1)
