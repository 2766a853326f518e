"""The Gaussian process, its expected improvement, and what it is fitted on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.trial import TrialState
from scipy import integrate
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from lsmtune.search.gp import (
    WORST,
    GaussianProcess,
    Kernel,
    best_and_latest,
    fit_process,
    log_expected_improvement,
    log_likelihood,
    standardised,
)
from lsmtune.testing.search import NUMBERS, make_searcher, score


@given(mean=st.floats(-5, 5), deviation=st.floats(1e-2, 10), z=st.floats(-1e6, 6))
def test_the_logarithm_of_the_improvement_is_right_far_out_too(
    mean: float, deviation: float, z: float
) -> None:
    best = mean + deviation * z
    z = (best - mean) / deviation
    # E[max(z - x, 0)] is phi(z) times the integral of t exp(z t - t^2 / 2); u = t max(1, -z) has
    # the integrand's width of the order of one wherever z is.
    width = max(1.0, -z)
    integral, _ = integrate.quad(
        lambda u: u * math.exp(z * u / width - (u / width) ** 2 / 2), 0, 60, limit=200
    )
    expected = -(z**2) / 2 - math.log(2 * math.pi) / 2 + math.log(integral / width**2)
    found = log_expected_improvement(np.array([mean]), np.array([deviation]), best)[0]
    assert found == pytest.approx(math.log(deviation) + expected, rel=1e-6, abs=1e-6)


def test_it_falls_without_a_jump_from_one_formula_to_the_next() -> None:
    z = -np.geomspace(0.5, 1e7, 4000)
    found = log_expected_improvement(-z, np.ones_like(z), 0.0)
    assert (np.diff(found) < 0).all()
    asymptote = -(z**2) / 2 - math.log(2 * math.pi) / 2 - 2 * np.log(-z)
    np.testing.assert_allclose(found[z < -50], asymptote[z < -50], rtol=1e-3)


def test_it_interpolates_and_knows_the_noise() -> None:
    rng = np.random.default_rng(0)
    features = rng.random((80, 4))
    truth = np.sin(5 * features[:, 0]) + features[:, 1]
    truth = (truth - truth.mean()) / truth.std()
    process = fit_process(features, truth + 0.1 * rng.normal(size=80))
    mean, deviation = process(features)
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.1
    far, unsure = process(np.full((1, 4), 3.0))
    assert unsure[0] > 3 * deviation.mean()
    assert np.isfinite(far).all()


@pytest.mark.parametrize("seed", range(5))
def test_likelihood_gradient_and_prediction_are_those_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features, targets, variances = rng.random((40, 6)), rng.normal(size=40), rng.random(40) / 10
    theta = rng.normal(size=8)
    kernel = ConstantKernel() * Matern(np.ones(6), nu=2.5) + WhiteKernel()
    theirs = GaussianProcessRegressor(kernel.clone_with_theta(theta), alpha=variances)
    theirs.optimizer = None
    theirs.fit(features, targets)
    likelihood, gradient = log_likelihood(theta, features, targets, variances)
    expected, expected_gradient = theirs.log_marginal_likelihood(theta, eval_gradient=True)
    assert likelihood == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-6, atol=1e-8)
    process, new = GaussianProcess(Kernel.of(theta), features), rng.random((20, 6))
    output = process.output(np.arange(40), targets, variances, offset=0.0)
    mean, deviation = output.predict(process.cross(new))
    expected_mean, noisy = theirs.predict(new, return_std=True)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(deviation**2 + np.exp(theta[-1]), noisy**2, rtol=1e-6)


def test_a_value_that_is_known_to_be_noisy_is_believed_less() -> None:
    features = np.linspace(0.0, 1.0, 12)[:, None]
    targets = np.zeros(12)
    targets[6] = 2.0
    variances = np.zeros(12)
    variances[6] = 4.0
    sure, _ = fit_process(features, targets)(features[6:7])
    unsure, deviation = fit_process(features, targets, variances)(features[6:7])
    assert unsure[0] < sure[0] / 2
    assert deviation[0] > 0
    same, _ = fit_process(features, targets, np.zeros(12))(features[6:7])
    assert same[0] == sure[0]


def test_failures_set_neither_the_scale_nor_the_worst() -> None:
    good = np.linspace(-1, 1, 21)
    alone = standardised(good)
    among = standardised(np.concatenate([good, [50.0, 1e6]]))
    assert among.max() == WORST
    assert np.ptp(among[:11]) == pytest.approx(np.ptp(alone[:11]), rel=0.3)
    assert standardised(np.zeros(4)).tolist() == [0, 0, 0, 0]


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=60), st.integers(1, 60))
def test_the_best_and_the_latest_are_kept(targets: list[float], count: int) -> None:
    kept = best_and_latest(np.array(targets), count)
    assert len(kept) == len(set(kept.tolist())) == min(count, len(targets))
    assert targets[kept[0]] == min(targets)
    if count >= 2:
        assert len(targets) - 1 in kept


def test_a_long_history_is_cut_to_what_it_is_fitted_on() -> None:
    searcher = make_searcher(
        "gp", NUMBERS, given={"points_max": 12, "startup_trials": 30, "candidates": 50}
    )
    for _ in range(33):
        proposal = searcher.ask()
        searcher.tell(proposal.number, TrialState.COMPLETE, [score(proposal.values)])
    assert NUMBERS.contains(searcher.ask().values)
