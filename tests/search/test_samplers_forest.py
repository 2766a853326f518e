"""The forest: what it predicts, how sure it is, and what that costs."""

from __future__ import annotations

import numpy as np
import pytest
from optuna.trial import TrialState
from sklearn.tree import DecisionTreeRegressor

from lsmtune.search.forest import SMALLEST_VARIANCE, Forest, fit_forest, upper_bound
from lsmtune.testing.search import RICH, asked, choice, make_searcher, number, space_of


def data(count: int, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    features = rng.random((count, 5))
    return features, 3 * features[:, 0] + noise * rng.normal(size=count)


def fitted(count: int, trees: int = 10, rows_max: int = 1000) -> Forest:
    features, targets = data(count)
    rng = np.random.default_rng(1)
    settings = {"trees": trees, "min_leaf": 3, "rows_max": rows_max}
    return fit_forest(features, targets, np.ones(count), rng, settings)


def test_it_predicts_what_it_was_shown() -> None:
    features, _ = data(400)
    mean, variance, freedom = fitted(400).predict(features)
    truth = 3 * features[:, 0]
    assert np.corrcoef(mean, truth)[0, 1] > 0.97
    assert (variance > 0).all()
    assert (freedom >= 10 * 2).all()


def test_one_tree_says_the_mean_of_its_leaf_and_the_variance_of_that_mean() -> None:
    features, targets = data(60)
    forest = fitted(60, trees=1)
    tree: DecisionTreeRegressor = forest.trees[0]
    rng = np.random.default_rng(1)
    rng.integers(2**31 - 1, size=1)
    sample = rng.integers(60, size=60)
    leaf = tree.apply(features.astype(np.float32))[0]
    inside = targets[sample][tree.apply(features[sample].astype(np.float32)) == leaf]
    mean, variance, freedom = forest.predict(features[:1])
    assert mean[0] == pytest.approx(inside.mean())
    assert variance[0] == pytest.approx(inside.var(ddof=1) / len(inside) + SMALLEST_VARIANCE)
    assert freedom[0] == len(inside) - 1


def test_the_mean_of_many_runs_counts_for_more_than_one_run() -> None:
    # At each place one row says 0 and another says 1.
    features = np.repeat(np.linspace(0.0, 1.0, 20), 2)[:, None]
    targets = np.tile([0.0, 1.0], 20)

    def mean(runs: np.ndarray) -> float:
        settings = {"trees": 20, "min_leaf": 3, "rows_max": 99}
        forest = fit_forest(features, targets, runs, np.random.default_rng(3), settings)
        return float(forest.predict(features)[0].mean())

    assert mean(np.ones(40)) == mean(np.full(40, 2.0)) == pytest.approx(0.5, abs=0.1)
    assert mean(np.tile([1.0, 5.0], 20)) > 0.75


def test_a_smaller_alpha_reaches_higher() -> None:
    forest, (features, _) = fitted(200), data(200)
    cautious, bold = (upper_bound(forest, features, alpha) for alpha in (0.5, 0.01))
    assert (bold > cautious).all()
    # With alpha 1 the bound is the mean itself.
    np.testing.assert_allclose(upper_bound(forest, features, 1.0), -forest.predict(features)[0])


def test_no_tree_is_fitted_on_more_rows_than_allowed() -> None:
    forest = fitted(500, rows_max=50)
    assert {tree.tree_.n_node_samples[0] for tree in forest.trees} == {50}


def test_a_share_of_one_is_a_random_search() -> None:
    space = space_of(number("x", 0.0, 1.0, integer=False))
    settings = {"random_share": 1.0, "startup_trials": 1}
    found = [c["x"] for c in asked(make_searcher("forest", space, given=settings), 200)]
    # Uniform: the mean of 200 draws is within four standard deviations of a half.
    assert abs(np.mean(found) - 0.5) < 4 * (1 / 12 / 200) ** 0.5


def test_before_it_guides_it_draws_at_random_whatever_the_values() -> None:
    settings = {"startup_trials": 12, "random_share": 0.0}
    one = make_searcher("forest", RICH, given=settings)
    other = make_searcher("forest", RICH, given=settings)
    for index in range(13):
        first, second = one.ask(), other.ask()
        assert (first.values == second.values) == (index < 12)
        one.tell(first.number, TrialState.COMPLETE, [float(index)])
        other.tell(second.number, TrialState.COMPLETE, [float(-index)])


def test_it_learns_which_choice_makes_a_number_matter() -> None:
    space = space_of(choice("style", "a", "b", "c"), number("x", 0, 1000))
    searcher = make_searcher("forest", space, given={"startup_trials": 10})
    late = []
    for index in range(60):
        proposal = searcher.ask()
        x = float(proposal.values["x"])
        value = 1000 - abs(x - 300) if proposal.values["style"] == "b" else 0.0
        searcher.tell(proposal.number, TrialState.COMPLETE, [value])
        if index >= 45:
            late.append(value)
    assert np.median(late) > 950
