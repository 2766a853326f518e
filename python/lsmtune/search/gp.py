"""`gp`: a Gaussian process and the logarithm of its expected improvement.

The improvement is counted from the best *predicted* value of a tried configuration, not from the
best measured one, which noise made look better than it is; how noisy each value is, where that is
known, goes into the process. The process is fitted on at most
`points_max` trials, half the best and half the most recent ones, its length scales on fewer: its
time grows with the third power of their number, and what decides the next trial is the
neighbourhood of the best and what is new.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from optuna.samplers import BaseSampler
from threadpoolctl import threadpool_limits

from lsmtune.model.setting import Setting, real_number, whole_number
from lsmtune.search.cube import FloatArray
from lsmtune.search.history import History, ModelSampler, ranked
from lsmtune.search.sampler import SamplerContext, SamplerKind

STARTS = 10
NEIGHBOURS = 400
ROUNDS = 4
# The length scales are found on at most this many trials.
FITTED_ON_MAX = 150


class GaussianProcessSampler(ModelSampler):
    """See the module."""

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context)
        self._points_max = context.get.whole("points_max")
        self._candidates = context.get.whole("candidates")

    def rank(self, history: History, rng: np.random.Generator) -> FloatArray:
        """New points, the highest expected improvement first."""
        # One thread: sums come out the same in every session, and the threads of linear algebra,
        # which gain nothing on matrices of this size, do not wait for each other on a busy machine.
        with threadpool_limits(1):
            return self._rank(history, rng)

    def _rank(self, history: History, rng: np.random.Generator) -> FloatArray:
        # Loaded when it is used: commands that search nothing are not to wait for it.
        from lsmtune.search.gp_model import (
            fit_process,
            log_expected_improvement,
            spread_of,
            standardised,
        )

        points, targets = history.with_running()
        kept = best_and_latest(targets, self._points_max)
        features = self.cube.distance_features(points[kept])
        variances = history.noise_with_running()[0][kept] / spread_of(targets[kept]) ** 2
        process = fit_process(features, standardised(targets[kept]), FITTED_ON_MAX, variances)
        mean, _ = process.predict(features)
        order = np.argsort(mean, kind="stable")

        def score(new: FloatArray) -> FloatArray:
            return log_expected_improvement(
                *process.predict(self.cube.distance_features(new)), float(mean[order[0]])
            )

        return ranked(
            self.cube,
            rng,
            score,
            points[kept][order[:STARTS]],
            history.known(),
            drawn=self._candidates,
            near=NEIGHBOURS,
            rounds=ROUNDS,
        )


def best_and_latest(targets: FloatArray, count: int) -> npt.NDArray[np.intp]:
    """Which of `targets` (n,) to keep: at most `count`, the best and the latest in turn."""
    best = np.argsort(targets, kind="stable")
    latest = np.arange(len(targets))[::-1]
    in_turn = np.column_stack([best, latest]).ravel()
    _, first = np.unique(in_turn, return_index=True)
    return in_turn[np.sort(first)[:count]]


def _make(context: SamplerContext) -> BaseSampler:
    return GaussianProcessSampler(context)


KIND = SamplerKind(
    name="gp",
    summary="Gaussian process with expected improvement; for few, expensive trials",
    settings=(
        Setting(
            "startup_trials",
            10,
            "trials drawn at random before the process guides",
            "a whole number from 1 to 100000",
            whole_number(1, 100_000),
        ),
        Setting(
            "random_share",
            0.0,
            "share of later trials that are drawn at random",
            "a number from 0 to 1",
            real_number(0, 1),
        ),
        Setting(
            "points_max",
            300,
            "trials that the process is fitted on: half the best, half the latest",
            "a whole number from 10 to 5000",
            whole_number(10, 5_000),
        ),
        Setting(
            "candidates",
            1000,
            "random configurations compared for each trial",
            "a whole number from 1 to 100000",
            whole_number(1, 100_000),
        ),
    ),
    several_objectives=False,
    make=_make,
)
