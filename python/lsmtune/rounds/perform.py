"""Perform rounds: each cell once per round, in an order of the round's own, each run stored.

So that what the machine does meanwhile meets all cells alike, and a comparison of two cells can be
made within each round.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from lsmtune.errors import InputError
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.records.request import Limits, RunRequest
from lsmtune.rounds.cell import Cell, CellRun, check_names
from lsmtune.rounds.observer import RoundsObserver
from lsmtune.rounds.order import load_seed, run_seed, shuffled
from lsmtune.rounds.store import RoundsFolder
from lsmtune.runners.base import Runner

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
