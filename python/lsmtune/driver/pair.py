"""Two runs that are compared: one after the other, taking turns in slices, or both at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from multiprocessing.connection import wait

from lsmtune.driver.messages import Message
from lsmtune.driver.native import PAUSE_TICK_S, NativeRunner
from lsmtune.driver.native_run import NativeRun
from lsmtune.driver.runner import halves, usable_cores
from lsmtune.driver.watch import TICK_S, Clock
from lsmtune.errors import LsmtuneError
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


@dataclass(frozen=True, order=True)
class Halt:
    """Where a run has halted: the `number`-th halt, from 0, in phase `phase`, from 0.

    A run that has not begun is before its first phase.
    """

    phase: int
    number: int


BEFORE_ALL = Halt(-1, 0)


class _State(Enum):
    HALTED = "halted"
    RUNNING = "running"
    ENDED = "ended"


class Turnstile:
    """Lets one of two arms run at a time; arm 0 begins.

    `grant` says who runs next. That arm runs until `halted` or `ended` is called for it; an arm
    may end at any time, halted or not, and the other goes on alone.
    """

    def __init__(self) -> None:
        self._states = [_State.HALTED, _State.HALTED]
        self._halts = [BEFORE_ALL, BEFORE_ALL]

    @property
    def running(self) -> int | None:
        """The arm that runs."""
        return self._states.index(_State.RUNNING) if _State.RUNNING in self._states else None

    def grant(self) -> int | None:
        """The arm that runs from now on; None while one is running and when both have ended."""
        if self.running is not None:
            return None
        halted = [arm for arm in (0, 1) if self._states[arm] is _State.HALTED]
        if not halted:
            return None
        arm = halted[0] if len(halted) == 1 else self._next_of_both()
        self._states[arm] = _State.RUNNING
        return arm

    def halted(self, arm: int, phase: int) -> None:
        """The arm that ran has halted in `phase`.

        Raises ValueError for an arm that was not running, or a phase before that of its last halt.
        """
        before = self._halts[arm]
        if self._states[arm] is not _State.RUNNING:
            raise ValueError(f"arm {arm} halted while it was {self._states[arm].value}")
        if phase < max(before.phase, 0):
            raise ValueError(f"arm {arm} halted in phase {phase} after phase {before.phase}")
        self._halts[arm] = Halt(phase, before.number + 1 if phase == before.phase else 0)
        self._states[arm] = _State.HALTED

    def ended(self, arm: int) -> None:
        """The arm is over, however that came. May be said more than once."""
        self._states[arm] = _State.ENDED

    def _next_of_both(self) -> int:
        first, second = self._halts
        if first != second:
            return 0 if first < second else 1
        return first.number % 2


# --- two runs that are compared: one after the other, taking turns in slices, or both at once
#
# Taking turns is cooperative. A driver that was asked for slices stops its own process at the
# places that `turnstile` speaks of, background threads included, and is continued when it is its
# turn. So at any time at most one of the two runs; what drifts on the machine over seconds meets
# both. While it is stopped a run has its memory and its open files, but takes no time of its own:
# its deadline, and the seconds in its Measurement, stand still.

# A pair whose deadlines stand still for a reason that nobody foresaw ends so long after both of
# them together.
WALL_SLACK_S = 60.0
EXIT_TICK_S = 0.005

OnPairMessage = Callable[[int, Message], None]


def run_pair(
    runner: NativeRunner,
    first: RunRequest,
    second: RunRequest,
    method: PairMethod,
    *,
    on_message: OnPairMessage | None = None,
    cancel: threading.Event | None = None,
    clock: Clock = time.monotonic,
) -> tuple[Measurement, Measurement]:
    """Performs `first` and `second` and returns their Measurements in this order.

    `first` begins, and in a duet it has the first half of the cores that this process may use.
    Runs that take turns have the slices of their requests, SLICES_DEFAULT where these name none.
    Both runs need a directory, and where they are alive at once, the memory and the disk that
    their limits name, each. However one of them ends, the other goes on alone.

    `on_message` is called in this thread with the index of the run, 0 or 1, and each message; what
    it raises ends both and is raised again. Setting `cancel` ends both as `cancelled`. Raises what
    `NativeRunner.run` raises, and LsmtuneError for a duet with fewer than two cores and for slices
    of a workload that has none (`slices_obstacle`). When it returns or raises, no process of either
    run is left, stopped or not.
    """
    requests = _requests(first, second, method)
    listeners = [None if on_message is None else partial(on_message, arm) for arm in (0, 1)]
    if method is PairMethod.WHOLE:
        measured = [
            runner.run(request, listener, cancel)
            for request, listener in zip(requests, listeners, strict=True)
        ]
    else:
        with ExitStack() as stack:
            arms = [
                stack.enter_context(runner.start(request, listener, cancel))
                for request, listener in zip(requests, listeners, strict=True)
            ]
            wall_end_s = clock() + sum(r.limits.deadline_s for r in requests) + WALL_SLACK_S
            measured = _AtOnce(arms, method, cancel, clock, wall_end_s).run()
    one, other = (replace(measurement, paired_by=method.value) for measurement in measured)
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
    requests = [replace(request, slices=0) for request in requests]
    if method is PairMethod.DUET:
        shares = halves(usable_cores())
        return [replace(r, cpus=share) for r, share in zip(requests, shares, strict=True)]
    return requests


class _AtOnce:
    """Two runs that are alive at once, moved on by one thread."""

    def __init__(
        self,
        arms: Sequence[NativeRun],
        method: PairMethod,
        cancel: threading.Event | None,
        clock: Clock,
        wall_end_s: float,
    ) -> None:
        self._arms = arms
        self._turnstile = Turnstile() if method is PairMethod.SLICES else None
        self._cancel = cancel
        self._clock = clock
        self._wall_end_s = wall_end_s

    def run(self) -> list[Measurement]:
        """Both measurements, once both have ended."""
        while True:
            measured = [arm.measurement for arm in self._arms if arm.measurement is not None]
            if len(measured) == len(self._arms):
                return measured
            self._end_what_must()
            self._let_run()
            self._listen()

    def _alive(self) -> list[NativeRun]:
        return [arm for arm in self._arms if arm.measurement is None]

    def _end_what_must(self) -> None:
        """A run looks after itself while it runs; frozen it cannot, and hears nothing."""
        if self._cancel is not None and self._cancel.is_set():
            for arm in self._alive():
                if arm.frozen:
                    arm.end(Outcome.CANCELLED, "cancelled")
        if self._clock() >= self._wall_end_s:
            for arm in self._alive():
                arm.end(Outcome.TIMEOUT, "its pair was not done when the deadlines of both were")

    def _let_run(self) -> None:
        if self._turnstile is None:
            for arm in self._alive():
                if arm.frozen:
                    arm.proceed()
            return
        for index, arm in enumerate(self._arms):
            if arm.measurement is not None:
                self._turnstile.ended(index)
            elif arm.frozen and self._turnstile.running == index:
                self._turnstile.halted(index, arm.phase)
        granted = self._turnstile.grant()
        if granted is not None:
            self._arms[granted].proceed()

    def _listen(self) -> None:
        """Waits until a run has something to say, or for as long as there is nothing to see to."""
        alive = self._alive()
        said = [arm.messages_fd for arm in alive if arm.messages_fd is not None]
        timeout_s = TICK_S
        if len(said) < len(alive):
            timeout_s = EXIT_TICK_S  # nothing will be heard of an exit
        if any(arm.pausing for arm in alive):
            timeout_s = PAUSE_TICK_S
        wait(said, timeout_s)
        for arm in alive:
            arm.step(0.0)
