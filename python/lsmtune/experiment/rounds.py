"""Interleaved rounds: every cell once in each, in an order of the round's own.

So what the machine does meanwhile meets all cells alike, and two cells can be compared within each
round.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from lsmtune.driver.runner import Runner
from lsmtune.experiment.files import MEASUREMENTS_DB, not_ours
from lsmtune.experiment.folder import StudyFolder, Unsearched
from lsmtune.experiment.measurer import Databases, Measurer
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.schedule import Cell, Slot, run_seed, shuffled
from lsmtune.experiment.store import MeasurementStore, Role, StoredMeasurement
from lsmtune.machine.files import Clock, is_owned
from lsmtune.model.request import Limits


def perform(
    cells: Sequence[Cell],
    rounds: int,
    folder: Path,
    runner: Runner,
    limits: Limits,
    seed: int,
    observer: Observer,
    cancel: threading.Event,
    *,
    databases: Databases | None = None,
    parts: Mapping[str, object] | None = None,
    source: str = "",
    clock: Clock = time.monotonic,
) -> tuple[StoredMeasurement, ...]:
    """Measure each of `cells` once in each of `rounds` rounds; every stored run, by round.

    Within a round the order is shuffled (`schedule.shuffled`), and all runs have one seed. Each run
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
    if not cells:
        raise ValueError("there are no cells to measure")
    name, count = Counter(cell.name for cell in cells).most_common(1)[0]
    if count > 1:
        raise ValueError(f"two cells are named {name}")
    if rounds < 1:
        raise ValueError(f"rounds is {rounds}, and at least 1 is needed")
    run_seed(seed, rounds - 1)
    shared: dict[str, object] = {"seed": seed, "limits": limits}
    shared |= {"databases": databases is not None, **(parts or {})}
    workloads = list(dict.fromkeys(cell.workload for cell in cells))
    description = Unsearched(shared)
    with StudyFolder.create_or_resume(folder, description, cells=cells, source=source) as opened:
        opened.sweep_leftovers()
        measurer = Measurer(opened, runner, workloads, limits, observer, cancel, clock, databases)
        for cell in cells:
            measurer.refuse_other_build(cell.engine)
        planned = [
            (number, cell) for number in range(rounds) for cell in shuffled(cells, seed, number)
        ]
        stored = {(run.round, run.arm) for run in opened.measurements.of(Role.ROUND)}
        left = [(n, cell) for n, cell in planned if (n, cell.name) not in stored]
        observer.rounds_started(len(planned) - len(left), len(planned))
        for number, cell in left:
            slot = Slot(Role.ROUND, number, workload=workloads.index(cell.workload), round=number)
            if cancel.is_set() or not measurer.measure(cell.arm, run_seed(seed, number), slot):
                break
        return _by_round(opened.measurements)


def read_rounds(path: Path) -> tuple[StoredMeasurement, ...]:
    """Every run in the folder at `path`, by round; also while another process measures there.

    Raises InputError when there are none, or those of another lsmtune.
    """
    if path.is_dir() and not is_owned(path):
        raise not_ours(path)
    store = MeasurementStore(path / MEASUREMENTS_DB, read_only=True)
    try:
        return _by_round(store)
    finally:
        store.close()


def _by_round(store: MeasurementStore) -> tuple[StoredMeasurement, ...]:
    return tuple(sorted(store.of(Role.ROUND), key=lambda run: run.round))
