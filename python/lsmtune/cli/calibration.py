"""A calibration outside a study: an engine against itself, for a time, in a folder of its own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lsmtune.cli.live import tune_display
from lsmtune.cli.output import failure
from lsmtune.cli.tune_progress import Plan, TuneProgress
from lsmtune.errors import InputError
from lsmtune.proof.calibration import PAIRS_LEAST, Calibration, calibrate
from lsmtune.proof.measurer import Measurer
from lsmtune.records.config import Config
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.goal import Goal, WeightedWorkload
from lsmtune.records.measurement import Outcome
from lsmtune.records.objective import Direction, Objective
from lsmtune.records.pairing import PairMethod
from lsmtune.records.request import Limits
from lsmtune.records.workload import Workload
from lsmtune.runners.native import NativeRunner
from lsmtune.storage.codec import encode
from lsmtune.storage.folder import StudyFolder
from lsmtune.storage.measurements import StoredMeasurement
from lsmtune.storage.scratch import run_directory
from lsmtune.storage.trouble import explained
from lsmtune.units import format_duration
from lsmtune.workloads import sizes_for

_PAIRS_MOST = 1000  # the time ends it before


@dataclass(frozen=True)
class CalibrationRequest:
    """What is run against itself, and for how long."""

    engine: EngineIdentity
    workload: Workload
    config: Config
    limits: Limits
    seed: int
    time_s: float
    driver: Path
    warnings: tuple[str, ...] = ()

    @property
    def goal(self) -> Goal:
        """What is judged of it: what a study judges unless told otherwise."""
        return Goal((Objective(),))

    # --- as `storage.comparable.StudyDescription`: a study that searches nothing

    @property
    def text(self) -> str:
        """The description as JSON, which is YAML too."""
        return json.dumps({"calibrate": encode(self.comparable_parts())}, indent=2) + "\n"

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Of what is judged."""
        return self.goal.directions

    def comparable_parts(self) -> dict[str, object]:
        """What its runs have in common."""
        engine = [self.engine.name, self.engine.library or ""]
        return {"engine": engine, "workload": self.workload, "limits": self.limits}


class CalibrationProgress(TuneProgress):
    """Stops at a run that fails: a machine or an engine like that has to be mended first."""

    def run_finished(self, stored: StoredMeasurement) -> None:
        """As in the base class. Raises LsmtuneError, or InputError for what the user gave."""
        super().run_finished(stored)
        if stored.measurement.outcome is not Outcome.OK:
            raise failure(stored.measurement, "doctor")


@contextmanager
def calibration_display(asked: CalibrationRequest) -> Iterator[CalibrationProgress]:
    """The observer of a calibration, shown while the context lasts."""
    workloads = (WeightedWorkload(asked.workload.name, asked.workload, 1.0),)
    plan = Plan(asked.goal, workloads, trials=None, time_s=asked.time_s, pairs=0)
    with tune_display(plan, time.monotonic, observer=CalibrationProgress) as observer:
        yield observer


def calibrated(
    asked: CalibrationRequest,
    directory: Path,
    observer: CalibrationProgress,
    stop: threading.Event,
) -> list[Calibration]:
    """A calibration by the method that a proof would take, and one by whole runs where they differ.

    The databases are made below `directory` and removed. Each method has half of the time; fewer
    calibrations than expected come back once `stop` is set. Raises InputError when the time is too
    short for two pairs by either method, and LsmtuneError for a run that failed.
    """
    with (
        explained(directory),
        run_directory(directory) as path,
        StudyFolder.create_or_resume(path / "calibration", asked) as folder,
    ):
        measurer = Measurer(
            folder,
            NativeRunner(asked.driver),
            asked.engine,
            (asked.workload,),
            asked.limits,
            observer,
            stop,
            time.monotonic,
        )
        found = _by_both_methods(asked, measurer, observer)
    if not stop.is_set() and all(each.pairs < PAIRS_LEAST for each in found):
        raise _too_short(asked, found)
    return found


def _by_both_methods(
    asked: CalibrationRequest, measurer: Measurer, observer: CalibrationProgress
) -> list[Calibration]:
    until_s = measurer.now_s() + asked.time_s

    def run(method: PairMethod | None, deadline_s: float) -> Calibration:
        return calibrate(
            asked.config,
            asked.goal,
            measurer,
            observer,
            study_seed=asked.seed,
            pairs=_PAIRS_MOST,
            method=method,
            deadline_s=deadline_s,
        )

    chosen = run(None, asked.time_s / 2)
    whole = run(PairMethod.WHOLE, until_s - measurer.now_s())
    if chosen.method is PairMethod.WHOLE:
        # The pairs of the first half of the time are in the second calibration too.
        return [replace(whole, why=chosen.why)]
    return [chosen, whole]


def _too_short(asked: CalibrationRequest, found: list[Calibration]) -> InputError:
    pairs_s = [each.seconds_per_pair for each in found if each.seconds_per_pair is not None]
    shorter = f"or a smaller workload (-w {next(iter(sizes_for(asked.workload, 1)))}=N)"
    wanted = "a longer time"
    if pairs_s:
        least_s = (PAIRS_LEAST + 1) * len(found) * max(pairs_s)
        wanted = f"about {format_duration(round(least_s))} or more"
    why = f"too short for {PAIRS_LEAST} pairs of runs"
    time_text = format_duration(asked.time_s)
    return InputError("--calibrate", found=time_text, allowed=f"{wanted}, {shorter}", why=why)
