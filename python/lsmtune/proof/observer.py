"""What a proof tells while it runs."""

from __future__ import annotations

from typing import Protocol

from lsmtune.proof.place import Place
from lsmtune.records.config import Config
from lsmtune.records.verdict import Verdict
from lsmtune.records.workload import Workload
from lsmtune.runners.messages import Message
from lsmtune.storage.measurements import StoredMeasurement


class RunObserver(Protocol):
    """Callbacks around each run, in the thread of the tuner."""

    def run_started(self, place: Place, config: Config, workload: Workload) -> None:
        """A run begins; `place.index` counts the trials, or the pairs, from 0."""

    def run_message(self, message: Message) -> None:
        """The driver said something."""

    def run_finished(self, stored: StoredMeasurement) -> None:
        """A run ended, however, and is stored. A cancelled run is not stored nor told."""

    def warning(self, text: str) -> None:
        """Something the user should know, in one line."""


class ProofObserver(RunObserver, Protocol):
    """Callbacks of a proof."""

    def proof_started(self, pairs: int) -> None:
        """A proof of at most that many pairs begins."""

    def pair_judged(self, verdict: Verdict) -> None:
        """What all pairs so far say; the proof goes on while that is not enough."""
