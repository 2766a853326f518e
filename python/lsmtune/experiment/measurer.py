"""Performs runs and stores what they observed: the one way in which an experiment measures."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from lsmtune.driver.collect import KILLED
from lsmtune.driver.messages import Message
from lsmtune.driver.native import NativeRunner
from lsmtune.driver.pair import PairRunner, run_pair
from lsmtune.driver.runner import Runner
from lsmtune.engines.scaling import scaled
from lsmtune.errors import LsmtuneError
from lsmtune.experiment.builds import refuse_other
from lsmtune.experiment.database_key import same_database
from lsmtune.experiment.databases import DatabaseCache
from lsmtune.experiment.disturbed import TRIES, disturbance_of, tried_again
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.run_length import longer_by
from lsmtune.experiment.schedule import Arm, Slot, load_seed_of
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.machine.awake import Clock
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import DatabaseSpec, Limits, PairMethod, RunRequest
from lsmtune.model.workload import Workload

DATABASES = "databases"  # in the folder of an experiment

Run = tuple[Arm, Slot]  # what is run, and where the run belongs

# A request with a loaded database in its folder, or as it is where none is of use.
Databases = Callable[[RunRequest, threading.Event | None], RunRequest]


def loaded_databases(
    folder: Path, runner: Runner, wanted: DatabaseSpec, observer: Observer
) -> Databases | None:
    """Those of a cache in the experiment's `folder`; None where none are `wanted`.

    None for programs, too: only lsmtune's driver knows what a database holds from an earlier run.
    """
    if not wanted.reuse or not isinstance(runner, NativeRunner):
        return None
    return DatabaseCache(folder / DATABASES, runner, wanted.size_bytes, observer=observer).prepare


@dataclass(eq=False)
class Measurer:
    """What stays the same from run to run: workloads, limits, runner and folder.

    The policy for all experiments:

    - Seeds come from the schedule, and so do the databases that a run starts from
      (`schedule.load_seed_of`).
    - Each run has a marked directory of its own, removed before its row is stored.
    - Each run is charged all the time since the one before it, so that what the runs cost adds up
      to what the experiment took. A run that was cut off is not stored, and charged nothing.
    - A run that was disturbed from outside is not stored, and measured again (`tried_again`). What
      it cost counts as spent, and for no run.
    - An engine library may not change between two runs of it.

    `clock` gives seconds of a monotonic clock. `scale` is that of the workloads and limits to what
    the arms are meant for: a run has the arm's configuration at this scale (`engines.scaling`).
    By `lengths` the runs of a configuration by itself have a length of their own. The two of a pair
    have the same.
    """

    folder: StudyFolder
    runner: Runner
    workloads: Sequence[Workload]
    limits: Limits
    observer: Observer
    stop: threading.Event
    clock: Clock
    databases: Databases | None = None
    scale: float = 1.0
    lengths: Callable[[Config], float] | None = None

    def __post_init__(self) -> None:
        self._charged_until_s = self.clock()

    def at(self, workloads: Sequence[Workload], limits: Limits, scale: float) -> Measurer:
        """One for runs of another scale, which are charged the time from now on."""
        if scale == self.scale:
            return self
        return replace(self, workloads=workloads, limits=limits, scale=scale)

    def since_charged_s(self) -> float:
        """Seconds since the last run was charged."""
        return self.clock() - self._charged_until_s

    def excuse(self, seconds: float) -> None:
        """Charge no run for `seconds` of the time since the last one was charged."""
        self._charged_until_s += seconds

    def spent_s(self) -> float:
        """Seconds that the experiment took so far, over all its sessions."""
        return self.folder.measurements.spent_s() + self.since_charged_s()

    def length_of(self, config: Config) -> float:
        """How many times as long as the experiment's the runs of `config` by itself are."""
        return 1.0 if self.lengths is None else self.lengths(config)

    @property
    def native(self) -> bool:
        """Whether lsmtune's own driver performs the runs, so that a pair can share the machine."""
        return isinstance(self.runner, NativeRunner | PairRunner)

    def measure(
        self,
        arm: Arm,
        seed: int,
        slot: Slot,
        *,
        deadline_s: float = math.inf,
        until_s: float = math.inf,
        workload: Workload | None = None,
        config: Config | None = None,
        memory_bytes: int | None = None,
        prune: Callable[[], Callable[[Message], bool]] | None = None,
        after: Callable[[RunRequest, Measurement], None] | None = None,
    ) -> StoredMeasurement | None:
        """Run `arm` once and store it. None when the run was cancelled: nothing is stored.

        After `deadline_s` the run has failed, where the limits allow more; when the clock of the
        measurer passes `until_s`, it is cancelled. `workload` takes the place of the experiment's
        own. `config` is what the engine is given in place of the arm's, which is stored: the same
        one at the scale of a smaller workload, and `memory_bytes` the memory limit at that scale.
        `prune` makes, for each time that the run is tried, what is asked at each message of that;
        once it says yes the run is ended, and stored as `pruned`. `after` is called when the run is
        over, while its directory is there.

        Raises InputError when another version of the engine answered than before, LsmtuneError when
        something stopped the run each time that it was tried.
        """
        sized = workload or self.workloads[slot.workload]
        limits = replace(
            self.limits,
            deadline_s=min(self.limits.deadline_s, deadline_s),
            memory_bytes=memory_bytes or self.limits.memory_bytes,
        )
        tried: list[Measurement] = []

        def attempt() -> tuple[list[Measurement], Sequence[StoredMeasurement]]:
            cancel = _Cancel(self.stop, self.clock, until_s)
            is_to_end = None if prune is None else prune()

            def on_message(message: Message) -> None:
                self.observer.run_message(message)
                if is_to_end is not None and not cancel.is_set() and is_to_end(message):
                    cancel.set()

            self.observer.run_started(slot, arm, sized)
            measured: list[Measurement] = []
            stored: Sequence[StoredMeasurement] = ()
            try:
                with self.folder.run_directory() as directory:
                    request = self.request((arm, slot), seed, directory, sized)
                    request = replace(request, limits=limits, config=config or request.config)
                    request = self._prepared(request, slot, cancel)
                    measurement = self.runner.run(request, on_message, cancel)
                    if cancel.of_this_run and measurement.outcome is Outcome.CANCELLED:
                        measurement = replace(measurement, outcome=Outcome.PRUNED, error=None)
                    measured.append(measurement)
                    if after is not None and measurement.outcome is not Outcome.DISTURBED:
                        after(request, measurement)
            finally:
                # After the directory is removed, because a run that filled the disk left no room
                # for its row; and even when it cannot be removed, which must not cost the run.
                if measured:
                    stored = self._store([(arm, slot)], measured)
            tried.extend(measured)
            return measured, stored

        (measurement,), stored = tried_again(
            attempt, lambda result: self._disturbance(result[0]), self.observer.warning
        )
        if self._disturbance([measurement]):
            killed = [each.error for each in tried if each.error and each.error.kind == KILLED]
            if len(killed) < TRIES:
                raise self._always_disturbed([measurement])
            # A configuration may be what makes somebody kill it, such as a watcher of memory.
            why = f"{killed[-1].message}; so it ended {TRIES} times, one after the other"
            error = replace(killed[-1], message=why)
            crashed = replace(measurement, outcome=Outcome.CRASHED, error=error)
            stored = self._store([(arm, slot)], [crashed])
        return stored[0] if stored else None

    def measure_workloads(
        self,
        arm: Arm,
        seed: int,
        slot: Slot,
        *,
        deadline_s: float = math.inf,
        until_s: float = math.inf,
        stored: Sequence[StoredMeasurement] = (),
        workloads: Sequence[Workload] | None = None,
        config: Config | None = None,
        memory_bytes: int | None = None,
        prune: Callable[[], Callable[[Message], bool]] | None = None,
    ) -> list[StoredMeasurement] | None:
        """Run `arm` under each workload, up to a run that does not end well; None when cancelled.

        `slot` is that of the first run. `stored` are runs of an earlier session, under the first
        workloads, which are not repeated. `workloads` take the place of the experiment's own, as
        many smaller ones. All else is as in `measure`, `deadline_s` for each run by itself.
        """
        runs = list(stored)
        if workloads is None:
            longer = self.length_of(arm.config)
            workloads = [longer_by(workload, longer) for workload in self.workloads]
        for index in range(len(stored), len(workloads)):
            if runs and runs[-1].measurement.outcome is not Outcome.OK:
                break
            if self.stop.is_set():
                return None
            run = self.measure(
                arm,
                seed,
                replace(slot, workload=index),
                deadline_s=deadline_s,
                until_s=until_s,
                workload=workloads[index],
                config=config,
                memory_bytes=memory_bytes,
                prune=prune,
            )
            if run is None:
                return None
            runs.append(run)
        return runs

    def measure_pair(
        self,
        first: Run,
        second: Run,
        seed: int,
        method: PairMethod,
        *,
        until_s: float = math.inf,
        slices: int = 0,
    ) -> tuple[StoredMeasurement, StoredMeasurement] | None:
        """Run two arms on the same seed by `method`, `first` first, and store both.

        Both are of the same workload. Neither is stored before both have ended, so that a kill
        leaves none of them, or the first alone in the worst case. None when they were cancelled, or
        not over when the clock of the measurer passed `until_s`. `slices` is their number in each
        measure phase, where they take turns in slices; 0 leaves it to the runner. Raises ValueError
        for a method that the runner cannot do, and else as `measure` does; a pair of which a run
        is killed each time ends so too.
        """
        cancel = _Cancel(self.stop, self.clock, until_s)
        runs = (first, second)

        def asked(index: int, directory: Path) -> RunRequest:
            request = self.request(runs[index], seed, directory)
            if method is not PairMethod.WHOLE:
                request = replace(request, slices=slices, alone=False)
            return self._prepared(request, runs[index][1], cancel, rival=runs[1 - index][0])

        def attempt() -> tuple[list[Measurement], Sequence[StoredMeasurement]]:
            events = _PairEvents(self.observer, self.workloads, runs)
            measured: list[Measurement] = []
            stored: Sequence[StoredMeasurement] = ()
            try:
                if method is PairMethod.WHOLE:
                    # The second begins when the database of the first is gone. Else the kernel
                    # would write the first one to the disk while the second is measured.
                    for index in range(len(runs)):
                        if not cancel.is_set() and not any(map(disturbance_of, measured)):
                            with self.folder.run_directory() as directory:
                                on_message = partial(events.message, index)
                                request = asked(index, directory)
                                measured.append(self.runner.run(request, on_message, cancel))
                elif isinstance(self.runner, NativeRunner | PairRunner):
                    with self.folder.run_directory() as one, self.folder.run_directory() as other:
                        both = asked(0, one), asked(1, other)
                        measured += run_pair(
                            self.runner, *both, method, on_message=events.message, cancel=cancel
                        )
                else:
                    raise ValueError(f"only lsmtune's own driver can pair runs by {method.value}")
            finally:
                if len(measured) == len(runs) or any(map(disturbance_of, measured)):
                    events.begin(1)
                    paired = [replace(m, paired_by=method.value) for m in measured]
                    stored = self._store(runs, paired)
                elif measured and cancel.is_set():  # the second run never began
                    self._note_lost()
            return measured, stored

        measured, stored = tried_again(
            attempt,
            lambda result: "" if cancel.is_set() else self._disturbance(result[0]),
            self.observer.warning,
        )
        if not cancel.is_set() and self._disturbance(measured):
            raise self._always_disturbed(measured)
        return (stored[0], stored[1]) if stored else None

    def _disturbance(self, measured: Sequence[Measurement]) -> str:
        """What disturbed the first of these runs that was, in one line; empty for none."""
        if self.stop.is_set():
            return ""
        return next((f"a run was {why}" for why in map(disturbance_of, measured) if why), "")

    def _always_disturbed(self, measured: Sequence[Measurement]) -> LsmtuneError:
        return LsmtuneError(
            f"{self._disturbance(measured)}; it was disturbed {TRIES} times, one after the other: "
            "what was stored before is kept; see what does that on this machine, and repeat the "
            "command"
        )

    def request(
        self, run: Run, seed: int, directory: Path, workload: Workload | None = None
    ) -> RunRequest:
        """What a runner is asked to do in `directory`, before databases are prepared."""
        arm, slot = run
        return RunRequest(
            engine=arm.engine,
            config=self._at_scale(arm),
            workload=workload or self.workloads[slot.workload],
            seed=seed,
            directory=directory,
            limits=self.limits,
            trial=slot.trial,
        )

    def _at_scale(self, arm: Arm) -> Config:
        """The configuration of `arm` as a run has it."""
        options, engine = arm.config.options, arm.engine
        if self.scale == 1.0:
            return arm.config
        return replace(arm.config, options=scaled(engine.name, options, self.scale, engine.version))

    def _prepared(
        self, request: RunRequest, slot: Slot, cancel: threading.Event, rival: Arm | None = None
    ) -> RunRequest:
        """`request` on a copy of a loaded database; `rival` is the other side of its pair."""
        if self.databases is None:
            return request
        shared = False
        if rival is not None and slot.role is not Role.CALIBRATION:
            other = replace(request, engine=rival.engine, config=self._at_scale(rival))
            shared = same_database(request, other)
        load_seed = load_seed_of(slot, request.seed, shared=shared)
        return self.databases(replace(request, load_seed=load_seed), cancel)

    def _store(
        self, runs: Sequence[Run], measurements: Sequence[Measurement]
    ) -> Sequence[StoredMeasurement]:
        """Store runs that ended together, each charged the same.

        Empty when one was cancelled or disturbed: what that took is noted, unless the user ends it.
        """
        if any(m.outcome in (Outcome.CANCELLED, Outcome.DISTURBED) for m in measurements):
            self._note_lost()
            return ()
        wall_s = self.since_charged_s()
        stored = []
        for (arm, slot), measurement in zip(runs, measurements, strict=True):
            refuse_other(self.folder, arm.engine, measurement.engine)
            row = StoredMeasurement(
                id=0,
                config=arm.config,
                measurement=measurement,
                wall_s=wall_s / len(runs),
                arm=arm.label,
                library=arm.engine.library,
                **{name: value for name, value in vars(slot).items() if name != "index"},
            )
            stored.append(self.folder.measurements.insert(row))
        self._charged_until_s += wall_s
        for row in stored:
            self.observer.run_finished(row)
        return stored

    def _note_lost(self) -> None:
        """What was not stored took its time all the same, unless the user ended it."""
        if not self.stop.is_set():
            wall_s = self.since_charged_s()
            self.folder.measurements.note_lost(wall_s)
            self._charged_until_s += wall_s

    def refuse_other_build(self, asked: EngineIdentity, *, alone: bool = False) -> None:
        """Raises InputError when `asked` is not the engine that it was before."""
        refuse_other(self.folder, asked, alone=alone)


