"""One arm repeated, or a few in turns: what `bench` measures, in a folder that is then removed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from lsmtune.driver.runner import Runner
from lsmtune.experiment.files import explained, run_directory
from lsmtune.experiment.folder import StudyFolder, Unsearched
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.schedule import Arm, Slot
from lsmtune.experiment.store import Role
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, RunRequest
from lsmtune.model.workload import Workload

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
