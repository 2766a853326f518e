"""How hot keys are, by a law of their rank, fitted to a curve of counts: pure functions.

`key_groups.py` has the laws, and says what each key draws.

What is fitted is not the law itself but what a trace of so many accesses shows of it: keys sorted
by their counts, and counts scattered as Poisson's. Far down, where a few accesses decide which key
comes first, the two have little in common.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from lsmtune.stats.goodness import shares
from lsmtune.stats.key_groups import Grains, power_groups, power_shares, zipf_groups

Array = NDArray[np.float64]

_TINY = 1e-300
# Expected counts, and the counts that they are compared with, lie on grids whose steps are small
# beside the scatter of a count of up to 10,000, which is 1 %.
_STEP = 1.02
_SMALLEST = 1e-3
_FEWEST_POINTS = 3
_HOTTEST_SHARE = 0.5


@dataclass(frozen=True)
class PowerLaw:
    """Ranks of which the x hottest draw a share of a * x^b, up to the rank where that is 1.

    `grains` as in `power_groups`; `log_likelihood` is that of the curve it was fitted to.
    """

    a: float
    b: float
    grains: Grains
    log_likelihood: float

    def distribution(self, ranks: ArrayLike) -> Array:
        """The share of the hottest `ranks` (n,), each."""
        return power_shares(ranks, self.a, self.b)

    @property
    def largest_rank(self) -> float:
        """The rank at which the share of all hotter ones is 1; infinite where no float holds it."""
        exponent = -math.log(self.a) / self.b
        return math.exp(exponent) if exponent < 700 else math.inf


class SortedCurve:
    """What a trace of `total` accesses shows of keys: which share its hottest x keys drew.

    Made once for all models that are to be compared with a trace.
    """

    def __init__(self, total: int, hottest: float) -> None:
        """`hottest`: about how many accesses the hottest key had."""
        top = max(hottest * 1.5, 10.0) + 10.0 * math.sqrt(max(hottest, 1.0))
        self._total = total
        self._expected = _grid(_SMALLEST, top)
        counts = np.unique(np.round(_grid(1.0, top)))[::-1]
        # Of a count that is Poisson's with mean m: P(count >= c) and E[count; count >= c].
        means = self._expected[None, :]
        at_least = counts[:, None]
        self._keys = special.gammainc(at_least, means)
        more = np.where(at_least > 1, special.gammainc(np.maximum(at_least - 1, 1), means), 1.0)
        self._accesses = means * more

    def cumulative(self, keys: Array, each: Array, ranks: ArrayLike) -> Array:
        """The share of the hottest `ranks` (n,) where `keys` (m,) keys draw `each` (m,)."""
        weights = self._on_grid(keys, each * self._total)
        found = np.concatenate([[0.0], self._keys @ weights])
        drawn = np.concatenate([[0.0], self._accesses @ weights]) / self._total
        return np.asarray(np.interp(np.asarray(ranks, float), found, np.minimum(drawn, 1.0)))

    def _on_grid(self, keys: Array, expected: Array) -> Array:
        """`keys` as weights of the grid's expected counts, their number and accesses kept."""
        grid = self._expected
        inside = np.clip(expected, grid[0], grid[-1])
        right = np.clip(np.searchsorted(grid, inside), 1, len(grid) - 1)
        part = (inside - grid[right - 1]) / (grid[right] - grid[right - 1])
        weights = np.bincount(right - 1, keys * (1.0 - part), len(grid))
        return np.asarray(weights + np.bincount(right, keys * part, len(grid)))


