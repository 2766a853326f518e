"""Pairs of runs with a driver that freezes itself; and no process is ever left, stopped or not."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from lsmtune.driver import pair
from lsmtune.driver.messages import Message, Paused, PhaseStarted
from lsmtune.driver.native import NativeRunner
from lsmtune.driver.pair import run_pair, slices_obstacle
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import SLICES_DEFAULT, Limits, PairMethod, RunRequest, slices_for
from lsmtune.model.workload import Phase, PhaseKind, Workload
from patience import PATIENCE_S

SLICES = PairMethod.SLICES
LOAD = Phase("load", PhaseKind.LOAD, "fillseq", operations_per_thread=10)
MEASURE = Phase("measure", PhaseKind.MEASURE, "overwrite", operations_per_thread=10)


@pytest.fixture
def runner(fake_sliced_driver: Path) -> NativeRunner:
    return NativeRunner(fake_sliced_driver)


Make = Callable[..., RunRequest]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def build(name: str, *, deadline_s: float = PATIENCE_S, **options: int) -> RunRequest:
        directory = tmp_path / name
        directory.mkdir()
        return RunRequest(
            engine=EngineIdentity("memory"),
            config=Config(options),
            workload=Workload("fill", (LOAD, MEASURE), num=10),
            seed=1,
            directory=directory,
            limits=Limits(deadline_s, 1 << 30, 1 << 30),
            slices=4,
        )

    return build


def turns_of(*requests: RunRequest) -> list[tuple[float, float, int]]:
    """(began, ended, arm) of every turn, by time."""
    turns = []
    for arm, request in enumerate(requests):
        for line in (request.directory / "turns.jsonl").read_text().splitlines():
            turn = json.loads(line)
            turns.append((turn["began_s"], turn["ended_s"], arm))
    return sorted(turns)


def outcomes(measured: tuple[Measurement, Measurement]) -> list[Outcome]:
    return [measurement.outcome for measurement in measured]


def test_two_runs_take_turns_and_never_run_at_once(runner: NativeRunner, make: Make) -> None:
    first, second = make("first"), make("second", late_ms=5)
    measured = run_pair(runner, first, second, SLICES)
    assert outcomes(measured) == [Outcome.OK, Outcome.OK]
    turns = turns_of(first, second)
    for (_, ended_s, _), (began_s, _, _) in pairwise(turns):
        assert ended_s <= began_s
    opening, load, slices, drain = [0, 1], [0, 1], [0, 1, 1, 0, 0, 1, 1, 0], [0, 1]
    assert [arm for _, _, arm in turns] == [*opening, *load, *slices, *drain]


def test_a_frozen_run_takes_no_time(fake_sliced_driver: Path, make: Make) -> None:
    """The second needs little time of its own, and with that of the first more than it may.

    By the clock here each message of the first takes a fifth of a second, each of the second a
    hundredth. Not more: a clock that leaps by two seconds is that of a tuner that slept.
    """
    now_s = [0.0]

    def on_message(arm: int, _message: Message) -> None:
        now_s[0] += (0.2, 0.01)[arm]

    def clock() -> float:
        return now_s[0]

    runner, requests = (
        NativeRunner(fake_sliced_driver, clock=clock),
        (make("a"), make("b", deadline_s=1.0)),
    )
    measured = run_pair(runner, *requests, SLICES, on_message=on_message, clock=clock)
    assert outcomes(measured) == [Outcome.OK, Outcome.OK]
    assert measured[1].elapsed_s < 0.8
    assert measured[0].elapsed_s > 1.5  # more than the deadline of the second


def test_messages_come_with_the_number_of_their_run_in_this_thread(
    runner: NativeRunner, make: Make
) -> None:
    heard: list[tuple[int, type[Message], int]] = []
    run_pair(
        runner,
        make("first"),
        make("second"),
        SLICES,
        on_message=lambda arm, said: heard.append((arm, type(said), threading.get_ident())),
    )
    assert {thread for _, _, thread in heard} == {threading.get_ident()}
    for arm in (0, 1):
        kinds = [kind.__name__ for who, kind, _ in heard if who == arm]
        assert (kinds[0], kinds[-1]) == ("Hello", "Finished")
        assert kinds.count("Paused") == 1 + 5


@pytest.mark.parametrize("at", [1, 2, 4, 6])  # the load, slices, the last drain
@pytest.mark.parametrize("fault", ["crash_at", "hang_at"])
def test_when_one_ends_early_the_other_goes_on_to_its_end(
    runner: NativeRunner, make: Make, fault: str, at: int
) -> None:
    expected = Outcome.TIMEOUT if fault == "hang_at" else Outcome.CRASHED
    for arm in (0, 1):
        deadline_s = 0.6 if fault == "hang_at" else PATIENCE_S
        bad = make(f"bad-{arm}", deadline_s=deadline_s, **{fault: at})
        good = make(f"good-{arm}")
        requests = (bad, good) if arm == 0 else (good, bad)
        measured = run_pair(runner, *requests, SLICES)
        assert measured[arm].outcome is expected
        assert measured[1 - arm].outcome is Outcome.OK
        assert len(measured[1 - arm].phases) == 2


def test_a_run_that_is_killed_while_it_is_frozen_is_seen_at_once(
    runner: NativeRunner, make: Make
) -> None:
    def on_message(arm: int, message: Message) -> None:
        if arm == 1 and isinstance(message, Paused) and message.slice == 2:
            kill = children_of(os.getpid())[0]  # the first one, which is frozen by now
            kill.kill()

    measured = run_pair(runner, make("first"), make("second"), SLICES, on_message=on_message)
    assert outcomes(measured) == [Outcome.DISTURBED, Outcome.DISTURBED]
    first, second = (each.error.message for each in measured if each.error is not None)
    assert first.startswith("killed by SIGKILL")
    assert second.startswith("ended, as the other run of its pair was killed by SIGKILL")


def test_a_run_that_somebody_continued_while_it_was_frozen_was_disturbed(
    runner: NativeRunner, make: Make
) -> None:
    """It went on while it was the other's turn."""

    def on_message(arm: int, message: Message) -> None:
        if arm == 1 and isinstance(message, Paused) and message.slice == 1:
            children_of(os.getpid())[0].resume()  # it is frozen, and would be until slice 2

    measured = run_pair(runner, make("first"), make("second"), SLICES, on_message=on_message)
    assert outcomes(measured) == [Outcome.DISTURBED, Outcome.DISTURBED]


