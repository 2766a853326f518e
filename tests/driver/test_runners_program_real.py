"""RocksDB's db_bench as it is installed: options, phases, mixes, what it says of itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lsmtune.errors import InputError
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Mix, Phase, PhaseKind, SineRate, Workload
from lsmtune.programs.find import find_program
from lsmtune.programs.program import FoundProgram
from lsmtune.programs.registry import PROGRAMS
from lsmtune.programs.runner import ProgramRunner
from lsmtune.workloads.stated import make_workload
from troubles import why_not_ok

PROGRAM = PROGRAMS["rocksdb-db_bench"]
FILL = Phase("fillrandom", PhaseKind.MEASURE, "fillrandom", operations_per_thread=20_000)
READ = Phase("readrandom", PhaseKind.MEASURE, "readrandom", operations_per_thread=5_000)
LIMITS = Limits(60.0, 1 << 30, 1 << 30)
OPERATIONS = 30_000  # of a mix


@pytest.fixture(scope="module")
def found() -> FoundProgram:
    try:
        return find_program(PROGRAM, "rocksdb")
    except InputError as error:
        pytest.skip(str(error))


def perform(found: FoundProgram, tmp_path: Path, config: Config, *phases: Phase) -> Measurement:
    return performed(found, tmp_path, Workload("w", phases, num=20_000), config)


def performed(
    found: FoundProgram, tmp_path: Path, workload: Workload, config: Config | None = None
) -> Measurement:
    engine = EngineIdentity("rocksdb")
    request = RunRequest(engine, config or Config(), workload, 3, tmp_path, LIMITS)
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
    assert "ompression" in why_not_ok(measurement)


# --- production workloads


@pytest.mark.parametrize(("name", "threads"), [("zippydb", 1), ("social-graph", 2)])
def test_a_preset_runs_with_its_mix_and_finds_its_keys(
    found: FoundProgram, tmp_path: Path, name: str, threads: int
) -> None:
    given = {"num": 20_000, "operations": OPERATIONS, "threads": threads}
    workload = make_workload(name, given, "test")
    measurement = performed(found, tmp_path, workload)
    assert measurement.outcome is Outcome.OK, measurement.error
    load, run = measurement.phases
    assert (load.operations, run.operations) == (20_000, OPERATIONS)
    assert load.latencies["insert"].count == 20_000
    mix = workload.phases[2].mix
    assert mix is not None
    counts = run.operations_by_type
    assert counts is not None
    assert sum(counts.values()) == OPERATIONS
    for kind, share in mix.operations:
        assert counts[kind] / OPERATIONS == pytest.approx(share, abs=0.01)
        assert run.latencies[kind].count == counts[kind]
    assert run.latency_us_p99 is None
    if threads == 1:
        # Every key was loaded; db_bench looks each one up, and begins each scan at one.
        assert (run.keys_found, run.keys_missing) == (counts["get"] + counts["scan"], 0)
    else:
        assert (run.keys_found, run.keys_missing) == (None, None)
    assert any("mixgraph (run) decides key, operation" in line for line in measurement.warnings)


def test_a_sine_limits_the_rate(found: FoundProgram, tmp_path: Path) -> None:
    inserts, gets = Mix((("insert", 1.0),), records=0), Mix((("get", 1.0),), records=5000)
    wave = SineRate(mean_ops_s=20_000.0, amplitude_ops_s=10_000.0, period_s=2.0)
    workload = Workload(
        "waves",
        (
            Phase("load", PhaseKind.LOAD, mix=inserts, operations=5000),
            Phase("run", PhaseKind.MEASURE, mix=gets, operations=300_000, rate=wave),
        ),
        num=5000,
        value_bytes=64,
    )
    measurement = performed(found, tmp_path, workload)
    assert measurement.outcome is Outcome.OK, measurement.error
    run = measurement.phases[-1]
    # What the first 100 ms hold is not limited, 150,000 on a fast machine, and 100,000 more are a
    # credit; the rest comes at 20,000 a second.
    assert run.elapsed_s > 2.0
    assert min(interval.throughput_ops_s for interval in run.intervals) < 31_000
    assert (run.latency_us_p99 or 0) > 0  # all of one type
