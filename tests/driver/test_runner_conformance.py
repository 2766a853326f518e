"""What `base.Runner` promises, of every runner there is."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lsmtune.driver.messages import IntervalPassed, Message
from lsmtune.driver.native import NativeRunner
from lsmtune.driver.runner import Runner
from lsmtune.errors import InputError
from lsmtune.model.command import CommandSpec
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import IntermediateReport, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload
from lsmtune.programs.command import CommandRunner
from patience import PATIENCE_S, in_time
from troubles import why_not_ok

LIMITS = Limits(PATIENCE_S, 1 << 30, 1 << 30)


@dataclass(frozen=True)
class Subject:
    """A runner, and requests that make it do what a test needs."""

    runner: Runner
    short: RunRequest
    endless: RunRequest
    failing: RunRequest


def native(driver: Path) -> Subject:
    def fill(options: dict[str, int], **size: float) -> RunRequest:
        phase = Phase("fill", PhaseKind.MEASURE, "fillrandom", **size)  # type: ignore[arg-type]
        engine, workload = EngineIdentity("memory"), Workload("fill", (phase,), num=1000)
        return RunRequest(engine, Config(options), workload, 5, Path(), LIMITS, interval_ms=50)

    return Subject(
        NativeRunner(driver),
        short=fill({}, operations_per_thread=1000),
        endless=fill({}, duration_s=600.0),
        failing=fill({"unknown": 1}, operations_per_thread=1000),
    )


def command() -> Subject:
    program = str(Path(__file__).parent / "program.py")
    spec = CommandSpec((sys.executable, "-S", program, "{do}", "3"), Path("/"), metrics=("score",))

    def do(what: str) -> RunRequest:
        engine, workload = EngineIdentity("program"), Workload("program", (), num=1)
        return RunRequest(engine, Config({"do": what, "size": 1}), workload, 5, Path(), LIMITS)

    return Subject(CommandRunner(spec), do("ok"), do("stepwise"), do("crash"))


@pytest.fixture(params=["native", "command"])
def subject(request: pytest.FixtureRequest, driver: Path) -> Subject:
    return native(driver) if request.param == "native" else command()


@pytest.fixture
def at(tmp_path: Path) -> Callable[[RunRequest], RunRequest]:
    def placed(request: RunRequest) -> RunRequest:
        directory = tmp_path / "run"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        return replace(request, directory=directory)

    return placed


Place = Callable[[RunRequest], RunRequest]


def test_a_run_that_ends_well(subject: Subject, at: Place) -> None:
    request = at(subject.short)
    began_s, began_unix_s = time.monotonic(), time.time()
    measurement = subject.runner.run(request)
    took_s = time.monotonic() - began_s
    assert measurement.outcome is Outcome.OK, measurement.error
    assert measurement.error is None
    assert measurement.engine.name == request.engine.name
    assert measurement.options == request.config.engine_options()
    assert (measurement.workload, measurement.seed) == (request.workload.name, 5)
    assert 0 < measurement.elapsed_s <= took_s
    assert began_unix_s <= measurement.started_unix_s <= time.time()
    # None: over before it was looked at. Not known is never zero.
    assert measurement.rss_bytes_max is None or measurement.rss_bytes_max > 0
    assert (request.directory / "engine.log").is_file()


def test_what_goes_wrong_is_in_the_outcome(subject: Subject, at: Place) -> None:
    measurement = subject.runner.run(at(subject.failing))
    assert measurement.outcome not in (Outcome.OK, Outcome.CANCELLED)
    assert why_not_ok(measurement)


def test_the_deadline_ends_a_run(subject: Subject, at: Place) -> None:
    limits = replace(LIMITS, deadline_s=0.5)
    started_s = time.monotonic()
    measurement = subject.runner.run(at(replace(subject.endless, limits=limits)))
    took_s = time.monotonic() - started_s
    assert measurement.outcome is Outcome.TIMEOUT
    assert 0.5 <= measurement.elapsed_s <= took_s < PATIENCE_S


def test_messages_come_while_it_runs_and_a_cancel_ends_it_within_300_ms(
    subject: Subject, at: Place
) -> None:
    def cancelled_in_time() -> bool:
        cancel = threading.Event()
        asked_s: list[float] = []

        def on_message(message: Message) -> None:
            if isinstance(message, IntervalPassed | IntermediateReport) and not asked_s:
                asked_s.append(time.monotonic())
                cancel.set()

        measurement = subject.runner.run(at(subject.endless), on_message, cancel)
        took_s = time.monotonic() - asked_s[0]
        assert measurement.outcome is Outcome.CANCELLED
        assert measurement.warnings == ()
        return took_s < 0.3

    in_time(cancelled_in_time)


def test_a_cancel_before_it_begins_counts(subject: Subject, at: Place) -> None:
    cancel = threading.Event()
    cancel.set()
    assert subject.runner.run(at(subject.endless), None, cancel).outcome is Outcome.CANCELLED


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_what_the_callback_raises_ends_the_run(
    subject: Subject, at: Place, error: type[BaseException]
) -> None:
    def on_message(_message: Message) -> None:
        raise error

    with pytest.raises(error):
        subject.runner.run(at(subject.endless), on_message)


def test_a_folder_that_is_not_there_is_for_the_user_to_mend(
    subject: Subject, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="folder"):
        subject.runner.run(replace(subject.short, directory=tmp_path / "missing"))


def test_runs_in_several_threads_do_not_disturb_each_other(
    subject: Subject, tmp_path: Path
) -> None:
    def one(number: int) -> tuple[Outcome, int]:
        directory = tmp_path / f"thread-{number}"
        directory.mkdir()
        request = replace(subject.short, directory=directory, seed=number)
        measurement = subject.runner.run(request)
        return measurement.outcome, measurement.seed

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(6))) == [(Outcome.OK, number) for number in range(6)]
