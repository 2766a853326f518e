"""What is shown of a minimisation while it runs, and what of it the engine refuses."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lsmtune.cli.live import tune_display
from lsmtune.cli.tune_progress import TuneProgress
from lsmtune.cli.verification import display_plan, refuse_invalid
from lsmtune.engines.safety import doubts
from lsmtune.experiment.schedule import Arm
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.measurement import Outcome
from lsmtune.proof.minimise import Kind, Step, differing_options, steps_of
from lsmtune.proof.paired_steps import StepObserver, StepOverError
from lsmtune.proof.standalone import Verification


class MinimisationObserver(TuneProgress, StepObserver):
    """Says which step is on, and ends one in which the configuration without the option fails."""

    step: Step | None = None

    def step_begins(self, step: Step, steps: int) -> None:
        """A step begins; `steps` is how many are planned."""
        self.step = step
        what = {
            Kind.WHOLE: "the whole gain",
            Kind.OPTION: f"what {step.option} does",
            Kind.LOSS: "what was lost on the way",
            Kind.GAIN: "the gain that is left",
        }[step.kind]
        self._say(f"step {steps - step.to_come} of {steps}: {what}")

    def proof_started(self, _pairs: int) -> None:
        """Each step is a proof, and was told of already."""
        self.proving = True
        self.proof_so_far = ""

    def run_finished(self, stored: StoredMeasurement) -> None:
        """A run ended. Raises InputError for what a user named and the engine refuses."""
        super().run_finished(stored)
        if self.step is None or self.step.kind is Kind.WHOLE:
            refuse_invalid(stored)
            return
        without_it = self.step.kind is Kind.OPTION and stored.role is Role.PROOF_BASELINE
        if without_it and stored.measurement.outcome is not Outcome.OK:
            raise StepOverError


@contextmanager
def minimisation_display(verification: Verification) -> Iterator[MinimisationObserver]:
    """The observer of a minimisation, shown while the context lasts."""
    steps = steps_of(
        len(differing_options(verification.baseline.config, verification.candidate.config))
    )
    plan = display_plan(verification, verification.plan.pairs * steps)
    with tune_display(plan, time.monotonic, observer=MinimisationObserver) as observer:
        yield observer


def refusal_of(verification: Verification, allowed: Sequence[str], arm: Arm) -> str:
    """Why `arm` may not be recommended: a mixture may not be although both wholes may."""
    durability, limits = verification.workload.durability, verification.limits
    doubtful = doubts(arm.engine, arm.config, durability, limits, arm.label)
    reasons = "; ".join(doubtful.reasons(allowed))
    return f"the configuration is refused: {reasons}" if reasons else ""
