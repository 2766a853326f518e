"""A proof outside a study: what `storage` has to know of it, and how it is carried out."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lsmtune.cli.flags import NO_CRASH_TEST_FLAG
from lsmtune.cli.live import tune_display
from lsmtune.cli.output import invalid
from lsmtune.cli.tune_progress import Plan, TuneProgress
from lsmtune.driver.runner import Runner
from lsmtune.engines.safety import ALLOW_FLAG, Doubts, check_allowed, doubts
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.measurer import Measurer, loaded_databases
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.codec import encode
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.goal import Direction, Goal, Objective, WeightedWorkload
from lsmtune.model.measurement import Outcome
from lsmtune.model.request import Limits
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.model.workload import Workload
from lsmtune.proof.crash_test import CrashOutcome, CrashTest, Survived, survived
from lsmtune.proof.paired import ProofPlan, prove

# What loaded databases may take beside the runs of a proof; one that does not fit is not kept.
DATABASES_BYTES = 20 << 30


@dataclass(frozen=True)
class Verification:
    """Two configurations, and all that makes their runs comparable."""

    engine: EngineIdentity
    workload: Workload
    objective: Objective
    limits: Limits
    baseline: Config
    candidate: Config
    seed: int
    plan: ProofPlan
    crash_test: bool = True

    def after(self, spent_s: float) -> Verification:
        """The same with what is left of its time budget."""
        if self.plan.deadline_s is None:
            return self
        return replace(self, plan=replace(self.plan, deadline_s=self.plan.deadline_s - spent_s))


def judged(asked: Verification, allowed: Sequence[str]) -> tuple[list[str], list[str]]:
    """Why the candidate is refused, and warnings on both configurations, before any run.

    The unsafe options in `allowed` are warned of in place of refused. The baseline is never
    refused: it is what the user has, and nobody is told to deploy it. Raises InputError for an
    allowance without effect.
    """
    of = {source: _doubts(asked, source) for source in ("--baseline", "--candidate")}
    check_allowed(allowed, asked.engine.name, list(of.values()))
    baseline, candidate = of.values()
    warnings = [f"the baseline: {reason}" for reason in baseline.reasons()]
    warnings += [
        f"the candidate: {text}; {ALLOW_FLAG} lets it run, deploy it only where that is right"
        for text in candidate.warnings(allowed)
    ]
    return candidate.reasons(allowed), warnings


def _doubts(asked: Verification, source: str) -> Doubts:
    config = asked.baseline if source == "--baseline" else asked.candidate
    return doubts(asked.engine, config, asked.workload.durability, asked.limits, source)


@dataclass(frozen=True)
class Description:
    """A Verification as `experiment.folder.StudyDescription`: a study that searches nothing.

    The two configurations are not part of it: one folder may hold the proofs of many, and
    `stored_pairs` tells them apart.
    """

    verification: Verification

    @property
    def text(self) -> str:
        """The description as JSON, which is YAML too."""
        return json.dumps({"verify": encode(self.comparable_parts())}, indent=2) + "\n"

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Of what is judged."""
        return (self.verification.objective.direction,)

    def comparable_parts(self) -> dict[str, object]:
        """All but the two configurations."""
        asked = self.verification
        return {
            "engine": [asked.engine.name, asked.engine.library or ""],
            "workload": asked.workload,
            "objective": asked.objective,
            "limits": asked.limits,
        }


class VerificationObserver(TuneProgress):
    """Stops at a configuration that the engine refuses: there is nothing to prove then."""

    def run_finished(self, stored: StoredMeasurement) -> None:
        """As in the base class. Raises InputError for a run that is `invalid`."""
        super().run_finished(stored)
        refuse_invalid(stored)


def refuse_invalid(stored: StoredMeasurement) -> None:
    """Raises InputError, naming its flag, where the engine refused what a user named."""
    error = stored.measurement.error
    if stored.measurement.outcome is Outcome.INVALID and error is not None:
        flag = "--baseline" if stored.role is Role.PROOF_BASELINE else "--candidate"
        raise invalid(error, flag)


def display_plan(verification: Verification, pairs: int) -> Plan:
    """What a display must know of proofs of at most so many `pairs` in all."""
    return Plan(
        Goal((verification.objective,)),
        (WeightedWorkload(verification.workload.name, verification.workload, 1.0),),
        trials=0,
        time_s=verification.plan.deadline_s,
        pairs=pairs,
    )


@contextmanager
def verification_display(verification: Verification) -> Iterator[VerificationObserver]:
    """The observer of a proof, shown while the context lasts."""
    plan = display_plan(verification, verification.plan.pairs)
    with tune_display(plan, time.monotonic, observer=VerificationObserver) as observer:
        yield observer


@contextmanager
def measuring(
    verification: Verification,
    path: Path,
    runner: Runner,
    observer: TuneProgress,
    stop: threading.Event,
) -> Iterator[Measurer]:
    """What performs the runs, and keeps them in the folder at `path`."""
    with StudyFolder.create_or_resume(path, Description(verification)) as folder:
        folder.sweep_leftovers()
        yield Measurer(
            folder,
            runner,
            verification.engine,
            (verification.workload,),
            verification.limits,
            observer,
            stop,
            time.monotonic,
            loaded_databases(folder, runner, DATABASES_BYTES, observer),
        )


def proved(
    verification: Verification,
    path: Path,
    runner: Runner,
    observer: VerificationObserver,
    stop: threading.Event,
) -> Survived | None:
    """Carries out the proof, its runs kept in the folder at `path`; None when interrupted."""
    with measuring(verification, path, runner, observer, stop) as measurer:
        verdict = prove(
            verification.baseline,
            verification.candidate,
            Goal((verification.objective,)),
            measurer,
            observer,
            study_seed=verification.seed,
            plan=verification.plan,
        )
        return crash_tested(verification, verdict, verification.candidate, measurer, observer)


def crash_tested(
    verification: Verification,
    verdict: Verdict | None,
    finalist: Config,
    measurer: Measurer,
    observer: TuneProgress,
) -> Survived | None:
    """`verdict` on `finalist` after the crash test, unless that was not wanted; None: stopped."""
    if verdict is None:
        return None
    if verification.crash_test:
        seed = verification.seed
        return survived(verdict, finalist, measurer, observer, study_seed=seed)
    if verdict.outcome is not VerdictOutcome.BETTER:
        return Survived(verdict)
    durability = verification.workload.durability
    return Survived(verdict, CrashTest(CrashOutcome.NOT_DONE, durability, why=NO_CRASH_TEST_FLAG))
