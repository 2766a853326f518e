from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from database_parts import LIMITS, LOAD, READ, READS, SETTLE, Requests, phases
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.errors import InputError
from lsmtune.experiment import database_key
from lsmtune.experiment.database_key import (
    GoldenPlan,
    digest_of,
    golden_plan,
    layout_of,
    load_and_run,
)
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.request import SEED_MAX, BulkLoad, Limits, Prepared, RunRequest
from lsmtune.model.workload import Durability, PageCache, Phase, PhaseKind, Replay, Workload
from lsmtune.proof.crash_test import load_of
from lsmtune.workloads.stated import make_workload

WARMUP = replace(READ, name="warmup", kind=PhaseKind.WARMUP)
FILL = Phase("fillrandom", PhaseKind.MEASURE, "fillrandom", operations_per_thread=100)


def plan_of(request: RunRequest) -> GoldenPlan:
    found = golden_plan(request)
    assert found is not None
    return found


@pytest.mark.parametrize("workload", [phases(FILL), phases(SETTLE, FILL), phases(LOAD, SETTLE)])
def test_a_workload_that_does_not_begin_with_a_load_or_is_nothing_else(workload: Workload) -> None:
    assert load_and_run(workload, "rocksdb") is None


def test_what_a_trace_loads_has_no_ledger_and_what_it_measures_needs_none() -> None:
    replayed = Phase("replay", PhaseKind.LOAD, replay=Replay("a.trace"))
    assert load_and_run(phases(LOAD, replayed, READ), "rocksdb") is None
    assert (
        load_and_run(phases(LOAD, replace(replayed, kind=PhaseKind.MEASURE)), "rocksdb") is not None
    )


def test_the_leading_phases_are_loaded_and_the_others_run() -> None:
    plan = load_and_run(phases(LOAD, SETTLE, WARMUP, READ), "rocksdb")
    assert plan is not None
    load, run = plan
    assert load.phases == (LOAD, SETTLE)
    assert run == phases(LOAD, SETTLE, WARMUP, READ)


def test_a_load_that_is_not_settled_gets_a_settle_phase_in_both() -> None:
    plan = load_and_run(phases(LOAD, READ), "rocksdb")
    assert plan is not None
    load, run = plan
    assert [p.kind for p in load.phases] == [PhaseKind.LOAD, PhaseKind.SETTLE]
    assert run.phases == (*load.phases, READ)


@pytest.mark.parametrize(
    ("engine", "families", "durability", "loaded_with"),
    [
        ("rocksdb", 1, "sync", "none"),
        ("rocksdb", 1, "wal", "none"),
        ("rocksdb", 2, "sync", "wal"),  # the size of the log decides when memtables are full
        ("rocksdb", 2, "none", "none"),
        ("leveldb", 1, "sync", "wal"),
        ("leveldb", 1, "wal", "wal"),
    ],
)
def test_a_load_writes_no_log_where_the_tree_is_the_same_without(
    engine: str, families: int, durability: str, loaded_with: str
) -> None:
    workload = phases(LOAD, SETTLE, READ, durability=Durability(durability))
    plan = load_and_run(replace(workload, column_families=families), engine)
    assert plan is not None
    load, run = plan
    assert (load.durability.value, run.durability.value) == (loaded_with, durability)


@pytest.mark.parametrize(
    ("options", "holds"),
    [
        ({}, True),
        ({"max_bytes_for_level_multiplier": 10}, True),
        ({"max_bytes_for_level_multiplier": 4}, False),  # the upper levels hold a third of the data
        ({"max_bytes_for_level_multiplier_additional": "1:2:1"}, False),
        ({"compaction_style": "kCompactionStyleLevel"}, True),
        ({"compaction_style": "kCompactionStyleUniversal"}, False),
        ({"enable_blob_files": True}, False),
    ],
)
def test_compactions_wait_for_a_load_only_where_the_tree_becomes_the_same(
    make_request: Requests, tmp_path: Path, options: dict[str, OptionValue], holds: bool
) -> None:
    asked = make_request(**options)
    load = plan_of(asked).load_request(tmp_path)
    assert load.bulk_load is not None
    assert load.bulk_load.threads >= 1
    assert load.bulk_load.hold_compactions is holds
    other = replace(make_request(), engine=EngineIdentity("leveldb", library=asked.engine.library))
    assert plan_of(other).load_request(tmp_path).bulk_load == BulkLoad(1, hold_compactions=False)
    assert plan_of(asked).run_request(own_pages=False).bulk_load is None


