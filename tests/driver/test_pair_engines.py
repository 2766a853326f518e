"""Pairs of runs of the real driver on real engines."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from lsmtune.driver.messages import Message, Paused
from lsmtune.driver.native import NativeRunner
from lsmtune.driver.pair import run_pair
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement
from lsmtune.model.request import Limits, PairMethod, RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload
from patience import wait_until_over

pytestmark = pytest.mark.engine

NUM = 30_000
SLICES = 6
WORKLOAD = Workload(
    "mixed",
    (
        Phase("load", PhaseKind.LOAD, "filluniquerandom", operations_per_thread=NUM),
        Phase("settle", PhaseKind.SETTLE),
        Phase("overwrite", PhaseKind.MEASURE, "overwrite", operations_per_thread=NUM),
        Phase("read", PhaseKind.MEASURE, "readrandom", operations_per_thread=NUM, threads=2),
    ),
    num=NUM,
)


@pytest.fixture
def requests(engine: EngineIdentity, tmp_path: Path) -> tuple[RunRequest, RunRequest]:
    """The same run twice, each with a folder of its own."""

    def request(name: str) -> RunRequest:
        (tmp_path / name).mkdir()
        limits = Limits(60.0, 2 << 30, 2 << 30)
        return RunRequest(
            *(engine, Config(), WORKLOAD, 3, tmp_path / name, limits), interval_ms=50, slices=SLICES
        )

    return request("first"), request("second")


def phase_of(measurement: Measurement, name: str) -> PhaseMeasurement:
    return next(phase for phase in measurement.phases if phase.name == name)


def noting(pauses: list[tuple[int, Paused]]) -> Callable[[int, Message], None]:
    """Keeps each pause with its arm."""

    def on_message(arm: int, message: Message) -> None:
        if isinstance(message, Paused):
            pauses.append((arm, message))

    return on_message


Requests = tuple[RunRequest, RunRequest]


def test_the_same_configuration_in_slices_does_the_same_work_in_about_the_same_time(
    driver: Path, requests: Requests
) -> None:
    pauses: list[tuple[int, Paused]] = []
    measured = run_pair(
        *(NativeRunner(driver), *requests, PairMethod.SLICES), on_message=noting(pauses)
    )
    for arm, measurement in enumerate(measured):
        assert measurement.outcome is Outcome.OK, measurement.error
        assert measurement.verification is not None
        assert measurement.verification.keys_lost == 0
        for index, phase in enumerate(measurement.phases):
            own = [pause for of, pause in pauses if of == arm and pause.index == index]
            slices = SLICES if phase.kind == "measure" else 0
            assert {pause.slice for pause in own} == set(range(slices + 1))
            if slices:
                assert own[-1].operations_total == phase.operations
                assert own[-1].elapsed_s == pytest.approx(phase.elapsed_s, rel=0.1)
    arms = [arm for arm, pause in pauses if pause.index == 2 and pause.slice > 0]
    assert arms == ([0, 1, 1, 0] * SLICES)[: 2 * SLICES]
    first, second = (
        [(p.operations, p.user_bytes_written) for p in measurement.phases]
        for measurement in measured
    )
    assert first == second
    # Not throughput, which other work on the machine may change by several times in so short a run.
    one, other = (phase_of(m, "read").cpu_us_per_operation for m in measured)
    assert one
    assert other
    assert abs(math.log(one / other)) < 0.5


needs_two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")


@needs_two_cores
def test_both_at_once(driver: Path, requests: Requests) -> None:
    pauses: list[tuple[int, Paused]] = []
    measured = run_pair(
        *(NativeRunner(driver), *requests, PairMethod.DUET), on_message=noting(pauses)
    )
    for measurement in measured:
        assert measurement.outcome is Outcome.OK, measurement.error
    assert pauses == []


def test_a_slower_configuration_takes_its_turns_too(
    driver: Path, rocksdb_library: Path, tmp_path: Path
) -> None:
    def request(name: str, **options: int) -> RunRequest:
        (tmp_path / name).mkdir()
        engine = EngineIdentity("rocksdb", library=str(rocksdb_library))
        limits = Limits(60.0, 2 << 30, 2 << 30)
        config = Config(options)
        return RunRequest(engine, config, WORKLOAD, 3, tmp_path / name, limits, slices=SLICES)

    default, tiny = request("default"), request("tiny", write_buffer_size=65536)
    pauses: list[tuple[int, Paused]] = []
    runs = NativeRunner(driver), default, tiny, PairMethod.SLICES
    measured = run_pair(*runs, on_message=noting(pauses))
    assert [m.outcome for m in measured] == [Outcome.OK, Outcome.OK]
    assert max(pause.slice for arm, pause in pauses if arm == 1) == SLICES


def test_a_driver_that_dies_in_the_middle_leaves_the_other_alone(
    driver: Path, requests: Requests
) -> None:
    def on_message(arm: int, message: Message) -> None:
        if arm == 1 and isinstance(message, Paused) and (message.index, message.slice) == (2, 2):
            newest = max(psutil.Process().children(), key=lambda p: (p.create_time(), p.pid))
            newest.send_signal(signal.SIGABRT)

    measured = run_pair(NativeRunner(driver), *requests, PairMethod.SLICES, on_message=on_message)
    assert [m.outcome for m in measured] == [Outcome.OK, Outcome.CRASHED]
    assert [phase.name for phase in measured[1].phases] == ["load", "settle"]


PARENT = """
import sys
from pathlib import Path
from lsmtune.model.config import Config
from lsmtune.model.config import EngineIdentity
from lsmtune.model.request import PairMethod
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload
from lsmtune.driver.native import NativeRunner
from lsmtune.driver.pair import run_pair

driver, name, library, first, second = sys.argv[1:]
engine = EngineIdentity(name, library=library or None)
workload = Workload(
    "overwrite", (Phase("overwrite", PhaseKind.MEASURE, "overwrite", duration_s=600.0),), num=1000
)
limits = Limits(600.0, 2 << 30, 2 << 30)
one, other = (
    RunRequest(engine, Config(), workload, 1, Path(place), limits, slices=1000)
    for place in (first, second)
)
run_pair(
    NativeRunner(Path(driver)), one, other, PairMethod.SLICES,
    on_message=lambda arm, said: print(arm, getattr(said, "slice", -1), flush=True),
)
"""


def test_no_driver_outlives_a_tuner_that_was_killed(driver: Path, requests: Requests) -> None:
    first, second = requests
    engine, folders = first.engine, [str(first.directory), str(second.directory)]
    arguments = [str(driver), engine.name, engine.library or "", *folders]
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *arguments], stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        for line in parent.stdout:
            if line.strip() == "0 1":
                break
        drivers = psutil.Process(parent.pid).children()
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    assert len(drivers) == 2
    wait_until_over(drivers)


def test_cores_hold_for_every_thread_of_the_engine(driver: Path, requests: Requests) -> None:
    core = min(os.sched_getaffinity(0))
    seen: set[frozenset[int]] = set()

    def on_message(_message: Message) -> None:
        for child in psutil.Process().children():
            for thread in child.threads():
                # A thread may end between the two looks.
                with contextlib.suppress(ProcessLookupError):
                    seen.add(frozenset(os.sched_getaffinity(thread.id)))

    request = replace(requests[0], cpus=(core,), slices=0)
    assert NativeRunner(driver).run(request, on_message).outcome is Outcome.OK
    assert seen == {frozenset({core})}
