"""Ending one run, or all of them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from lsmtune.driver.messages import Message
from lsmtune.driver.native import NativeRunner
from lsmtune.driver.pair import run_pair
from lsmtune.driver.runner import Runner
from lsmtune.errors import InputError
from lsmtune.experiment.databases import CacheObserver, DatabaseCache, Preparation
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.place import Arm, Place, RunObserver, load_seed, load_seed_of_repeat
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.codec import decode
from lsmtune.model.config import Build, Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, PairMethod, RunRequest
from lsmtune.model.workload import Workload


def _never() -> bool:
    return False


class Halt(threading.Event):
    """Set when a run is to end: by the user's `stop`, once `expired` says so, or by itself."""

    def __init__(self, stop: threading.Event, expired: Callable[[], bool] = _never) -> None:
        super().__init__()
        self._stop = stop
        self._expired = expired

    def is_set(self) -> bool:
        """Whether the run is to end, whoever wants it."""
        return super().is_set() or self._stop.is_set() or self._expired()

    @property
    def pruned(self) -> bool:
        """Whether it was this run alone that was ended."""
        return super().is_set() and not self._stop.is_set()


# ----------
# Telling an observer of one run at a time while two are on.


class PairTelling:
    """Tells of the run that began last; a run begins with the first message of its driver."""

    def __init__(self, observer: RunObserver, workloads: Sequence[Workload]) -> None:
        self._observer = observer
        self._workloads = workloads
        self._waiting: list[Arm] = []
        self._told = -1

    def begun(self, arms: Sequence[Arm]) -> None:
        """The first of `arms` begins; each other does when its first message comes."""
        self._waiting = list(arms)
        self._begin_next()

    def message(self, index: int, message: Message) -> None:
        """The driver of arm `index` said something."""
        while self._told < index:
            self._begin_next()
        if index == self._told:
            self._observer.run_message(message)

    def ended(self) -> None:
        """Both runs are over: one that never said anything began all the same."""
        while self._waiting:
            self._begin_next()

    def _begin_next(self) -> None:
        config, place = self._waiting.pop(0)
        self._told += 1
        self._observer.run_started(place, config, self._workloads[place.workload])


# ----------
# Perform runs and store what they observed: the one way in which a study measures.

Clock = Callable[[], float]
_ENGINE = "engine"


