"""Interleaved rounds: every cell once in each, in an order of the round's own; and repeats.

So what the machine does meanwhile meets all cells alike, and two cells can be compared within each
round.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from lsmtune.driver.runner import DATABASE, Runner
from lsmtune.experiment.database_key import by_bytes
from lsmtune.experiment.files import explained, run_directory
from lsmtune.experiment.folder import ROUNDS, StudyFolder, digest
from lsmtune.experiment.measurer import Databases, Measurer
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.schedule import Arm, Cell, Slot, shuffled
from lsmtune.experiment.store import MeasurementStore, Role, StoredMeasurement
from lsmtune.model.config import EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, Prepared, RunRequest
from lsmtune.model.workload import PageCache, Phase, PhaseKind, Workload


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
) -> tuple[StoredMeasurement, ...]:
    """Measure each of `cells` once in each of `rounds` rounds; every stored run, by round.

    Cells have names of their own. Within a round the order is shuffled (`schedule.shuffled`), and
    all runs have one seed: that of round 0 is `seed`, the others count up from it. Each run has a
    fresh database under `folder`, or a copy from `databases` where its workload begins with a load,
    and is stored as soon as it is over, however it ended. Runs that the folder holds are not
    repeated, so that the same call goes on where it was stopped, and a later one may ask for more
    rounds; when the folder holds more rounds than are asked for, they are returned too. It ends
    early once `cancel` is set: the run that was cut off is not stored.

    Raises InputError when the folder cannot be used for this plan, or another version of an engine
    answers than in the rounds before.
    """
    # A library may be moved; what it is, its version and build say.
    engines = [[each.engine.name, each.engine.version, each.engine.build] for each in cells]
    options = [cell.config.engine_options() for cell in cells]
    compared = [cell.workload.with_traces(by_bytes) for cell in cells]
    of_cells = [
        [cell.name, *parts] for cell, *parts in zip(cells, engines, options, compared, strict=True)
    ]
    shared: dict[str, object] = {
        # The order of cells is no part. All of a cell, and then what of it may be new.
        "cells": _in_any_order(of_cells),
        "engine": _in_any_order(engines),
        "options": _in_any_order(options),
        "workload": _in_any_order(compared),
        "seed": seed,
        "limits": limits,
        "databases": databases is not None,
    }
    workloads = list(dict.fromkeys(cell.workload for cell in cells))
    with StudyFolder.create_or_resume(folder, shared, purpose=ROUNDS) as opened:
        opened.sweep_leftovers()
        measurer = Measurer(
            opened, runner, workloads, limits, observer, cancel, time.monotonic, databases
        )
        alone = len({cell.engine.library for cell in cells}) == 1
        for cell in cells:
            measurer.refuse_other_build(cell.engine, alone=alone)
        planned = [
            (number, cell) for number in range(rounds) for cell in shuffled(cells, seed, number)
        ]
        stored = {(run.round, run.arm) for run in opened.measurements.of(Role.ROUND)}
        left = [(n, cell) for n, cell in planned if (n, cell.name) not in stored]
        observer.rounds_started(len(planned) - len(left), len(planned))
        for number, cell in left:
            slot = Slot(Role.ROUND, number, workload=workloads.index(cell.workload), round=number)
            if cancel.is_set() or not measurer.measure(cell, seed + number, slot):
                break
        return _by_round(opened.measurements)


def _in_any_order(parts: Sequence[object]) -> list[str]:
    return sorted({digest(part) for part in parts})


def read_rounds(path: Path) -> tuple[StoredMeasurement, ...]:
    """Every run in the folder at `path`, by round; also while another process measures there.

    Raises InputError when there are none, or those of another lsmtune.
    """
    with StudyFolder.open(path) as folder:
        return _by_round(folder.measurements)


def _by_round(store: MeasurementStore) -> tuple[StoredMeasurement, ...]:
    return tuple(sorted(store.of(Role.ROUND), key=lambda run: run.round))


# --- One arm repeated, or a few in turns: what `bench` measures, in a folder that is then removed.

# With the event that ends all of it: what takes long has to hear that, too.
After = Callable[[threading.Event, Arm, RunRequest, Measurement], None]


def measure_repeats(
    arms: Sequence[tuple[Runner, Arm]],
    workload: Workload,
    limits: Limits,
    seeds: Sequence[int],
    parent: Path,
    observer: Observer,
    stop: threading.Event,
    after: After | None = None,
) -> dict[str, list[Measurement]]:
    """One Measurement per seed and arm, by the arms' names; every other round is backwards.

    Backwards, so that a steady drift of the machine evens out. An arm ends at a measurement that is
    `invalid`, as all others of it would be; `stop` ends all, and the run under way. Databases are
    made below `parent` and removed; `after` is called after each run, while its directory is there.
    """
    measured: dict[str, list[Measurement]] = {arm.label: [] for _, arm in arms}
    with explained(parent):
        parent.mkdir(parents=True, exist_ok=True)
        with run_directory(parent) as path, StudyFolder.create_or_resume(path, {}) as folder:
            sides = [
                (arm, Measurer(folder, runner, (workload,), limits, observer, stop, time.monotonic))
                for runner, arm in arms
            ]
            for repeat, seed in enumerate(seeds):
                for arm, measurer in sides if repeat % 2 == 0 else reversed(sides):
                    runs = measured[arm.label]
                    if stop.is_set() or (runs and runs[-1].outcome is Outcome.INVALID):
                        continue
                    slot = Slot(Role.BENCH, repeat, repeat=repeat)
                    after_run = None if after is None else partial(after, stop, arm)
                    run = measurer.measure(arm, seed, slot, after=after_run)
                    if run is not None:
                        runs.append(run.measurement)
    return measured


# --- The bytes of a database once nothing in it is due any more.
#
# What a program leaves behind cannot be compared: obsolete files, logs, and a tree that was still
# being compacted. So lsmtune's driver opens each database that a comparison has made, its own too,
# with the same options, writes memtables out, and waits for compactions.

_SETTLE = Phase("settle", PhaseKind.SETTLE)
# The driver waits until nothing is due; what a first flush makes due, the second waits for.
_TWICE = (_SETTLE, replace(_SETTLE, name="settle-again"))


def settled_bytes(
    driver: Runner, engine: EngineIdentity, request: RunRequest, cancel: threading.Event
) -> tuple[int | None, str]:
    """Bytes of the database that the run of `request` left, settled by `driver` on `engine`.

    None, and why in one line, where the driver cannot: another version of the engine, a library
    without a compression; and once `cancel` is set. The database is no longer in the folder of
    `request` then. Raises InputError where the driver cannot be used.
    """
    if request.workload.databases != 1:
        return None, "several databases"
    nothing = Workload(
        "settle",
        (_SETTLE,),
        num=1,
        durability=request.workload.durability,
        page_cache=PageCache.WARM,
        column_families=request.workload.column_families,
    )
    asked = replace(request, engine=engine, workload=nothing, verify_keys=0, load_seed=None)
    # The driver opens only what an earlier run prepared: one on an empty database notes that there
    # is nothing to expect, and that is given for this one.
    ledger = request.directory / "settled-ledger"
    first = _run(driver, replace(asked, save_ledger=ledger), cancel, "settled-nothing")
    if first.outcome is not Outcome.OK:
        return None, first.ended
    twice = replace(asked, workload=replace(nothing, phases=_TWICE), prepared=Prepared(ledger, 1))
    second = _run(driver, twice, cancel, "settled", request.directory / DATABASE)
    if second.outcome is not Outcome.OK:
        return None, second.ended
    return second.database_bytes, ""


def _run(
    driver: Runner,
    request: RunRequest,
    cancel: threading.Event,
    name: str,
    database: Path | None = None,
) -> Measurement:
    """`request` in a folder of its own below that of the run, with `database` moved into it."""
    folder = request.directory / name
    folder.mkdir()
    if database is not None:
        database.rename(folder / DATABASE)
    return driver.run(replace(request, directory=folder), cancel=cancel)
