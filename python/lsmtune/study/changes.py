"""Tells of changes of the machine, each once."""

from __future__ import annotations

from lsmtune.records.goal import Goal
from lsmtune.study.drift import Change
from lsmtune.study.judging import Judgement
from lsmtune.study.observer import TuneObserver


class ChangeTeller:
    """Remembers which changes the user knows of; those of earlier sessions were told then."""

    def __init__(self, goal: Goal, observer: TuneObserver) -> None:
        self._goal = goal
        self._observer = observer
        self._known: set[tuple[int, int]] = set()

    def known(self, judgement: Judgement) -> None:
        """All these changes were told."""
        self._known |= {(change.before, change.after) for change in judgement.drift.changes()}

    def tell(self, judgement: Judgement) -> None:
        """Tell of those that are new."""
        for change in judgement.drift.changes():
            if (change.before, change.after) not in self._known:
                self._observer.warning(self._text(change, judgement))
        self.known(judgement)

    def _text(self, change: Change, judgement: Judgement) -> str:
        label = self._goal.objectives[change.objective].label
        again = [
            number
            for number in judgement.unplaced()
            if change.before < judgement.trials[number].first < change.after
        ]
        where = _where(change, judgement)
        runs = "1 trial is" if len(again) == 1 else f"{len(again)} trials are"
        rest = f"; {runs} run again" if again else ""
        return (
            f"the machine changed {where}: {label} of the baseline is {change.ratio:.2f} of what "
            f"it was before{rest}"
        )


def _where(change: Change, judgement: Judgement) -> str:
    """Between which trials: the last before, and the first after the change."""
    trials = judgement.trials.values()
    before = [trial.number for trial in trials if trial.first < change.before]
    after = [trial.number for trial in trials if trial.first > change.after]
    start = f"trial {before[-1]}" if before else "the baseline"
    return f"between {start} and trial {after[0]}" if after else f"after {start}"
