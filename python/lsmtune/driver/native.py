"""The native runner: one `lsmtune-driver` process per run, and one per library that is probed.

A crash test is two processes: a load that is killed in the middle, and a look at what it left.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from lsmtune.driver.collect import Collector, Judgement, with_lost_reads
from lsmtune.driver.conversation import Conversation, OnMessage, check_library, converse
from lsmtune.driver.messages import (
    IntervalPassed,
    Message,
    PhaseFinished,
    Probed,
    Verified,
    check_request,
    probe_request,
    run_request,
)
from lsmtune.driver.runner import (
    DATABASE,
    cached_beyond,
    check_cores,
    check_directory,
    check_free_space,
)
from lsmtune.driver.watch import TICK_S
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.machine.awake import Clock
from lsmtune.machine.cgroup import MemoryGroup, memory_group
from lsmtune.model.config import EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import PhaseKind
from lsmtune.units import format_bytes

# How often to look whether a driver that said so has stopped: a tenth of a millisecond is long for
# that, and short beside a slice.
PAUSE_TICK_S = 0.0002

# How often a load that is killed says how far it is: what it did since then need not be there.
KILL_INTERVAL_MS = 20
PROBE_LIMITS = Limits(deadline_s=60.0, memory_bytes=4 << 30, disk_bytes=1 << 30)
# A control group that holds a run to so many bytes; None where this machine allows none.
MakeMemoryGroup = Callable[[int], MemoryGroup | None]


class NativeRun(Conversation):
    """A driver that waits to perform `request`; `measurement` is there once it has ended.

    A context manager: when it is left, no process of the run is there any more. The driver begins
    with the first `proceed`. In a run with slices it then freezes itself now and again, and goes on
    with the next `proceed`; time during which it is frozen counts neither for its deadline nor for
    `Measurement.elapsed_s`. Not thread-safe.
    """

    def __init__(
        self,
        runner: NativeRunner,
        request: RunRequest,
        on_message: OnMessage | None,
        cancel: threading.Event | None,
    ) -> None:
        """Starts the driver. Raises what `NativeRunner.run` raises."""
        check_library(request.engine)
        check_cores(request.cpus)
        check_directory(request.directory)
        check_free_space(request.directory)
        self.measurement: Measurement | None = None
        self._request = request
        with ExitStack() as stack:
            group = runner.make_memory_group(request.limits.memory_bytes)
            if group is not None:
                stack.enter_context(group)  # left last: its processes have to be gone
            super().__init__(
                runner.driver,
                run_request(request, request.directory / DATABASE),
                request.directory,
                request.limits,
                Collector(),
                on_message=on_message,
                cancel=cancel,
                clock=runner.clock,
                cpus=request.cpus,
                group=group,
            )
            stack.callback(super().close)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Kills the driver and its group, lets its pipes go, and then its control group."""
        self._stack.close()

    @property
    def phase(self) -> int:
        """Number of the phase that began last; -1 before the first."""
        return self._collector.phase

    def _over(self, judgement: Judgement) -> Judgement:
        """Puts `measurement` together."""
        warnings, asked_bytes = [], self._request.limits.memory_bytes
        if self.group_refused:
            warnings.append(f"memory is watched only: {self.group_refused}")
        if self.group is not None and self.group.limit_bytes < asked_bytes:
            had, asked = format_bytes(self.group.limit_bytes), format_bytes(asked_bytes)
            warnings.append(f"had {had} of memory, not {asked}: lsmtune itself is limited to that")
        measurement = self._collector.measurement(
            self._request,
            judgement,
            started_unix_s=self.started_unix_s,
            elapsed_s=self.elapsed_s,
            warnings=(*judgement.warnings, *warnings),
            memory_limited_by="watch" if self.group is None else "cgroup",
        )
        beyond = "" if self.group is not None else cached_beyond(self._request, measurement)
        if beyond:
            beyond += " (lsmtune doctor says why there is no group)"
            measurement = replace(measurement, warnings=(*measurement.warnings, beyond))
        self.measurement = with_lost_reads(measurement, self._request.workload)
        return super()._over(judgement)


