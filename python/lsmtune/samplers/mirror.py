"""The study in memory that samplers and pruners look at, rebuilt from the stored trials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from optuna.storages import InMemoryStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from lsmtune.records.objective import Direction
from lsmtune.space.optuna_log import quiet_optuna

# Hyperband assigns brackets by the study's name: it must be the same in every session.
_NAME = "study"
CONSTRAINT_PREFIX = "constraints:"  # where Optuna keeps the values of `Trial.set_constraint`
_RELATIVE_PARAMS = "tpe:relative_params:"


def with_violations(
    attributes: Mapping[str, Any], violations: Mapping[str, float]
) -> dict[str, Any]:
    """A trial's system `attributes` with these `violations`, and none that they had before."""
    kept = {k: v for k, v in attributes.items() if not k.startswith(CONSTRAINT_PREFIX)}
    return kept | {f"{CONSTRAINT_PREFIX}{text}": value for text, value in violations.items()}


class _Storage(InMemoryStorage):
    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        """As Optuna's, without TPE's notes on values that it has drawn and not yet used.

        They are for other processes; here every trial has its parameters when the next is asked.
        """
        if not key.startswith(_RELATIVE_PARAMS):
            super().set_trial_system_attr(trial_id, key, value)


class Mirror:
    """The trials of one study, numbered from 0 without gaps."""

    def __init__(
        self, directions: Sequence[Direction], sampler: BaseSampler, pruner: BasePruner | None
    ) -> None:
        self._storage = _Storage()
        self._sampler = sampler
        self._pruner = pruner or optuna.pruners.NopPruner()
        with quiet_optuna():
            self._study_id = self._storage.create_new_study(
                [StudyDirection[direction.name] for direction in directions], _NAME
            )

    def study(self) -> Study:
        """The study as it is now. Not to be kept: Optuna's object remembers the trials it saw."""
        return optuna.load_study(
            study_name=_NAME, storage=self._storage, sampler=self._sampler, pruner=self._pruner
        )

    def add(self) -> int:
        """The number of a new trial: running, without parameters."""
        return self.trial_of(self._storage.create_new_trial(self._study_id)).number

    def trial(self, number: int) -> FrozenTrial:
        """Trial `number` as it is now; not to be changed."""
        return self.trial_of(self._id(number))

    def trial_of(self, trial_id: int) -> FrozenTrial:
        """The trial that Optuna knows as `trial_id`."""
        return self._storage.get_trial(trial_id)

    def set_params(
        self, number: int, params: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]
    ) -> None:
        """Give a running trial its parameters."""
        for name, value in params.items():
            distribution = distributions[name]
            self._storage.set_trial_param(
                self._id(number), name, distribution.to_internal_repr(value), distribution
            )

    def set_attributes(self, number: int, attributes: Mapping[str, Any]) -> None:
        """Set system attributes of a running trial."""
        for key, value in attributes.items():
            self._storage.set_trial_system_attr(self._id(number), key, value)

    def set_violations(self, number: int, violations: Mapping[str, float]) -> None:
        """Set by how much a running trial breaks each constraint; up to 0: not at all."""
        self.set_attributes(number, with_violations({}, violations))

    def report(self, number: int, step: int, value: float) -> None:
        """Set what a running trial came to at `step`."""
        self._storage.set_trial_intermediate_value(self._id(number), step, value)

    def finish(self, number: int, state: TrialState, values: Sequence[float] | None = None) -> None:
        """End a running trial; one that was pruned gets its last reported value, as in Optuna."""
        if state == TrialState.PRUNED:
            trial = self.trial(number)
            last = trial.intermediate_values.get(trial.last_step or 0, math.nan)
            values = None if math.isnan(last) else [last]
        # As they come back from a disk; TPE fails on whole numbers that are not floats.
        floats = None if values is None else [float(value) for value in values]
        self._storage.set_trial_state_values(self._id(number), state, floats)

    def _id(self, number: int) -> int:
        return self._storage.get_trial_id_from_study_id_trial_number(self._study_id, number)
