"""RocksDB's db_bench as it is installed: options that take, phases, what it says of itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lsmtune.errors import InputError
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload
from lsmtune.programs.find import find_program
from lsmtune.programs.program import FoundProgram
from lsmtune.programs.registry import PROGRAMS
from lsmtune.programs.runner import ProgramRunner

PROGRAM = PROGRAMS["rocksdb-db_bench"]
FILL = Phase("fillrandom", PhaseKind.MEASURE, "fillrandom", operations_per_thread=20_000)
READ = Phase("readrandom", PhaseKind.MEASURE, "readrandom", operations_per_thread=5_000)
LIMITS = Limits(60.0, 1 << 30, 1 << 30)


@pytest.fixture(scope="module")
def found() -> FoundProgram:
    try:
        return find_program(PROGRAM, "rocksdb")
    except InputError as error:
        pytest.skip(str(error))


def perform(found: FoundProgram, tmp_path: Path, config: Config, *phases: Phase) -> Measurement:
    workload = Workload("w", phases, num=20_000)
    engine = EngineIdentity("rocksdb")
    request = RunRequest(engine, config, workload, 3, tmp_path, LIMITS)
    return ProgramRunner(PROGRAM, found).run(request)


def test_options_take_and_every_phase_is_told(found: FoundProgram, tmp_path: Path) -> None:
    config = Config({"write_buffer_size": 65536, "block_based_table_factory.block_cache": 1 << 20})
    measurement = perform(found, tmp_path, config, FILL, READ)
    assert measurement.outcome is Outcome.OK, measurement.error
    assert measurement.engine.version == found.version
    fill, read = measurement.phases
    assert (fill.operations, read.operations) == (20_000, 5_000)
    put, get = fill.latencies["put"], read.latencies["get"]
    assert (put.count, get.count) == (20_000, 5_000)
    assert (get.latency_us_p50 or 0) <= (get.latency_us_p95 or 0) <= (get.latency_us_p99 or 0)
    assert (read.keys_found or 0) + (read.keys_missing or 0) == 5_000
    assert 0.5 < (read.keys_found or 0) / 5_000 < 0.75  # 1 - 1/e of the keys were written
    written = [path.read_text() for path in (tmp_path / "db").glob("OPTIONS-*")]
    assert all("write_buffer_size=65536" in text for text in written)
    logged = "".join(path.read_text() for path in (tmp_path / "db").glob("LOG*"))
    assert "capacity : 1048576" in logged


def test_the_same_seed_finds_the_same_keys(found: FoundProgram, tmp_path: Path) -> None:
    counts = set()
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        measurement = perform(found, folder, Config(), FILL, READ)
        counts.add(measurement.phases[1].keys_found)
    assert len(counts) == 1


def test_an_option_that_rocksdb_refuses_ends_the_run(found: FoundProgram, tmp_path: Path) -> None:
    config = Config({"compression": "kNoSuchCompression"})
    measurement = perform(found, tmp_path, config, replace(FILL, operations_per_thread=10))
    assert measurement.outcome in (Outcome.CRASHED, Outcome.INVALID)
    assert measurement.error is not None
    assert "ompression" in measurement.error.message
