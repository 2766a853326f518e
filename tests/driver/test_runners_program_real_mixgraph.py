"""A production workload by RocksDB's db_bench as it is installed."""

from __future__ import annotations

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

PROGRAM = PROGRAMS["rocksdb-db_bench"]
OPERATIONS = 30_000


@pytest.fixture(scope="module")
def found() -> FoundProgram:
    try:
        return find_program(PROGRAM, "rocksdb")
    except InputError as error:
        pytest.skip(str(error))


def perform(found: FoundProgram, tmp_path: Path, workload: Workload) -> Measurement:
    limits = Limits(60.0, 1 << 30, 1 << 30)
    request = RunRequest(EngineIdentity("rocksdb"), Config(), workload, 3, tmp_path, limits)
    measurement = ProgramRunner(PROGRAM, found).run(request)
    assert measurement.outcome is Outcome.OK, measurement.error
    return measurement


@pytest.mark.parametrize(("name", "threads"), [("zippydb", 1), ("social-graph", 2)])
def test_a_preset_runs_with_its_mix_and_finds_its_keys(
    found: FoundProgram, tmp_path: Path, name: str, threads: int
) -> None:
    given = {"num": 20_000, "operations": OPERATIONS, "threads": threads}
    workload = make_workload(name, given, "test")
    measurement = perform(found, tmp_path, workload)
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
    wave = SineRate(mean_ops_s=8000.0, amplitude_ops_s=4000.0, period_s=2.0)
    workload = Workload(
        "waves",
        (
            Phase("load", PhaseKind.LOAD, mix=inserts, operations=5000),
            Phase("run", PhaseKind.MEASURE, mix=gets, operations=124_000, rate=wave),
        ),
        num=5000,
        value_bytes=64,
    )
    run = perform(found, tmp_path, workload).phases[-1]
    # The first 100,000 are a credit; the rest is 24,000 at 8,000 a second.
    assert run.elapsed_s > 2.0
    assert min(interval.throughput_ops_s for interval in run.intervals) < 13_000
    assert (run.latency_us_p99 or 0) > 0  # all of one type
