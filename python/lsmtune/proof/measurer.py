"""Perform one run and store what it observed: the one way in which a study measures."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from lsmtune.errors import InputError
from lsmtune.proof.halt import Halt
from lsmtune.proof.observer import RunObserver
from lsmtune.proof.place import Place
from lsmtune.records.config import Config
from lsmtune.records.engine import Build, EngineIdentity
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.records.request import Limits, RunRequest
from lsmtune.records.workload import Workload
from lsmtune.runners.base import Runner
from lsmtune.runners.messages import Message
from lsmtune.storage.codec import decode
from lsmtune.storage.folder import StudyFolder
from lsmtune.storage.measurements import StoredMeasurement

Clock = Callable[[], float]
_ENGINE = "engine"


class Measurer:
    """What stays the same from run to run: engine, workloads, limits, runner and folder.

    `clock` gives seconds of a monotonic clock. Each run is charged all the time since the one
    before it, so that what the runs of a study cost adds up to what the study took; only a run
    that was cut off, by the user or a kill, is charged nothing.
    """

    def __init__(
        self,
        folder: StudyFolder,
        runner: Runner,
        engine: EngineIdentity,
        workloads: Sequence[Workload],
        limits: Limits,
        observer: RunObserver,
        stop: threading.Event,
        clock: Clock,
    ) -> None:
        self.folder = folder
        self.stop = stop
        self._runner = runner
        self._engine = engine
        self._workloads = tuple(workloads)
        self._limits = limits
        self._observer = observer
        self._clock = clock
        self._charged_until = clock()
        self._refuse_other_engine(engine)

    def now_s(self) -> float:
        """Seconds on the clock of the measurer."""
        return self._clock()

    def since_charged_s(self) -> float:
        """Seconds since the last run was charged."""
        return self._clock() - self._charged_until

    def spent_s(self) -> float:
        """Seconds that the study took so far, over all its sessions."""
        return self.folder.measurements.spent_s() + self.since_charged_s()

    @property
    def workloads(self) -> int:
        """How many workloads a configuration is measured under."""
        return len(self._workloads)

    def measure(
        self,
        config: Config,
        seed: int,
        place: Place,
        *,
        deadline_s: float = math.inf,
        workload: Workload | None = None,
        prune: Callable[[Message], bool] | None = None,
    ) -> StoredMeasurement | None:
        """Run `config` once and store it. None when the run was cancelled: nothing is stored.

        The run is killed after `deadline_s` seconds where that is less than the study's own
        deadline. `workload` replaces the study's own of that place (a smaller one). `prune` is
        asked at each message; once it says yes the run is ended, and stored as `pruned`. Raises
        InputError when another version of the engine answered than the study began with.
        """
        halt = Halt(self.stop)

        def on_message(message: Message) -> None:
            self._observer.run_message(message)
            if prune is not None and not halt.is_set() and prune(message):
                halt.set()

        workload = workload or self._workloads[place.workload]
        self._observer.run_started(place, config, workload)
        limits = replace(self._limits, deadline_s=min(self._limits.deadline_s, deadline_s))
        measurement: Measurement | None = None
        try:
            with self.folder.run_directory() as directory:
                request = RunRequest(
                    engine=self._engine,
                    config=config,
                    workload=workload,
                    seed=seed,
                    directory=directory,
                    limits=limits,
                    trial=place.trial,
                )
                measurement = self._runner.run(request, on_message, halt)
                if halt.pruned and measurement.outcome is Outcome.CANCELLED:
                    measurement = replace(measurement, outcome=Outcome.PRUNED, error=None)
        finally:
            # After the folder is removed, because a run that filled the disk left no room for its
            # row; and even when it cannot be removed, which must not cost the run.
            done = measurement is not None and measurement.outcome is not Outcome.CANCELLED
            stored = self._store(config, measurement, place) if measurement and done else None
        return stored

    def _store(self, config: Config, measurement: Measurement, place: Place) -> StoredMeasurement:
        self._refuse_other_engine(measurement.engine)
        self._keep_first_engine(measurement.engine)
        wall_s = self.since_charged_s()
        measurement_id = self.folder.measurements.add(
            place.role,
            measurement,
            config=config,
            trial=place.trial,
            pair=place.pair,
            wall_s=wall_s,
            workload=place.workload,
            rung=place.rung,
        )
        self._charged_until += wall_s
        stored = StoredMeasurement(
            id=measurement_id,
            role=place.role,
            trial=place.trial,
            pair=place.pair,
            config=config,
            measurement=measurement,
            wall_s=wall_s,
            workload=place.workload,
            rung=place.rung,
        )
        self._observer.run_finished(stored)
        return stored

    def _refuse_other_engine(self, engine: EngineIdentity) -> None:
        """Measurements of two versions, or two builds, of an engine cannot be compared."""
        stored = self.folder.measurements.fact(_ENGINE)
        if stored is None or engine.version is None:
            return
        first = decode(EngineIdentity, stored)
        if (first.name, first.version) == (engine.name, engine.version) and (
            first.build is engine.build or Build.UNKNOWN in (first.build, engine.build)
        ):
            return
        raise InputError(
            str(self.folder.path),
            "engine",
            why="measurements of two versions or builds of an engine cannot be compared",
            found=_engine_text(engine),
            allowed=f"{_engine_text(first)}, with which this study began, "
            "or another folder (--dir DIR)",
        )

    def _keep_first_engine(self, engine: EngineIdentity) -> None:
        """The engine's own words win; how it was built only the request knows."""
        if engine.version is None or self.folder.measurements.fact(_ENGINE) is not None:
            return
        if engine.build is Build.UNKNOWN:
            engine = replace(engine, build=self._engine.build)
        self.folder.measurements.set_fact(_ENGINE, engine)


def _engine_text(engine: EngineIdentity) -> str:
    build = "" if engine.build is Build.UNKNOWN else f" ({engine.build.value})"
    return f"{engine.name} {engine.version}{build}"
