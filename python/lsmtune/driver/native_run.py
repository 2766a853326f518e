"""FIXME."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from lsmtune.driver.collect import Collector, Judgement, with_lost_reads
from lsmtune.driver.conversation import Conversation, OnMessage, check_library
from lsmtune.driver.requests import run_request
from lsmtune.driver.runner import check_cores, check_directory, check_free_space
from lsmtune.driver.watch import Clock
from lsmtune.machine.cgroup import MemoryGroup, memory_group
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import RunRequest

DATABASE = "db"
# A control group that holds a run to so many bytes; None where this machine allows none.
MakeMemoryGroup = Callable[[int], MemoryGroup | None]


class NativeRun:
    """A driver that waits to perform `request`; `measurement` is there once it has ended.

    A context manager: when it is left, no process of the run is there any more. The driver begins
    with the first `proceed`. In a run with slices it then freezes itself now and again, and goes on
    with the next `proceed`; time during which it is frozen counts neither for its deadline nor for
    `Measurement.elapsed_s`. Not thread-safe.
    """

    def __init__(
        self,
        driver: Path,
        request: RunRequest,
        on_message: OnMessage | None = None,
        cancel: threading.Event | None = None,
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
        make_memory_group: MakeMemoryGroup = memory_group,
    ) -> None:
        """Starts the driver. Raises what `NativeRunner.run` raises."""
        check_library(request.engine)
        check_cores(request.cpus)
        check_directory(request.directory)
        check_free_space(request.directory)
        self.measurement: Measurement | None = None
        self._request = request
        self._wall_clock = wall_clock
        self._started_unix_s = wall_clock()
        self._begun = False
        self._collector = Collector()
        with ExitStack() as stack:
            group = make_memory_group(request.limits.memory_bytes)
            if group is not None:
                stack.enter_context(group)  # left last: its processes have to be gone
            conversation = Conversation(
                driver,
                run_request(request, request.directory / DATABASE),
                request.directory,
                request.limits,
                self._collector,
                on_message=on_message,
                cancel=cancel,
                clock=clock,
                cpus=request.cpus,
                group=group,
            )
            self._conversation = stack.enter_context(conversation)
            self._stack = stack.pop_all()

    def __enter__(self) -> NativeRun:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def messages_fd(self) -> int | None:
        """What can be read when the driver has said something; None once it never will again."""
        return self._conversation.messages_fd

    @property
    def phase(self) -> int:
        """Number of the phase that began last; -1 before the first."""
        return self._collector.phase

    @property
    def pausing(self) -> bool:
        """Whether the driver is about to freeze: it has said so."""
        return self._conversation.pausing

    @property
    def frozen(self) -> bool:
        """Whether the driver stands still until `proceed`."""
        return self.measurement is None and self._conversation.frozen

    def proceed(self) -> None:
        """Lets a frozen driver run. Raises ValueError for one that is not frozen."""
        if not self._begun:
            self._begun, self._started_unix_s = True, self._wall_clock()
        self._conversation.proceed()

    def step(self, timeout_s: float) -> None:
        """Takes what the driver says within `timeout_s`, and looks whether it is still there.

        Raises what `on_message` raises, and InputError for a driver of another version.
        """
        judgement = self._conversation.step(timeout_s)
        if judgement is not None:
            self._end(judgement)

    def end(self, outcome: Outcome, why: str) -> None:
        """Ends the run at once, frozen or not, for a reason of the caller's."""
        self._end(self._conversation.end(outcome, why))

    def _end(self, judgement: Judgement) -> None:
        refused = self._conversation.group_refused
        warnings = (f"memory is watched only: {refused}",) if refused else ()
        measurement = self._collector.measurement(
            self._request,
            judgement.outcome,
            started_unix_s=self._started_unix_s,
            elapsed_s=self._conversation.elapsed_s,
            error=judgement.error,
            warnings=(*judgement.warnings, *warnings),
            memory_limited_by="watch" if self._conversation.group is None else "cgroup",
        )
        workload, prepared = self._request.workload, self._request.prepared
        before = workload.phases[: prepared.phases] if prepared else ()
        self.measurement = with_lost_reads(measurement, workload.num, before, workload.phases)
