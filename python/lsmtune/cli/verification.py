"""Before a proof, what speaks against its arms; while it runs, what is shown of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lsmtune.cli.live import tune_display
from lsmtune.cli.output import invalid
from lsmtune.cli.tune_progress import Plan, TuneProgress
from lsmtune.engines.safety import ALLOW_FLAG, Doubts, check_allowed, doubts
from lsmtune.experiment.schedule import Arm
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.goal import Goal, WeightedWorkload
from lsmtune.model.measurement import Outcome
from lsmtune.proof.standalone import Verification


def judged(asked: Verification, allowed: Sequence[str]) -> tuple[list[str], list[str]]:
    """Why the candidate is refused, and warnings on both configurations, before any run.

    The unsafe options in `allowed` are warned of in place of refused. The baseline is never
    refused: it is what the user has, and nobody is told to deploy it. Raises InputError for an
    allowance without effect.
    """
    baseline = _doubts(asked, asked.baseline, "--baseline")
    candidate = _doubts(asked, asked.candidate, "--candidate")
    check_allowed(allowed, asked.engine.name, [baseline, candidate])
    warnings = [f"the baseline: {reason}" for reason in baseline.reasons()]
    warnings += [
        f"the candidate: {text}; {ALLOW_FLAG} lets it run, deploy it only where that is right"
        for text in candidate.warnings(allowed)
    ]
    return candidate.reasons(allowed), warnings


def _doubts(asked: Verification, arm: Arm, source: str) -> Doubts:
    return doubts(arm.engine, arm.config, asked.workload.durability, asked.limits, source)


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
