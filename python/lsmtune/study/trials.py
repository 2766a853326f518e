"""Trials: proposed by the Searcher, kept on the disk, put back when they were cut off.

The Searcher works in memory; the disk has one transaction when a trial begins, with all that the
sampler chose, and one when it ends. The order of commits lets a kill at any moment neither lose a
completed trial nor count it twice: its measurements are stored first, under the trial's number, and
then the trial is told. What a kill can leave is a running trial, with some or all of its
measurements; `recover` finishes or puts back each of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from lsmtune.errors import LsmtuneError
from lsmtune.records.config import OptionValue
from lsmtune.records.measurement import Outcome
from lsmtune.samplers import OUTCOME, PUT_BACK, Searcher, TrialJudgement
from lsmtune.samplers.draw import draw_of
from lsmtune.samplers.mirror import with_violations
from lsmtune.samplers.searcher import state_of
from lsmtune.space import Space
from lsmtune.storage.folder import StudyFolder
from lsmtune.storage.trouble import explained

RETRY_OF = "retry_of"
START = "start"
_ABSENT = object()


@dataclass(frozen=True)
class AskedTrial:
    """A trial that runs: its number and the values of the active parameters."""

    number: int
    values: Mapping[str, OptionValue]


@dataclass(frozen=True)
class TrialEnd:
    """How a trial ended: its outcome, and what is known of its objectives and constraints.

    `values` has one value per objective, and is None for a trial that failed or was pruned.
    `pickable`: it meets what the study wants of the configuration that it picks from a front.
    """

    outcome: Outcome
    values: tuple[float, ...] | None = None
    violations: Mapping[str, float] = field(default_factory=dict)
    pickable: bool = True

    @property
    def eligible(self) -> bool:
        """Whether it may be the best: it has values, and breaks nothing."""
        kept = all(violation <= 0 for violation in self.violations.values())
        return self.values is not None and kept and self.pickable

    @property
    def state(self) -> TrialState:
        """Optuna's word for it."""
        return state_of(self.outcome)


@dataclass(frozen=True)
class _Queued:
    """Values to be tried before the sampler is asked, and why."""

    values: Mapping[str, OptionValue]
    attribute: tuple[str, int]


