"""What the loop tells while it works. It prints nothing itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from lsmtune.proof.calibration import Calibration
from lsmtune.proof.observer import ProofObserver
from lsmtune.proof.place import Place
from lsmtune.records.config import Config
from lsmtune.records.verdict import Verdict
from lsmtune.records.workload import Workload
from lsmtune.runners.messages import Message
from lsmtune.spec import Spec
from lsmtune.storage.measurements import StoredMeasurement
from lsmtune.study.trials import TrialEnd

if TYPE_CHECKING:
    from lsmtune.study.result import TuneResult


class TuneObserver(ProofObserver, Protocol):
    """Callbacks of `tune`, all in the thread that called it. What one raises ends the study."""

    def study_started(self, spec: Spec, resumed: int) -> None:
        """The folder is ready; it holds `resumed` trials of earlier sessions."""

    def baseline_known(self, runs: Sequence[StoredMeasurement]) -> None:
        """The baseline was measured in an earlier session: one run per workload."""

    def calibrated(self, found: Calibration, line: str) -> None:
        """What the baseline against itself says of the machine; `line` says it in words."""

    def trial_finished(self, number: int, end: TrialEnd, *, best: bool) -> None:
        """A trial ended, all its runs together; `best`: it is the best so far."""

    def trial_repeated(self, number: int, end: TrialEnd, runs: int) -> None:
        """A trial was run again; the values of its `end` are means of the `runs` that count."""

    def best_changed(self, trial: int, value: float, ratio_to_baseline: float | None) -> None:
        """A trial is the best so far, or the best one was run again and has another value.

        After a resume, the best of the sessions before.
        """

    def search_finished(self, reason: str) -> None:
        """The search is over, in one line why."""

    def finished(self, result: TuneResult) -> None:
        """The last callback, also after an interruption."""


class NullObserver:
    """A TuneObserver that listens to nothing; a base for those that want a few callbacks."""

    def study_started(self, spec: Spec, resumed: int) -> None:
        """Ignored."""

    def run_started(self, place: Place, config: Config, workload: Workload) -> None:
        """Ignored."""

    def run_message(self, message: Message) -> None:
        """Ignored."""

    def run_finished(self, stored: StoredMeasurement) -> None:
        """Ignored."""

    def baseline_known(self, runs: Sequence[StoredMeasurement]) -> None:
        """Ignored."""

    def calibrated(self, found: Calibration, line: str) -> None:
        """Ignored."""

    def trial_finished(self, number: int, end: TrialEnd, *, best: bool) -> None:
        """Ignored."""

    def trial_repeated(self, number: int, end: TrialEnd, runs: int) -> None:
        """Ignored."""

    def best_changed(self, trial: int, value: float, ratio_to_baseline: float | None) -> None:
        """Ignored."""

    def search_finished(self, reason: str) -> None:
        """Ignored."""

    def proof_started(self, pairs: int) -> None:
        """Ignored."""

    def pair_judged(self, verdict: Verdict) -> None:
        """Ignored."""

    def finished(self, result: TuneResult) -> None:
        """Ignored."""

    def warning(self, text: str) -> None:
        """Ignored."""