def test_the_key_is_stable(make_request: Requests) -> None:
    # What is stored under a key outlives this process: another digest of the same thing would
    # leave every golden database behind. Change the text with `key.FORMAT_VERSION` only.
    request = replace(
        make_request(write_buffer_size=1 << 20, max_background_jobs=4),
        engine=EngineIdentity("rocksdb", version="10.2.1"),
    )
    document = plan_of(request).key
    assert document.pop("lsmtune_version")
    assert document.pop("protocol_version")
    load_seed = document.pop("load_seed")
    assert isinstance(load_seed, int)
    assert 0 <= load_seed <= SEED_MAX
    assert document == {
        "format_version": 6,
        "engine": {"name": "rocksdb", "version": "10.2.1"},
        "options": {"write_buffer_size": "1048576"},
        "load": {
            "phases": [_encoded(LOAD), _encoded(SETTLE)],
            "num": 100,
            "key_bytes": 16,
            "value_bytes": 100,
            "compression_ratio": 0.5,
            "durability": "none",
            "keys": None,
            "key_sizes": None,
            "databases": 1,
            "column_families": 1,
        },
        "verify_keys": 1000,
    }


def _encoded(phase: Phase) -> dict[str, object]:
    return {**vars(phase), "kind": phase.kind.value, "companions": []}


Change = Callable[[RunRequest], RunRequest]

SAME: dict[str, Change] = {
    "seed": lambda r: replace(r, seed=99),
    "directory": lambda r: replace(r, directory=r.directory / "elsewhere"),
    "trial": lambda r: replace(r, trial=4, cpus=(0,), slices=10),
    "limits": lambda r: replace(r, limits=Limits(1.0, 2, 3)),
    "measured": lambda r: replace(r, workload=phases(LOAD, SETTLE, FILL)),
    "page cache": lambda r: replace(r, workload=replace(READS, page_cache=PageCache.COLD)),
    "sync": lambda r: replace(r, workload=replace(READS, durability=Durability.SYNC)),
    "no log": lambda r: replace(r, workload=replace(READS, durability=Durability.NONE)),
    "name": lambda r: replace(r, workload=replace(READS, name="another")),
}
OTHER: dict[str, Change] = {
    "load seed": lambda r: replace(r, load_seed=1),
    "num": lambda r: replace(r, workload=replace(READS, num=101)),
    "key bytes": lambda r: replace(r, workload=replace(READS, key_bytes=17)),
    "value bytes": lambda r: replace(r, workload=replace(READS, value_bytes=101)),
    "ratio": lambda r: replace(r, workload=replace(READS, compression_ratio=0.4)),
    "load": lambda r: replace(r, workload=phases(replace(LOAD, threads=2), SETTLE, READ)),
    "verify": lambda r: replace(r, verify_keys=5000),
    "engine": lambda r: replace(r, engine=EngineIdentity("leveldb", library=r.engine.library)),
}


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_what_the_database_does_not_depend_on(make_request: Requests, change: Change) -> None:
    request = make_request(write_buffer_size=1 << 20)
    assert plan_of(change(request)).key == plan_of(request).key


@pytest.mark.parametrize("change", OTHER.values(), ids=OTHER)
def test_what_the_database_depends_on(make_request: Requests, change: Change) -> None:
    request = make_request(write_buffer_size=1 << 20)
    assert plan_of(change(request)).digest != plan_of(request).digest


def test_only_options_of_the_layout_count(make_request: Requests) -> None:
    plain = plan_of(make_request()).key
    assert plan_of(make_request(max_background_jobs=4)).key == plain
    assert plan_of(make_request(write_buffer_size=1 << 20)).key != plain


def test_a_library_is_what_its_bytes_are(make_request: Requests, tmp_path: Path) -> None:
    request = make_request()
    moved, changed = tmp_path / "moved.so", tmp_path / "changed.so"
    moved.write_bytes(make_request.library.read_bytes())
    changed.write_bytes(b"another engine")

    def digest(library: Path) -> str:
        engine = EngineIdentity("rocksdb", library=str(library))
        return plan_of(replace(request, engine=engine)).digest

    assert digest(moved) == plan_of(request).digest != digest(changed)


def test_a_library_is_read_again_only_when_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def reading(path: Path) -> str:
        read.append(path)
        return path.read_text()

    monkeypatch.setattr(database_key, "file_sha256", reading)
    library = tmp_path / "lib.so"
    library.write_text("one")
    assert [digest_of(library), digest_of(library)] == ["one", "one"]
    library.write_text("other")
    assert digest_of(library) == "other"
    assert len(read) == 2


