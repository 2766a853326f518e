"""A sampler that proposes whole points of a space's cube."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from lsmtune.samplers.column import FloatArray, make_column
from lsmtune.samplers.cube import Cube, make_cube
from lsmtune.samplers.history import HistoryReader
from lsmtune.samplers.kind import SamplerContext
from lsmtune.samplers.seeds import generator_of_trial


class CubeSampler(BaseSampler):
    """Asks `propose` for points, trial by trial; random ones when that has no more."""

    def __init__(self, context: SamplerContext) -> None:
        self.cube: Cube = make_cube(context.space)
        self.reader = HistoryReader(self.cube)
        self.seed = context.seed
        self._number = -1
        self._rng = generator_of_trial(context.seed, 0)
        self._proposals: Iterator[FloatArray] = iter(())

    @abstractmethod
    def propose(
        self, study: Study, trial: FrozenTrial, rng: np.random.Generator
    ) -> Iterator[FloatArray]:
        """Points (dimensions,) for `trial`, each to be tried when those before it were refused.

        `rng` is the random stream of the trial. What is expensive is best done once, before the
        first point is yielded.
        """

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Begin the random stream of the trial."""
        self._number = trial.number
        self._rng = generator_of_trial(self.seed, trial.number)
        self._proposals = self._without_end(study, trial)

    def infer_relative_search_space(
        self,
        study: Study,  # noqa: ARG002
        trial: FrozenTrial,  # noqa: ARG002
    ) -> dict[str, BaseDistribution]:
        """Every variable of the space."""
        return {column.name: column.distribution for column in self.cube.columns}

    def sample_relative(
        self,
        study: Study,
        trial: FrozenTrial,
        search_space: dict[str, BaseDistribution],  # noqa: ARG002
    ) -> dict[str, Any]:
        """The active variables of the next proposal for the trial."""
        if trial.number != self._number:
            self.before_trial(study, trial)
        return self.cube.decode(next(self._proposals))

    def sample_independent(
        self,
        study: Study,  # noqa: ARG002
        trial: FrozenTrial,  # noqa: ARG002
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A random value, for a variable that the proposal did not know to be active."""
        column = make_column(param_name, param_distribution)
        return column.external(float(column.scale.from_unit(self._rng.random(1))[0]))

    def _without_end(self, study: Study, trial: FrozenTrial) -> Iterator[FloatArray]:
        yield from self.propose(study, trial, self._rng)
        while True:
            yield self.cube.draw(self._rng, 1)[0]
