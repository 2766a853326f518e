"""What an experiment says while it runs. It prints nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsmtune.driver.messages import Message
    from lsmtune.experiment.schedule import Arm, Slot
    from lsmtune.experiment.store import StoredMeasurement
    from lsmtune.model.config import Config
    from lsmtune.model.verdict import Verdict
    from lsmtune.model.workload import Workload


class Observer:
    """Callbacks in the thread of the tuner. Does nothing; override what is wanted.

    What a callback raises ends the experiment; what was stored by then is kept.
    """

    def run_started(self, slot: Slot, arm: Arm, workload: Workload) -> None:
        """A run begins; of the two runs of a pair, with the first message of its driver."""

    def run_message(self, message: Message) -> None:
        """The driver of the run that began last said `message`."""

    def run_finished(self, run: StoredMeasurement) -> None:
        """A run ended, however, and is stored. A cancelled run is neither stored nor told."""

    def warning(self, text: str) -> None:
        """Something the user should know, in one line."""

    def database_loading(self, load: Workload, layout: Config) -> None:
        """A database to start from is about to be loaded with the options of `layout`.

        Its driver's messages come as `run_message`: they are the first phases of the run that
        waits for it.
        """

    def rounds_started(self, done: int, of: int) -> None:
        """`done` of `of` runs are stored already; the others are about to be performed."""

    def calibrated(self, line: str) -> None:
        """What the baseline against itself says of the machine, in one line."""

    def proof_started(self, pairs: int) -> None:
        """A proof of at most that many pairs begins."""

    def pair_judged(self, verdict: Verdict) -> None:
        """What all pairs so far say; the proof goes on while that is not enough."""
