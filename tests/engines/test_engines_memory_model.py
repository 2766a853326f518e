"""The memory models: formulas against worked examples, and an upper bound of real engines."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.driver.native import NativeRunner
from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.memory_model import memory_model
from lsmtune.errors import InputError
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload

MIB = 2**20
# The headers and unused ends of allocations, which no part counts, and other allocators.
SLACK = 0.15
TABLE = "block_based_table_factory"
GIST = Path(__file__).parents[3] / "shared" / "data" / "seed-results" / "optuna-gist-summary.json"

Options = dict[str, OptionValue]


def test_defaults_of_both_engines() -> None:
    rocksdb = memory_model("rocksdb", {})
    # Two memtables of 64 MiB, each with 0.6 of an arena block of 1 MiB over it.
    assert rocksdb["memtables"] == pytest.approx(2 * (64 + 0.6) * MIB, abs=2)
    assert rocksdb["block_cache"] == 32 * MIB
    assert memory_model("rocksdb", {}, version="7.8.3")["block_cache"] == 8 * MIB
    leveldb = memory_model("leveldb", {})
    assert leveldb["memtables"] == 2 * (4 * MIB + 4096)
    assert leveldb["block_cache"] == 8 * MIB


def test_the_engines_within_the_driver_have_no_parts() -> None:
    for name in ("memory", "noop"):
        assert memory_model(name, {}) == {}
    with pytest.raises(InputError, match=r"found 'rocksbd'.*did you mean rocksdb"):
        memory_model("rocksbd", {})


def test_the_gist_winner_takes_more_memory_than_its_data() -> None:
    if not GIST.is_file():
        pytest.skip(f"{GIST} is not there")
    best = json.loads(GIST.read_text())["best_params"]
    options: Options = {
        "write_buffer_size": best["write-buffer-size"],
        "max_write_buffer_number": best["max-write-buffer-number"],
        "min_write_buffer_number_to_merge": best["min-write-buffer-number-to-merge"],
        "memtable_factory.id": "HashLinkListRepFactory",
        "memtable_factory.bucket_count": best["memtable-factory-hashlinklist-bucket-count"],
        "memtable_prefix_bloom_size_ratio": best["memtable-prefix-bloom-ratio"],
        "prefix_extractor": "rocksdb.Noop",
        "compaction_style": "kCompactionStyleFIFO",
        "disable_auto_compactions": best["disable-auto-compactions"],
        "use_direct_reads": best["use-direct-reads"],
        "compaction_readahead_size": best["compaction-readahead-size"],
        f"{TABLE}.block_cache": best["block-opt-lru-cache"],
        f"{TABLE}.block_size": best["block-opt-block-size"],
        f"{TABLE}.filter_policy": f"bloomfilter:{best['block-opt-bloom-filter-bits-per-key']}",
        f"{TABLE}.cache_index_and_filter_blocks": True,
    }
    model = memory_model("rocksdb", options)
    assert model["memtables"] > 32 * 253_269_056 > 500_000 * 10_250
    assert model["compaction_reads"] == 0


def test_what_a_memtable_allocates_at_once_counts_where_it_is_larger() -> None:
    small: Options = {"write_buffer_size": MIB, "max_write_buffer_number": 3}
    hashed = small | {"memtable_factory.id": "prefix_hash", "prefix_extractor": "fixed:8"}
    arena = 128 * 1024  # an eighth of the write buffer
    assert memory_model("rocksdb", hashed)["memtables"] == 3 * (8 * 1_000_000 + arena)
    few = hashed | {"memtable_factory.bucket_count": 1000}
    assert memory_model("rocksdb", few) == memory_model("rocksdb", small)
    # RocksDB takes a skip list when there are no prefixes.
    without = hashed | {"prefix_extractor": "nullptr"}
    assert memory_model("rocksdb", without) == memory_model("rocksdb", small)


@pytest.mark.parametrize(
    "options",
    [
        {"memtable_factory": "prefix_hash:500000"},
        {"memtable_factory": "{id=prefix_hash:500000;}"},
        {"memtable_factory": "{id=HashSkipListRepFactory;bucket_count=500000;}"},
        {"memtable_factory.id": "hash_linkedlist", "memtable_factory.bucket_count": 500_000},
    ],
)
def test_every_spelling_of_a_hash_memtable_is_the_same(options: Options) -> None:
    given: Options = {"write_buffer_size": MIB, "prefix_extractor": "fixed:8", **options}
    assert memory_model("rocksdb", given)["memtables"] == 2 * (8 * 500_000 + 128 * 1024)


@pytest.mark.parametrize(
    "options",
    [
        {f"{TABLE}.block_cache": 5 * MIB},
        {f"{TABLE}.block_cache": "5M"},
        {f"{TABLE}.block_cache": "5MiB"},
        {f"{TABLE}.block_cache": "{capacity=5M;num_shard_bits=2}"},
        {TABLE: "{block_size=4K;block_cache={capacity=5M;};}"},
        {f"{TABLE}.block_cache": "5M", f"{TABLE}.block_cache.id": "hyper_clock_cache"},
    ],
)
def test_every_spelling_of_a_cache_is_the_same(options: Options) -> None:
    assert memory_model("rocksdb", options)["block_cache"] == 5 * MIB


def test_no_block_cache_and_none_given() -> None:
    assert memory_model("rocksdb", {f"{TABLE}.no_block_cache": True})["block_cache"] == 0
    assert memory_model("rocksdb", {f"{TABLE}.block_cache": "nullptr"})["block_cache"] == 32 * MIB
    assert memory_model("rocksdb", {"row_cache": 3 * MIB})["row_cache"] == 3 * MIB


def test_a_limit_over_all_memtables() -> None:
    four: Options = {
        "write_buffer_size": 64 * MIB,
        "max_write_buffer_number": 4,
        "arena_block_size": 4096,
    }
    free = memory_model("rocksdb", four)["memtables"]
    limited = memory_model("rocksdb", four | {"db_write_buffer_size": 32 * MIB})["memtables"]
    assert limited == (28 + 3 * 16) * MIB + 4 * 4096
    assert memory_model("rocksdb", four | {"db_write_buffer_size": 2**40})["memtables"] == free


def test_maintained_memtables() -> None:
    options: Options = {"write_buffer_size": 8 * MIB, "arena_block_size": 4096}
    keep = memory_model("rocksdb", options | {"max_write_buffer_size_to_maintain": 64 * MIB})
    assert keep["memtable_history"] == 64 * MIB
    all_of_them = memory_model("rocksdb", options | {"max_write_buffer_size_to_maintain": -1})
    assert all_of_them["memtable_history"] == 16 * MIB


def test_compaction_buffers() -> None:
    direct: Options = {
        "use_direct_reads": True,
        "compaction_readahead_size": MIB,
        "level0_stop_writes_trigger": 20,
        "max_background_compactions": 3,
        "max_subcompactions": 2,
    }
    assert memory_model("rocksdb", direct)["compaction_reads"] == (2 * 21 + 2 * 2) * MIB
    # RocksDB raises it to the trigger before it. -1, which `allow_unsafe` allows, was refused here.
    raised = direct | {"level0_stop_writes_trigger": -1, "level0_slowdown_writes_trigger": 20}
    assert memory_model("rocksdb", raised) == memory_model("rocksdb", direct)
    universal = direct | {"compaction_style": "kCompactionStyleUniversal", "num_levels": 5}
    assert memory_model("rocksdb", universal)["compaction_reads"] == 2 * 25 * MIB
    buffered = direct | {"use_direct_reads": False}
    assert memory_model("rocksdb", buffered)["compaction_reads"] == 0
    assert memory_model("rocksdb", buffered, version="7.8.3")["compaction_reads"] > 0
    no_compactions = direct | {"disable_auto_compactions": True}
    assert memory_model("rocksdb", no_compactions)["compaction_reads"] == 0


@pytest.mark.parametrize(
    ("engine", "options", "told"),
    [
        ("rocksdb", {"write_buffer_size": "64 furlongs"}, "write_buffer_size: found '64 furlongs'"),
        ("rocksdb", {"write_buffer_size": 1.5}, "write_buffer_size: found 1.5"),
        ("rocksdb", {"write_buffer_size": float("inf")}, "write_buffer_size: found inf"),
        ("rocksdb", {"write_buffer_size": -1}, "write_buffer_size: found -1"),
        ("rocksdb", {"max_background_jobs": True}, "max_background_jobs: found true"),
        ("rocksdb", {"use_direct_reads": "yes"}, "use_direct_reads: found 'yes'"),
        ("rocksdb", {"memtable_factory.id": "skiplist"}, "did you mean skip_list?"),
        ("rocksdb", {"memtable_factory": "cuckoo"}, "memtable_factory: found 'cuckoo'"),
        (
            "rocksdb",
            {"memtable_factory": f"prefix_hash:{'9' * 5000}", "prefix_extractor": "fixed:8"},
            "allowed: prefix_hash:NUMBER",
        ),
        ("rocksdb", {"compaction_style": "kCompactionStyleFifo"}, "did you mean kCompaction"),
        ("rocksdb", {f"{TABLE}.filter_policy": "bloom:10"}, "filter_policy: found 'bloom:10'"),
        ("rocksdb", {f"{TABLE}.filter_policy": "bloomfilter"}, "found 'bloomfilter'"),
        ("rocksdb", {f"{TABLE}.filter_policy": "ribbonfilter:-1"}, "found 'ribbonfilter:-1'"),
        ("rocksdb", {f"{TABLE}.block_cache": "{capacity=8M"}, "unbalanced braces"),
        ("rocksdb", {"memtable_prefix_bloom_size_ratio": "much"}, "found 'much'"),
        ("rocksdb", {"memtable_prefix_bloom_size_ratio": "1.5B"}, "found '1.5B'; allowed: a num"),
        ("leveldb", {"cache_size": "big"}, "cache_size: found 'big'"),
    ],
)
def test_values_that_cannot_be_read(engine: str, options: Options, told: str) -> None:
    with pytest.raises(InputError) as caught:
        memory_model(engine, options, source="study.yaml")
    line = str(caught.value)
    assert line.startswith("study.yaml: ")
    assert told in line
    assert "\n" not in line


def catalogue_values(engine: str) -> list[tuple[str, OptionValue]]:
    values: list[tuple[str, OptionValue]] = []
    for info in option_catalogue(engine).values():
        listed = (info.default, info.low, info.high, *info.choices, *(v for v, _ in info.specials))
        values += [(info.name, value) for value in listed if value is not None]
    return values


@pytest.mark.parametrize("engine", ["rocksdb", "leveldb"])
def test_every_value_of_the_catalogue_can_be_read(engine: str) -> None:
    for name, value in catalogue_values(engine):
        assert sum(memory_model(engine, {name: value}).values()) > 0


GROWING = {
    "rocksdb": (
        "write_buffer_size",
        "max_write_buffer_number",
        "db_write_buffer_size",
        "max_write_buffer_size_to_maintain",
        "writable_file_max_buffer_size",
        f"{TABLE}.block_cache",
        "row_cache",
    ),
    "leveldb": ("write_buffer_size", "cache_size"),
}


@given(st.sampled_from(list(GROWING)), st.data())
def test_more_of_an_option_never_takes_less(engine: str, data: st.DataObject) -> None:
    sizes = st.integers(1, 2**34)
    options: Options = {
        name: data.draw(sizes, name)
        for name in GROWING[engine]
        if data.draw(st.booleans(), f"give {name}")
    }
    name = data.draw(st.sampled_from(GROWING[engine]))
    less = data.draw(sizes)
    more = less + data.draw(sizes)
    before = memory_model(engine, options | {name: less})
    after = memory_model(engine, options | {name: more})
    assert sum(before.values()) <= sum(after.values())


@dataclass(frozen=True)
class Case:
    """Options, how much is written and read, and what share of the model it should reach.

    `mapped_bytes`: of tables, which the model leaves out and LevelDB maps into its memory.
    """

    engine: str
    options: Options = field(default_factory=dict)
    keys: int = 1
    reads: int = 0
    share_min: float = 0.0
    mapped_bytes: int = 0


CASES = {
    "memtables": Case(
        "rocksdb",
        {
            "write_buffer_size": 8 * MIB,
            "max_write_buffer_number": 8,
            "min_write_buffer_number_to_merge": 7,
            f"{TABLE}.block_cache": MIB,
        },
        keys=70_000,
        share_min=0.6,
    ),
    "cache": Case(
        "rocksdb",
        {
            "write_buffer_size": 4 * MIB,
            "compression": "kNoCompression",
            f"{TABLE}.block_cache": 48 * MIB,
        },
        keys=70_000,
        reads=100_000,
        share_min=0.7,
    ),
    "leveldb": Case(
        "leveldb",
        {"write_buffer_size": 8 * MIB, "cache_size": 48 * MIB, "filter_bits": 10},
        keys=70_000,
        reads=100_000,
        share_min=0.5,
        mapped_bytes=70_000 * 1016,
    ),
}


def measured(driver: Path, library: Path, case: Case, directory: Path) -> Measurement:
    phases = [Phase("fill", PhaseKind.MEASURE, "filluniquerandom", operations_per_thread=case.keys)]
    if case.reads:
        read = Phase("read", PhaseKind.MEASURE, "readrandom", operations_per_thread=case.reads)
        phases += [Phase("settle", PhaseKind.SETTLE), read]
    workload = Workload("memory", tuple(phases), num=case.keys, value_bytes=1000)
    directory.mkdir()
    request = RunRequest(
        engine=EngineIdentity(case.engine, library=str(library)),
        config=Config(case.options),
        workload=workload,
        seed=1,
        directory=directory,
        limits=Limits(60.0, 2**31, 2**31),
        verify_keys=1,
    )
    measurement = NativeRunner(driver).run(request)
    assert measurement.outcome is Outcome.OK, measurement.error
    return measurement


@pytest.mark.engine
@pytest.mark.parametrize("name", list(CASES))
def test_real_engines_stay_below_the_model(
    driver: Path, name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    case = CASES[name]
    library: Path = request.getfixturevalue(f"{case.engine}_library")
    empty = measured(driver, library, Case(case.engine), tmp_path / "empty")
    full = measured(driver, library, case, tmp_path / "full")
    model = memory_model(case.engine, case.options, version=full.engine.version)
    bound = sum(model.values()) + case.mapped_bytes
    used = (full.rss_bytes_max or 0) - (empty.rss_bytes_max or 0)
    assert case.share_min * bound < used <= (1 + SLACK) * bound
