"""`forest`: the sampler of MLOS, a random forest that says how sure it is, with a confidence bound.

After microsoft/MLOS as of 2020 (`source/Mlos.Python/mlos/Optimizers`). From there:

| what | value | file |
|---|---|---|
| trees | 10 | `HomogeneousRandomForestConfigStore.py` |
| smallest leaf | 3 | `DecisionTreeConfigStore.py` |
| trials before guidance | 10 | `BayesianOptimizerConfigStore.py` |
| score: mean + t(1 - alpha/2, freedom) * sd of the mean | | `ConfidenceBoundUtilityFunction.py` |
| random candidates | 1000 | `RandomSearchOptimizer.py` |
| alpha 0.1 and 10 % random suggestions (defaults there: 0.01 and 50 %) | | the lab's settings |

The forest is that of its `HomogeneousRandomForestRegressionModel.py` and
`DecisionTreeRegressionModel.py`: each tree's leaf says the mean of its observations and, as the
variance of that mean, their sample variance over their number; the forest pools the trees by the
law of total variance (Hutter, Xu, Hoos and Leyton-Brown 2012, arXiv:1211.0906, section 4.3.2).

Not from there: candidates are also taken near the best trials and near the best candidates; trees
split at random thresholds, are fitted anew for every trial, and on at most `rows_max` of them,
which bounds the time of a suggestion; failed and pruned trials count (`search.history`), and a
trial that was repeated counts as often as it was run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy

from lsmtune.model.setting import Setting, above, whole
from lsmtune.search.history import History, impute_censored
from lsmtune.search.model_based import (
    ModelSampler,
    candidates_setting,
    random_share_setting,
    startup_setting,
)
from lsmtune.search.sampler import SamplerKind
from lsmtune.search.unit_space import FloatArray

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeRegressor

# MLOS adds it to the pooled variance, which rounding could make negative.
SMALLEST_VARIANCE = 1e-7


@dataclass(frozen=True)
class Forest:
    """Fitted trees."""

    trees: Sequence[DecisionTreeRegressor]

    def predict(self, features: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, variance of the mean and degrees of freedom, each (n,), of `features` (n, d)."""
        rows = features.astype(np.float32)
        means, variances, counts = [], [], []
        for regressor in self.trees:
            nodes = regressor.tree_
            leaves = nodes.apply(rows)
            count = nodes.n_node_samples[leaves].astype(np.float64)
            # `impurity` is the variance over the number; a sample variance is over that less one.
            sample_variance = nodes.impurity[leaves] * count / np.maximum(count - 1, 1)
            means.append(nodes.value[leaves, 0, 0])
            variances.append(sample_variance / count)
            counts.append(count)
        mean = np.mean(means, axis=0)
        pooled = np.mean(variances, axis=0) + np.var(means, axis=0) + SMALLEST_VARIANCE
        return mean, pooled, np.sum(counts, axis=0) - len(self.trees)


def fit_forest(
    features: FloatArray,
    targets: FloatArray,
    runs: FloatArray,
    rng: np.random.Generator,
    settings: Mapping[str, Any],
) -> Forest:
    """A forest on `features` (n, d) and `targets` (n,), each the mean of so many `runs` (n,).

    Each tree is fitted on a bootstrap sample: `min(n, rows_max)` rows drawn with replacement, which
    bagging works with, too (Bickel, Goetze and van Zwet 1997). A target that is the mean of three
    runs is drawn three times as often as that of one, as if each run had a row.
    """
    # The library is loaded when it is used: commands that search nothing do not wait for it.
    from sklearn.tree import DecisionTreeRegressor

    rows = features.astype(np.float32)
    drawn = min(len(rows), settings["rows_max"])
    chances = None if (runs == runs[0]).all() else runs / runs.sum()
    fitted = []
    for seed in rng.integers(2**31 - 1, size=settings["trees"]):
        if chances is None:
            sample = rng.integers(len(rows), size=drawn)
        else:
            sample = rng.choice(len(rows), size=drawn, p=chances)
        # A random threshold per feature, the best of those taken (Geurts, Ernst and Wehenkel 2006):
        # four times faster than every threshold at 1,000 rows of 30 features, and smoother.
        tree = DecisionTreeRegressor(
            splitter="random", min_samples_leaf=settings["min_leaf"], random_state=int(seed)
        )
        fitted.append(tree.fit(rows[sample], targets[sample]))
    return Forest(fitted)


# --- the sampler

STARTS = 10  # of the best trials neighbours are scored, too


class ForestSampler(ModelSampler):
    """See the module."""

    near, rounds = 500, 3

    def rank(self, history: History) -> FloatArray:
        """New points, the highest confidence bound on the improvement first."""
        points, targets, _, runs = history.with_running()
        features = self.unit_space.tree_features(points)

        def fitted(rows: npt.NDArray[np.intp]) -> Forest:
            return fit_forest(features[rows], targets[rows], runs[rows], self.rng, self.settings)

        sure = np.flatnonzero(~history.censored)
        if 1 < len(sure) < len(history):
            cut_off = np.flatnonzero(history.censored)
            mean, variance, _ = fitted(sure).predict(features[cut_off])
            worst = float(targets[sure].max())
            targets[cut_off] = impute_censored(targets[cut_off], mean, np.sqrt(variance), worst)
        forest = fitted(np.arange(len(points)))
        best = history.points[np.argsort(history.targets, kind="stable")[:STARTS]]

        def score(new: FloatArray) -> FloatArray:
            return upper_bound(forest, self.unit_space.tree_features(new), self.settings["alpha"])

        return self.best_new(history.tried(), score, best)


def upper_bound(forest: Forest, features: FloatArray, alpha: float) -> FloatArray:
    """The upper end of the confidence interval of the (negated) target's mean; shape (n,)."""
    mean, variance, freedom = forest.predict(features)
    values, where = np.unique(freedom, return_inverse=True)
    radius = scipy.special.stdtrit(np.maximum(values, 1), 1 - alpha / 2)[where]
    bound: FloatArray = -mean + radius * np.sqrt(variance)
    return bound


KIND = SamplerKind(
    name="forest",
    summary="MLOS's: a random forest and its confidence bound; fast, for spaces of any kind",
    settings=(
        Setting("trees", "trees of the forest", 10, whole(1, 256)),
        Setting(
            "alpha",
            "one minus the confidence of the bound: smaller explores more",
            0.1,
            above(0, 1),
        ),
        random_share_setting(0.1),
        startup_setting("forest"),
        Setting("min_leaf", "trials in the smallest leaf", 3, whole(1, 32)),
        Setting(
            "rows_max",
            "trials that one tree is fitted on, drawn anew for each",
            1000,
            whole(10, 100_000),
        ),
        candidates_setting(),
    ),
    several_objectives=False,
    make=ForestSampler,
    package="scikit-learn",
)
