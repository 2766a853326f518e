"""A Cell, one thing that is measured beside others, and what one run of it observed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.experiment import files as scratch
from lsmtune.experiment.files import LOCK, MARKER, FolderLock, claim, explained, is_owned, not_ours
from lsmtune.experiment.store import MeasurementStore, Role, StoredMeasurement
from lsmtune.model.codec import encode
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.workload import Workload


@dataclass(frozen=True)
class Cell:
    """One configuration under one workload; `name` is its own among the cells of a plan."""

    name: str
    engine: EngineIdentity
    config: Config
    workload: Workload


@dataclass(frozen=True)
class CellRun:
    """What a run of the cell named `cell` observed in `round`, from 0.

    `seed` is that of all runs of the round; `wall_s` all the time that the run cost, the making and
    removing of its database included.
    """

    cell: str
    round: int
    seed: int
    measurement: Measurement
    wall_s: float = 0.0


def check_names(cells: Sequence[Cell]) -> None:
    """Raises ValueError when there are no cells, or two of one name."""
    names = [cell.name for cell in cells]
    if not names:
        raise ValueError("there are no cells to measure")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two cells are named {twice[0]}")


def of_cell(runs: Iterable[CellRun], name: str) -> list[CellRun]:
    """The runs of one cell, by round."""
    return sorted((run for run in runs if run.cell == name), key=lambda run: run.round)


# ----------
# What makes the runs of a folder comparable, and what of it changed.

_CELLS = "cells"
_PARTS = "parts"
_SHOWN = 3

PlanFacts = Mapping[str, Mapping[str, Mapping[str, str]]]


def plan_facts(
    cells: Sequence[Cell], parts: Mapping[str, object]
) -> dict[str, dict[str, dict[str, str]]]:
    """Digests of what each cell consists of, and of the `parts` that all of them share.

    The number of rounds is no part of a plan: it may be raised.
    """
    return {
        _CELLS: {cell.name: _cell_facts(cell) for cell in cells},
        _PARTS: {"all": {name: _digest(part) for name, part in parts.items()}},
    }


def changes(stored: PlanFacts, now: PlanFacts) -> list[str]:
    """What differs, in words; empty where nothing does."""
    before, after = stored[_CELLS], now[_CELLS]
    lines = _named("cells that are new", [name for name in after if name not in before])
    lines += _named("cells that are gone", [name for name in before if name not in after])
    for name in after:
        if name in before:
            lines += [f"{what} of {name}" for what in _different(before[name], after[name])]
    shared = _different(stored[_PARTS]["all"], now[_PARTS]["all"])
    lines = [*shared, *lines]
    more = len(lines) - _SHOWN
    return lines if more <= 0 else [*lines[:_SHOWN], f"{more} more"]


def _cell_facts(cell: Cell) -> dict[str, str]:
    engine = cell.engine
    return {
        # A library may be moved; what it is, its version and build say.
        "engine": _digest([engine.name, engine.version, engine.build]),
        "options": _digest(cell.config.engine_options()),
        "workload": _digest(cell.workload),
    }


def _different(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]


def _named(what: str, names: Sequence[str]) -> list[str]:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return [f"{what} ({', '.join(names[:_SHOWN])}{more})"] if names else []


def _digest(part: object) -> str:
    text = json.dumps(encode(part), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


# ----------
# The folder of rounds: the only code here that creates or deletes anything in it.
#
# .lsmtune-owned    the marker, written first
# .lock             held by the process that measures
# rounds.db         every run, whole, and what the plan was
# runs/             scratch; empty between runs

FILE = "rounds.db"
_RUNS = "runs"
_PLAN = "plan"
_NAMES = "names"


class RoundsFolder:
    """The rounds of one plan on the disk, for the one process that measures. A context manager."""

    def __init__(
        self, path: Path, cells: Sequence[Cell], parts: Mapping[str, object], source: str
    ) -> None:
        """Open or make the folder at `path` for the plan of `cells` and `parts`.

        Raises InputError, naming `source` where that is what changed, when the folder is not ours,
        holds something else, is in use, cannot be written, or holds runs of another plan; nothing
        is changed then. A plan of which no run has ended well may be replaced.
        """
        self.path = path
        with explained(path):
            claim(path, "rounds")
            self._lock = FolderLock(path)
        try:
            self._refuse_other_content()
            self._store = MeasurementStore(path / FILE)
        except BaseException:
            self._lock.release()
            raise
        try:
            self._names = self._adopt(cells, parts, source)
        except BaseException:
            self.close()
            raise

    def _refuse_other_content(self) -> None:
        """A study's folder, say, which bears the marker too."""
        with explained(self.path):
            others = {entry.name for entry in self.path.iterdir()} - {MARKER, LOCK, _RUNS}
        if others and FILE not in others:
            why = f"holds something else: {sorted(others)[0]}"
            raise InputError(str(self.path), why=why, allowed="another folder (--dir DIR)")

    def _adopt(
        self, cells: Sequence[Cell], parts: Mapping[str, object], source: str
    ) -> tuple[str, ...]:
        """The names of the cells, in the order in which the rows number them."""
        stored, now = self._store.fact(_PLAN), plan_facts(cells, parts)
        changed = [] if stored is None else changes(stored, now)
        if changed and any(row.measurement.outcome is Outcome.OK for row in self._store.all()):
            where = f"{self.path} holds" if source else "holds"
            raise InputError(
                source or str(self.path),
                why=f"{where} runs of another plan, which cannot be compared: "
                f"changed since: {', '.join(changed)}",
                allowed="what it was begun with, or another folder (--dir DIR)",
            )
        if stored is None or changed:
            self._store.clear()
            self._store.set_fact(_NAMES, [cell.name for cell in cells])
            # Last: a kill before it leaves a folder without a plan, and no row.
            self._store.set_fact(_PLAN, now)
        with explained(self.path):
            self._runs.mkdir(exist_ok=True)
            scratch.sweep_leftovers(self._runs)
        return tuple(self._store.fact(_NAMES))

    @property
    def _runs(self) -> Path:
        return self.path / _RUNS

    def runs(self) -> list[CellRun]:
        """Every run that is stored, in the order in which they were performed."""
        return _cell_runs(self._store, self._names)

    def run_directory(self) -> AbstractContextManager[Path]:
        """A fresh marked directory for one run, removed on leaving the context."""
        return scratch.run_directory(self._runs)

    def add(self, cell: Cell, number: int, measurement: Measurement, wall_s: float) -> CellRun:
        """Store the run of `cell` in round `number`; it is on the disk when this returns."""
        self._store.add(
            Role.BENCH,
            measurement,
            config=cell.config,
            pair=number,
            workload=self._names.index(cell.name),
            wall_s=wall_s,
        )
        return CellRun(cell.name, number, measurement.seed, measurement, wall_s)

    def close(self) -> None:
        """Close the file and let the next one in. May be called more than once."""
        self._store.close()
        self._lock.release()

    def __enter__(self) -> RoundsFolder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_rounds(path: Path) -> tuple[CellRun, ...]:
    """Every run in the folder at `path`, by round; also while another process measures there.

    Raises InputError when there are none.
    """
    if path.is_dir() and not is_owned(path):
        raise not_ours(path)
    store = MeasurementStore(path / FILE, read_only=True)
    try:
        names = store.fact(_NAMES)
        if not isinstance(names, list):
            raise LsmtuneError(f"{path / FILE}: no plan is stored; measure again into it")
        return tuple(sorted(_cell_runs(store, names), key=lambda run: run.round))
    finally:
        store.close()


def _cell_runs(store: MeasurementStore, names: Sequence[str]) -> list[CellRun]:
    return [_cell_run(row, names) for row in store.of(Role.BENCH)]


def _cell_run(row: StoredMeasurement, names: Sequence[str]) -> CellRun:
    if row.pair is None or row.workload >= len(names):
        raise LsmtuneError(f"{FILE}: measurement {row.id} belongs to no cell; use another folder")
    measurement = row.measurement
    return CellRun(names[row.workload], row.pair, measurement.seed, measurement, row.wall_s)
