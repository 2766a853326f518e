"""The Optuna study in memory that samplers and pruners look at, rebuilt from the stored trials."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner
from optuna.samplers import RandomSampler
from optuna.storages import BaseStorage, InMemoryStorage
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
    """How sure the value of a trial is: the `variance` of that value, a mean over `runs` runs.

    `seconds` is what its first round took, and `run_seconds` its runs alone: what the round would
    have taken had its databases been loaded. None where nobody said.
    """

    variance: float
    runs: int
    seconds: float | None = None
    run_seconds: float | None = None


@dataclass(frozen=True)
class TrialJudgement:
    """How a trial ended, by all that is known now; see `InMemoryStudy.rejudge`."""

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


class InMemoryStudy:
    """The trials of one study, numbered from 0 without gaps."""

    def __init__(self, directions: Sequence[Direction], pruner: BasePruner | None) -> None:
        self._storage = _Storage()
        self._pruner = pruner or optuna.pruners.NopPruner()
        self._begun_with: dict[int, Mapping[str, Any]] = {}  # the attributes of running trials
        with quiet_optuna():
            self._study_id = self._storage.create_new_study(
                [StudyDirection[direction.name] for direction in directions], _NAME
            )

    def as_optuna(self) -> Study:
        """The study as it is now. Not to be kept: Optuna's object remembers the trials it saw.

        Its sampler is never asked; without one, Optuna would make a TPE each time.
        """
        return optuna.load_study(
            study_name=_NAME, storage=self._storage, sampler=RandomSampler(0), pruner=self._pruner
        )

    def add(self) -> int:
        """The number of a new trial: running, without parameters."""
        return self._storage.get_trial(self._storage.create_new_trial(self._study_id)).number

    def trial(self, number: int) -> FrozenTrial:
        """Trial `number` as it is now; not to be changed."""
        return self._storage.get_trial(self._id(number))

    def begin(
        self, number: int, params: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]
    ) -> None:
        """Give a new trial its parameters."""
        for name, value in params.items():
            distribution = distributions[name]
            self._storage.set_trial_param(
                self._id(number), name, distribution.to_internal_repr(value), distribution
            )
        self._begun_with[number] = self.trial(number).system_attrs

    def set_attributes(self, number: int, attributes: Mapping[str, Any]) -> None:
        """Set system attributes of a running trial."""
        for key, value in attributes.items():
            self._storage.set_trial_system_attr(self._id(number), key, value)

    def report(self, number: int, step: int, value: float) -> None:
        """Set what a running trial came to at `step`."""
        self._storage.set_trial_intermediate_value(self._id(number), step, value)

    def finish(
        self,
        number: int,
        state: TrialState,
        values: Sequence[float] | None,
        violations: Mapping[str, float],
    ) -> None:
        """End a running trial; one that was pruned gets its last reported value, as in Optuna.

        `violations` says by how much it breaks each constraint; up to 0: not at all.
        """
        self._begun_with.pop(number, None)
        self.set_attributes(number, with_violations({}, violations))
        final = _final_values(state, values, self.trial(number).intermediate_values)
        self._storage.set_trial_state_values(self._id(number), state, final)

    def begin_anew(self, number: int) -> None:
        """Let a running trial be as it was when it began.

        What it came to since, and what pruners noted of that, would be compared with what its
        configuration comes to when it is tried again.
        """
        running = copy.copy(self.trial(number))
        running.system_attrs, running.intermediate_values = dict(self._begun_with[number]), {}
        self._storage._set_trial(self._id(number), running)

    def put_back(self, number: int) -> None:
        """End a running trial that says nothing."""
        self.begin_anew(number)
        self.finish(number, TrialState.FAIL, None, {})

    def rejudge(self, judgements: Mapping[int, TrialJudgement]) -> bool:
        """Let finished trials have ended as is known now; whether one of them ended otherwise.

        A trial is left the same object where nothing changed. How sure a value is makes no other
        end of it. Where one ended otherwise, what samplers noted of the study goes: whom Optuna's
        genetic algorithms chose as parents, and choose again.
        """
        is_different = False
        for number, judgement in judgements.items():
            trial = self.trial(number)
            attributes = with_violations(without_noise(trial.system_attrs), judgement.violations)
            reports = {step: float(value) for step, value in judgement.reports.items()}
            values = _final_values(judgement.state, judgement.values, reports)
            before = (trial.state, trial.values, trial.intermediate_values)
            ended_otherwise = (
                before != (judgement.state, values, reports)
                or without_noise(trial.system_attrs) != attributes
            )
            is_different |= ended_otherwise
            if not ended_otherwise and noise_of(trial) == judgement.noise:
                continue
            noise = {} if judgement.noise is None else {_NOISE: judgement.noise}
            rejudged = copy.copy(trial)
            rejudged.state, rejudged.values = judgement.state, values
            rejudged.intermediate_values = reports
            rejudged.system_attrs = attributes | noise
            # Optuna takes finished trials for constants; who got one before has it as it was.
            self._storage._set_trial(self._id(number), rejudged)
        if is_different:
            self._storage._studies[self._study_id].system_attrs = {}
        return is_different

    def _id(self, number: int) -> int:
        return self._storage.get_trial_id_from_study_id_trial_number(self._study_id, number)


class _Storage(InMemoryStorage):
    """Optuna's storage in memory, for one study whose finished trials may be judged anew."""

    def get_best_trial(self, study_id: int) -> FrozenTrial:
        """See `BaseStorage`, whose own method looks at all trials; the subclass remembers one."""
        return BaseStorage.get_best_trial(self, study_id)

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        """As Optuna's, without TPE's notes on values that it has suggested and not yet used.

        They are for other processes; here every trial has its parameters when the next is asked.
        """
        if not key.startswith(_RELATIVE_PARAMS):
            super().set_trial_system_attr(trial_id, key, value)


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
