"""One conversation with one driver process: request in, messages out, and how it ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path

from lsmtune.driver.collect import Collector, Judgement, died, judge
from lsmtune.driver.messages import (
    Failed,
    Finished,
    IntervalPassed,
    Json,
    Message,
    Paused,
    parse_message,
)
from lsmtune.driver.process import ChildProcess, Closing, Stopwatch
from lsmtune.driver.watch import TICK_S, Ending, Watch
from lsmtune.engines.library import packaged_file
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.machine.awake import GAP_S, AwakeClock, Clock
from lsmtune.machine.cgroup import MemoryGroup
from lsmtune.model.codec import ProtocolError
from lsmtune.model.config import EngineIdentity
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import Limits
from lsmtune.model.text import is_file
from lsmtune.units import format_duration

DRIVER_NAME = "lsmtune-driver"
VARIABLE = "LSMTUNE_DRIVER"
_BRINGS_IT = "a wheel of lsmtune, or `make setup` in a checkout, brings"


def find_driver(
    environment: Mapping[str, str] = os.environ, interpreter: Path | None = None
) -> Path:
    """The driver to run, as an absolute path.

    Looked for in: the environment variable LSMTUNE_DRIVER (nothing else is tried when it is set),
    the files of the installed distribution, beside the Python `interpreter`, PATH. Raises
    InputError that lists the places tried and says what to do.
    """
    explicit = environment.get(VARIABLE)
    if explicit:
        if _runnable(Path(explicit)):
            return Path(explicit).absolute()
        raise InputError(
            "environment",
            VARIABLE,
            found=explicit,
            allowed="the path of an executable file",
            why=f"{_BRINGS_IT} the driver",
        )
    beside = (interpreter or Path(sys.executable)).parent / DRIVER_NAME
    search_path = environment.get("PATH", "")
    on_path = shutil.which(DRIVER_NAME, path=search_path)
    candidates = {
        "the files of the installed package lsmtune": packaged_file(DRIVER_NAME),
        str(beside): beside,
        f"PATH ({search_path or 'empty'})": Path(on_path) if on_path else None,
    }
    for candidate in candidates.values():
        if candidate is not None and _runnable(candidate):
            return candidate.absolute()
    raise InputError(
        DRIVER_NAME,
        why=f"not found; tried {', '.join(candidates)}; "
        f"{_BRINGS_IT} it, or set {VARIABLE} to its path",
    )


def _runnable(path: Path) -> bool:
    return is_file(path) and os.access(path, os.X_OK)


ENGINE_LOG = "engine.log"

_DISK_FAILED = "io_error"  # the driver's word; `ErrorReply::DISK_FAILED`

OnMessage = Callable[[Message], None]


class _State(Enum):
    WAITING = "waiting"  # for its request
    RUNNING = "running"
    PAUSING = "pausing"
    FROZEN = "frozen"
    OVER = "over"


class Conversation(Closing):
    """A driver process that is handed `document`, in steps; every message goes to `collector`.

    A context manager: when it is left, the process and its whole group are gone. `clock` is a
    monotonic clock in seconds; time during which the driver is frozen, or this process asleep,
    counts for nothing. `cpus` are the cores that it may use, all when empty. `group` holds it to a
    memory limit; without one, or when the kernel refuses to put it there (`group_refused` says
    why), its resident memory is watched. `wrapper` is the beginning of the command that starts it.
    Not thread-safe.
    """

    def __init__(
        self,
        driver: Path,
        document: Json,
        directory: Path,
        limits: Limits,
        collector: Collector,
        *,
        on_message: OnMessage | None = None,
        cancel: threading.Event | None = None,
        clock: Clock = time.monotonic,
        cpus: Sequence[int] = (),
        group: MemoryGroup | None = None,
        wrapper: Sequence[str] = (),
    ) -> None:
        """Starts the driver, which waits for its request. Raises InputError if it cannot."""
        self._document = document
        self._collector = collector
        self._on_message = on_message
        self._state = _State.WAITING
        self._awake = AwakeClock(clock)
        self._disturbance = ""
        self._running_time = Stopwatch(self._awake)
        self._running_time.start()
        self.started_unix_s = time.time()  # from `proceed` on, when it got its request
        self._child = ChildProcess([*wrapper, str(driver)], directory / ENGINE_LOG, cpus)
        self.group, self.group_refused = group, ""
        try:
            if group is not None:  # the driver is in it before it has done anything
                group.add(self._child.pid)
        except ProcessLookupError:
            pass  # it has ended already, and the first step will say so
        except LsmtuneError as error:
            self.group, self.group_refused = None, str(error)
        except BaseException:
            self._child.close()
            raise
        self._running_time.stop()
        watch_memory = self.group is None  # else the kernel holds the driver to its limit
        self._watch = Watch(
            self._child, directory, limits, self._take, cancel, self._running_time, watch_memory
        )

    def close(self) -> None:
        """Kills the driver and its group, and lets its pipes go."""
        self._child.close()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the driver was started, without those in which it was frozen."""
        return self._running_time()

    @property
    def messages_fd(self) -> int | None:
        """What can be read when the driver has said something; None once it never will again."""
        return self._child.messages_fd

    @property
    def pausing(self) -> bool:
        """Whether the driver has said that it stops itself, and has not done it yet."""
        return self._state is _State.PAUSING

    @property
    def frozen(self) -> bool:
        """Whether the driver stands still until `proceed`: stopped, or without its request."""
        return self._state in (_State.WAITING, _State.FROZEN)

    def proceed(self) -> None:
        """Lets a frozen driver run. Raises ValueError for one that is not frozen."""
        if not self.frozen:
            raise ValueError("a driver that is not frozen was to proceed")
        self._running_time.start()
        if self._state is _State.FROZEN:
            self._child.resume()
        else:
            self.started_unix_s = time.time()
            self._child.send(json.dumps(self._document, allow_nan=False))
        self._state = _State.RUNNING

    def step(self, timeout_s: float) -> Judgement | None:
        """Takes what the driver says within `timeout_s`; how it ended, once it is gone.

        Raises what `on_message` raises, InputError for a driver of another version, and
        LsmtuneError when the disk failed under the run.
        """
        self._awake()  # also of a frozen driver, whose own time stands still
        try:
            ending = self._watch.step(timeout_s)
        except ProtocolError as error:
            # Whatever the driver goes on to do, nothing it says can be used.
            self._child.reap()
            why = f"the driver broke the protocol {self._collector.where}: {error}"
            return self._over(died(Outcome.CRASHED, why, self._child.log_tail()))
        if self._disturbance:
            return self.end(Outcome.DISTURBED, self._disturbance)
        if ending is not None:
            return self._judge(ending)
        if self.pausing and self._child.stopped():
            self._running_time.stop()
            self._state = _State.FROZEN
        return None

    def end(self, outcome: Outcome, why: str) -> Judgement:
        """Kills the driver, frozen or not, for a reason of the caller's."""
        return self._judge(self._watch.end(outcome, why))

    def kill(self) -> None:
        """Kills the driver (SIGKILL); the steps that follow take what it had said, and its end."""
        self._child.signal(signal.SIGKILL)

    def _take(self, line: bytes) -> bool:
        message = parse_message(line)
        step_s = message.interval_s if isinstance(message, IntervalPassed) else 0.0
        if step_s > GAP_S and self._awake.asleep_s:
            # While it runs it reports intervals on time, whatever its engine does.
            still = format_duration(round(step_s, 1))
            self._disturbance = f"frozen for {still}, as lsmtune was"
        if isinstance(message, Paused) and self._state is _State.FROZEN:
            self._disturbance = "continued by a signal from outside"
        if self._disturbance:
            return False
        self._collector.take(message)
        if isinstance(message, Paused):
            self._state = _State.PAUSING
            self._child.stops_itself = True
        if self._on_message is not None:
            self._on_message(message)
        return isinstance(message, Finished | Failed)

    def _judge(self, ending: Ending) -> Judgement:
        self._running_time.stop()
        collector, group = self._collector, self.group
        memory_limit_bytes = None
        if group is not None:  # it counts its own kills; those of the machine may be of others
            ending = replace(ending, oom_killed=False)
            memory_limit_bytes = group.limit_bytes if group.oom_kills() else None
        judgement = judge(
            collector.last, ending, collector.where, self._child.log_tail(), memory_limit_bytes
        )
        if judgement.error is not None and judgement.error.kind == _DISK_FAILED:
            # Not an outcome: the configuration did nothing, and the next one meets the same disk.
            raise LsmtuneError(
                f"the disk failed {collector.where}: {judgement.error.message}; this run is not "
                "stored, what was stored is kept: repeat the command when the disk works again"
            )
        return self._over(judgement)

    def _over(self, judgement: Judgement) -> Judgement:
        """Notes that the driver is gone; a subclass that keeps more of the run extends this."""
        self._state = _State.OVER
        return judgement


def converse(
    driver: Path,
    document: Json,
    directory: Path,
    limits: Limits,
    collector: Collector,
    cancel: threading.Event | None = None,
    on_message: OnMessage | None = None,
    wrapper: Sequence[str] = (),
) -> Judgement:
    """One conversation from its beginning to its end, with a driver that never stops itself.

    When it returns or raises, the process and its whole group are gone. Raises what
    `Conversation.step` raises.
    """
    with Conversation(
        driver,
        document,
        directory,
        limits,
        collector,
        on_message=on_message,
        cancel=cancel,
        wrapper=wrapper,
    ) as conversation:
        conversation.proceed()
        while (judgement := conversation.step(TICK_S)) is None:
            pass
        return judgement


def check_library(engine: EngineIdentity) -> None:
    """Raises InputError unless the engine's library, where it has one, is a readable file."""
    if engine.library is None:
        return
    path = Path(engine.library)
    if not path.is_file() or not os.access(path, os.R_OK):
        raise InputError(
            "--library",
            found=engine.library,
            allowed=f"a {engine.name} library that can be read",
            why="no such file" if not path.exists() else "cannot be read",
        )