@dataclass(eq=False)
class NativeRunner:
    """Performs runs with the driver binary at `driver`; see `Runner` for its obligations.

    Where this machine allows it, a run is held to its memory limit by a control group of its own
    (`make_memory_group`), and elsewhere its resident memory is watched. The group's limit counts
    the page cache of the run's files too; the kernel drops that before it kills anything, so that a
    run near its limit reads more from the device than one that is only watched.
    """

    driver: Path
    clock: Clock = time.monotonic
    make_memory_group: MakeMemoryGroup = memory_group

    def run(
        self,
        request: RunRequest,
        on_message: OnMessage | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        """One run; the database is `request.directory / "db"`.

        A run with slices goes on at once after each of them. Raises InputError when the driver, the
        library, the cores or the folder cannot be used, and when the driver is of another protocol
        version; LsmtuneError when the disk has no space for a run, or fails under it.
        """
        with NativeRun(self, request, on_message, cancel) as run:
            while run.measurement is None:
                if run.frozen:
                    run.proceed()
                run.step(PAUSE_TICK_S if run.pausing else TICK_S)
            return run.measurement

    def kill_in_load(
        self,
        request: RunRequest,
        after_operations: int,
        cancel: threading.Event | None = None,
        *,
        after_s: float = math.inf,
    ) -> KilledRun:
        """Runs `request` and kills it (SIGKILL) in its first phase, a load, or at the end of that.

        It is killed as soon as it has reported `after_operations` operations, or when it was
        running for `after_s` seconds; what it had reported by its death counts. Raises ValueError
        unless the first phase is a load, and what `run` raises.
        """
        if request.workload.phases[0].kind is not PhaseKind.LOAD:
            raise ValueError(f"the first phase of {request.workload.name} is not a load")
        request = replace(request, interval_ms=KILL_INTERVAL_MS, slices=0)
        acknowledged, over = 0, False

        def hear(message: Message) -> None:
            nonlocal acknowledged, over
            if isinstance(message, IntervalPassed) and message.index == 0:
                acknowledged = message.operations_total
            elif isinstance(message, PhaseFinished) and message.index == 0:
                acknowledged, over = message.phase.operations, True

        runner = NativeRunner(self.driver, make_memory_group=lambda _bytes: None)
        with NativeRun(runner, request, hear, cancel) as run:
            run.proceed()
            judgement, killed = None, False
            while judgement is None:
                judgement = run.step(TICK_S)
                enough = over or acknowledged >= after_operations
                if judgement is None and (enough or run.elapsed_s >= after_s):
                    run.kill()
                    killed = True
        if killed:
            return KilledRun(acknowledged)
        return KilledRun(acknowledged, judgement.outcome, judgement.message)

    def check_after_crash(
        self, request: RunRequest, acknowledged: int, cancel: threading.Event | None = None
    ) -> CrashCheck:
        """Whether the database of `request`, in its directory, holds the `acknowledged` operations.

        The first phase of the workload has one thread, and fills keys in an order that follows from
        the seed. Raises InputError for another one, for an engine that keeps nothing on the disk,
        and when driver, library or folder cannot be used.
        """
        check_library(request.engine)
        check_directory(request.directory)
        collector = Collector()
        document = check_request(request, request.directory / DATABASE, acknowledged)
        judgement = converse(
            self.driver, document, request.directory, request.limits, collector, cancel=cancel
        )
        error = judgement.error
        if judgement.outcome is Outcome.INVALID and error is not None:
            raise InputError(
                f"crash check of {request.workload.name}",
                error.field or "",
                found=error.found,
                allowed=error.allowed or "",
                why="" if error.allowed else error.message,
            )
        message = judgement.message or f"all {acknowledged} reported keys are there"
        return CrashCheck(judgement.outcome, message, collector.verified)


def probe(driver: Path, engine_name: str, library: Path | None, directory: Path) -> Probed:
    """What `library` is as an engine `engine_name`; the driver may write into `directory`.

    Raises InputError when it is not that engine, LsmtuneError when the probe failed otherwise.
    """
    asked = EngineIdentity(engine_name, library=None if library is None else str(library))
    check_library(asked)
    check_directory(directory)
    collector = Collector()
    document = probe_request(asked, directory)
    judgement = converse(driver, document, directory, PROBE_LIMITS, collector)
    probed = collector.probed
    if judgement.outcome is not Outcome.OK or probed is None:
        why = judgement.message or "the driver said nothing about it"
        source = asked.library or asked.name
        if judgement.outcome is Outcome.INVALID:
            raise InputError(source, why=why)
        raise LsmtuneError(f"{source}: probing it as {asked.name} failed: {why}")
    return probed


@dataclass(frozen=True)
class KilledRun:
    """A run that was killed in its load phase, after it had reported `acknowledged` operations.

    `outcome` is None then; when the run ended before it could be killed, it says how, and `message`
    why.
    """

    acknowledged: int
    outcome: Outcome | None = None
    message: str = ""


@dataclass(frozen=True)
class CrashCheck:
    """Whether the reported keys were found in the database that a killed driver left.

    `outcome` is `ok` when every reported key has its value, `data_loss` when one has not, and
    otherwise says what kept them from being looked at; `message` is one line about it. `verified`
    is what was found, None unless the engine opened the database again, twice; its `keys_wrong` are
    there with another value, or were never written.
    """

    outcome: Outcome
    message: str
    verified: Verified | None = None
