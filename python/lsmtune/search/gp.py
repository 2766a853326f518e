"""`gp`: a Gaussian process for noisy values, and the logarithm of its expected improvement.

The improvement is counted from the best *predicted* value of a tried configuration, not from the
best measured one, which noise made look better than it is; how noisy each value is, where that is
known, goes into the process. The process is fitted on at most `points_max` trials, half the best
and half the most recent ones, its length scales on fewer: its time grows with the third power of
their number, and what decides the next trial is the neighbourhood of the best and what is new.

Kernel: constant x Matern 5/2 with one length scale per feature, plus white noise. It is computed
here and not by scikit-learn, which gives the same (a test compares them), but brings 37 MB; a fit
on 300 rows of 30 features took 0.56 s there and takes 0.07 s here. The length scales are found by
maximum a posteriori, not maximum likelihood: with few points in 30 dimensions the likelihood alone
overfits. Priors (Hvarfner, Hellsten and Nardi 2024, "Vanilla Bayesian Optimization Performs Great
in High Dimensions", arXiv:2402.02229, and BoTorch's defaults after it):

- length scale: lognormal(sqrt(2) + log(d) / 2, sqrt(3)) in d dimensions;
- noise variance of standardised targets: lognormal(-4, 1);
- signal variance of standardised targets: lognormal(0, 1), to keep it finite (ours).

As in those, the mode is that of the density over the value itself, which for lognormal(m, s) is
exp(m - s^2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy
from threadpoolctl import threadpool_limits

from lsmtune.model.setting import Setting, whole
from lsmtune.search.history import History, impute_censored
from lsmtune.search.model_based import (
    ModelSampler,
    candidates_setting,
    random_share_setting,
    startup_setting,
)
from lsmtune.search.sampler import SamplerKind
from lsmtune.search.unit_space import FloatArray

STARTS = 10
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


class GaussianProcessSampler(ModelSampler):
    """See the module."""

    near, rounds = 400, 4

    def rank(self, history: History) -> FloatArray:
        """New points, the highest expected improvement first."""
        points, targets, variances, _ = history.with_running()
        # One thread: sums come out the same in every session, and the threads of linear algebra,
        # which gain nothing on matrices of this size, do not wait for each other on a busy machine.
        with threadpool_limits(1):
            if 1 < np.sum(~history.censored) < len(history):
                self._impute(history, targets)
            kept = best_and_latest(targets, self.settings["points_max"])
            features = self.unit_space.distance_features(points[kept])
            variances = variances[kept] / spread_of(targets[kept]) ** 2
            process = fit_process(features, standardised(targets[kept]), variances)
            mean, _ = process(features)
            order = np.argsort(mean, kind="stable")

            def score(new: FloatArray) -> FloatArray:
                predicted = process(self.unit_space.distance_features(new))
                return log_expected_improvement(*predicted, float(mean[order[0]]))

            best = points[kept][order[:STARTS]]
            return self.best_new(history.tried(), score, best)

    def _impute(self, history: History, targets: FloatArray) -> None:
        """Replace censored `targets` by what a process of the other trials expects."""
        sure, cut_off = np.flatnonzero(~history.censored), np.flatnonzero(history.censored)
        kept = sure[best_and_latest(targets[sure], FITTED_ON_MAX)]
        known = targets[kept]
        spread, middle = spread_of(known), float(np.median(known))
        features = self.unit_space.distance_features(history.points)
        variances = history.variances[kept] / spread**2
        process = fit_process(features[kept], standardised(known), variances)
        mean, deviation = process(features[cut_off])
        mean, deviation = middle + spread * mean, spread * deviation
        targets[cut_off] = impute_censored(targets[cut_off], mean, deviation, float(known.max()))


def best_and_latest(targets: FloatArray, count: int) -> npt.NDArray[np.intp]:
    """Which of `targets` (n,) to keep: at most `count`, the best and the latest in turn."""
    best = np.argsort(targets, kind="stable")
    latest = np.arange(len(targets))[::-1]
    in_turn = np.column_stack([best, latest]).ravel()
    _, first = np.unique(in_turn, return_index=True)
    return in_turn[np.sort(first)[:count]]


# --- the process


@dataclass(frozen=True)
class Kernel:
    """The covariance of noiseless values, and the variance of the white noise on top of it."""

    signal: float
    scales: FloatArray
    noise: float

    @classmethod
    def of(cls, theta: FloatArray) -> Kernel:
        """From the logarithms of signal variance, length scales and noise variance: (d + 2,)."""
        values = np.exp(theta)
        return cls(float(values[0]), values[1:-1], float(values[-1]))

    def distances(self, one: FloatArray, other: FloatArray) -> FloatArray:
        """The distances of (n, d) and (m, d) features in length scales, times the root of 5."""
        far: FloatArray = scipy.spatial.distance.cdist(one / self.scales, other / self.scales)
        return math.sqrt(5) * far

    def __call__(self, one: FloatArray, other: FloatArray) -> FloatArray:
        """The covariances of (n, d) and (m, d) features, shape (n, m)."""
        far = self.distances(one, other)
        return self.signal * (1 + far + far**2 / 3) * np.exp(-far)


class GaussianProcess:
    """A kernel on rows of `features` (n, f), for one output or for several."""

    def __init__(self, kernel: Kernel, features: FloatArray) -> None:
        self._kernel = kernel
        self._features = features
        self.inner = kernel(features, features)
        self._prior = float(self.inner[0, 0])

    def cross(self, features: FloatArray) -> FloatArray:
        """Covariances of new rows (m, f) with the known ones: (m, n)."""
        return self._kernel(features, self._features)

    def output(
        self,
        rows: npt.NDArray[np.intp],
        values: FloatArray,
        variances: FloatArray | None = None,
        offset: float | None = None,
    ) -> Output:
        """An output of which `values` are known at `rows`, with these `variances` or none.

        Far from all rows it is expected to be `offset`, None for the mean of the values.
        """
        noise = JITTER + self._kernel.noise + (0.0 if variances is None else variances)
        matrix = self.inner[np.ix_(rows, rows)] + np.diag(np.broadcast_to(noise, len(rows)))
        factor = scipy.linalg.cholesky(matrix, lower=True)
        mean = float(np.mean(values)) if offset is None else offset
        weights = scipy.linalg.cho_solve((factor, True), values - mean)
        return Output(rows, factor, weights, mean, self._prior)


@dataclass(frozen=True)
class Output:
    """The posterior of one output: its rows, the factor of their covariance, and weights.

    Where nothing is known it has the mean `offset` and the variance `prior`.
    """

    rows: npt.NDArray[np.intp]
    factor: FloatArray
    weights: FloatArray
    offset: float
    prior: float

    def mean(self, cross: FloatArray) -> FloatArray:
        """Expected values (m,) for covariances `cross` (m, n)."""
        expected: FloatArray = self.offset + cross[:, self.rows] @ self.weights
        return expected

    def predict(self, cross: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation, each (m,), for covariances `cross` (m, n)."""
        half = scipy.linalg.solve_triangular(self.factor, cross[:, self.rows].T, lower=True)
        variance = np.maximum(self.prior - np.sum(half**2, axis=0), 1e-12)
        return self.mean(cross), np.sqrt(variance)


