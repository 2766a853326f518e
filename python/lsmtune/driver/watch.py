"""Watching one run from outside: deadline, memory, disk, and the wish to cancel.

An engine that hangs must not be its own judge, so the driver knows none of these limits.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

from lsmtune.driver.process import Line, WatchedProcess
from lsmtune.machine.awake import Clock, suspended_s
from lsmtune.machine.cgroup import machine_oom_kills
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import Limits
from lsmtune.units import format_bytes, format_duration

TICK_S = 0.05
DISK_TICK_S = 0.25
# A cancelled run is gone after 300 ms: this, a tick before it is asked to stop and one after.
CANCEL_GRACE_S = 0.15
EXIT_GRACE_S = 5.0
# Two clocks of one machine, read one after the other, differ by less.
SUSPENDED_S = 0.1


@dataclass(frozen=True)
class Ending:
    """How a child process ended.

    `outcome` is set when a limit, a cancellation or a disturbance ended it, and `why` then says
    which. `exit_status` is negative for a signal; `outlived` means that it had said its last
    message and then did not exit. `oom_killed`: SIGKILL ended it, and meanwhile the kernel killed
    something on this machine for want of memory.
    """

    outcome: Outcome | None
    why: str
    exit_status: int
    outlived: bool = False
    oom_killed: bool = False


@dataclass(eq=False)
class Watch(Generic[Line]):
    """Passes each line of `child` to `on_line` until the child has ended, and reaps it.

    `on_line` returns True for a last message; from then on the child has EXIT_GRACE_S seconds to
    exit, and no limit applies. What `on_line` raises is raised; the owner of `child` kills it.
    `clock` may stand still while the child is frozen or this process sleeps, and the deadline with
    it; earlier processes of the run took `spent_s` of it. Without `watch_memory` somebody else
    holds the child to its memory limit.

    A child that a stranger's signal stopped, or that was there while the machine slept, as
    `suspended` tells, has nothing more to say that could be believed: it ends as `disturbed`.
    """

    child: WatchedProcess[Line]
    directory: Path
    limits: Limits
    on_line: Callable[[Line], bool]
    cancel: threading.Event | None
    clock: Clock
    watch_memory: bool = True
    suspended: Clock = suspended_s
    spent_s: float = 0.0

    def __post_init__(self) -> None:
        self._deadline_s = self.clock() + self.limits.deadline_s - self.spent_s
        self._next_check_s = self._next_disk_check_s = self.clock()
        self._last_message_s: float | None = None
        self._cancelled_s: float | None = None
        self._suspended_before_s = self.suspended()
        self._oom_kills_before = machine_oom_kills()

    def until_ended(self) -> Ending:
        """How it ended. Who watches several children takes a `step` of each at a time."""
        while (ending := self.step(TICK_S)) is None:
            pass
        return ending

    def step(self, timeout_s: float) -> Ending | None:
        """Takes what the child says within `timeout_s`; how it ended, once it has been reaped."""
        exited = self.child.exited()  # asked before reading: then nothing can come after
        # Asked before reading, too: a child says that it will stop itself before it does.
        change = self.child.stop_or_continue()
        lines, more = self.child.lines(timeout_s)
        slept_s = self.suspended() - self._suspended_before_s
        if self._last_message_s is None and slept_s > SUSPENDED_S:
            slept = format_duration(round(slept_s, 1))
            return self.end(Outcome.DISTURBED, f"on a machine that slept for {slept}")
        for line in lines:
            if self.on_line(line) and self._last_message_s is None:
                self._last_message_s = self.clock()
        if exited and not lines and not more:
            exit_status = self.child.reap()
            if self._cancelled_s is not None and self._last_message_s is None:
                return Ending(Outcome.CANCELLED, "cancelled", exit_status)
            killed = exit_status == -signal.SIGKILL
            return Ending(None, "", exit_status, oom_killed=killed and self._memory_ran_out())
        if self._last_message_s is None:
            if change is not None and self.child.is_disturbance(change):
                done = "stopped" if change == os.CLD_STOPPED else "continued"
                return self.end(Outcome.DISTURBED, f"{done} by a signal from outside")
            passed = self._passed()
            return None if passed is None else self.end(*passed)
        if self.clock() - self._last_message_s > EXIT_GRACE_S:
            return Ending(None, "", self.child.reap(), outlived=True)
        return None

    def end(self, outcome: Outcome, why: str) -> Ending:
        """Kills the child for a reason of the caller's; whatever it has not said is lost."""
        return Ending(outcome, why, self.child.reap())

    def _memory_ran_out(self) -> bool:
        before, now = self._oom_kills_before, machine_oom_kills()
        return before is not None and now is not None and now > before

    def _passed(self) -> tuple[Outcome, str] | None:
        """The limit that is passed, or the grace after a cancellation; looked at once a tick."""
        now = self.clock()
        if now < self._next_check_s:
            return None
        self._next_check_s = now + TICK_S
        limits = self.limits
        if self.cancel is not None and self.cancel.is_set() and self._cancelled_s is None:
            self._cancelled_s = now
            self.child.ask_to_stop()
        if now >= self._deadline_s:
            deadline = format_duration(limits.deadline_s)
            return Outcome.TIMEOUT, f"not done at its deadline of {deadline}"
        if self._cancelled_s is not None and now - self._cancelled_s >= CANCEL_GRACE_S:
            return Outcome.CANCELLED, "cancelled; killed because it did not stop"
        if self.watch_memory:
            used = self.child.resident_bytes(limits.memory_bytes)
            if used > limits.memory_bytes:
                limit = format_bytes(limits.memory_bytes)
                why = f"resident memory of {format_bytes(used)} is over the limit of {limit}"
                return Outcome.OUT_OF_MEMORY, why
        if now >= self._next_disk_check_s:
            used = disk_bytes(self.directory)
            self._next_disk_check_s = self.clock() + DISK_TICK_S
            if used > limits.disk_bytes:
                limit = format_bytes(limits.disk_bytes)
                why = f"{format_bytes(used)} in the run's folder are over the limit of {limit}"
                return Outcome.DISK_FULL, why
        return None


def disk_bytes(directory: Path) -> int:
    """Bytes that files under `directory` take on the device; files may vanish meanwhile."""
    total = 0
    pending = [os.fspath(directory)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                        continue
                    with suppress(FileNotFoundError):
                        # st_blocks counts 512-byte units on every system (POSIX: stat.h on Linux
                        # and the BSDs)
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
        except FileNotFoundError:
            continue
    return total
