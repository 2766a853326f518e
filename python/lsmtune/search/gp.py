"""`gp`: a Gaussian process for noisy values, and the logarithm of its expected improvement.

The improvement is counted from the best *predicted* value of a tried configuration, not from the
best measured one, which noise made look better than it is; how noisy each value is, where that is
known, goes into the process. The process is fitted on at most `points_max` trials, half the best
and half the most recent ones, its length scales on fewer: its time grows with the third power of
their number, and what decides the next trial is the neighbourhood of the best and what is new.

Kernel: constant x Matern 5/2 with one length scale per feature, plus white noise, on scikit-learn's
regressor. The length scales are found by maximum a posteriori, not maximum likelihood: with few
points in 30 dimensions the likelihood alone overfits. Priors (Hvarfner, Hellsten and Nardi 2024,
"Vanilla Bayesian Optimization Performs Great in High Dimensions", arXiv:2402.02229, and BoTorch's
defaults after it):

- length scale: lognormal(sqrt(2) + log(d) / 2, sqrt(3)) in d dimensions;
- noise variance of standardised targets: lognormal(-4, 1);
- signal variance of standardised targets: lognormal(0, 1), to keep it finite (ours).

As in those, the mode is that of the density over the value itself, which for lognormal(m, s) is
exp(m - s^2).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import scipy
from threadpoolctl import threadpool_limits

from lsmtune.model.setting import whole_setting
from lsmtune.search.model_based import (
    CANDIDATES,
    History,
    ModelSampler,
    impute_censored,
    random_share_setting,
    ranked,
    startup_setting,
)
from lsmtune.search.sampler import SamplerContext, SamplerKind
from lsmtune.search.unit_space import FloatArray

if TYPE_CHECKING:
    from sklearn.gaussian_process import GaussianProcessRegressor

STARTS = 10
NEIGHBOURS = 400
ROUNDS = 4
# The length scales are found on at most this many trials.
FITTED_ON_MAX = 150

LENGTH_SCALE_BOUNDS = (1e-2, 1e3)
SIGNAL_BOUNDS = (1e-2, 1e2)
NOISE_BOUNDS = (1e-6, 1.0)
JITTER = 1e-8  # keeps the matrix of nearly equal points positive definite
# A step of the optimizer costs n^2 d; twenty come close to the optimum from the prior's mode.
STEPS_MAX = 20

# Failures and very slow configurations count as this many spreads worse than the median.
WORST = 2.0

Objective = Callable[..., tuple[float, FloatArray]]


class GaussianProcessSampler(ModelSampler):
    """See the module."""

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context)
        self._points_max = context.get.whole("points_max")

    def rank(self, history: History, rng: np.random.Generator) -> FloatArray:
        """New points, the highest expected improvement first."""
        points, targets = history.with_running()
        sure = np.flatnonzero(~history.censored)
        if history.censored.any() and len(sure) > 1:
            targets = self._imputed(history, targets)
        kept = best_and_latest(targets, self._points_max)
        features = self.unit_space.distance_features(points[kept])
        variances = history.noise_with_running()[0][kept] / spread_of(targets[kept]) ** 2
        # One thread: sums come out the same in every session, and the threads of linear algebra,
        # which gain nothing on matrices of this size, do not wait for each other on a busy machine.
        with threadpool_limits(1):
            process = fit_process(features, standardised(targets[kept]), FITTED_ON_MAX, variances)
            mean, _ = process.predict(features)
            order = np.argsort(mean, kind="stable")

            def score(new: FloatArray) -> FloatArray:
                predicted = process.predict(self.unit_space.distance_features(new))
                return log_expected_improvement(*predicted, float(mean[order[0]]))

            return ranked(
                self.unit_space,
                rng,
                score,
                points[kept][order[:STARTS]],
                history.known(),
                drawn=self._candidates,
                near=NEIGHBOURS,
                rounds=ROUNDS,
            )

    def _imputed(self, history: History, targets: FloatArray) -> FloatArray:
        """`targets` with those expected by a process of the trials that are not censored."""
        sure = np.flatnonzero(~history.censored)
        kept = sure[best_and_latest(history.targets[sure], FITTED_ON_MAX)]
        known = history.targets[kept]
        spread, middle = spread_of(known), float(np.median(known))
        features = self.unit_space.distance_features(history.points)
        with threadpool_limits(1):
            process = fit_process(
                features[kept],
                standardised(known),
                FITTED_ON_MAX,
                history.variances[kept] / spread**2,
            )
            mean, deviation = process.predict(features[history.censored])
        imputed = targets.copy()
        imputed[: len(history)][history.censored] = impute_censored(
            history.targets[history.censored],
            middle + spread * mean,
            spread * deviation,
            float(known.max()),
        )
        return imputed


def best_and_latest(targets: FloatArray, count: int) -> npt.NDArray[np.intp]:
    """Which of `targets` (n,) to keep: at most `count`, the best and the latest in turn."""
    best = np.argsort(targets, kind="stable")
    latest = np.arange(len(targets))[::-1]
    in_turn = np.column_stack([best, latest]).ravel()
    _, first = np.unique(in_turn, return_index=True)
    return in_turn[np.sort(first)[:count]]


# --- the process


class GaussianProcess:
    """Fitted to standardised targets; predictions are standardised too."""

    def __init__(self, regressor: GaussianProcessRegressor) -> None:
        self._regressor = regressor

    @property
    def kernel(self) -> Callable[..., FloatArray]:
        """The covariance of noiseless values: of (n, d) and (m, d) features, shape (n, m)."""
        kernel: Callable[..., FloatArray] = self._regressor.kernel_.k1
        return kernel

    @property
    def noise(self) -> float:
        """The variance of what is no function of the features."""
        return float(self._regressor.kernel_.k2.noise_level)

    def predict(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the noiseless value, each (n,), at `features` (n, d)."""
        mean, deviation = self._regressor.predict(features, return_std=True)
        noise = self._regressor.kernel_.k2.noise_level
        return mean, np.sqrt(np.maximum(deviation**2 - noise, 1e-12))


