"""What a study that goes on remembers of its runs: rounds, not whole measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lsmtune.records.goal import Goal
from lsmtune.study.judging import Judgement, judge
from lsmtune.study.stored import Round, TrialRounds

# The share of the time of a search that anchors may take. With one anchor after every ten trials
# it is a tenth; trials that are shorter than the baseline would make it more.
ANCHOR_SHARE_MAX = 0.15


class Seen:
    """The rounds of all trials and anchors, and the Judgement that follows from them."""

    def __init__(self, goal: Goal) -> None:
        self._goal = goal
        self._trials: dict[int, TrialRounds] = {}
        self._anchors: list[Round] = []
        self._last_attempt = 0
        self._judgement: Judgement | None = None

    @property
    def judgement(self) -> Judgement:
        """What everything that was seen so far comes to."""
        if self._judgement is None:
            self._judgement = judge(self._trials.values(), self._anchors, self._goal)
        return self._judgement

    @property
    def trials(self) -> Mapping[int, TrialRounds]:
        """The trials that ended, by number."""
        return self._trials

    def add_trial(self, trial: TrialRounds) -> None:
        """A trial ended, or was run again: all of its rounds."""
        self._trials[trial.number] = trial
        self._judgement = None

    def add_round(self, number: int, repeated: Round) -> None:
        """A trial was run again: one more round of it."""
        trial = self._trials[number]
        self.add_trial(replace(trial, rounds=(*trial.rounds, repeated)))

    def add_anchors(self, anchors: Sequence[Round]) -> None:
        """More of the series of anchors."""
        self._anchors = sorted([*self._anchors, *anchors], key=lambda anchor: anchor.first)
        self._judgement = None

    def forget_anchors(self) -> None:
        """Before all of them are added again."""
        self._anchors = []
        self._judgement = None

    def note_attempt(self, row: int) -> None:
        """A run of the baseline ended, however, in `row` of the store."""
        self._last_attempt = max(self._last_attempt, row)

    def anchor_due(self, every: int, anchors_s: float, next_s: float) -> bool:
        """Whether an anchor is to be run now: after `every` trials since the last attempt.

        Later where anchors, which took `anchors_s` seconds so far, would take too large a share of
        the search's time with another one of `next_s` seconds.
        """
        since = sum(t.rounds[0].first > self._last_attempt for t in self._trials.values())
        if every == 0 or since < every:
            return False
        trials_s = sum(r.wall_s for t in self._trials.values() for r in t.rounds)
        with_next_s = anchors_s + next_s
        return with_next_s <= ANCHOR_SHARE_MAX * (trials_s + with_next_s)
