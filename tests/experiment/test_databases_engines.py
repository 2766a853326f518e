"""Golden databases of real engines: runs start from copies, and leave the originals as they were.

A release build of each engine, small tables, so that a run on a copy has many to compact away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from database_parts import Requests, contents

from lsmtune.driver.native import NativeRunner
from lsmtune.experiment.database_files import Golden, goldens_in
from lsmtune.experiment.databases import DatabaseCache
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Workload
from lsmtune.workloads.stated import make_workload

pytestmark = pytest.mark.engine

NUM = 10_000
LIMITS = Limits(deadline_s=60.0, memory_bytes=2 << 30, disk_bytes=2 << 30)
SMALL: dict[str, dict[str, OptionValue]] = {
    "rocksdb": {
        "write_buffer_size": 128 << 10,
        "target_file_size_base": 64 << 10,
        "max_bytes_for_level_base": 256 << 10,
    },
    "leveldb": {"write_buffer_size": 64 << 10, "max_file_size": 1 << 20},
}
# Options that the golden database is not loaded with.
RUNTIME: dict[str, dict[str, OptionValue]] = {
    "rocksdb": {"max_background_jobs": 4, "block_based_table_factory.block_cache": 1 << 20},
    "leveldb": {"cache_size": 1 << 20, "max_open_files": 100},
}
WRITING = ("overwrite", "deleterandom")

Run = Callable[..., Measurement]


@pytest.fixture(params=["rocksdb", "leveldb"])
def engine(request: pytest.FixtureRequest) -> EngineIdentity:
    library: Path = request.getfixturevalue(f"{request.param}_library")
    return EngineIdentity(request.param, library=str(library))


@pytest.fixture
def cache(tmp_path: Path, driver: Path) -> DatabaseCache:
    return DatabaseCache(tmp_path / "databases", NativeRunner(driver), 1 << 30)


@pytest.fixture
def run(cache: DatabaseCache, driver: Path, engine: EngineIdentity, tmp_path: Path) -> Run:
    requests = Requests(tmp_path / "runs", Path(engine.library or ""))

    def measured(workload: Workload, **options: OptionValue) -> Measurement:
        request = replace(
            requests(workload=workload, limits=LIMITS),
            engine=engine,
            config=Config({**SMALL[engine.name], **options}),
        )
        return NativeRunner(driver).run(prepared(cache, request))

    return measured


def prepared(cache: DatabaseCache, request: RunRequest) -> RunRequest:
    ready = cache.prepare(request)
    assert ready.prepared is not None
    return ready


def workload(name: str, **parameters: object) -> Workload:
    return make_workload(name, {"num": NUM, **parameters}, "test")


def whole(goldens: list[Golden]) -> dict[str, dict[str, bytes]]:
    return {golden.path.name: contents(golden.database) for golden in goldens}


def test_runs_on_copies_leave_the_golden_database_as_it_was(
    cache: DatabaseCache, run: Run, engine: EngineIdentity
) -> None:
    before: dict[str, dict[str, bytes]] = {}
    for name in ("readrandom", *WRITING, "readseq"):
        measurement = run(workload(name), **RUNTIME[engine.name])
        assert measurement.outcome is Outcome.OK, measurement.error
        assert [phase.name for phase in measurement.phases] == [name]
        if name in WRITING:
            assert measurement.verification is not None
            assert measurement.verification.keys_checked >= 1000
            assert measurement.phases[0].compactions, "the run rewrote tables of its copy"
        (golden,) = goldens = list(goldens_in(cache.directory))
        before = before or whole(goldens)
        assert golden.damage() == ""
        assert whole(goldens) == before


def test_a_copy_reads_as_a_database_that_was_loaded_for_the_run(run: Run) -> None:
    (phase,) = run(workload("readrandom")).phases
    assert (phase.keys_found, phase.keys_missing) == (NUM, 0)
    (phase,) = run(workload("readmissing")).phases
    assert (phase.keys_found, phase.keys_missing) == (0, NUM)


def test_a_settled_copy_has_nothing_to_compact(
    cache: DatabaseCache, run: Run, engine: EngineIdentity
) -> None:
    (phase,) = run(workload("readseq"), **RUNTIME[engine.name]).phases
    assert phase.compactions == 0
    assert phase.flushes == 0
    (golden,) = goldens_in(cache.directory)
    fingerprint = golden.facts.fingerprint
    tables = [name for name in fingerprint.files if name.endswith((".sst", ".ldb"))]
    assert fingerprint.files_per_level is not None
    assert tables
    # LevelDB compacts what many gets met; the read-back after the load may make it do so.
    if engine.name == "rocksdb":
        assert sum(fingerprint.files_per_level) == len(tables)


@pytest.mark.parametrize("durability", ["sync", "none"])
def test_every_durability(run: Run, engine: EngineIdentity, durability: str) -> None:
    if (engine.name, durability) == ("leveldb", "none"):
        pytest.skip("LevelDB always writes its log")
    measurement = run(workload("overwrite", num=500, durability=durability))
    assert measurement.outcome is Outcome.OK, measurement.error


def test_an_option_that_the_engine_refuses_is_left_to_the_run(
    cache: DatabaseCache, driver: Path, engine: EngineIdentity, make_request: Requests
) -> None:
    request = replace(
        make_request(workload=workload("readrandom")), engine=engine, config=Config({"nonsense": 1})
    )
    assert cache.prepare(request) is request
    assert NativeRunner(driver).run(request).outcome is Outcome.INVALID