class _Cancel(threading.Event):
    """Set when a run is to end: by `stop`, when `clock` shows `until_s`, or by itself."""

    def __init__(self, stop: threading.Event, clock: Clock, until_s: float) -> None:
        super().__init__()
        self._stop, self._clock, self._until_s = stop, clock, until_s

    def is_set(self) -> bool:
        """Whether the run is to end, whoever wants it."""
        return super().is_set() or self._stop.is_set() or self._clock() >= self._until_s

    @property
    def of_this_run(self) -> bool:
        """Whether it was this run alone that was ended."""
        return super().is_set() and not self._stop.is_set()


class _PairEvents:
    """The two runs of a pair, for an observer of one at a time: messages are of the newest run."""

    def __init__(
        self, observer: Observer, workloads: Sequence[Workload], runs: tuple[Run, Run]
    ) -> None:
        self._observer = observer
        self._workloads = workloads
        self._runs = runs
        self._begun = 0
        self.begin(0)

    def begin(self, last: int) -> None:
        """Runs up to `last` have begun: by the first message of a driver, or as they are over."""
        for arm, slot in self._runs[self._begun : last + 1]:
            self._begun += 1
            self._observer.run_started(slot, arm, self._workloads[slot.workload])

    def message(self, index: int, message: Message) -> None:
        """The driver of run `index` said something."""
        self.begin(index)
        if index + 1 == self._begun:
            self._observer.run_message(message)
