"""Trials: asked of Optuna, told to it, put back when they were cut off.

The order of commits lets a kill at any moment neither lose a completed trial nor count it twice:
the measurement is stored first, under the trial's number, and then the trial is told. What a
kill can leave is a running trial, with or without a measurement; `recover` finishes both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from lsmtune.errors import LsmtuneError
from lsmtune.records.config import OptionValue
from lsmtune.records.objective import Objective
from lsmtune.space import Space
from lsmtune.storage.folder import StudyFolder
from lsmtune.storage.measurements import StoredMeasurement
from lsmtune.storage.trouble import explained

OUTCOME = "outcome"
PUT_BACK = "put_back"
RETRY_OF = "retry_of"
_FIXED_PARAMS = "fixed_params"  # where Optuna keeps the values of an enqueued trial


@dataclass(frozen=True)
class AskedTrial:
    """A trial that runs: its number and the values of the active parameters."""

    number: int
    values: Mapping[str, OptionValue]


class Trials:
    """The trials of one study, as Optuna keeps them."""

    def __init__(self, folder: StudyFolder, space: Space, objective: Objective) -> None:
        self._folder = folder
        self._space = space
        self._objective = objective
        self._study = folder.optuna_study()

    def asked(self) -> int:
        """How many trials there are, in any state."""
        return len(self._study.get_trials(deepcopy=False))

    def use_sampler(self, sampler: BaseSampler) -> None:
        """Ask `sampler` from now on."""
        self._study.sampler = sampler

    def enqueue(self, values: Mapping[str, OptionValue]) -> None:
        """Make `values`, which lie in the space, the next trial."""
        with explained(self._folder.path):
            self._study.enqueue_trial(self._space.variables_of(values))

    def ask(self) -> AskedTrial:
        """Begin a trial."""
        with explained(self._folder.path):
            trial = self._study.ask()
            return AskedTrial(trial.number, self._space.suggest(trial))

    def tell(self, number: int, stored: StoredMeasurement) -> None:
        """Finish a trial from its stored measurement: with its value, or as failed.

        A failed run is told as FAIL, with the run's outcome as an attribute: samplers leave it
        out, and no made-up value misleads them.
        """
        value = self._objective.value(stored.measurement)
        with explained(self._folder.path):
            self._folder.annotate_trial(number, OUTCOME, stored.measurement.outcome.value)
            if value is None:
                self._study.tell(number, state=TrialState.FAIL)
            else:
                self._study.tell(number, value)

    def put_back(self, number: int) -> None:
        """End a trial that has no measurement, and queue its values for a later one."""
        with explained(self._folder.path):
            trials = self._study.get_trials(deepcopy=False)
            trial = trials[number]
            variables = {**trial.system_attrs.get(_FIXED_PARAMS, {}), **trial.params}
            # Queued before it is ended: a kill in between must not lose the values, and the
            # attribute keeps the next start from queueing them twice.
            if variables and not any(t.user_attrs.get(RETRY_OF) == number for t in trials):
                self._study.enqueue_trial(variables, user_attrs={RETRY_OF: number})
            self._folder.annotate_trial(number, OUTCOME, PUT_BACK)
            self._study.tell(number, state=TrialState.FAIL)

    def recover(self, measured: Mapping[int, StoredMeasurement]) -> None:
        """Finish every trial that a kill left running; `measured` holds the runs by trial.

        Raises LsmtuneError when one of the two databases is not the one that belongs to the other.
        """
        self._refuse_strangers(measured)
        for trial in self._running():
            if trial.number in measured:
                self.tell(trial.number, measured[trial.number])
            else:
                self.put_back(trial.number)

    def _refuse_strangers(self, measured: Mapping[int, StoredMeasurement]) -> None:
        """A kill leaves no trial finished that was not measured, and none measured not begun."""
        states = {trial.number: trial.state for trial in self._study.get_trials(deepcopy=False)}
        begun = {number for number, state in states.items() if state is not TrialState.WAITING}
        finished = {number for number in begun if states[number] is TrialState.COMPLETE}
        strangers = sorted((measured.keys() - begun) | (finished - measured.keys()))
        if strangers:
            raise LsmtuneError(
                f"{self._folder.path}: study.db and measurements.db do not belong together: "
                f"trial {strangers[0]} is in one of them only; put back the file that was changed, "
                "or use another folder (--dir DIR)"
            )

    def _running(self) -> list[FrozenTrial]:
        return self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
