"""What the search has seen so far, in memory: counts, times, and the best trial."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lsmtune.records.config import Config
from lsmtune.records.measurement import Outcome
from lsmtune.records.objective import Objective
from lsmtune.storage.measurements import StoredMeasurement


@dataclass(frozen=True)
class BestTrial:
    """The trial with the best value."""

    number: int
    value: float
    config: Config


class Progress:
    """Grows by one stored measurement at a time. Whole measurements are not kept."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self.counts: Counter[str] = Counter()
        self.run_walls_s: list[float] = []
        self.best: BestTrial | None = None

    def add_baseline(self, stored: StoredMeasurement) -> None:
        """Count the time of a baseline run."""
        self._add_wall(stored)

    def add_trial(self, stored: StoredMeasurement) -> bool:
        """Count a trial; returns whether it is the best so far."""
        self.counts[stored.measurement.outcome.value] += 1
        self._add_wall(stored)
        value = self._objective.value(stored.measurement)
        if value is None or stored.trial is None:
            return False
        if self.best is not None and not self._objective.better(value, self.best.value):
            return False
        self.best = BestTrial(stored.trial, value, stored.config)
        return True

    def trials(self) -> int:
        """How many trials were counted."""
        return self.counts.total()

    def _add_wall(self, stored: StoredMeasurement) -> None:
        # A run that ended early says nothing about how long one that goes well will take.
        if stored.measurement.outcome is Outcome.OK:
            self.run_walls_s.append(stored.wall_s)