def standardised(targets: FloatArray) -> FloatArray:
    """Targets (n,) with median 0 and a spread of 1, none worse than `WORST`.

    The spread is the standard deviation that the better half would have in a normal distribution:
    failures and very slow configurations, of which a search meets many, neither set the scale nor
    stand so far off that the process must bend to reach them.
    """
    return (capped(targets) - np.median(targets)) / spread_of(targets)


def capped(targets: FloatArray) -> FloatArray:
    """Targets (n,), none more than `WORST` spreads above their median."""
    return np.minimum(targets, np.median(targets) + WORST * spread_of(targets))


def spread_of(targets: FloatArray) -> float:
    """What `standardised` divides by; 1 where there is no spread."""
    median = np.median(targets)
    better = targets[targets <= median] - median
    return math.sqrt(float(np.mean(better**2))) or 1.0


def fit_process(
    features: FloatArray, targets: FloatArray, variances: FloatArray | None = None
) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
    """What is expected after standardised `targets` (n,) at `features` (n, d).

    At new features (m, d) it returns mean and standard deviation of the noiseless value, each (m,).
    """
    process = GaussianProcess(fit_kernel(features, targets, FITTED_ON_MAX, variances), features)
    output = process.output(np.arange(len(targets)), targets, variances, offset=0.0)
    return lambda new: output.predict(process.cross(new))


