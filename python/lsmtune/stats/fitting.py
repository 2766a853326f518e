"""How well a model fits what was counted, and models of sizes and of rates: pure functions.

Counts are weights over whole numbers; a distance of 0 is a perfect fit, one of 1 is none at all.

Sizes are whole numbers drawn as db_bench draws them: the ceiling of a value of the generalised
Pareto distribution, so that a size s stands for the interval from s - 1 to s. They are fitted by
maximum likelihood of the intervals, in which a mass that was moved to one size has its place too.
`key_hotness.py` fits the models of keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def shares(weights: ArrayLike) -> Array:
    """`weights` (n,) divided by their sum.

    Raises ValueError for another shape, a weight that is negative or not finite, and a sum of 0.
    """
    row = np.asarray(weights, dtype=np.float64)
    if row.ndim != 1 or not np.isfinite(row).all() or (row < 0).any():
        raise ValueError("weights must be one row of finite numbers of at least 0")
    total = float(row.sum())
    if total <= 0:
        raise ValueError("weights add up to nothing")
    return np.asarray(row / total)


def total_variation(one: ArrayLike, other: ArrayLike) -> float:
    """Half the sum of differences between two rows of weights over the same outcomes (n,).

    The largest difference that any event can have in probability. Raises ValueError as `shares`
    does, and for rows of another length.
    """
    first, second = shares(one), shares(other)
    if len(first) != len(second):
        raise ValueError(f"rows of {len(first)} and {len(second)} outcomes")
    return float(np.abs(first - second).sum() / 2)


def ks_distance(
    sizes: ArrayLike, weights: ArrayLike, other_sizes: ArrayLike, other_weights: ArrayLike
) -> float:
    """The largest difference of two distribution functions (Kolmogorov, Smirnov).

    Each is given by values (n,), in any order, and their weights (n,). Raises ValueError as
    `shares` does.
    """
    support = np.union1d(np.asarray(sizes, float), np.asarray(other_sizes, float))
    one = ecdf(sizes, weights, support)
    return float(np.abs(one - ecdf(other_sizes, other_weights, support)).max())


def ecdf(sizes: ArrayLike, weights: ArrayLike, at: ArrayLike) -> Array:
    """The empirical distribution function: the share of weight at sizes of at most `at` (m,)."""
    values = np.asarray(sizes, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    cumulative = np.concatenate([[0.0], np.cumsum(shares(weights)[order])])
    return np.asarray(cumulative[np.searchsorted(values[order], np.asarray(at), side="right")])


def quantiles(sizes: ArrayLike, weights: ArrayLike, probabilities: Sequence[float]) -> Array:
    """The smallest value at or below which a share of `probabilities` (m,) lies, each."""
    values = np.asarray(sizes, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(shares(weights)[order])
    # The last one is 1 but for rounding, and a probability of 1 has to find it.
    places = np.searchsorted(cumulative, np.asarray(probabilities) - 1e-12, side="left")
    return np.asarray(values[order][np.minimum(places, len(values) - 1)])


def relative_error(value: float, expected: float) -> float:
    """|found - expected| / |expected|; 0 where both are 0, infinite where only `expected` is."""
    if value == expected:
        return 0.0
    return abs(value - expected) / abs(expected) if expected else float("inf")


def explained_share(observed: ArrayLike, modelled: ArrayLike) -> float:
    """The share of the variance of `observed` (n,) that `modelled` (n,) explains: R squared.

    0 where the observed values are all the same; negative where the mean would do better.
    """
    values, model = np.asarray(observed, float), np.asarray(modelled, float)
    scatter = float(((values - values.mean()) ** 2).sum())
    return 0.0 if scatter == 0 else 1.0 - float(((values - model) ** 2).sum()) / scatter


# --- models of sizes and rates

# The smallest probability of what was counted: a model which says that it cannot be is then very
# unlikely, and its logarithm no error of the optimiser.
TINY = 1e-300
# Wrapped sizes come from so many multiples of the wrap; what lies beyond them is counted as if
# spread evenly, which a tail of a Pareto distribution is over one period that far out.
_WRAPS = 64
_FEWEST_SIZES = 2
# Of the logarithm of sigma. It falls without end where nearly all sizes are the same, and what is
# divided by less is endless.
_LOG_SIGMA_LEAST = -600.0


@dataclass(frozen=True)
class Pareto:
    """A generalised Pareto distribution of whole sizes, and how likely it made what was seen.

    Survival (1 + k (x - theta) / sigma)^(-1/k), exponential where k is 0 (J. Pickands, "Statistical
    inference using extreme order statistics", Annals of Statistics 3, 1975). With `floor`, sizes
    below it were counted as it; with `wrap`, sizes above it were counted as their remainder.
    """

    theta: float
    k: float
    sigma: float
    floor: int | None
    wrap: int | None
    log_likelihood: float

    def probabilities(self, sizes: ArrayLike) -> Array:
        """The probability of each of `sizes` (n,), floor and wrap included."""
        x, floor, wrap = np.asarray(sizes, dtype=np.float64), self.floor, self.wrap
        probabilities = self._of_whole(x)
        if floor is not None:
            at_floor = self.cdf([floor])
            probabilities = np.where(x < floor, 0.0, np.where(x == floor, at_floor, probabilities))
        if wrap is None:
            return np.asarray(probabilities)
        probabilities = np.where(x > wrap, 0.0, probabilities)
        turns = np.arange(1, _WRAPS + 1)[:, None] * float(wrap)
        wrapped = self._of_whole(x[None, :] + turns)
        # The wrap itself is kept and not wrapped to 0, and no remainder is as large as the wrap.
        wrapped[0] = np.where(x == 0, 0.0, wrapped[0])
        beyond = self._survival(np.array([float(wrap) * (_WRAPS + 1)])) / wrap
        added = wrapped.sum(axis=0) + beyond
        return np.asarray(probabilities + np.where(x < wrap, added, 0.0))

    def cdf(self, sizes: ArrayLike) -> Array:
        """The probability of at most each of `sizes` (n,), before floor and wrap."""
        return 1.0 - self._survival(np.asarray(sizes, dtype=np.float64))

    def _of_whole(self, x: Array) -> Array:
        """The probability of the whole size x: of the interval that the ceiling takes to it."""
        return self._survival(x - 1.0) - self._survival(x)

    def _survival(self, x: Array) -> Array:
        beyond = np.maximum(x - self.theta, 0.0) / self.sigma
        if abs(self.k) < 1e-9:
            return np.asarray(np.exp(-beyond))
        inside = np.maximum(1.0 + self.k * beyond, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(inside > 0, inside ** (-1.0 / self.k), 0.0))


def fit_pareto(
    sizes: ArrayLike,
    counts: ArrayLike,
    *,
    theta: float = 0.0,
    floor: int | None = None,
    wrap: int | None = None,
) -> Pareto:
    """The most likely k and sigma for `counts` (n,) of whole `sizes` (n,), at a given theta.

    Raises ValueError for fewer than two different sizes, sizes at or below theta that no floor
    explains, and arrays of other shapes.
    """
    values, weights = np.asarray(sizes, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if values.ndim != 1 or values.shape != weights.shape:
        raise ValueError(f"shapes {values.shape} and {weights.shape}: allowed: two rows alike")
    values, weights = values[weights > 0], weights[weights > 0]
    if len(np.unique(values)) < _FEWEST_SIZES:
        raise ValueError("fewer than two different sizes: nothing to fit")
    lowest = float(values.min())
    if floor is None and wrap is None and lowest <= theta:
        raise ValueError(f"a size of {lowest:g} is not above theta, {theta:g}")

    def loss(point: Array) -> float:
        k, log_sigma = float(point[0]), float(point[1])
        if log_sigma < _LOG_SIGMA_LEAST:
            return math.inf
        model = Pareto(theta, k, math.exp(log_sigma), floor, wrap, log_likelihood=math.nan)
        return -float(weights @ np.log(np.maximum(model.probabilities(values), TINY)))

    mean = float(weights @ values / weights.sum()) - theta
    starts = [(k, math.log(max(mean * (1.0 - min(k, 0.8)), 1e-3))) for k in (0.05, 0.4, 0.9)]
    (k, log_sigma), least = minimised(loss, starts, tolerance=(1e-6, 1e-6), most=2000)
    return Pareto(theta, float(k), math.exp(log_sigma), floor, wrap, -least)


# By then all starts are on their way to the same minimum, or one is seen to be far behind.
_FIRST_TURNS = 60


def minimised(
    loss: Callable[[Array], float],
    starts: Iterable[Sequence[float]],
    *,
    tolerance: tuple[float, float],
    most: int,
    calls: int | None = None,
) -> tuple[Array, float]:
    """The best point that the method of Nelder and Mead reaches from any start, and its loss.

    After the first turns only the best search goes on: the others would take as long to come to the
    same point, or to stay behind. `tolerance` is of a point's coordinates and of the loss; each
    search takes `most` turns, and as many `calls` of `loss`, at most.
    """
    options = {"xatol": tolerance[0], "fatol": tolerance[1], "maxfev": calls}
    first = {**options, "maxiter": min(most, _FIRST_TURNS)}
    results = [
        scipy.optimize.minimize(loss, start, method="Nelder-Mead", options=first)
        for start in starts
    ]
    best = min(results, key=lambda result: float(result.fun))
    left = {
        "maxiter": most - int(best.nit),
        "maxfev": None if calls is None else calls - int(best.nfev),
    }
    if not best.success and all(more is None or more > 0 for more in left.values()):
        go_on = {**options, **left, "initial_simplex": best.final_simplex[0]}
        best = scipy.optimize.minimize(loss, best.x, method="Nelder-Mead", options=go_on)
    return np.asarray(best.x), float(best.fun)


@dataclass(frozen=True)
class Sine:
    """A rate of mean + amplitude * sin(2 pi (t + offset) / period), and the R squared of it."""

    mean: float
    amplitude: float
    period_s: float
    offset_s: float
    explained: float

    def at(self, times_s: ArrayLike) -> Array:
        """The rate at `times_s` (n,)."""
        phase = 2.0 * np.pi * (np.asarray(times_s, float) + self.offset_s) / self.period_s
        return np.asarray(self.mean + self.amplitude * np.sin(phase))


_FEWEST_TIMES = 8


def fit_sine(times_s: ArrayLike, rates: ArrayLike) -> Sine:
    """The sine that is nearest, by least squares, to `rates` (n,) at `times_s` (n,).

    The frequency is looked for from a quarter of a period over the whole time to a quarter of the
    samples' own; with it the rest is linear. Raises ValueError for fewer than 8 samples, times that
    do not increase, and other shapes.
    """
    times, values = np.asarray(times_s, float), np.asarray(rates, float)
    if times.ndim != 1 or times.shape != values.shape or len(times) < _FEWEST_TIMES:
        raise ValueError(f"allowed: two rows alike of at least {_FEWEST_TIMES} numbers")
    if (np.diff(times) <= 0).any():
        raise ValueError("times must increase")
    length = float(times[-1] - times[0]) * len(times) / (len(times) - 1)
    # Steps of an eighth of a period over the whole time: no peak of the sum of squares is narrower.
    periods = np.arange(0.25, len(times) / 4 + 0.25, 0.125)
    losses = [_linear_sine(times, values, 2 * np.pi * n / length)[1] for n in periods]
    near = float(periods[int(np.argmin(losses))])
    result = scipy.optimize.minimize_scalar(
        lambda n: _linear_sine(times, values, 2 * np.pi * n / length)[1],
        bounds=(max(near - 0.125, 0.125), near + 0.125),
        method="bounded",
    )
    angular = 2 * np.pi * float(result.x) / length
    (sine, cosine, mean), _ = _linear_sine(times, values, angular)
    offset_s = (math.atan2(cosine, sine) / angular) % (2 * np.pi / angular)
    wave = Sine(mean, math.hypot(sine, cosine), 2 * np.pi / angular, offset_s, 0.0)
    return replace(wave, explained=explained_share(values, wave.at(times)))


def _linear_sine(
    times: Array, values: Array, angular: float
) -> tuple[tuple[float, float, float], float]:
    """The best sine and cosine parts and mean at one frequency, and the sum of squares left."""
    phase = angular * times
    design = np.column_stack([np.sin(phase), np.cos(phase), np.ones_like(times)])
    solved, *_ = np.linalg.lstsq(design, values, rcond=None)
    left = float(((values - design @ solved) ** 2).sum())
    return (float(solved[0]), float(solved[1]), float(solved[2])), left