def test_a_run_that_somebody_else_stopped_is_not_waited_for(
    runner: NativeRunner, make: Make
) -> None:
    """It has not said `paused`: nobody would continue it."""

    def on_message(arm: int, message: Message) -> None:
        if arm == 0 and isinstance(message, PhaseStarted) and message.index == 0:
            children_of(os.getpid())[1].suspend()  # it waits for its request

    measured = run_pair(runner, make("first"), make("second"), SLICES, on_message=on_message)
    assert outcomes(measured) == [Outcome.DISTURBED, Outcome.DISTURBED]


def test_a_driver_that_says_paused_and_goes_on_is_believed_in_nothing_but_its_stops(
    runner: NativeRunner, make: Make
) -> None:
    """It does not freeze after that slice, so that its turn lasts until it does."""
    first, second = make("first", lie_at=4), make("second")
    measured = run_pair(runner, first, second, SLICES)
    assert outcomes(measured) == [Outcome.OK, Outcome.OK]
    turns = turns_of(first, second)
    for (_, ended_s, _), (began_s, _, _) in pairwise(turns):
        assert ended_s <= began_s


def test_a_driver_without_slices_runs_whole(runner: NativeRunner, make: Make) -> None:
    request = replace(make("alone"), slices=0)
    assert runner.run(request).outcome is Outcome.OK
    assert len(turns_of(request)) == 1


def test_one_run_with_slices_goes_on_by_itself(runner: NativeRunner, make: Make) -> None:
    request = make("alone", late_ms=5)
    measurement = runner.run(request)
    assert measurement.outcome is Outcome.OK
    assert len(turns_of(request)) == 7  # opening, load, four slices, drain
    assert measurement.paired_by == ""


def test_cancel_ends_both_frozen_or_not(runner: NativeRunner, make: Make) -> None:
    cancel = threading.Event()

    def on_message(arm: int, message: Message) -> None:
        if arm == 1 and isinstance(message, Paused) and message.slice == 1:
            cancel.set()

    measured = run_pair(
        *(runner, make("first"), make("second"), SLICES), on_message=on_message, cancel=cancel
    )
    assert outcomes(measured) == [Outcome.CANCELLED, Outcome.CANCELLED]
    assert [len(m.phases) for m in measured] == [1, 1]


