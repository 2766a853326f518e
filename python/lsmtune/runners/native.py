"""The native runner: one `lsmtune-driver` process per run, and one per library that is probed."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.machine.cgroup import memory_group
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.records.request import Limits, RunRequest
from lsmtune.runners.collect import Collector
from lsmtune.runners.conversation import OnMessage, check_library, converse
from lsmtune.runners.crash_check import CrashCheck, KilledRun, check_after_crash, kill_in_load
from lsmtune.runners.directory import check_directory
from lsmtune.runners.judge import Judgement
from lsmtune.runners.native_run import MakeMemoryGroup, NativeRun
from lsmtune.runners.request_json import probe_request
from lsmtune.runners.watch import TICK_S, Clock

# How often to look whether a driver that said so has stopped: a tenth of a millisecond is long for
# that, and short beside a slice.
PAUSE_TICK_S = 0.0002

PROBE_LIMITS = Limits(deadline_s=60.0, memory_bytes=4 << 30, disk_bytes=1 << 30)


class NativeRunner:
    """Performs runs with the driver binary at `driver`; see `base.Runner` for its obligations.

    Where this machine allows it, a run is held to its memory limit by a control group of its own
    (`make_memory_group`), and elsewhere its resident memory is watched. The group's limit counts
    the page cache of the run's files too; the kernel drops that before it kills anything, so that a
    run near its limit reads more from the device than one that is only watched.
    """

    def __init__(
        self,
        driver: Path,
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
        make_memory_group: MakeMemoryGroup = memory_group,
    ) -> None:
        self._driver = driver
        self._clock = clock
        self._wall_clock = wall_clock
        self._make_memory_group = make_memory_group

    def run(
        self,
        request: RunRequest,
        on_message: OnMessage | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        """One run; the database is `request.directory / "db"`.

        A run with slices goes on at once after each of them. Raises InputError when the driver, the
        library, the cores or the folder cannot be used, and when the driver is of another protocol
        version; LsmtuneError when the disk has no space for a run.
        """
        with self.start(request, on_message, cancel) as run:
            while run.measurement is None:
                if run.frozen:
                    run.proceed()
                run.step(PAUSE_TICK_S if run.pausing else TICK_S)
            return run.measurement

    def start(
        self,
        request: RunRequest,
        on_message: OnMessage | None = None,
        cancel: threading.Event | None = None,
    ) -> NativeRun:
        """The same run, for the caller to move on step by step. Raises the same."""
        return NativeRun(
            self._driver,
            request,
            on_message,
            cancel,
            clock=self._clock,
            wall_clock=self._wall_clock,
            make_memory_group=self._make_memory_group,
        )

    def kill_in_load(
        self,
        request: RunRequest,
        after_operations: int,
        cancel: threading.Event | None = None,
        *,
        after_s: float = math.inf,
    ) -> KilledRun:
        """The run is killed in the middle of its first phase; see `crash_check.kill_in_load`."""
        return kill_in_load(self._driver, request, after_operations, cancel, after_s=after_s)

    def check_after_crash(
        self, request: RunRequest, acknowledged: int, cancel: threading.Event | None = None
    ) -> CrashCheck:
        """What is left of the killed run; see `crash_check.check_after_crash`."""
        return check_after_crash(self._driver, request, acknowledged, cancel)


@dataclass(frozen=True)
class ProbeResult:
    """What a library is: `options` pairs each option that the engine knows with its default."""

    identity: EngineIdentity
    compressions: tuple[str, ...]
    options: tuple[tuple[str, str], ...]


def probe(
    driver: Path,
    engine_name: str,
    library: Path | None,
    directory: Path,
    limits: Limits = PROBE_LIMITS,
) -> ProbeResult:
    """What `library` is as an engine `engine_name`; the driver may write into `directory`.

    Raises InputError when it is not that engine, LsmtuneError when the probe failed otherwise.
    """
    asked = EngineIdentity(engine_name, library=None if library is None else str(library))
    check_library(asked)
    check_directory(directory)
    collector = Collector()
    document = probe_request(asked, directory)
    judgement = converse(driver, document, directory, limits, collector)
    probed = collector.probed
    if judgement.outcome is not Outcome.OK or probed is None:
        raise _failure(asked, judgement)
    said = probed.engine
    return ProbeResult(
        EngineIdentity(said.name, said.version, said.library),
        probed.compressions,
        tuple((option.name, option.default) for option in probed.options),
    )


def _failure(asked: EngineIdentity, judgement: Judgement) -> LsmtuneError:
    why = judgement.error.message if judgement.error else "the driver said nothing about it"
    source = asked.library or asked.name
    if judgement.outcome is Outcome.INVALID:
        return InputError(source, why=why)
    return LsmtuneError(f"{source}: probing it as {asked.name} failed: {why}")
