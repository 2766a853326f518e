"""A tuner, a driver or a machine that stood still: whose time that was, and what is believed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import psutil
import pytest

import lsmtune
from lsmtune.driver import watch
from lsmtune.driver.messages import IntervalPassed, Message
from lsmtune.driver.native import NativeRunner
from lsmtune.machine.awake import GAP_S, AwakeClock, suspended_s
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import Limits, RunRequest
from patience import PATIENCE_S, in_time, wait_until
from troubles import why_not_ok

MakeRequest = Callable[..., RunRequest]


class Clocks:
    """A clock, and the processor's time that this process took."""

    def __init__(self) -> None:
        self.now_s = self.cpu_s = self.asleep_s = 0.0

    def clock(self) -> float:
        return self.now_s

    def cpu(self) -> float:
        return self.cpu_s

    def suspended(self) -> float:
        return self.asleep_s


def test_time_in_which_lsmtune_slept_did_not_pass() -> None:
    clocks = Clocks()
    awake = AwakeClock(clocks.clock, clocks.cpu)
    clocks.now_s = 1.0
    assert awake() == 1.0
    clocks.now_s += 20.0  # Ctrl-Z
    assert awake() == 1.0
    assert awake.asleep_s == 20.0
    clocks.now_s += GAP_S
    assert awake() == 1.0 + GAP_S


def test_time_in_which_lsmtune_computed_passed() -> None:
    clocks = Clocks()
    awake = AwakeClock(clocks.clock, clocks.cpu)
    clocks.now_s, clocks.cpu_s = 20.0, 7.0  # on a machine with many others
    assert (awake(), awake.asleep_s) == (20.0, 0.0)


def test_a_clock_that_beats_sees_whoever_does_not_look() -> None:
    clocks = Clocks()
    awake = AwakeClock(clocks.clock, clocks.cpu)
    read_s = awake()
    with awake.beating():
        for _ in range(3):
            clocks.now_s += GAP_S  # one thread waits for a disk, say
            wait_until(lambda: awake._read_s >= clocks.now_s)
    assert awake() == read_s + 3 * GAP_S


def test_the_time_of_the_suspended_machine_stands_still_while_it_is_awake() -> None:
    assert suspended_s() == pytest.approx(suspended_s(), abs=watch.SUSPENDED_S / 2)


class Child:
    """A child that says nothing and lives on; `stops` are what is seen of it, in order."""

    def __init__(self, clocks: Clocks, steps: Sequence[Callable[[], None]]) -> None:
        self._clocks, self._steps = clocks, list(steps)

    def lines(self, timeout_s: float) -> tuple[Sequence[bytes], bool]:
        self._clocks.now_s += timeout_s
        if self._steps:
            self._steps.pop(0)()
        return [], False

    def exited(self) -> bool:
        return False

    def stop_or_continue(self) -> int | None:
        return None

    def is_disturbance(self, _change: int) -> bool:
        return True

    def ask_to_stop(self) -> None:
        pass

    def resident_bytes(self, _limit: int) -> int:
        return 0

    def reap(self) -> int:
        return -signal.SIGKILL


def test_a_tuner_that_slept_does_not_blame_the_run(tmp_path: Path) -> None:
    """Of its deadline of 10 s the run gets all, however long lsmtune was stopped in the middle."""
    clocks = Clocks()

    def sleep() -> None:
        clocks.now_s += 3600.0

    awake = AwakeClock(clocks.clock, clocks.cpu)
    child = Child(clocks, [lambda: None, sleep])
    limits = Limits(10.0, 1 << 30, 1 << 30)
    ending = watch.Watch(*(child, tmp_path, limits, lambda _line: False, None, awake)).until_ended()
    assert ending.outcome is Outcome.TIMEOUT
    assert 3610.0 <= clocks.now_s < 3611.0


def test_a_run_on_a_machine_that_slept_is_not_believed(tmp_path: Path) -> None:
    clocks = Clocks()

    def suspend() -> None:
        clocks.asleep_s = 3600.0

    watching = watch.Watch(
        *(Child(clocks, [suspend]), tmp_path, Limits(), lambda _line: False, None, clocks.clock),
        suspended=clocks.suspended,
    )
    ending = watching.step(watch.TICK_S)
    assert ending is not None
    assert (ending.outcome, ending.why) == (Outcome.DISTURBED, "on a machine that slept for 1h")