def fit_power_law(
    ranks: ArrayLike,
    cumulative: ArrayLike,
    total: int,
    keys: int,
    range_shares: ArrayLike = (1.0,),
    *,
    grains: Grains = Grains.NONE,
) -> PowerLaw:
    """The most likely a and b, where the hottest `ranks` (n,) keys drew `cumulative` (n,) shares.

    `total` accesses went to `keys` keys in ranges that drew `range_shares` (ranges,); `grains` as
    in `power_groups`. The shares between two ranks are taken as a multinomial sample. Raises
    ValueError for fewer than three ranks, ranks or shares that do not increase, and more ranks than
    keys.
    """
    at, drawn = _checked(ranks, cumulative, keys)
    if grains is not Grains.NONE:
        at, drawn = _hottest(at, drawn)
    ranges = shares(range_shares)
    first = min(max(drawn[0] / at[0] / float(ranges.max()), 1e-9), 0.5)

    def groups(point: Array) -> tuple[Array, Array] | None:
        log_b, log_a = (float(value) for value in point)
        if log_a > 0.0 or log_b > 0.0:
            return None  # the first rank would draw everything, or colder ranks more
        return power_groups(math.exp(log_a), math.exp(log_b), keys, ranges, grains=grains)

    starts = [(math.log(b), math.log(first)) for b in (0.15, 0.35, 0.7)]
    point, loss = _fitted(at, drawn, total, groups, starts)
    return PowerLaw(math.exp(point[1]), math.exp(point[0]), grains, -loss)


def _fitted(
    at: Array,
    drawn: Array,
    total: int,
    groups: Callable[[Array], tuple[Array, Array] | None],
    starts: Sequence[tuple[float, ...]],
) -> tuple[Array, float]:
    """The point that makes the curve most likely, and the negative logarithm of how likely."""
    observed = np.diff(np.concatenate([[0.0], drawn, [1.0]])) * total
    curve = SortedCurve(total, drawn[0] / at[0] * total)

    def loss(point: Array) -> float:
        found = groups(point)
        if found is None:
            return math.inf
        modelled = curve.cumulative(*found, at)
        expected = np.diff(np.concatenate([[0.0], modelled, [1.0]]))
        return -float(observed @ np.log(np.maximum(expected, _TINY)))

    options = {"xatol": 1e-4, "fatol": 1e-2, "maxiter": 300}
    solved = [optimize.minimize(loss, s, method="Nelder-Mead", options=options) for s in starts]
    best = min(solved, key=lambda found: float(found.fun))
    return np.asarray(best.x), float(best.fun)


def _checked(ranks: ArrayLike, cumulative: ArrayLike, keys: int) -> tuple[Array, Array]:
    at, drawn = np.asarray(ranks, dtype=np.float64), np.asarray(cumulative, dtype=np.float64)
    if at.ndim != 1 or at.shape != drawn.shape or len(at) < _FEWEST_POINTS:
        raise ValueError(f"allowed: two rows alike of at least {_FEWEST_POINTS} numbers")
    if at[0] < 1 or (np.diff(at) <= 0).any() or drawn[0] <= 0 or (np.diff(drawn) < 0).any():
        raise ValueError("ranks and the shares of the hottest so many must increase")
    if at[-1] > keys:
        raise ValueError(f"{at[-1]:.0f} ranks of {keys} keys")
    return at, drawn


def _hottest(at: Array, drawn: Array) -> tuple[Array, Array]:
    """The points of the hottest keys; of the others only what they drew together counts.

    Which cold keys db_bench asked for at all depends on remainders that the model leaves out.
    """
    inside = max(int(np.searchsorted(drawn, _HOTTEST_SHARE)), _FEWEST_POINTS)
    return at[:inside], np.minimum(drawn[:inside], 1.0)


def _grid(low: float, high: float) -> Array:
    steps = math.ceil(math.log(high / low) / math.log(_STEP))
    return np.asarray(low * _STEP ** np.arange(steps + 1))


def fit_zipf(
    ranks: ArrayLike, cumulative: ArrayLike, total: int, keys: int, items: float
) -> tuple[float, float]:
    """The most likely theta, and its log likelihood; arguments as those of `fit_power_law`."""
    at, drawn = _checked(ranks, cumulative, keys)

    def groups(point: Array) -> tuple[Array, Array] | None:
        theta = float(point[0])
        if not 0.05 <= theta <= 3.0 or theta == 1.0:
            return None
        return zipf_groups(theta, items, keys)

    point, loss = _fitted(at, drawn, total, groups, [(0.5,), (0.97,), (1.3,)])
    return float(point[0]), -loss
