"""Optuna's samplers, made anew for each trial with a seed of its own.

An Optuna sampler keeps one random stream for its life; a process that goes on with a study would
begin that stream again and draw the same values twice. Made anew for each trial, with a seed that
follows from the study's and the trial's number, it needs no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from lsmtune.samplers.seeds import seed_of_trial


class PerTrialSampler(BaseSampler):
    """Asks, for each trial, the sampler that `make(seed_of_trial(seed, number))` returns."""

    def __init__(self, make: Callable[[int], BaseSampler], seed: int) -> None:
        self._make = make
        self._seed = seed
        self._inner = make(seed_of_trial(seed, 0))

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Begin the random stream of the trial."""
        self._inner = self._make(seed_of_trial(self._seed, trial.number))
        self._inner.before_trial(study, trial)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """See `BaseSampler`."""
        return self._inner.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """See `BaseSampler`."""
        return self._inner.sample_relative(study, trial, search_space)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """See `BaseSampler`."""
        return self._inner.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """See `BaseSampler`."""
        self._inner.after_trial(study, trial, state, values)
