"""Many cells measured over many rounds: interleaved, stored at once, and resumable."""

from lsmtune.rounds.cell import Cell, CellRun
from lsmtune.rounds.observer import RoundsObserver
from lsmtune.rounds.perform import perform
from lsmtune.rounds.store import read_rounds

__all__ = ["Cell", "CellRun", "RoundsObserver", "perform", "read_rounds"]
