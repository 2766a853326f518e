"""A proof outside a study: what `storage` has to know of it, and how it is carried out."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lsmtune.cli.live import tune_display
from lsmtune.cli.output import invalid
from lsmtune.cli.tune_progress import Plan, TuneProgress
from lsmtune.proof.measurer import Measurer
from lsmtune.proof.paired import ProofPlan, prove
from lsmtune.records.config import Config, OptionValue
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.measurement import Outcome
from lsmtune.records.objective import Objective
from lsmtune.records.request import Limits
from lsmtune.records.verdict import Verdict
from lsmtune.records.workload import Workload
from lsmtune.runners.native import NativeRunner
from lsmtune.space import Space
from lsmtune.storage.codec import encode
from lsmtune.storage.folder import StudyFolder
from lsmtune.storage.measurements import Role, StoredMeasurement


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


@dataclass(frozen=True)
class Description:
    """A Verification as `storage.fingerprint.StudyDescription`: a study that searches nothing.

    The two configurations are not part of it: one folder may hold the proofs of many, and
    `stored_pairs` tells them apart.
    """

    verification: Verification

    @property
    def text(self) -> str:
        """The description as JSON, which is YAML too."""
        return json.dumps({"verify": encode(self._parts())}, indent=2) + "\n"

    @property
    def engine_name(self) -> str:
        """The engine's name."""
        return self.verification.engine.name

    @property
    def engine_library(self) -> Path | None:
        """The engine's library."""
        library = self.verification.engine.library
        return None if library is None else Path(library)

    @property
    def limits(self) -> Limits:
        """When a run is killed."""
        return self.verification.limits

    @property
    def workload(self) -> Workload:
        """The phases of every run."""
        return self.verification.workload

    @property
    def objective(self) -> Objective:
        """What is judged."""
        return self.verification.objective

    @property
    def baseline(self) -> Config:
        """Left out, as the candidate is."""
        return Config()

    @property
    def fixed(self) -> Mapping[str, OptionValue]:
        """None."""
        return {}

    @property
    def space(self) -> Space:
        """Empty."""
        return Space((), ())

    def fingerprint(self) -> str:
        """One hash over everything that makes the runs comparable."""
        return hashlib.sha256(
            json.dumps(encode(self._parts()), sort_keys=True).encode()
        ).hexdigest()

    def _parts(self) -> dict[str, object]:
        return {
            "engine": [self.engine_name, str(self.engine_library or "")],
            "workload": self.workload,
            "objective": self.objective,
            "limits": self.limits,
        }


class VerificationObserver(TuneProgress):
    """Stops at a configuration that the engine refuses: there is nothing to prove then."""

    def run_finished(self, stored: StoredMeasurement) -> None:
        """As in the base class. Raises InputError for a run that is `invalid`."""
        super().run_finished(stored)
        error = stored.measurement.error
        if stored.measurement.outcome is Outcome.INVALID and error is not None:
            flag = "--baseline" if stored.role is Role.PROOF_BASELINE else "--candidate"
            raise invalid(error, flag)


@contextmanager
def verification_display(verification: Verification) -> Iterator[VerificationObserver]:
    """The observer of a proof, shown while the context lasts."""
    plan = Plan(
        verification.objective,
        verification.workload,
        trials=0,
        time_s=verification.plan.deadline_s,
        pairs=verification.plan.pairs,
    )
    with tune_display(plan, time.monotonic, observer=VerificationObserver) as observer:
        yield observer


def proved(
    verification: Verification,
    path: Path,
    driver: Path,
    observer: VerificationObserver,
    stop: threading.Event,
) -> Verdict:
    """Carries out the proof, its runs kept in the folder at `path`."""
    with StudyFolder.create_or_resume(path, Description(verification)) as folder:
        folder.sweep_leftovers()
        measurer = Measurer(
            folder,
            NativeRunner(driver),
            verification.engine,
            verification.workload,
            verification.limits,
            observer,
            stop,
            time.monotonic,
        )
        return prove(
            verification.baseline,
            verification.candidate,
            verification.objective,
            measurer,
            observer,
            study_seed=verification.seed,
            plan=verification.plan,
        )
