"""Two runs that share the machine: they take turns in slices, or run at once (a duet)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from multiprocessing.connection import wait
from typing import Protocol, runtime_checkable

from lsmtune.driver.messages import Message
from lsmtune.driver.native import PAUSE_TICK_S, NativeRun, NativeRunner
from lsmtune.driver.runner import halves
from lsmtune.driver.watch import TICK_S
from lsmtune.errors import LsmtuneError
from lsmtune.machine.awake import AwakeClock, Clock
from lsmtune.machine.host import usable_cores
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import SLICES_DEFAULT, PairMethod, RunRequest
from lsmtune.model.workload import PageCache, Workload

# --- who runs next when two runs take turns; a state machine that knows nothing of processes
#
# A run that takes turns halts at *places*: at the start of each phase, after each slice of a
# measure phase, and before what is left to flush and compact after it. The same request halts at
# the same places, so that two runs can be kept side by side: the one whose place lies behind goes
# first. Where both are at the same place, which of them begins changes from place to place within
# a phase, so that slices come in the order A B B A A B B A: whatever drifts evenly through a phase
# helps neither.


class Turnstile:
    """Lets one of two arms run at a time; arm 0 begins. An arm may end at any time."""

    def __init__(self) -> None:
        self._ran = 0  # the arm that ran last
        # Where each arm has halted: a phase, from 0, and the number of the halt in it, from 0.
        self._halts = [(-1, -1), (-1, 0)]

    def next(self, standing: Mapping[int, int]) -> int:
        """The arm that runs from now on, of those that have not ended, which all stand still.

        `standing` maps each to the phase in which it does, -1 before the first.
        """
        if self._ran in standing:
            (before, number), phase = self._halts[self._ran], standing[self._ran]
            self._halts[self._ran] = (phase, number + 1 if phase == before else 0)
        first, second = self._halts
        # At one place they take turns at beginning; else the one whose place lies behind goes on.
        arm = first[1] % 2 if first == second else int(first > second)
        self._ran = arm if arm in standing else 1 - arm
        return self._ran


# --- two runs that share the machine: in slices, or at once (a duet)
#
# Taking turns is cooperative. A driver that was asked for slices stops its own process at the
# places that `Turnstile` speaks of, background threads included, and is continued when it is its
# turn. So at any time at most one of the two runs; what drifts on the machine over seconds meets
# both. While it is stopped a run has its memory and its open files, but takes no time of its own:
# its deadline, and the seconds in its Measurement, stand still.

# A pair whose deadlines stand still for a reason that nobody foresaw ends so long after both of
# them together.
WALL_SLACK_S = 60.0
EXIT_TICK_S = 0.005

OnPairMessage = Callable[[int, Message], None]


@runtime_checkable
class PairRunner(Protocol):
    """A runner of lsmtune's own driver somewhere else, which lets two runs share the machine."""

    def run_pair(
        self,
        first: RunRequest,
        second: RunRequest,
        method: PairMethod,
        *,
        on_message: OnPairMessage | None = None,
        cancel: threading.Event | None = None,
    ) -> tuple[Measurement, Measurement]:
        """As the function of this name."""
        ...


def run_pair(
    runner: NativeRunner | PairRunner,
    first: RunRequest,
    second: RunRequest,
    method: PairMethod,
    *,
    on_message: OnPairMessage | None = None,
    cancel: threading.Event | None = None,
    clock: Clock = time.monotonic,
) -> tuple[Measurement, Measurement]:
    """Performs `first` and `second` and returns their Measurements in this order.

    `method` is SLICES or DUET: whole runs are two runs of a Runner. `first` begins, and in a duet
    it has the first half of the cores that this process may use. Runs that take turns have the
    slices of their requests, SLICES_DEFAULT where these name none. Each needs a directory, and the
    memory and the disk that its limits name. However one of them ends, the other goes on alone,
    unless the one was disturbed: then there is no pair any more.

    `on_message` is called in this thread with the index of the run, 0 or 1, and each message; what
    it raises ends both and is raised again. Setting `cancel` ends both as `cancelled`. Raises what
    `NativeRunner.run` raises, and LsmtuneError for a duet with fewer than two cores and for slices
    of a workload that has none (`slices_obstacle`). When it returns or raises, no process of either
    run is left, stopped or not.
    """
    if not isinstance(runner, NativeRunner):
        return runner.run_pair(first, second, method, on_message=on_message, cancel=cancel)
    requests = _requests(first, second, method)
    with ExitStack() as stack:
        arms: list[NativeRun] = []
        for number, request in enumerate(requests):
            listener = None if on_message is None else partial(on_message, number)
            arms.append(stack.enter_context(NativeRun(runner, request, listener, cancel)))
        clock = AwakeClock(clock)
        wall_end_s = clock() + sum(r.limits.deadline_s for r in requests) + WALL_SLACK_S
        turnstile = Turnstile() if method is PairMethod.SLICES else None
        one, other = _run_at_once(arms, turnstile, cancel, clock, wall_end_s)
    return one, other


