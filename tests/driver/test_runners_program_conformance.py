"""What every program that people trust promises as a runner, each of them a fake."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest
from trusted_parts import engine_for, workload_for, write_fake

from lsmtune.driver.messages import Message, PhaseFinished, PhaseStarted
from lsmtune.errors import InputError
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import PageCache
from lsmtune.programs.find import find_program
from lsmtune.programs.program import NEVER_TOLD, FoundProgram, StepOutput
from lsmtune.programs.registry import PROGRAMS
from lsmtune.programs.runner import ProgramRunner
from troubles import why_not_ok

LIMITS = Limits(20.0, 1 << 30, 1 << 30)
Run = Callable[..., Measurement]


@pytest.fixture(params=sorted(PROGRAMS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def request_(name: str, tmp_path: Path) -> RunRequest:
    directory = tmp_path / "run-1"
    directory.mkdir()
    return RunRequest(
        EngineIdentity(engine_for(name)), Config(), workload_for(name), 5, directory, LIMITS
    )


@pytest.fixture
def run(name: str, tmp_path: Path, request_: RunRequest) -> Run:
    """Performs the request, misbehaving as `fake` says."""

    def perform(
        fake: str = "",
        *,
        on_message: Callable[[Message], None] | None = None,
        cancel: threading.Event | None = None,
        **changes: object,
    ) -> Measurement:
        path = write_fake(name, tmp_path / "bin")
        found = find_program(PROGRAMS[name], engine_for(name), path)
        runner = ProgramRunner(PROGRAMS[name], found, (f"--fake={fake}",) if fake else ())
        return runner.run(replace(request_, **changes), on_message, cancel)  # type: ignore[arg-type]

    return perform


def test_a_program_is_found_by_the_name_that_it_has() -> None:
    assert {name: program.name for name, program in PROGRAMS.items()} == {n: n for n in PROGRAMS}


def test_a_run_is_its_phases_and_what_is_not_told_is_none(name: str, run: Run) -> None:
    said: list[Message] = []
    measurement = run(on_message=said.append)
    assert measurement.outcome is Outcome.OK, measurement.error
    assert measurement.runner == name
    load, measured = measurement.phases
    assert (load.kind, load.operations) == ("load", 100)
    assert (measured.kind, measured.operations) == ("measure", 50)
    # db_bench prints whole milliseconds.
    assert measured.elapsed_s == pytest.approx(50 / measured.throughput_ops_s, abs=6e-4)
    names = {field.name for field in fields(PhaseMeasurement)}
    for phase in measurement.phases:
        assert {getattr(phase, metric) for metric in NEVER_TOLD & names} == {None}
        assert (phase.database_bytes or 0) >= 1000
        assert (phase.rss_bytes_max or 1) > 0
        assert phase.started_unix_us < phase.finished_unix_us
    assert measured.latencies["get"].latency_us_mean == pytest.approx(2.0)
    assert (measured.keys_found or 0) > 0
    assert measurement.cpu_s is not None
    kinds = [type(message) for message in said]
    assert kinds.count(PhaseFinished) == 2
    assert isinstance(said[0], PhaseStarted)


def test_what_a_program_is_said_not_to_tell_it_does_not(name: str, run: Run) -> None:
    info, workload = PROGRAMS[name], workload_for(name)
    (measured,) = [phase for phase in run().phases if phase.kind == "measure"]
    for field in fields(PhaseMeasurement):
        untold = field.name in info.untold(workload.phases[-1])
        if untold:
            assert getattr(measured, field.name) is None, field.name
        elif field.name.startswith("latency_us"):
            assert getattr(measured, field.name) is not None, field.name


@pytest.mark.parametrize(
    ("fake", "outcome", "said"),
    [
        ("fail", Outcome.CRASHED, "exited with status 3; its last output: put error"),
        ("crash", Outcome.CRASHED, "killed by SIGSEGV"),
        ("refuse", Outcome.INVALID, "refused its command line: unknown flag --"),
        ("nonsense", Outcome.INVALID, "its last output: all is well"),
    ],
)
def test_how_a_program_ends_is_the_outcome(
    run: Run, fake: str, outcome: Outcome, said: str
) -> None:
    measurement = run(fake)
    assert (measurement.outcome, measurement.phases) == (outcome, ())
    assert said in why_not_ok(measurement)


def test_a_refused_flag_comes_with_the_nearest_spelling(name: str, run: Run) -> None:
    error = run("refuse").error
    assert error is not None
    expected = {
        "rocksdb-db_bench": ("--value_size",),
        "leveldb-db_bench": ("--value_size",),
        "ekvsb": ("--write-buffer-size",),
    }
    assert error.nearest == expected.get(name, ())


def test_a_deadline_ends_the_whole_tree(run: Run) -> None:
    assert run("hang", limits=replace(LIMITS, deadline_s=0.4)).outcome is Outcome.TIMEOUT


def test_a_cancelled_run_is_over_at_once(run: Run) -> None:
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    assert run("hang", cancel=cancel).outcome is Outcome.CANCELLED


def test_a_run_over_its_memory_is_ended(run: Run) -> None:
    measurement = run("eat", limits=replace(LIMITS, memory_bytes=64 << 20))
    assert measurement.outcome is Outcome.OUT_OF_MEMORY


def test_what_it_cannot_perform_is_one_line_before_anything_starts(
    name: str, run: Run, request_: RunRequest
) -> None:
    cold = replace(request_.workload, page_cache=PageCache.COLD)
    with pytest.raises(InputError, match=f"^--runner {name}: page_cache: ") as error:
        run(workload=cold)
    assert "\n" not in str(error.value)
    assert list(request_.directory.iterdir()) == []
    other = "memory"
    with pytest.raises(InputError, match="--engine: found 'memory'"):
        run(engine=EngineIdentity(other))


def test_a_configuration_that_it_has_no_spelling_of_is_invalid(run: Run) -> None:
    measurement = run(config=Config({"no_such_option": 1}))
    assert measurement.outcome is Outcome.INVALID
    assert "no_such_option" in why_not_ok(measurement)
    assert measurement.phases == ()


# --- which keys YCSB-cpp found, counted as lsmtune's driver counts them


FIGURES = "Max=9.00 Min=1.00 Avg=2.00 90=2.00 99=3.00 99.9=4.00 99.99=5.00"


def looked_up(
    tmp_path: Path, mix: dict[str, float], counts: dict[str, int]
) -> tuple[int | None, int | None]:
    """Keys found and missing in a run with `mix` that printed `counts` by type."""
    workload = workload_for("ycsb-cpp")
    *before, run = workload.phases
    assert run.mix is not None
    mixed = replace(run, mix=replace(run.mix, operations=tuple(mix.items())))
    request = RunRequest(
        EngineIdentity("leveldb"),
        Config(),
        replace(workload, phases=(*before, mixed)),
        1,
        tmp_path,
        LIMITS,
    )
    total = sum(counts.values())
    types = " ".join(f"[{name}: Count={count} {FIGURES}]" for name, count in counts.items())
    log = tmp_path / "stdout.log"
    log.write_text(
        f"2026-01-01 00:00:01 1 sec: {total} operations; {types}\n"
        f"Run runtime(sec): 1\nRun operations(ops): {total}\nRun throughput(ops/sec): {total}\n"
    )
    found = FoundProgram("ycsb-cpp", tmp_path / "ycsb")
    step = PROGRAMS["ycsb-cpp"].plan(request, found).steps[-1]
    measured = step.read(StepOutput(log, log, 0, 1, 0.0, None, 0)).phases[2]
    return measured.keys_found, measured.keys_missing


@pytest.mark.parametrize(
    ("mix", "counts", "expected"),
    [
        ({"get": 1}, {"READ": 90, "READ-FAILED": 10}, (90, 10)),
        # An update begins with a lookup, here and there.
        ({"get": 1, "update": 1}, {"READ": 40, "UPDATE": 50, "UPDATE-FAILED": 3}, (90, 3)),
        # A read-modify-write is one lookup there, and a read and an update here.
        ({"get": 1, "read_modify_write": 1}, {"READ": 100, "UPDATE": 50}, (100, 0)),
        (
            {"get": 1, "read_modify_write": 1, "update": 1},
            {"READ": 100, "UPDATE": 50},
            (None, None),
        ),
        # A scan never fails.
        ({"scan": 1, "insert": 1}, {"SCAN": 95, "INSERT": 5}, (None, None)),
        ({"scan": 1, "get": 1}, {"SCAN": 95, "READ": 5}, (None, None)),
        ({"insert": 1}, {"INSERT": 5}, (None, None)),
    ],
)
def test_lookups_are_counted_as_by_the_driver(
    tmp_path: Path,
    mix: dict[str, float],
    counts: dict[str, int],
    expected: tuple[int | None, int | None],
) -> None:
    assert looked_up(tmp_path, mix, counts) == expected
