"""A random forest that says how sure it is: mean, variance of the mean, degrees of freedom.

The forest of MLOS in 2020 (microsoft/MLOS, `HomogeneousRandomForestRegressionModel.py` and
`DecisionTreeRegressionModel.py`): each tree's leaf says the mean of its observations and, as the
variance of that mean, their sample variance over their number; the forest pools the trees by the
law of total variance (Hutter, Xu, Hoos and Leyton-Brown 2012, arXiv:1211.0906, section 4.3.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lsmtune.samplers.column import FloatArray

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeRegressor

# MLOS adds it to the pooled variance, which rounding could make negative.
SMALLEST_VARIANCE = 1e-7


@dataclass(frozen=True)
class _Tree:
    """A fitted tree and, per node, mean, variance of the mean and number of observations."""

    regressor: DecisionTreeRegressor
    mean: FloatArray
    variance: FloatArray
    count: FloatArray


@dataclass(frozen=True)
class Forest:
    """Fitted trees."""

    trees: Sequence[_Tree]

    def predict(self, features: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, variance of the mean and degrees of freedom, each (n,), of `features` (n, d)."""
        rows = features.astype(np.float32)
        means, variances, counts = [], [], []
        for tree in self.trees:
            leaves = tree.regressor.tree_.apply(rows)
            means.append(tree.mean[leaves])
            variances.append(tree.variance[leaves])
            counts.append(tree.count[leaves])
        mean = np.mean(means, axis=0)
        pooled = np.mean(variances, axis=0) + np.var(means, axis=0) + SMALLEST_VARIANCE
        return mean, pooled, np.sum(counts, axis=0) - len(self.trees)


def fit_forest(
    features: FloatArray,
    targets: FloatArray,
    rng: np.random.Generator,
    *,
    trees: int,
    min_leaf: int,
    rows_max: int,
    runs: FloatArray | None = None,
) -> Forest:
    """A forest of `trees` trees on `features` (n, d) and `targets` (n,), means of `runs` (n,) or 1.

    Each tree is fitted on a bootstrap sample: `min(n, rows_max)` rows drawn with replacement. A
    target that is the mean of three runs is drawn three times as often as that of one: so it would
    be if each run had a row, but for the noise that the mean is rid of.
    Beyond `rows_max` rows no tree takes longer to fit, and the trees together still see most of
    them; Breiman's bagging works with fewer draws than rows (Bickel, Goetze and van Zwet 1997).
    """
    rows = features.astype(np.float32)
    drawn = min(len(rows), rows_max)
    chances = None if runs is None or (runs == runs[0]).all() else runs / runs.sum()
    fitted = []
    for seed in rng.integers(2**31 - 1, size=trees):
        sample = (
            rng.integers(len(rows), size=drawn)
            if chances is None
            else rng.choice(len(rows), size=drawn, p=chances)
        )
        fitted.append(_fit_tree(rows[sample], targets[sample], int(seed), min_leaf))
    return Forest(fitted)


def _fit_tree(rows: np.ndarray, targets: FloatArray, seed: int, min_leaf: int) -> _Tree:
    # The library is loaded when it is used: commands that search nothing do not wait for it.
    from sklearn.tree import DecisionTreeRegressor

    # A random threshold per feature, the best of those taken (Geurts, Ernst and Wehenkel 2006):
    # four times faster than every threshold at 1,000 rows of 30 features, and smoother.
    regressor = DecisionTreeRegressor(
        splitter="random", min_samples_leaf=min_leaf, random_state=seed
    ).fit(rows, targets)
    nodes = regressor.tree_
    count = nodes.n_node_samples.astype(np.float64)
    # `impurity` is the variance over the number; a sample variance is over the number less one.
    sample_variance = nodes.impurity * count / np.maximum(count - 1, 1)
    return _Tree(regressor, nodes.value[:, 0, 0], sample_variance / count, count)