class Trials:
    """The trials of one study, in memory and on the disk."""

    def __init__(self, folder: StudyFolder, space: Space, searcher: Searcher) -> None:
        self._folder = folder
        self._space = space
        self._searcher = searcher
        self._queue: deque[_Queued] = deque()
        self._stored: dict[int, dict[str, Any]] = {}

    def restore(
        self,
        ends: Mapping[int, TrialEnd | None],
        reports: Mapping[int, Mapping[int, float]],
        start: Sequence[Mapping[str, OptionValue]],
    ) -> dict[int, str]:
        """Bring disk and Searcher to the same state, whatever a kill left.

        Returns how each trial ended, by number, without those that were put back.

        `ends` are the trials that have stored runs, by number, None for those that lack some;
        `reports` what a pruner was told of them, step to value. `start` are configurations of the
        space to try first.

        Raises LsmtuneError when one of the two databases is not the one that belongs to the other.
        """
        trials = self._folder.trials()
        self._folder.refuse_strangers(trials, ends.keys(), "use another folder (--dir DIR)")
        running = [trial for trial in trials if trial.state is TrialState.RUNNING]
        for trial in running:
            self._finish(trial.number, ends.get(trial.number))
        if running:
            trials = self._folder.trials()
        for trial in trials:
            trial.intermediate_values = dict(reports.get(trial.number, {}))
            end = ends.get(trial.number)
            # By the constraints of today alone: those of an earlier session may be gone.
            broken = end.violations if end else {}
            trial.system_attrs = with_violations(trial.system_attrs, broken)
        with explained(self._folder.path):
            self._searcher.restore(trials)
        self._fill_queue(trials, start)
        return _outcomes(trials)

    def _finish(self, number: int, end: TrialEnd | None) -> None:
        """End a trial that a kill left running."""
        if end is None:
            self._folder.put_back_trial(number)
        else:
            self._store_end(number, end)

    def _fill_queue(
        self, trials: Sequence[FrozenTrial], start: Sequence[Mapping[str, OptionValue]]
    ) -> None:
        """What was put back and not tried again, then what was never tried of `start`."""
        again = {trial.user_attrs.get(RETRY_OF) for trial in trials}
        for trial in trials:
            if trial.user_attrs.get(OUTCOME) == PUT_BACK and trial.number not in again:
                draw = draw_of(self._space, self._space.distributions(), trial.params)
                self._queue.append(_Queued(draw.values, (RETRY_OF, trial.number)))
        # By values: a place in the list means another configuration once the list has changed.
        queued = [waiting.values for waiting in self._queue]
        for index, values in enumerate(start):
            if not self._searcher.tried(values) and values not in queued:
                self._queue.append(_Queued(values, (START, index)))

    def ask(self) -> AskedTrial:
        """Begin a trial; it is on the disk when this returns.

        Raises SpaceExhaustedError when every configuration was tried, and InputError when the
        constraints leave none.
        """
        queued = self._queue[0] if self._queue else None
        proposal = self._searcher.ask(queued.values if queued else None)
        trial = proposal.trial
        if queued is not None:
            self._queue.popleft()
            key, value = queued.attribute
            trial.user_attrs = {**trial.user_attrs, key: value}
        with explained(self._folder.path):
            number = self._folder.begin_trial(trial)
        if number != proposal.number:
            raise LsmtuneError(
                f"{self._folder.path}: another program added trial {number} to study.db; "
                "put back the file, or use another folder (--dir DIR)"
            )
        self._stored[number] = dict(trial.system_attrs)
        return AskedTrial(number, proposal.values)

    def report(self, number: int, step: int, value: float) -> bool:
        """Tell the pruner of a trial that runs; whether it is to be ended."""
        self._searcher.report(number, step, value)
        return self._searcher.should_prune(number)

    def tell(self, number: int, end: TrialEnd) -> None:
        """Finish a trial of which the measurements are stored."""
        self._searcher.tell(number, end.state, end.values, end.violations)
        self._store_end(number, end, self._searcher.attributes(number))

    def rejudge(self, judgements: Mapping[int, TrialJudgement]) -> None:
        """Let the Searcher see every trial as it is judged now.

        The disk keeps what was known when each ended: all else follows from the runs.
        """
        self._searcher.rejudge(judgements)

    def put_back(self, number: int, values: Mapping[str, OptionValue]) -> None:
        """End a trial that was cut off, and try its values again first of all."""
        self._folder.put_back_trial(number)
        self._searcher.put_back(number)
        self._queue.appendleft(_Queued(values, (RETRY_OF, number)))

    def _store_end(
        self, number: int, end: TrialEnd, attributes: Mapping[str, Any] | None = None
    ) -> None:
        """Keep how a trial ended, and those of the sampler's and pruner's notes that are new.

        The notes come first: a kill in between leaves a running trial, which is then told again.
        """
        stored = self._stored.pop(number, {})
        new = {k: v for k, v in (attributes or {}).items() if stored.get(k, _ABSENT) != v}
        self._folder.note_trial(number, new)
        if end.state is not TrialState.COMPLETE:
            self._folder.annotate_trial(number, {OUTCOME: end.outcome.value})
        self._folder.finish_trial(number, end.state, end.values)


def _outcomes(trials: Sequence[FrozenTrial]) -> dict[int, str]:
    """How each trial ended, by number; without those that run or were put back."""
    found = {}
    for trial in trials:
        outcome = trial.user_attrs.get(OUTCOME, Outcome.OK.value)
        if trial.state.is_finished() and outcome != PUT_BACK:
            found[trial.number] = str(outcome)
    return found
