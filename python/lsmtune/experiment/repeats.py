"""One arm repeated, or a few in turns: what `bench` measures, in a folder that is then removed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from lsmtune.driver.runner import DATABASE, Runner
from lsmtune.experiment.files import explained, run_directory
from lsmtune.experiment.folder import StudyFolder, Unsearched
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.schedule import Arm, Slot
from lsmtune.experiment.store import Role
from lsmtune.model.config import EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, Prepared, RunRequest
from lsmtune.model.workload import PageCache, Phase, PhaseKind, Workload

After = Callable[[Arm, RunRequest, Measurement], None]


def measure_repeats(
    arms: Sequence[tuple[Runner, Arm]],
    workload: Workload,
    limits: Limits,
    seeds: Sequence[int],
    parent: Path,
    observer: Observer,
    after: After | None = None,
) -> dict[str, list[Measurement]]:
    """One Measurement per seed and arm, by the arms' names; every other round is backwards.

    Backwards, so that a steady drift of the machine evens out. An arm ends at a measurement that is
    `invalid`, as all others of it would be. Databases are made below `parent` and removed; `after`
    is called after each run, while its directory is there.
    """
    measured: dict[str, list[Measurement]] = {arm.label: [] for _, arm in arms}
    with explained(parent):
        parent.mkdir(parents=True, exist_ok=True)
        with (
            run_directory(parent) as path,
            StudyFolder.create_or_resume(path, Unsearched()) as folder,
        ):
            stop, clock = threading.Event(), time.monotonic
            sides = [
                (arm, Measurer(folder, runner, (workload,), limits, observer, stop, clock))
                for runner, arm in arms
            ]
            for repeat, seed in enumerate(seeds):
                for arm, measurer in sides if repeat % 2 == 0 else reversed(sides):
                    runs = measured[arm.label]
                    if runs and runs[-1].outcome is Outcome.INVALID:
                        continue
                    slot = Slot(Role.BENCH, repeat, repeat=repeat)
                    after_run = None if after is None else partial(after, arm)
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
    driver: Runner, engine: EngineIdentity, request: RunRequest
) -> tuple[int | None, str]:
    """Bytes of the database that the run of `request` left, settled by `driver` on `engine`.

    None, and why in one line, where the driver cannot: another version of the engine, a library
    without a compression. The database is no longer in the folder of `request` then. Raises
    InputError where the driver cannot be used.
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
    first = _run(driver, replace(asked, save_ledger=ledger), "settled-nothing")
    if first.outcome is not Outcome.OK:
        return None, _why(first)
    again = replace(asked, workload=replace(nothing, phases=_TWICE), prepared=Prepared(ledger, 1))
    found = _run(driver, again, "settled", request.directory / DATABASE)
    if found.outcome is not Outcome.OK:
        return None, _why(found)
    return found.database_bytes, ""


def _run(
    driver: Runner, request: RunRequest, name: str, database: Path | None = None
) -> Measurement:
    """`request` in a folder of its own below that of the run, with `database` moved into it."""
    folder = request.directory / name
    folder.mkdir()
    if database is not None:
        database.rename(folder / DATABASE)
    return driver.run(replace(request, directory=folder))


def _why(measurement: Measurement) -> str:
    error = measurement.error
    return measurement.outcome.value if error is None else error.message
