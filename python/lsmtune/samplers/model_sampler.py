"""A sampler that fits a model to the history and ranks new points by it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial

from lsmtune.samplers.column import FloatArray
from lsmtune.samplers.cube_sampler import CubeSampler
from lsmtune.samplers.history import History
from lsmtune.samplers.kind import SamplerContext


class ModelSampler(CubeSampler):
    """Draws at random until `startup_trials` trials were judged, and then now and then.

    `startup_trials` and `random_share` are settings of every such sampler. A later trial is drawn
    at random with probability `random_share`; every other one is the best new point in the order
    that `rank` returns.
    """

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context)
        self._startup_trials = context.get.whole("startup_trials")
        self._random_share = context.get.real("random_share")

    @abstractmethod
    def rank(self, history: History, rng: np.random.Generator) -> FloatArray:
        """New points for `history` (not empty), the best first; shape (n, dimensions)."""

    def propose(
        self, study: Study, trial: FrozenTrial, rng: np.random.Generator
    ) -> Iterator[FloatArray]:
        """See `CubeSampler`; nothing, which leaves it to chance, where the model is not asked."""
        history = self.reader.read(study.get_trials(deepcopy=False), trial.number, study.direction)
        at_random = rng.random() < self._random_share
        if len(history) >= self._startup_trials and not at_random:
            yield from self.rank(history, rng)