@pytest.mark.parametrize(
    "method",
    [
        PairMethod.SLICES,
        pytest.param(
            PairMethod.DUET,
            marks=pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core"),
        ),
    ],
)
def test_a_cancel_before_it_begins_counts(
    runner: NativeRunner, make: Make, method: PairMethod
) -> None:
    cancel = threading.Event()
    cancel.set()
    requests = make("first", slice_ms=200), make("second", slice_ms=200)
    measured = run_pair(runner, *requests, method, cancel=cancel)
    assert outcomes(measured) == [Outcome.CANCELLED, Outcome.CANCELLED]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("arm", [0, 1])
def test_what_the_callback_raises_ends_both(
    runner: NativeRunner, make: Make, error: type[BaseException], arm: int
) -> None:
    def on_message(of: int, message: Message) -> None:
        if of == arm and isinstance(message, Paused) and message.index == 1:
            raise error

    with pytest.raises(error):
        run_pair(runner, make("first"), make("second"), SLICES, on_message=on_message)


def test_a_pair_ends_when_the_deadlines_of_both_are_over_whatever_happens(
    runner: NativeRunner, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair, "WALL_SLACK_S", 0.5 - 2 * PATIENCE_S)
    measured = run_pair(runner, make("first", hang_at=3), make("second"), SLICES)
    assert outcomes(measured) == [Outcome.TIMEOUT, Outcome.TIMEOUT]
    assert "its pair was not done" in (measured[1].error.message if measured[1].error else "")


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_both_at_once_have_half_of_the_cores_each(runner: NativeRunner, make: Make) -> None:
    seen: dict[int, set[int]] = {}

    def on_message(_arm: int, _message: Message) -> None:
        if not seen:  # the first message of either: both are there, and neither is reaped
            for arm, process in enumerate(children_of(os.getpid())):
                seen[arm] = set(process.cpu_affinity())

    cores, mine = sorted(os.sched_getaffinity(0)), os.sched_getaffinity(0)
    measured = run_pair(
        *(runner, make("first", slice_ms=30), make("second", slice_ms=30), PairMethod.DUET),
        on_message=on_message,
    )
    assert outcomes(measured) == [Outcome.OK, Outcome.OK]
    half = len(cores) // 2
    assert seen == {0: set(cores[:half]), 1: set(cores[half : 2 * half])}
    assert os.sched_getaffinity(0) == mine


def test_a_duet_needs_two_cores(
    runner: NativeRunner, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair, "usable_cores", lambda: (3,))
    with pytest.raises(LsmtuneError, match="a core each, and lsmtune may use only 3;"):
        run_pair(runner, make("first"), make("second"), PairMethod.DUET)


def test_cores_that_are_not_there_are_an_input_error(runner: NativeRunner, make: Make) -> None:
    with pytest.raises(InputError, match=r"cores of a run: found '4094, 4095'; allowed: .*0"):
        runner.run(replace(make("first"), cpus=(0, 4094, 4095)))


def test_a_paced_workload_has_no_slices(runner: NativeRunner, make: Make) -> None:
    paced = replace(MEASURE, name="paced", rate_ops_s=100.0)
    request = make("first")
    workload = replace(request.workload, phases=(LOAD, paced))
    assert slices_obstacle(request.workload) == ""
    assert "phase paced" in slices_obstacle(workload)
    with pytest.raises(LsmtuneError, match="phase paced starts operations at a fixed rate"):
        run_pair(runner, replace(request, workload=workload), make("second"), SLICES)


def test_slices_are_as_long_as_wished_and_even_in_number() -> None:
    assert slices_for(3.0) == 20
    assert slices_for(0.01) == 4
    assert slices_for(1e6) == 400
    assert all(slices_for(s / 10) % 2 == 0 for s in range(100))
    assert SLICES_DEFAULT % 2 == 0


def children_of(pid: int) -> list[psutil.Process]:
    """In the order in which they were started."""
    return sorted(
        psutil.Process(pid).children(), key=lambda child: (child.create_time(), child.pid)
    )
