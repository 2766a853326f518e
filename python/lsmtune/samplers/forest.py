"""`forest`: the sampler of MLOS, a random forest with a confidence bound.

After microsoft/MLOS as of 2020 (`source/Mlos.Python/mlos/Optimizers`). From there:

| what | value | file |
|---|---|---|
| trees | 10 | `HomogeneousRandomForestConfigStore.py` |
| smallest leaf | 3 | `DecisionTreeConfigStore.py` |
| trials before guidance | 10 | `BayesianOptimizerConfigStore.py` |
| score: mean + t(1 - alpha/2, freedom) * sd of the mean | | `ConfidenceBoundUtilityFunction.py` |
| random candidates | 1000 | `RandomSearchOptimizer.py` |
| alpha 0.1 and 10 % random suggestions (defaults there: 0.01 and 50 %) | | the lab's settings |

Not from there: candidates are also taken near the best trials and near the best candidates; trees
split at random thresholds, are fitted anew for every trial, and on at most `rows_max` of them,
which bounds the time of a suggestion; failed and pruned trials count (`samplers.history`), and a
trial that was repeated counts as often as it was run.
"""

from __future__ import annotations

import numpy as np
from optuna.samplers import BaseSampler
from scipy import special

from lsmtune.records.setting import Setting, real_number, whole_number
from lsmtune.samplers.candidates import ranked
from lsmtune.samplers.column import FloatArray
from lsmtune.samplers.forest_model import Forest, fit_forest
from lsmtune.samplers.history import History
from lsmtune.samplers.kind import SamplerContext, SamplerKind
from lsmtune.samplers.model_sampler import ModelSampler

# Neighbours of the best trials are scored beside the random candidates, in this many rounds.
STARTS = 10
NEIGHBOURS = 500
ROUNDS = 3


class ForestSampler(ModelSampler):
    """See the module."""

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context)
        self._trees = context.get.whole("trees")
        self._alpha = context.get.real("alpha")
        self._min_leaf = context.get.whole("min_leaf")
        self._rows_max = context.get.whole("rows_max")
        self._candidates = context.get.whole("candidates")

    def rank(self, history: History, rng: np.random.Generator) -> FloatArray:
        """New points, the highest confidence bound on the improvement first."""
        points, targets = history.with_running()
        forest = fit_forest(
            self.cube.tree_features(points),
            targets,
            rng,
            trees=self._trees,
            min_leaf=self._min_leaf,
            rows_max=self._rows_max,
            runs=history.noise_with_running()[1],
        )
        best = history.points[np.argsort(history.targets, kind="stable")[:STARTS]]
        return ranked(
            self.cube,
            rng,
            lambda new: upper_bound(forest, self.cube.tree_features(new), self._alpha),
            best,
            history.known(),
            drawn=self._candidates,
            near=NEIGHBOURS,
            rounds=ROUNDS,
        )


def upper_bound(forest: Forest, features: FloatArray, alpha: float) -> FloatArray:
    """The upper end of the confidence interval of the (negated) target's mean; shape (n,)."""
    mean, variance, freedom = forest.predict(features)
    values, where = np.unique(freedom, return_inverse=True)
    radius = special.stdtrit(np.maximum(values, 1), 1 - alpha / 2)[where]
    bound: FloatArray = -mean + radius * np.sqrt(variance)
    return bound


def _make(context: SamplerContext) -> BaseSampler:
    return ForestSampler(context)


KIND = SamplerKind(
    name="forest",
    summary="MLOS's: a random forest and its confidence bound; fast, for spaces of any kind",
    settings=(
        Setting(
            "trees", 10, "trees of the forest", "a whole number from 1 to 256", whole_number(1, 256)
        ),
        Setting(
            "alpha",
            0.1,
            "one minus the confidence of the bound: smaller explores more",
            "a number above 0, at most 1",
            real_number(0, 1, low_excluded=True),
        ),
        Setting(
            "random_share",
            0.1,
            "share of later trials that are drawn at random",
            "a number from 0 to 1",
            real_number(0, 1),
        ),
        Setting(
            "startup_trials",
            10,
            "trials drawn at random before the forest guides",
            "a whole number from 1 to 100000",
            whole_number(1, 100_000),
        ),
        Setting(
            "min_leaf",
            3,
            "trials in the smallest leaf",
            "a whole number from 1 to 32",
            whole_number(1, 32),
        ),
        Setting(
            "rows_max",
            1000,
            "trials that one tree is fitted on, drawn anew for each",
            "a whole number from 10 to 100000",
            whole_number(10, 100_000),
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