def test_runs_that_leave_the_seed_open_share_one(make_request: Requests) -> None:
    first, second = plan_of(make_request()), plan_of(make_request(max_background_jobs=4))
    assert first.request.seed != second.request.seed
    assert first.load_seed == second.load_seed
    assert plan_of(make_request(load_seed=5)).load_seed == 5


@pytest.mark.parametrize(
    "engine",
    [EngineIdentity("memory"), EngineIdentity("rocksdb"), EngineIdentity("rocksdb", library="/no")],
)
def test_engines_without_files_or_identity(make_request: Requests, engine: EngineIdentity) -> None:
    assert golden_plan(replace(make_request(), engine=engine)) is None


def test_a_request_with_a_database_of_its_own_is_left_alone(make_request: Requests) -> None:
    request = make_request()
    ledger = request.directory / "ledger"
    for own in (
        replace(request, prepared=Prepared(ledger, 2)),
        replace(request, save_ledger=ledger),
    ):
        assert golden_plan(own) is None


# --- mixes


def digest(make_request: Requests, workload: Workload) -> str:
    plan = golden_plan(replace(make_request(), workload=workload))
    assert plan is not None
    return plan.digest


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("ycsb-a", {"recordcount": 500}),
        ("ycsb-a", {"fieldlength": 50}),
        ("ycsb-a", {"fieldlengthdistribution": "uniform"}),
        ("ycsb-a", {"insertorder": "ordered"}),
        ("ycsb-a", {"zeropadding": 30}),
        ("ycsb-a", {"insertstart": 5}),
        ("ycsb-a", {"threadcount": 2}),
        ("ycsb-a", {"column_families": 2}),
        ("udb", {}),
    ],
)
def test_what_is_loaded_otherwise_is_another_database(
    make_request: Requests, name: str, given: dict[str, object]
) -> None:
    changed = make_workload(name, given, "test")
    assert digest(make_request, changed) != digest(
        make_request, make_workload("ycsb-a", {}, "test")
    )


def test_workloads_that_load_alike_share_a_database(make_request: Requests) -> None:
    alike = [make_workload(f"ycsb-{letter}", {}, "test") for letter in "abcdef"]
    alike.append(make_workload("ycsb-a", {"operationcount": 5, "target": 9}, "test"))
    assert len({digest(make_request, workload) for workload in alike}) == 1


def test_several_databases_are_not_copied(make_request: Requests) -> None:
    workload = make_workload("ycsb-a", {"databases": 2}, "test")
    assert golden_plan(replace(make_request(), workload=workload)) is None


def test_the_load_that_is_killed_has_plain_keys_of_the_same_size() -> None:
    workload = make_workload("udb", {"databases": 2, "column_families": 3}, "test")
    load = load_of(workload, LIMITS, 1_000_000)
    assert (load.key_bytes, load.key_sizes, load.databases, load.column_families) == (
        27,
        None,
        1,
        1,
    )
    assert load.num == 1_000_000 // (27 + workload.value_bytes)
    ycsb = load_of(make_workload("ycsb-a", {}, "test"), LIMITS, 1_000_000)
    assert (ycsb.keys, ycsb.key_bytes) == (None, 23)


# --- the layout, which is the part of a configuration that shapes a database


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
    ("engine", "option", "side"),
    [
        ("rocksdb", "compression", "layout"),
        ("rocksdb", "write_buffer_size", "layout"),
        ("rocksdb", "max_write_buffer_number", "layout"),
        ("rocksdb", "block_based_table_factory.filter_policy", "layout"),
        ("rocksdb", "block_based_table_factory.format_version", "layout"),
        ("rocksdb", "num_levels", "layout"),
        ("rocksdb", "max_subcompactions", "layout"),
        ("rocksdb", "comparator", "layout"),
        ("rocksdb", "block_based_table_factory.block_cache", "runtime"),
        ("rocksdb", "max_background_jobs", "runtime"),
        ("rocksdb", "max_open_files", "runtime"),
        ("rocksdb", "level0_slowdown_writes_trigger", "runtime"),
        ("leveldb", "block_size", "layout"),
        ("leveldb", "max_file_size", "layout"),
        ("leveldb", "filter_bits", "layout"),
        ("leveldb", "compression", "layout"),
        ("leveldb", "write_buffer_size", "layout"),
        ("leveldb", "cache_size", "runtime"),
        ("leveldb", "max_open_files", "runtime"),
    ],
)
def test_where_an_option_belongs(engine: str, option: str, side: str) -> None:
    layout = layout_of(Config({option: 1}), engine)
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