class Databases(Protocol):
    """Loaded databases that are kept, so that a run can start from a copy of one."""

    def prepare(self, request: RunRequest, cancel: threading.Event | None) -> RunRequest:
        """`request` with a loaded database in its folder, or as it is where none is of use."""
        ...

    def same(self, first: RunRequest, second: RunRequest) -> bool:
        """Whether both would start from copies of one database."""
        ...


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
        databases: Databases | None = None,
    ) -> None:
        self.folder = folder
        self.stop = stop
        self._runner = runner
        self._engine = engine
        self._workloads = tuple(workloads)
        self._limits = limits
        self._observer = observer
        self._clock = clock
        self._databases = databases
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

    @property
    def all_workloads(self) -> tuple[Workload, ...]:
        """What each configuration is measured under."""
        return self._workloads

    @property
    def native(self) -> bool:
        """Whether lsmtune's own driver performs the runs, so that a pair can share the machine."""
        return isinstance(self._runner, NativeRunner)

    @property
    def runner(self) -> Runner:
        """What performs the runs."""
        return self._runner

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
                request = self.request((config, place), seed, directory)
                request = replace(request, workload=workload, limits=limits)
                request = self._prepared(request, place, halt)
                measurement = self._runner.run(request, on_message, halt)
                if halt.pruned and measurement.outcome is Outcome.CANCELLED:
                    measurement = replace(measurement, outcome=Outcome.PRUNED, error=None)
        finally:
            # After the folder is removed, because a run that filled the disk left no room for its
            # row; and even when it cannot be removed, which must not cost the run.
            stored = () if measurement is None else self._store([(config, place)], [measurement])
        return stored[0] if stored else None

    def measure_pair(
        self,
        first: Arm,
        second: Arm,
        seed: int,
        method: PairMethod,
        *,
        until_s: float = math.inf,
        slices: int = 0,
    ) -> tuple[StoredMeasurement, StoredMeasurement] | None:
        """Run two configurations on the same seed by `method`, `first` first, and store both.

        Both places are of the same workload. Neither run is stored before both have ended, so that
        a kill leaves none of them, or the first alone in the worst case. None when they were
        cancelled, or not over when the clock of the measurer passed `until_s`. `slices` is their
        number in each measure phase, where they take turns in slices; 0 leaves it to the runner.
        Raises ValueError for a method that the runner cannot do, and else as `measure` does.
        """
        halt = Halt(self.stop, lambda: self._clock() >= until_s)
        arms, telling = (first, second), PairTelling(self._observer, self._workloads)
        telling.begun(arms)
        found: list[Measurement] = []
        try:
            if method is PairMethod.WHOLE:
                self._run_in_turn(arms, seed, telling, halt, found)
            else:
                self._run_together(arms, seed, method, slices, telling, halt, found)
        finally:
            stored: list[StoredMeasurement] = []
            if len(found) == len(arms):
                telling.ended()
                stored = self._store(arms, [replace(m, paired_by=method.value) for m in found])
        return (stored[0], stored[1]) if stored else None

    def _run_in_turn(
        self,
        arms: tuple[Arm, Arm],
        seed: int,
        telling: PairTelling,
        halt: Halt,
        found: list[Measurement],
    ) -> None:
        """Both runs to `found`, the second when the database of the first is gone.

        Else the kernel would write the first one to the disk while the second is measured.
        """
        for index, arm in enumerate(arms):
            if halt.is_set():
                return
            with self.folder.run_directory() as directory:
                request = self.request(arm, seed, directory)
                request = self._prepared(request, arm[1], halt, beside=arms[1 - index][0])
                found.append(self._runner.run(request, partial(telling.message, index), halt))

    def _run_together(
        self,
        arms: tuple[Arm, Arm],
        seed: int,
        method: PairMethod,
        slices: int,
        telling: PairTelling,
        halt: Halt,
        found: list[Measurement],
    ) -> None:
        """Both runs to `found`, performed by two drivers that are alive at the same time."""
        if not isinstance(self._runner, NativeRunner):
            raise ValueError(f"only runs of lsmtune's own driver can be paired by {method.value}")
        with self.folder.run_directory() as one, self.folder.run_directory() as other:
            first, second = (
                self._prepared(
                    replace(self.request(arm, seed, directory), slices=slices),
                    arm[1],
                    halt,
                    beside=beside[0],
                )
                for arm, beside, directory in zip(arms, arms[::-1], (one, other), strict=True)
            )
            found += run_pair(
                self._runner, first, second, method, on_message=telling.message, cancel=halt
            )

    def request(self, arm: Arm, seed: int, directory: Path) -> RunRequest:
        """What a runner is asked to do for `arm` in `directory`, before databases are prepared."""
        config, place = arm
        return RunRequest(
            engine=self._engine,
            config=config,
            workload=self._workloads[place.workload],
            seed=seed,
            directory=directory,
            limits=self._limits,
            trial=place.trial,
        )

    def _prepared(
        self, request: RunRequest, place: Place, halt: Halt, beside: Config | None = None
    ) -> RunRequest:
        """`request` on a copy of a loaded database; `beside` is its rival in a pair.

        Of two loads of the same keys one may leave a tree that is read 1.6 times slower, by the
        chance of when compactions ran. Where both sides of a proof's pair start from one tree, that
        is nobody's gain. Where each has its own, a tree that served several pairs would be taken
        for what the configuration does, and so each pair has new ones, and each repeat of a trial.
        """
        if self._databases is None:
            return request
        if place.role in (Role.PROOF_BASELINE, Role.PROOF_CANDIDATE) and place.pair is not None:
            rival = request if beside is None else replace(request, config=beside)
            seed = load_seed(place.pair, shared=self._databases.same(request, rival))
            request = replace(request, load_seed=seed)
        elif place.role is Role.TRIAL and place.repeat:
            request = replace(request, load_seed=load_seed_of_repeat(place.repeat))
        return self._databases.prepare(request, halt)

    def _store(
        self, arms: Sequence[Arm], measurements: Sequence[Measurement]
    ) -> list[StoredMeasurement]:
        """Store runs that ended together, each charged the same; none when one was cancelled."""
        if any(measurement.outcome is Outcome.CANCELLED for measurement in measurements):
            return []
        wall_s = self.since_charged_s()
        stored = []
        for (config, place), measurement in zip(arms, measurements, strict=True):
            self._refuse_other_engine(measurement.engine)
            self._keep_first_engine(measurement.engine)
            stored.append(self._row(config, measurement, place, wall_s / len(arms)))
        self._charged_until += wall_s
        for row in stored:
            self._observer.run_finished(row)
        return stored

    def _row(
        self, config: Config, measurement: Measurement, place: Place, wall_s: float
    ) -> StoredMeasurement:
        measurement_id = self.folder.measurements.add(
            place.role,
            measurement,
            config=config,
            trial=place.trial,
            pair=place.pair,
            wall_s=wall_s,
            workload=place.workload,
            rung=place.rung,
            repeat=place.repeat,
        )
        return StoredMeasurement(
            id=measurement_id,
            role=place.role,
            trial=place.trial,
            pair=place.pair,
            config=config,
            measurement=measurement,
            wall_s=wall_s,
            workload=place.workload,
            rung=place.rung,
            repeat=place.repeat,
        )

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


# ----------
# The loaded databases of a study's folder, and telling of them while they are made.

FOLDER = "databases"


def loaded_databases(
    folder: StudyFolder, runner: Runner, size_bytes: int, observer: RunObserver
) -> DatabaseCache | None:
    """The cache in `folder`, of `size_bytes` at most; None for programs of the user's own.

    Only lsmtune's driver knows what a database holds that an earlier run has loaded.
    """
    if not isinstance(runner, NativeRunner):
        return None
    told = LoadTelling(observer)
    return DatabaseCache(folder.path / FOLDER, runner, size_bytes, observer=told)


class LoadTelling(CacheObserver):
    """Tells an observer of runs what a load says, and once what is out of the ordinary."""

    def __init__(self, observer: RunObserver) -> None:
        self._observer = observer
        self._said: set[str] = set()

    def load_message(self, message: Message) -> None:
        """Passed on: the phases of a load are the first ones of the run that waits for it."""
        self._observer.run_message(message)

    def run_prepared(self, preparation: Preparation) -> None:
        """Said as a warning, the first time: a search has a database, and sizes, per trial."""
        what = preparation.note.partition(":")[0]
        if what and what not in self._said:
            self._said.add(what)
            self._observer.warning(preparation.note)
