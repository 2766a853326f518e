"""What is told while rounds are performed: callbacks, which the command line may show."""

from __future__ import annotations

from lsmtune.rounds.cell import Cell, CellRun
from lsmtune.runners.messages import Message


class RoundsObserver:
    """Told, in the thread of `perform`, what it does. Does nothing; override what is wanted."""

    def rounds_started(self, done: int, of: int) -> None:
        """`done` of `of` runs are stored already; the others are about to be performed."""

    def run_started(self, cell: Cell, number: int) -> None:
        """A run of `cell` in round `number`, from 0, begins."""

    def run_message(self, message: Message) -> None:
        """The driver said something."""

    def run_finished(self, run: CellRun, done: int, of: int) -> None:
        """A run ended, however, and is stored. A cancelled run is neither stored nor told."""
