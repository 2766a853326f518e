"""The native runner: one `lsmtune-driver` process per run, and one per library that is probed."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.records.request import Limits, RunRequest
from lsmtune.runners.collect import Collector
from lsmtune.runners.conversation import OnMessage, check_library, converse
from lsmtune.runners.directory import check_directory, check_free_space
from lsmtune.runners.judge import Judgement
from lsmtune.runners.lost_reads import with_lost_reads
from lsmtune.runners.request_json import probe_request, run_request
from lsmtune.runners.watch import Clock

DATABASE = "db"

PROBE_LIMITS = Limits(deadline_s=60.0, memory_bytes=4 << 30, disk_bytes=1 << 30)


class NativeRunner:
    """Performs runs with the driver binary at `driver`; see `base.Runner` for its obligations."""

    def __init__(
        self, driver: Path, *, clock: Clock = time.monotonic, wall_clock: Clock = time.time
    ) -> None:
        self._driver = driver
        self._clock = clock
        self._wall_clock = wall_clock

    def run(
        self,
        request: RunRequest,
        on_message: OnMessage | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        """One run; the database is `request.directory / "db"`.

        Raises InputError when the driver, the library or the folder cannot be used, and when the
        driver is of another protocol version; LsmtuneError when the disk has no space for a run.
        """
        check_library(request.engine)
        check_directory(request.directory)
        started, started_unix_s = self._clock(), self._wall_clock()
        collector = Collector()
        check_free_space(request.directory)
        judgement = converse(
            self._driver,
            run_request(request, request.directory / DATABASE),
            request.directory,
            request.limits,
            collector,
            on_message=on_message,
            cancel=cancel,
            clock=self._clock,
        )
        measurement = collector.measurement(
            request,
            judgement.outcome,
            started_unix_s=started_unix_s,
            elapsed_s=self._clock() - started,
            error=judgement.error,
            warnings=judgement.warnings,
        )
        return with_lost_reads(measurement, request.workload.num)


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
