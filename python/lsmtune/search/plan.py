"""Samplers that follow a plan: a fixed sequence of configurations, whatever the results.

The place in the sequence is not the trial's number: a configuration that breaks a constraint uses
up a place and no trial, and a queued configuration uses up a trial and no place. Each trial carries
its place as a system attribute, so that the next one is known after a stop.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import count
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from lsmtune.space.space import Space

_PLACE = "lsmtune:place"


class PlanSampler(BaseSampler):
    """Takes the places in order; those of trials that were put back come first."""

    def __init__(self, space: Space) -> None:
        self._distributions = space.distributions()
        self._places: Iterator[int] = iter(())

    @abstractmethod
    def variables_at(self, place: int) -> dict[str, Any]:
        """Every active variable of the configuration at `place`, counted from 0.

        Raises SpaceExhaustedError when the plan has no such place.
        """

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Find the places that are free."""
        self._places = _free_places(study.get_trials(deepcopy=False), trial.number)

    def infer_relative_search_space(
        self,
        study: Study,  # noqa: ARG002
        trial: FrozenTrial,  # noqa: ARG002
    ) -> dict[str, BaseDistribution]:
        """Every variable of the space."""
        return self._distributions

    def sample_relative(
        self,
        study: Study,
        trial: FrozenTrial,
        search_space: dict[str, BaseDistribution],  # noqa: ARG002
    ) -> dict[str, Any]:
        """The configuration at the next free place."""
        place = next(self._places)
        variables = self.variables_at(place)
        study._storage.set_trial_system_attr(trial._trial_id, _PLACE, place)
        return variables

    def sample_independent(
        self,
        study: Study,  # noqa: ARG002
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,  # noqa: ARG002
    ) -> Any:
        """Never asked: the plan has every active variable."""
        raise RuntimeError(f"trial {trial.number}: the plan has no value for {param_name}")


def _free_places(trials: list[FrozenTrial], number: int) -> Iterator[int]:
    placed = [t for t in trials if t.number != number and _PLACE in t.system_attrs]
    taken = {t.system_attrs[_PLACE] for t in placed if t.state != TrialState.FAIL}
    put_back = {t.system_attrs[_PLACE] for t in placed} - taken
    yield from sorted(put_back)
    yield from count(max(taken | put_back, default=-1) + 1)