def fit_kernel(
    features: FloatArray,
    targets: FloatArray,
    fitted_on: int,
    variances: FloatArray | None = None,
) -> Kernel:
    """The kernel for the first `fitted_on` of `features` (n, d) and standardised `targets` (n,).

    Its white noise comes on top of the `variances` (n,), None for 0: what is not known of them, and
    what the process cannot follow.
    """
    variances = JITTER + (np.zeros(len(targets)) if variances is None else variances)
    dimensions = features.shape[1]
    # The logarithms of signal variance, length scales and noise variance, as in `theta` below.
    length_scale = math.sqrt(2) + math.log(dimensions) / 2
    means = np.array([0.0, *[length_scale] * dimensions, -4.0])
    spreads = np.array([1.0, *[3.0] * dimensions, 1.0])
    # In terms of its logarithm t, the density of lognormal(m, s) over the value is
    # exp(-(t - m)^2 / 2 s^2 - t), a normal around m - s^2.
    modes = means - spreads

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        few = slice(fitted_on)
        value, gradient = log_likelihood(theta, features[few], targets[few], variances[few])
        off = theta - modes
        return float(np.sum(off**2 / spreads)) / 2 - value, off / spreads - gradient

    bounds = np.log([SIGNAL_BOUNDS, *[LENGTH_SCALE_BOUNDS] * dimensions, NOISE_BOUNDS])
    fitted = scipy.optimize.minimize(
        loss, modes, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": STEPS_MAX}
    )
    return Kernel.of(fitted.x)


def log_likelihood(
    theta: FloatArray, features: FloatArray, targets: FloatArray, variances: FloatArray
) -> tuple[float, FloatArray]:
    """The logarithm of the marginal likelihood at `theta` (see `Kernel.of`), and its gradient.

    Rasmussen and Williams 2006, "Gaussian Processes for Machine Learning", equations 5.8 and 5.9.
    """
    kernel = Kernel.of(theta)
    far = kernel.distances(features, features)
    decay = kernel.signal * np.exp(-far)
    inner = decay * (1 + far + far**2 / 3)
    factor = scipy.linalg.cholesky(inner + np.diag(kernel.noise + variances), lower=True)
    weights = scipy.linalg.cho_solve((factor, True), targets)
    value = targets @ weights / 2 + np.log(np.diag(factor)).sum()
    value += len(targets) * math.log(2 * math.pi) / 2
    # The derivative by each covariance, twice; then by the logarithm of each parameter.
    by_each = np.outer(weights, weights)
    by_each -= scipy.linalg.cho_solve((factor, True), np.eye(len(targets)))
    # By that of a length scale, a covariance has the derivative decay (1 + far) 5/3 (a - b)^2.
    # The sum of s (a - b)^2 over all pairs, for a symmetric s, needs no array of pairs x features.
    scaled = features / kernel.scales
    slopes = by_each * decay * (1 + far) * (5 / 3)
    by_scales = 2 * (slopes.sum(axis=0) @ scaled**2 - ((slopes @ scaled) * scaled).sum(axis=0))
    by_noise = kernel.noise * np.trace(by_each)
    return -float(value), np.array([np.sum(by_each * inner), *by_scales, by_noise]) / 2


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
    # Beyond -1e4 the ratio is 1 - 1/z^2 to within double precision, and 1 - ratio loses digits.
    tail = np.where(far > -1e4, np.log1p(-np.minimum(ratio, 1 - 1e-16)), -2 * np.log(np.abs(far)))
    lower = log_density + tail
    return np.log(deviation) + np.where(z > -1.0, upper, lower)


KIND = SamplerKind(
    name="gp",
    summary="Gaussian process with expected improvement; for few, expensive trials",
    settings=(
        startup_setting("process"),
        random_share_setting(0.0),
        Setting(
            "points_max",
            "trials that the process is fitted on: half the best, half the latest",
            300,
            whole(10, 5_000),
        ),
        candidates_setting(),
    ),
    several_objectives=False,
    make=GaussianProcessSampler,
)
