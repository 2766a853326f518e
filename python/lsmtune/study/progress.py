"""What the search has seen so far, in memory: counts, times, and the best trial."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lsmtune.records.config import Config
from lsmtune.records.goal import Goal
from lsmtune.records.measurement import Outcome
from lsmtune.study.trials import TrialEnd


@dataclass(frozen=True)
class BestTrial:
    """The trial with the best value of the goal; `values` are those of the objectives."""

    number: int
    value: float
    values: tuple[float, ...]
    config: Config


class Progress:
    """Grows by one trial at a time. Whole measurements are not kept."""

    def __init__(self, goal: Goal) -> None:
        self._goal = goal
        self.counts: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()  # constraints on outcomes, by their text
        self.trial_walls_s: list[float] = []
        self.best: BestTrial | None = None

    def add_baseline(self, wall_s: float) -> None:
        """Count the time of a baseline, all its workloads together."""
        self.trial_walls_s.append(wall_s)

    def add_trial(self, number: int, config: Config, end: TrialEnd, wall_s: float) -> bool:
        """Count a trial; returns whether it is the best so far."""
        self.counts[end.outcome.value] += 1
        # A trial that ended early says nothing about how long one that goes well will take.
        if end.outcome is Outcome.OK:
            self.trial_walls_s.append(wall_s)
        self.broken.update(text for text, violation in end.violations.items() if violation > 0)
        if not end.eligible or end.values is None:
            return False
        value = self._goal.number(end.values)
        if value is None:
            return False
        if self.best is not None and not self._goal.better(value, self.best.value):
            return False
        self.best = BestTrial(number, value, end.values, config)
        return True

    def trials(self) -> int:
        """How many trials were counted."""
        return self.counts.total()
