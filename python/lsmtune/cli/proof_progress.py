"""What is shown of a proof, a minimisation or a calibration while it runs, and what ends it."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager

from lsmtune.cli.live import Observer, tune_display
from lsmtune.cli.output import failure
from lsmtune.cli.tune_progress import Plan, TuneProgress
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.goal import WeightedWorkload
from lsmtune.model.measurement import Outcome
from lsmtune.proof.minimise import Kind, Step, StepObserver, StepOverError
from lsmtune.proof.standalone import Verification


def proof_display(
    observer: type[Observer], asked: Verification, pairs: int, *, quiet: bool
) -> AbstractContextManager[Observer]:
    """An `observer` of proofs of at most so many `pairs`, shown while the context lasts."""
    workloads = (WeightedWorkload(asked.workload.name, asked.workload, 1.0),)
    goal, time_s = asked.goal, asked.plan.deadline_s
    baseline, engine = asked.baseline.config, asked.engine
    plan = Plan(baseline, engine, goal, workloads, trials=0, time_s=time_s, pairs=pairs)
    return tune_display(plan, time.monotonic, observer=observer, quiet=quiet)


class VerificationObserver(TuneProgress):
    """Stops at a configuration that the engine refuses: there is nothing to prove then."""

    def run_finished(self, stored: StoredMeasurement) -> None:
        """As in the base class. Raises InputError for a run that is `invalid`."""
        super().run_finished(stored)
        refuse_invalid(stored)


class CalibrationObserver(TuneProgress):
    """Stops at a run that fails: a machine or an engine like that has to be mended first."""

    def run_finished(self, stored: StoredMeasurement) -> None:
        """As in the base class. Raises LsmtuneError, or InputError for what the user gave."""
        super().run_finished(stored)
        if stored.measurement.outcome is not Outcome.OK:
            raise failure(stored.measurement, "doctor")


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


def refuse_invalid(stored: StoredMeasurement) -> None:
    """Raises InputError, naming its flag, where the engine refused what a user named."""
    measurement = stored.measurement
    if measurement.outcome is Outcome.INVALID and measurement.error is not None:
        flag = "--baseline" if stored.role is Role.PROOF_BASELINE else "--candidate"
        raise failure(measurement, flag)
