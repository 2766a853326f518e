"""Watching one run from outside: deadline, memory, disk, and the wish to cancel.

An engine that hangs must not be its own judge, so the driver knows none of these limits.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from lsmtune.model.measurement import Outcome
from lsmtune.model.request import Limits
from lsmtune.units import format_bytes, format_duration

TICK_S = 0.05
DISK_TICK_S = 0.25
# A cancelled run is gone after 300 ms: this, a tick before it is asked to stop and one after.
CANCEL_GRACE_S = 0.15
EXIT_GRACE_S = 5.0

Clock = Callable[[], float]
Line = TypeVar("Line")
Line_co = TypeVar("Line_co", covariant=True)


class Watched(Protocol[Line_co]):
    """A child process, and the lines that it says."""

    def lines(self, timeout_s: float) -> tuple[Sequence[Line_co], bool]:
        """Lines that arrive within `timeout_s`, and whether more is waiting to be read."""
        ...

    def exited(self) -> bool:
        """Whether it has ended; it is not reaped yet."""
        ...

    def ask_to_stop(self) -> None:
        """Tells it to end soon."""
        ...

    def resident_bytes(self, limit: int) -> int:
        """Resident memory of the run; need not be exact below `limit`."""
        ...

    def reap(self) -> int:
        """Kills what is left of it; its exit status, negative for a signal."""
        ...


@dataclass(frozen=True)
class Ending:
    """How a child process ended.

    `outcome` is set when a limit or a cancellation ended it, and `why` then says which.
    `exit_status` is negative for a signal; `outlived` means that it had said its last message
    and then did not exit.
    """

    outcome: Outcome | None
    why: str
    exit_status: int
    outlived: bool = False


def watch(
    child: Watched[Line],
    directory: Path,
    limits: Limits,
    on_line: Callable[[Line], bool],
    cancel: threading.Event | None,
    clock: Clock,
) -> Ending:
    """Passes each line of `child` to `on_line` until the child has ended, and reaps it."""
    watching = Watch(child, directory, limits, on_line, cancel, clock)
    while True:
        ending = watching.step(TICK_S)
        if ending is not None:
            return ending


class Watch(Generic[Line]):
    """The same in steps, for those who watch several children at once.

    `on_line` returns True for a last message; from then on the child has EXIT_GRACE_S seconds to
    exit, and no limit applies. What `on_line` raises is raised; the owner of `child` kills it.
    `clock` may stand still while the child is frozen, and the deadline with it. Without
    `watch_memory` somebody else holds the child to its memory limit.
    """

    def __init__(
        self,
        child: Watched[Line],
        directory: Path,
        limits: Limits,
        on_line: Callable[[Line], bool],
        cancel: threading.Event | None,
        clock: Clock,
        *,
        watch_memory: bool = True,
    ) -> None:
        self._child = child
        self._on_line = on_line
        self._clock = clock
        self._guard = _Guard(child, directory, limits, cancel, clock, watch_memory=watch_memory)
        self._last_message_s: float | None = None

    def step(self, timeout_s: float) -> Ending | None:
        """Takes what the child says within `timeout_s`; how it ended, once it has been reaped."""
        exited = self._child.exited()  # asked before reading: then nothing can come after
        lines, more = self._child.lines(timeout_s)
        for line in lines:
            if self._on_line(line) and self._last_message_s is None:
                self._last_message_s = self._clock()
        if exited and not lines and not more:
            said_last = self._last_message_s is not None
            return self._guard.ending(self._child.reap(), said_last=said_last)
        if self._last_message_s is None:
            if self._guard.passed():
                return self._guard.ending(self._child.reap(), said_last=False)
        elif self._clock() - self._last_message_s > EXIT_GRACE_S:
            return Ending(None, "", self._child.reap(), outlived=True)
        return None

    def end(self, outcome: Outcome, why: str) -> Ending:
        """Kills the child for a reason of the caller's; whatever it has not said is lost."""
        return Ending(outcome, why, self._child.reap())


class _Guard:
    """What ends a run early, checked once a tick."""

    def __init__(
        self,
        child: Watched[object],
        directory: Path,
        limits: Limits,
        cancel: threading.Event | None,
        clock: Clock,
        *,
        watch_memory: bool,
    ) -> None:
        self._child = child
        self._watch_memory = watch_memory
        self._directory = directory
        self._limits = limits
        self._cancel = cancel
        self._clock = clock
        self._deadline = clock() + limits.deadline_s
        self._next_check = self._next_disk_check = clock()
        self._cancelled_at: float | None = None
        self._outcome: Outcome | None = None
        self._why = ""

    def ending(self, exit_status: int, *, said_last: bool) -> Ending:
        """How the child ended, now that it has."""
        if self._cancelled_at is not None and self._outcome is None and not said_last:
            self._end(Outcome.CANCELLED, "cancelled")
        return Ending(self._outcome, self._why, exit_status)

    def passed(self) -> bool:
        """Whether a limit is passed, or the grace after a cancellation."""
        now = self._clock()
        if now < self._next_check:
            return False
        self._next_check = now + TICK_S
        self._check_deadline(now)
        self._check_cancel(now)
        if self._watch_memory:
            self._check_memory()
        if now >= self._next_disk_check:
            self._check_disk()
            self._next_disk_check = self._clock() + DISK_TICK_S
        return self._outcome is not None

    def _end(self, outcome: Outcome, why: str) -> None:
        if self._outcome is None:
            self._outcome, self._why = outcome, why

    def _check_deadline(self, now: float) -> None:
        if now >= self._deadline:
            limit = format_duration(self._limits.deadline_s)
            self._end(Outcome.TIMEOUT, f"not done at its deadline of {limit}")

    def _check_cancel(self, now: float) -> None:
        if self._cancel is None or not self._cancel.is_set():
            return
        if self._cancelled_at is None:
            self._cancelled_at = now
            self._child.ask_to_stop()
        elif now - self._cancelled_at >= CANCEL_GRACE_S:
            self._end(Outcome.CANCELLED, "cancelled; killed because it did not stop")

    def _check_memory(self) -> None:
        used = self._child.resident_bytes(self._limits.memory_bytes)
        if used > self._limits.memory_bytes:
            limit = format_bytes(self._limits.memory_bytes)
            self._end(
                Outcome.OUT_OF_MEMORY,
                f"resident memory of {format_bytes(used)} is over the limit of {limit}",
            )

    def _check_disk(self) -> None:
        used = disk_bytes(self._directory)
        if used > self._limits.disk_bytes:
            limit = format_bytes(self._limits.disk_bytes)
            self._end(
                Outcome.DISK_FULL,
                f"{format_bytes(used)} in the run's folder are over the limit of {limit}",
            )


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
                    else:
                        total += _file_bytes(entry)
        except FileNotFoundError:
            continue
    return total


def _file_bytes(entry: os.DirEntry[str]) -> int:
    try:
        # st_blocks counts 512-byte units on every system (POSIX: stat.h on Linux and the BSDs)
        return entry.stat(follow_symlinks=False).st_blocks * 512
    except FileNotFoundError:
        return 0
