"""In which order the cells of a round are measured, and on which seed: functions of a seed."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from lsmtune.driver.messages import Message
from lsmtune.driver.runner import Runner
from lsmtune.errors import InputError
from lsmtune.experiment.rounds_store import Cell, CellRun, RoundsFolder, check_names
from lsmtune.model.config import EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import SEED_MAX, Limits, RunRequest

# Where runs start from copies of loaded databases, so many of them take turns. Of two loads of the
# same keys one may leave a tree that is read much slower, by the chance of when compactions ran.
LOADS = 3


def shuffled(cells: Sequence[Cell], seed: int, number: int) -> list[Cell]:
    """`cells` in the order of round `number`: a shuffle that `seed` and the names alone decide.

    Cells are sorted by a digest of seed, round and name, so that each order is as likely as any
    other, whatever the order in which they are given; then neither drift of the machine nor what
    its neighbour leaves behind favours a cell.
    """
    return sorted(cells, key=lambda cell: _digest(seed, number, cell.name))


def run_seed(seed: int, number: int) -> int:
    """The seed of every run of round `number`: `seed + number`, as `lsmtune bench` counts."""
    if not 0 <= seed <= SEED_MAX - number:
        raise ValueError(f"seed {seed} of round {number} is not from 0 to {SEED_MAX}")
    return seed + number


def load_seed(seed: int, number: int) -> int:
    """The seed with which the loaded databases of round `number` are made."""
    return run_seed(seed, number % LOADS)


def _digest(seed: int, number: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}/{number}/{name}".encode()).digest()


# ----------
# What is told while rounds are performed: callbacks, which the command line may show.


class RoundsObserver:
    """Told, in the thread of `perform`, what it does. Does nothing; override what is wanted."""

    def rounds_started(self, done: int, of: int) -> None:
        """`done` of `of` runs are stored already; the others are about to be performed."""

    def run_started(self, cell: Cell, number: int) -> None:
        """A run of `cell` in round `number`, from 0, begins."""

    def run_message(self, message: Message) -> None:
        """The driver said something."""

    def run_finished(self, run: CellRun, done: int, of: int) -> None:
        """A run ended, however, and is stored. A cancelled run is neither stored nor told."""


# ----------
# Perform rounds: each cell once per round, in an order of the round's own, each run stored.
#
# So that what the machine does meanwhile meets all cells alike, and a comparison of two cells can
# be made within each round.

Clock = Callable[[], float]


class Databases(Protocol):
    """Loaded databases that are kept, so that a run can start from a copy of one."""

    def prepare(self, request: RunRequest, cancel: threading.Event | None = None) -> RunRequest:
        """`request` with a loaded database in its folder, or as it is where none is of use."""
        ...


def perform(
    cells: Sequence[Cell],
    rounds: int,
    folder: Path,
    runner: Runner,
    limits: Limits,
    seed: int,
    observer: RoundsObserver,
    cancel: threading.Event,
    *,
    databases: Databases | None = None,
    parts: Mapping[str, object] | None = None,
    source: str = "",
    clock: Clock = time.monotonic,
) -> tuple[CellRun, ...]:
    """Measure each of `cells` once in each of `rounds` rounds; every stored run, by round.

    Within a round the order is shuffled (`order.shuffled`), and all runs have one seed. Each run
    has a fresh database under `folder`, or a copy from `databases` where its workload begins with
    a load, and is stored as soon as it is over, however it ended. Runs that the folder holds are
    not repeated, so that the same call goes on where it was stopped, and a later one may ask for
    more rounds; when the folder holds more rounds than are asked for, they are returned too.
    It ends early once `cancel` is set: the run that was cut off is not stored.

    `parts` are JSON values and records, by name, that decide what a run means beside its cell (the
    program that performs it). `source` names what the user wrote the plan in. Raises InputError
    when the folder cannot be used for this plan, or another version of an engine answers than in
    the rounds before; ValueError when the cells have no names of their own.
    """
    check_names(cells)
    if rounds < 1:
        raise ValueError(f"rounds is {rounds}, and at least 1 is needed")
    run_seed(seed, rounds - 1)
    plan: dict[str, object] = {"seed": seed, "limits": limits}
    plan |= {"databases": databases is not None, **(parts or {})}
    with RoundsFolder(folder, cells, plan, source) as stored:
        performer = _Performer(stored, runner, limits, seed, observer, cancel, databases, clock)
        performer.run(cells, rounds)
        return tuple(sorted(stored.runs(), key=lambda run: run.round))


class _Performer:
    def __init__(
        self,
        folder: RoundsFolder,
        runner: Runner,
        limits: Limits,
        seed: int,
        observer: RoundsObserver,
        cancel: threading.Event,
        databases: Databases | None,
        clock: Clock,
    ) -> None:
        self._folder = folder
        self._runner = runner
        self._limits = limits
        self._seed = seed
        self._observer = observer
        self._cancel = cancel
        self._databases = databases
        self._clock = clock
        before = folder.runs()
        self._done = {(run.round, run.cell) for run in before}
        self._engines: dict[str, EngineIdentity] = {}
        for run in before:
            self._check_engine(run.cell, run.measurement)

    def run(self, cells: Sequence[Cell], rounds: int) -> None:
        """Perform what is not stored yet, in order."""
        places = [
            (number, cell)
            for number in range(rounds)
            for cell in shuffled(cells, self._seed, number)
        ]
        done = sum((number, cell.name) in self._done for number, cell in places)
        self._observer.rounds_started(done, len(places))
        for number, cell in places:
            if (number, cell.name) in self._done:
                continue
            run = None if self._cancel.is_set() else self._run(cell, number)
            if run is None:
                return
            done += 1
            self._observer.run_finished(run, done, len(places))

    def _run(self, cell: Cell, number: int) -> CellRun | None:
        """One run, stored; None when it was cancelled."""
        self._observer.run_started(cell, number)
        started_s = self._clock()
        measurement: Measurement | None = None
        run: CellRun | None = None
        try:
            with self._folder.run_directory() as directory:
                request = self._request(cell, number, directory)
                measurement = self._runner.run(request, self._observer.run_message, self._cancel)
        finally:
            # After the folder is removed, because a run that filled the disk left no room for its
            # row; and even when it cannot be removed, which must not cost the run.
            if measurement is not None and measurement.outcome is not Outcome.CANCELLED:
                self._check_engine(cell.name, measurement)
                wall_s = self._clock() - started_s
                run = self._folder.add(cell, number, measurement, wall_s)
        return run

    def _request(self, cell: Cell, number: int, directory: Path) -> RunRequest:
        request = RunRequest(
            engine=cell.engine,
            config=cell.config,
            workload=cell.workload,
            seed=run_seed(self._seed, number),
            directory=directory,
            limits=self._limits,
        )
        if self._databases is None:
            return request
        request = replace(request, load_seed=load_seed(self._seed, number))
        return self._databases.prepare(request, self._cancel)

    def _check_engine(self, name: str, measurement: Measurement) -> None:
        """Rounds of two versions of an engine cannot be compared."""
        engine = measurement.engine
        if engine.version is None:
            return
        first = self._engines.setdefault(name, engine)
        if (first.name, first.version) != (engine.name, engine.version):
            raise InputError(
                str(self._folder.path),
                "engine",
                why=f"rounds of {name} by two versions of an engine cannot be compared",
                found=f"{engine.name} {engine.version}",
                allowed=f"{first.name} {first.version}, with which it began, "
                "or another folder (--dir DIR)",
            )
