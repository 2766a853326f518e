"""A proof, and a calibration, outside a study: each in a folder of its own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from lsmtune.driver.runner import Runner
from lsmtune.engines.catalogue import catalogue_defaults
from lsmtune.errors import InputError
from lsmtune.experiment.database_key import by_bytes
from lsmtune.experiment.files import explained, run_directory
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.measurer import Measurer, loaded_databases
from lsmtune.experiment.observer import Observer
from lsmtune.experiment.schedule import Arm
from lsmtune.machine.awake import AwakeClock
from lsmtune.model.codec import encode
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.goal import Goal, Objective
from lsmtune.model.request import DatabaseSpec, Limits, PairMethod
from lsmtune.model.verdict import Verdict
from lsmtune.model.workload import Workload
from lsmtune.proof.calibration import PAIRS_LEAST, Calibration, calibrate
from lsmtune.proof.guards import circumstances_of, judged_by_guards
from lsmtune.proof.paired import ProofPlan, prove
from lsmtune.proof.pairs import judged_sides, stored_pairs
from lsmtune.proof.survival import BOTH, SurvivalPlan, Survived, survived
from lsmtune.proof.verdict import judged_by_length
from lsmtune.space.constraint import Constraint
from lsmtune.units import format_duration
from lsmtune.workloads.stated import sizes_for

_CALIBRATION_PAIRS_MOST = 1000  # the time ends it before


@dataclass(frozen=True)
class Verification:
    """Two arms, and all that makes their runs comparable.

    The arms may be two builds of an engine. `guards` are what a gain may cost; `burst`: runs
    need not show what is sustained. A candidate that is proved better has to survive what
    `survival` says.

    The configurations are not among these: one folder may hold the proofs of many, and
    `stored_pairs` tells them apart.
    """

    baseline: Arm
    candidate: Arm
    workload: Workload
    objective: Objective
    limits: Limits
    seed: int
    plan: ProofPlan
    survival: SurvivalPlan = BOTH
    guards: tuple[Constraint, ...] = ()
    burst: bool = False

    @property
    def engine(self) -> EngineIdentity:
        """The engine of the candidate."""
        return self.candidate.engine

    @property
    def builds(self) -> tuple[EngineIdentity, ...]:
        """The engine of both arms, or of each where they differ."""
        both = (self.baseline.engine, self.candidate.engine)
        return both[:1] if both[0].library == both[1].library else both

    @property
    def goal(self) -> Goal:
        """What is judged."""
        return Goal((self.objective,))

    def comparable_parts(self) -> dict[str, object]:
        """All but the two configurations."""
        return {
            "engine": [self.engine.name, *(engine.library or "" for engine in self.builds)],
            "workload": self.workload.with_traces(by_bytes),
            "objective": self.objective,
            "limits": self.limits,
        }

    def after(self, spent_s: float) -> Verification:
        """The same with what is left of its time budget."""
        if self.plan.deadline_s is None:
            return self
        return replace(self, plan=replace(self.plan, deadline_s=self.plan.deadline_s - spent_s))


@contextmanager
def measuring(
    verification: Verification,
    path: Path,
    runner: Runner,
    observer: Observer,
    stop: threading.Event,
) -> Iterator[Measurer]:
    """What performs the runs, and keeps them in the folder at `path`."""
    clock = AwakeClock()
    parts = verification.comparable_parts()
    text = json.dumps({"verify": encode(parts)}, indent=2) + "\n"  # JSON is YAML, too
    with clock.beating(), StudyFolder.create_or_resume(path, parts, text=text) as folder:
        folder.sweep_leftovers()
        yield Measurer(
            folder,
            runner,
            (verification.workload,),
            verification.limits,
            observer,
            stop,
            clock,
            loaded_databases(folder.path, runner, DatabaseSpec(), observer),
        )


def proved(
    verification: Verification,
    path: Path,
    runner: Runner,
    observer: Observer,
    stop: threading.Event,
) -> Survived | None:
    """Carry out the proof, its runs kept in the folder at `path`; None when interrupted."""
    with measuring(verification, path, runner, observer, stop) as measurer:
        baseline, candidate = verification.baseline, verification.candidate
        seed, plan = verification.seed, verification.plan
        verdict = prove(
            baseline, candidate, verification.goal, measurer, study_seed=seed, plan=plan
        )
        if verdict is None:
            return None
        verdict = qualified(verification, verdict, baseline, candidate, measurer)
        survival = verification.survival
        return survived(verdict, candidate, measurer, study_seed=seed, plan=survival)


def qualified(
    verification: Verification, verdict: Verdict, baseline: Arm, candidate: Arm, measurer: Measurer
) -> Verdict:
    """`verdict` on `candidate` in the light of the length of its runs, and of the guards."""
    goal = verification.goal
    pairs = stored_pairs(measurer.folder.measurements, baseline, candidate)
    sides = judged_sides(pairs, goal, verdict)
    engine, options = candidate.engine, candidate.config.options
    workloads, burst = [verification.workload], verification.burst
    defaults = catalogue_defaults(engine.name, engine.version)
    circumstances = circumstances_of(
        engine.name, options, defaults, workloads, "--guard", version=engine.version
    )
    verdict = judged_by_length(verdict, goal, workloads, sides, burst=burst)
    return judged_by_guards(verdict, verification.guards, circumstances, sides)


@dataclass(frozen=True)
class CalibrationRequest:
    """What is run against itself, and for how long.

    `parameters` are those of the workload, none of one from a workload file.
    """

    engine: EngineIdentity
    workload: Workload
    config: Config
    limits: Limits
    seed: int
    time_s: float
    runner: Runner
    warnings: tuple[str, ...] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)

    @property
    def goal(self) -> Goal:
        """What is judged of it: what a study judges unless told otherwise."""
        return Goal((Objective(),))


def calibrated(
    asked: CalibrationRequest, directory: Path, observer: Observer, stop: threading.Event
) -> list[Calibration]:
    """A calibration by the method that a proof would take, and one by whole runs where they differ.

    The databases are made below `directory` and removed. Each method has half of the time; fewer
    calibrations than expected come back once `stop` is set. Raises InputError when the time is too
    short for two pairs by either method, and what `observer` raises at a run.
    """
    clock = AwakeClock()
    with (
        clock.beating(),
        explained(directory),
        run_directory(directory) as path,
        StudyFolder.create_or_resume(path / "calibration", {}) as folder,
    ):
        workloads = (asked.workload,)
        measurer = Measurer(folder, asked.runner, workloads, asked.limits, observer, stop, clock)
        until_s = measurer.clock() + asked.time_s

        def by(method: PairMethod | None, deadline_s: float) -> Calibration:
            return calibrate(
                Arm(asked.engine, asked.config),
                asked.goal,
                measurer,
                study_seed=asked.seed,
                pairs=_CALIBRATION_PAIRS_MOST,
                method=method,
                deadline_s=deadline_s,
            )

        chosen = by(None, asked.time_s / 2)
        whole = by(PairMethod.WHOLE, until_s - measurer.clock())
    # By whole runs, the pairs of the first half of the time are in the second calibration too.
    alike = chosen.method is PairMethod.WHOLE
    calibrations = [replace(whole, why=chosen.why)] if alike else [chosen, whole]
    if not stop.is_set() and all(each.pairs < PAIRS_LEAST for each in calibrations):
        raise _too_short(asked, calibrations)
    return calibrations


def _too_short(asked: CalibrationRequest, calibrations: Sequence[Calibration]) -> InputError:
    longer = "a longer time"
    timed = (each.seconds_per_pair for each in calibrations)
    pairs_s = [pair_s for pair_s in timed if pair_s is not None]
    if pairs_s:
        least_s = (PAIRS_LEAST + 1) * len(calibrations) * max(pairs_s)
        longer = f"about {format_duration(round(least_s))} or more"
    smaller = "num and the operations of the phases in its file"
    if asked.parameters:
        smaller = f"-w {next(iter(sizes_for(asked.workload, 1)))}=N"
    return InputError(
        "--calibrate",
        found=format_duration(asked.time_s),
        allowed=f"{longer}, or a smaller workload ({smaller})",
        why=f"too short for {PAIRS_LEAST} pairs of runs",
    )
