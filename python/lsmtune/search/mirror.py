"""The study in memory that samplers and pruners look at, rebuilt from the stored trials."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from optuna.storages import InMemoryStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from lsmtune.model.goal import Direction
from lsmtune.space.space import quiet_optuna

# Hyperband assigns brackets by the study's name: it must be the same in every session.
_NAME = "study"
CONSTRAINT_PREFIX = "constraints:"  # where Optuna keeps the values of `Trial.set_constraint`
_RELATIVE_PARAMS = "tpe:relative_params:"
_NOISE = "lsmtune:noise"  # how sure the value of a trial is; never stored, as it follows from runs


@dataclass(frozen=True)
class ValueNoise:
    """How sure the value of a trial is: the `variance` of that value, a mean over `runs` runs."""

    variance: float
    runs: int


@dataclass(frozen=True)
class TrialJudgement:
    """How a trial ended, by all that is known now; see `Mirror.judge`."""

    state: TrialState
    values: tuple[float, ...] | None = None
    violations: Mapping[str, float] = field(default_factory=dict)
    reports: Mapping[int, float] = field(default_factory=dict)
    noise: ValueNoise | None = None


def noise_of(trial: FrozenTrial) -> ValueNoise | None:
    """How sure the value of `trial` is; None where nobody said."""
    noise: ValueNoise | None = trial.system_attrs.get(_NOISE)
    return noise


def without_noise(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """A trial's system attributes without what `noise_of` reads."""
    return {key: value for key, value in attributes.items() if key != _NOISE}


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

    def forget_notes(self, study_id: int) -> None:
        """Remove the system attributes of a study; those of its trials stay."""
        with self._lock:
            self._studies[study_id].system_attrs = {}

    def replace_finished(self, study_id: int, trials: Mapping[int, FrozenTrial]) -> None:
        """Put each of `trials`, by trial id, in the place of the one that has ended.

        Optuna takes finished trials for constants; the objects that were handed out stay as they
        were, and the best trial is looked for anew.
        """
        with self._lock:
            for trial_id, trial in trials.items():
                self._set_trial(trial_id, trial)
            self._studies[study_id].best_trial_id = None
            for other in self._studies[study_id].trials:
                self._update_cache(other._trial_id, study_id)


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
        floats = _final_values(state, values, self.trial(number).intermediate_values)
        self._storage.set_trial_state_values(self._id(number), state, floats)

    def judge(self, judgements: Mapping[int, TrialJudgement]) -> bool:
        """Let finished trials have ended as is known now; whether one of them ended otherwise.

        A trial is left the same object where nothing changed. How sure a value is makes no other
        end of it.
        """
        other, replaced = False, {}
        for number, now in judgements.items():
            judged, is_other = _judged(self.trial(number), now)
            other |= is_other
            if judged is not None:
                replaced[self._id(number)] = judged
        if replaced:
            self._storage.replace_finished(self._study_id, replaced)
        return other

    def use(self, sampler: BaseSampler) -> None:
        """Let `sampler` be asked from now on, without what others noted of the study.

        That is what Optuna's genetic algorithms chose as parents, and choose again.
        """
        self._sampler = sampler
        self._storage.forget_notes(self._study_id)

    def _id(self, number: int) -> int:
        return self._storage.get_trial_id_from_study_id_trial_number(self._study_id, number)


def _final_values(
    state: TrialState, values: Sequence[float] | None, reports: Mapping[int, float]
) -> list[float] | None:
    """The values to keep: of a pruned trial the last one it reported.

    Floats, as they come back from a disk; TPE fails on whole numbers that are not.
    """
    if state == TrialState.PRUNED:
        last = reports[max(reports)] if reports else math.nan
        return None if math.isnan(last) else [float(last)]
    return None if values is None else [float(value) for value in values]


def _judged(trial: FrozenTrial, now: TrialJudgement) -> tuple[FrozenTrial | None, bool]:
    """`trial` as it is known `now`, None where that is what it is; and whether its end differs."""
    attributes = with_violations(without_noise(trial.system_attrs), now.violations)
    reports = {step: float(value) for step, value in now.reports.items()}
    values = _final_values(now.state, now.values, reports)
    before = (trial.state, trial.values, trial.intermediate_values)
    other = before != (now.state, values, reports)
    other |= without_noise(trial.system_attrs) != attributes
    if not other and noise_of(trial) == now.noise:
        return None, False
    judged = copy.copy(trial)
    judged.state, judged.values = now.state, values
    judged.intermediate_values = reports
    judged.system_attrs = attributes if now.noise is None else attributes | {_NOISE: now.noise}
    return judged, other