@pytest.mark.parametrize("signals", [[signal.SIGSTOP], [signal.SIGSTOP, signal.SIGCONT]])
def test_a_driver_that_a_stranger_stopped_is_disturbed_and_not_late(
    fake_driver: Path, make_request: MakeRequest, signals: list[signal.Signals]
) -> None:
    def on_message(message: Message) -> None:
        if isinstance(message, IntervalPassed):
            (driver,) = psutil.Process(os.getpid()).children()
            for number in signals:
                driver.send_signal(number)
                if number is signal.SIGSTOP:
                    wait_until(lambda: driver.status() == psutil.STATUS_STOPPED)

    measurement = NativeRunner(fake_driver).run(make_request("hang"), on_message)
    assert measurement.outcome is Outcome.DISTURBED
    assert "by a signal from outside, in phase fillrandom" in why_not_ok(measurement)


@pytest.mark.parametrize(("sleeps", "outcome"), [(True, Outcome.DISTURBED), (False, Outcome.OK)])
def test_a_driver_that_was_frozen_together_with_lsmtune_is_not_believed(
    fake_driver: Path, make_request: MakeRequest, sleeps: bool, outcome: Outcome
) -> None:
    """As by `docker pause`: no signal tells of it, but its intervals have a hole.

    A hole alone is the driver's own.
    """
    skipped_s, heard = 0.0, []

    def on_message(message: Message) -> None:
        nonlocal skipped_s
        heard.append(message)
        if isinstance(message, IntervalPassed) and sleeps:
            skipped_s = 30.0

    runner = NativeRunner(fake_driver, clock=lambda: time.monotonic() + skipped_s)
    measurement = runner.run(make_request("hole"), on_message)
    assert measurement.outcome is outcome
    # A pruner is not asked about it.
    assert sum(isinstance(each, IntervalPassed) for each in heard) == (1 if sleeps else 2)


SLEEPER = """
import sys
from pathlib import Path
from lsmtune.driver.native import NativeRunner
from lsmtune.machine import awake
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Phase, PhaseKind, Workload

awake.GAP_S = 0.3
driver, directory = map(Path, sys.argv[1:])
phase = Phase("fillrandom", PhaseKind.MEASURE, "fillrandom", operations_per_thread=1000)
request = RunRequest(
    EngineIdentity("rocksdb"), Config({"fake": "when_told"}),
    Workload("fillrandom", (phase,), num=1000), 7, directory, Limits(deadline_s=3.0),
)
print("started", flush=True)
print(NativeRunner(driver).run(request).outcome.value)
"""


def test_a_tuner_that_is_really_stopped_lets_the_driver_run_on(
    fake_driver: Path, tmp_path: Path
) -> None:
    """It is stopped past the deadline of the run, and hears what the driver said meanwhile."""
    path = str(Path(lsmtune.__file__).parent.parent)
    numbers = count(1)

    def ran_on() -> bool:
        directory = tmp_path / f"run-{next(numbers)}"
        directory.mkdir()
        with subprocess.Popen(
            [sys.executable, "-c", SLEEPER, str(fake_driver), str(directory)],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            text=True,
        ) as tuner:
            # On a busy machine the time in which it is awake may come to its deadline, too.
            wait_until(lambda: (directory / "begun").exists() or tuner.poll() is not None)
            tuner.send_signal(signal.SIGSTOP)
            time.sleep(3.5)  # past its deadline, which is what it is about
            tuner.send_signal(signal.SIGCONT)
            time.sleep(0.2)  # a tuner that counted its sleep would kill the driver now
            (directory / "told").touch()
            out, _ = tuner.communicate(timeout=PATIENCE_S)
        started, outcome = out.splitlines()
        assert (started, outcome in ("ok", "timeout")) == ("started", True)
        return outcome == "ok"

    in_time(ran_on)