def standardised(targets: FloatArray) -> FloatArray:
    """Targets (n,) with median 0 and a spread of 1, none worse than `WORST`.

    The spread is the standard deviation that the better half would have in a normal distribution:
    failures and very slow configurations, of which a search meets many, neither set the scale nor
    stand so far off that the process must bend to reach them.
    """
    return np.minimum((targets - np.median(targets)) / spread_of(targets), WORST)


def spread_of(targets: FloatArray) -> float:
    """What `standardised` divides by; 1 where there is no spread."""
    median = np.median(targets)
    better = targets[targets <= median] - median
    return math.sqrt(float(np.mean(better**2))) or 1.0


def fit_process(
    features: FloatArray,
    targets: FloatArray,
    fitted_on: int,
    variances: FloatArray | None = None,
) -> GaussianProcess:
    """A process on `features` (n, d) and standardised `targets` (n,), of `variances` (n,) or 0.

    The kernel is found on the first `fitted_on` rows, the posterior uses all of them. The white
    noise of the kernel comes on top of the variances: what is not known of them, and what the
    process cannot follow.
    """
    # Loaded when it is used: commands that search nothing are not to wait for it.
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    alpha = JITTER + (np.zeros(len(targets)) if variances is None else variances)
    dimensions = features.shape[1]
    # The logarithms of signal variance, length scales and noise variance, as in `theta` below.
    length_scale = math.sqrt(2) + math.log(dimensions) / 2
    means = np.array([0.0, *[length_scale] * dimensions, -4.0])
    spreads = np.array([1.0, *[3.0] * dimensions, 1.0])
    # In terms of its logarithm t, the density of lognormal(m, s) over the value is
    # exp(-(t - m)^2 / 2 s^2 - t), a normal around m - s^2.
    modes = means - spreads

    def maximum_a_posteriori(
        objective: Objective, start: FloatArray, bounds: FloatArray
    ) -> tuple[FloatArray, float]:
        """An optimizer for scikit-learn: its `objective`, minus the log likelihood, plus priors."""

        def posterior(theta: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = objective(theta)
            off = theta - modes
            return value + float(np.sum(off**2 / spreads)) / 2, gradient + off / spreads

        options = {"maxiter": STEPS_MAX}
        result = scipy.optimize.minimize(
            posterior, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options
        )
        return result.x, float(result.fun)

    start = np.exp(modes)
    kernel = ConstantKernel(start[0], SIGNAL_BOUNDS) * Matern(
        start[1:-1], LENGTH_SCALE_BOUNDS, nu=2.5
    ) + WhiteKernel(start[-1], NOISE_BOUNDS)
    fitted = GaussianProcessRegressor(
        kernel, alpha=alpha[:fitted_on], optimizer=maximum_a_posteriori
    )
    with warnings.catch_warnings():
        # A scale at its bound is a variable without effect, not trouble.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted.fit(features[:fitted_on], targets[:fitted_on])
        fixed = GaussianProcessRegressor(fitted.kernel_, alpha=alpha, optimizer=None)
        return GaussianProcess(fixed.fit(features, targets))


def log_expected_improvement(mean: FloatArray, deviation: FloatArray, best: float) -> FloatArray:
    """The logarithm of the expected improvement below `best`; arrays (n,).

    Stable where the improvement itself underflows (Ament, Daulton, Eriksson, Balandat and Bakshy
    2023, "Unexpected Improvements to Expected Improvement", arXiv:2310.20708, equation 9).
    """
    z = (best - mean) / deviation
    log_density = -(z**2) / 2 - math.log(2 * math.pi) / 2
    near = np.maximum(z, -1.0)
    density = np.exp(-(near**2) / 2) / math.sqrt(2 * math.pi)
    upper = np.log(density + near * scipy.special.ndtr(near))
    far = np.minimum(z, -1.0)
    # erfcx(-z/sqrt(2)) * sqrt(pi/2) is Phi(z) / phi(z).
    ratio = np.abs(far) * scipy.special.erfcx(-far / math.sqrt(2)) * math.sqrt(math.pi / 2)
    # Beyond -1e6 the ratio is 1 - 1/z^2 to within double precision, and 1 - ratio loses all digits.
    tail = np.where(far > -1e4, np.log1p(-np.minimum(ratio, 1 - 1e-16)), -2 * np.log(np.abs(far)))
    lower = log_density + tail
    return np.log(deviation) + np.where(z > -1.0, upper, lower)


KIND = SamplerKind(
    name="gp",
    summary="Gaussian process with expected improvement; for few, expensive trials",
    settings=(
        startup_setting("process"),
        random_share_setting(0.0),
        whole_setting(
            "points_max",
            300,
            "trials that the process is fitted on: half the best, half the latest",
            10,
            5_000,
        ),
        CANDIDATES,
    ),
    several_objectives=False,
    make=GaussianProcessSampler,
)
