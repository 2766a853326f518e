"""What the search has come to: counts, times, and the best trial."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lsmtune.records.config import Config
from lsmtune.records.measurement import Outcome
from lsmtune.study.judging import Judgement


@dataclass(frozen=True)
class BestTrial:
    """The trial that is best by all that is known of it.

    `value` of the goal is the mean of its `runs`, and `values` are those of the objectives.
    """

    number: int
    value: float
    values: tuple[float, ...]
    config: Config
    runs: int = 1


class Progress:
    """What a Judgement says of the search; `baseline_wall_s` is what one of its rounds cost."""

    def __init__(self, judgement: Judgement, baseline_wall_s: float | None = None) -> None:
        trials = judgement.trials.values()
        self.counts = Counter(trial.end.outcome.value for trial in trials)
        # Constraints on outcomes, by their text.
        self.broken = Counter(
            text for trial in trials for text, by in trial.end.violations.items() if by > 0
        )
        # A trial that ended early says nothing about how long one that goes well will take.
        walls_s = [trial.wall_s for trial in trials if trial.end.outcome is Outcome.OK]
        self.trial_walls_s = walls_s if baseline_wall_s is None else [baseline_wall_s, *walls_s]
        self.best = _best(judgement)

    def trials(self) -> int:
        """How many trials ended."""
        return self.counts.total()


def _best(judgement: Judgement) -> BestTrial | None:
    if judgement.best is None:
        return None
    trial = judgement.trials[judgement.best]
    value = judgement.value(trial)
    if value is None or trial.end.values is None:
        return None
    return BestTrial(trial.number, value, trial.end.values, trial.config, trial.runs)