def slices_obstacle(workload: Workload) -> str:
    """Why runs of `workload` cannot take turns in slices; an empty string when they can."""
    for phase in workload.phases:
        paced = any(beside.rate_ops_s is not None for beside in phase.companions)
        if phase.is_open_loop or paced:
            how = (
                "at a fixed rate (rate_ops_s)" if phase.rate_ops_s is not None else "at given times"
            )
            return (
                f"phase {phase.name} starts operations {how}, "
                "which a run that stands still would miss"
            )
        if phase.replay is not None:
            return f"phase {phase.name} replays a trace, which the driver does not cut into slices"
    return cold_obstacle(workload)


def cold_obstacle(workload: Workload) -> str:
    """Why runs of `workload` cannot be alive at the same time; an empty string when they can.

    Copies of one loaded database share their files, and with them what the kernel has of them.
    """
    if workload.page_cache is PageCache.COLD:
        return "page_cache is cold, and each of two runs at once would warm or drop the other's"
    return ""


def _requests(first: RunRequest, second: RunRequest, method: PairMethod) -> list[RunRequest]:
    """Both requests as `method` wants them."""
    requests = [first, second]
    if method is PairMethod.SLICES:
        obstacle = next(filter(None, (slices_obstacle(r.workload) for r in requests)), "")
        if obstacle:
            raise LsmtuneError(f"runs cannot take turns in slices: {obstacle}")
        return [replace(r, slices=r.slices or SLICES_DEFAULT) for r in requests]
    shares = halves(usable_cores())
    return [replace(r, slices=0, cpus=share) for r, share in zip(requests, shares, strict=True)]


def _run_at_once(
    arms: Sequence[NativeRun],
    turnstile: Turnstile | None,
    cancel: threading.Event | None,
    clock: Clock,
    wall_end_s: float,
) -> list[Measurement]:
    """The measurements of runs that are alive at once, moved on by this thread."""
    while alive := [arm for arm in arms if arm.measurement is None]:
        # A run looks after itself while it runs; frozen it cannot, and hears nothing.
        if cancel is not None and cancel.is_set():
            _end([arm for arm in alive if arm.frozen], Outcome.CANCELLED, "cancelled")
        over = [arm.measurement for arm in arms if arm.measurement is not None]
        disturbed = next((each for each in over if each.outcome is Outcome.DISTURBED), None)
        if disturbed is not None:
            why = disturbed.message or "disturbed"
            why = f"ended, as the other run of its pair was {why}"
            _end(alive, Outcome.DISTURBED, why)
            break
        if clock() >= wall_end_s:
            why = "its pair was not done when the deadlines of both were"
            _end(alive, Outcome.TIMEOUT, why)
        if turnstile is None:
            for arm in alive:
                if arm.frozen:
                    arm.proceed()
        else:
            _take_turns(arms, turnstile)
        _listen([arm for arm in alive if arm.measurement is None])
    return [arm.measurement for arm in arms if arm.measurement is not None]


def _end(arms: Sequence[NativeRun], outcome: Outcome, why: str) -> None:
    for arm in arms:
        if arm.measurement is None:
            arm.end(outcome, why)


def _take_turns(arms: Sequence[NativeRun], turnstile: Turnstile) -> None:
    alive = {index: arm for index, arm in enumerate(arms) if arm.measurement is None}
    if alive and all(arm.frozen for arm in alive.values()):
        arms[turnstile.next({index: arm.phase for index, arm in alive.items()})].proceed()


def _listen(alive: Sequence[NativeRun]) -> None:
    """Waits until a run has something to say, or for as long as there is nothing to see to."""
    speaking = [arm.messages_fd for arm in alive if arm.messages_fd is not None]
    timeout_s = TICK_S
    if len(speaking) < len(alive):
        timeout_s = EXIT_TICK_S  # nothing will be heard of an exit
    if any(arm.pausing for arm in alive):
        timeout_s = PAUSE_TICK_S
    wait(speaking, timeout_s)
    for arm in alive:
        arm.step(0.0)
