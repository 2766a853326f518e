"""How hot keys are, by a law of their rank, and what that means for a cache: pure functions.

The power law is that of Z. Cao and others, "Characterizing, modeling, and benchmarking RocksDB
key-value workloads at Facebook", FAST 2020: the x hottest ranks draw a share of a * x^b, up to the
rank where that is 1. As in db_bench's `mixgraph` (`PowerCdfInversion` and `DistGetKeyID` of
tools/db_bench_tool.cc) a hash sends each rank to a key, however many there are of either.

What is fitted is not the law itself but what a trace of so many accesses shows of it: keys sorted
by their counts, and counts scattered as Poisson's. Far down, where a few accesses decide which key
comes first, the two have little in common.

Hit ratios are those of H. Che, Y. Tung, Z. Wang, "Hierarchical web caching systems: modeling,
design and experimental results", IEEE JSAC 20, 2002: in a cache that drops what was used longest
ago, a key stays for about the same number of accesses T, whichever it is, and T is the one for
which the cache is full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import scipy
from numpy.typing import ArrayLike

from lsmtune.stats.fitting import TINY, Array, minimised, shares

# Keys in groups: how many each group has (m,), and the share that each of its keys draws (m,).
Groups = tuple[Array, Array]


def hit_ratios(keys: Array, each: Array, capacities: Sequence[float], accesses: float) -> Array:
    """The share of hits (n,) of caches that hold `capacities` (n,) keys and begin empty.

    `keys` (m,) and `each` (m,) are `Groups`, drawn from independently. There are `accesses` draws,
    so that even the largest cache misses what is asked for the first time. Raises ValueError for
    shares that do not add up to 1 within a thousandth, and a capacity or `accesses` below 1.
    """
    whole = float((keys * each).sum())
    if abs(whole - 1.0) > 1e-3:
        raise ValueError(f"shares add up to {whole:g}")
    if accesses < 1 or min(capacities, default=1) < 1:
        raise ValueError("allowed: at least one access, and room for at least one key")
    # Shares that are 0 draw nothing, and are not divided by.
    drawn = np.where(each > 0, each, 1.0)
    hits = []
    for room in capacities:

        def above(stay: float, room: float = float(room)) -> float:
            """By how many keys a cache is too small in which an idle one stays so long."""
            return float((keys * -np.expm1(-each * stay)).sum()) - room

        stay = accesses  # where nothing is ever dropped
        if above(accesses) > 0:
            stay = float(scipy.optimize.brentq(above, 0.0, accesses, xtol=1e-3))
        # A key is hit when it was asked for in the last `stay` accesses, or since the beginning.
        held = -np.expm1(-each * stay)
        hit = (stay - held / drawn + (accesses - stay) * held) / accesses
        hits.append(float((keys * each * hit).sum()))
    return np.array(hits)


# --- groups of keys

_RANKS_APART = 1.05
# More lone random numbers on one key are less likely than one in a hundred million.
_LONE_MOST = 12
_EXACT_RANKS = 100
# Up to so many ranges are modelled one by one, and those of about the same share beyond.
_RANGES_EACH, _SHARES_APART = 64, 1.1
# Ranks that draw so many times the mean of a key have a key each: few of them meet on one.
_HOT = 20.0
# Steps of the shares of all other ranks, and up to how many the sum of those on a key goes.
_STEPS, _STEPS_MOST = 2048, 16384
# Beyond this rank no two draws are of the same.
_FAR_RANK = 1e15
_UNLIKELY = 1e-12


class Grains(Enum):
    """How many different random numbers the ranks of a range are made of."""

    NONE = "as many as it takes for every rank to come up"
    EACH = "as many as the range has keys"
    SHARED = "as many as there are keys in all, divided by how hot ranges are: db_bench's"


def power_groups(
    a: float,
    b: float,
    keys: int,
    range_shares: ArrayLike = (1.0,),
    *,
    grains: Grains = Grains.NONE,
) -> Groups:
    """The groups of `keys` keys that the power law makes within each of several ranges.

    The keys are divided evenly over ranges, which draw `range_shares` (ranges,). With `grains`
    every rank that comes up at all has at least the share of one random number. db_bench's decides
    range and rank; the remainder that decides the rank has as many values as a range has keys.
    Raises ValueError as `fitting.shares` does.
    """
    ranges = shares(range_shares)
    each_range = max(keys // len(ranges), 1)
    # Shares that stand for those of many ranges, and of how many each does.
    alike = ranges[ranges > 0]
    many = np.ones(len(alike))
    if len(alike) > _RANGES_EACH:
        group = np.unique(np.round(np.log(alike) / math.log(_SHARES_APART)), return_inverse=True)[1]
        many = np.bincount(group).astype(np.float64)
        alike = np.bincount(group, alike) / many
    if grains is Grains.NONE:
        parts = [_normalised(_hashed_groups(a, b, each_range))] * len(alike)
    else:
        numbers = _numbers_per_rank(a, b, each_range)
        come_up = [float(each_range)] * len(alike)
        if grains is Grains.SHARED:
            come_up = np.clip(keys * alike, 1.0, each_range).tolist()
        parts = [_normalised(_grained_groups(*numbers, each_range, n)) for n in come_up]
    widths = [ranges_alike * width for ranges_alike, (width, _) in zip(many, parts, strict=True)]
    drawn = [share * each for share, (_, each) in zip(alike, parts, strict=True)]
    return np.concatenate(widths), np.concatenate(drawn)


def _normalised(groups: Groups) -> Groups:
    """`groups` whose shares add up to 1, which rounding leaves to be done."""
    keys, each = groups
    return keys, each / float((each * keys).sum())


def _hashed_groups(a: float, b: float, keys: int) -> Groups:
    """The groups of `keys` keys onto which a hash sends all ranks.

    The hottest ranks have a key each, to which the colder ones add what they add in the mean. The
    other keys have what of the colder ranks falls on them by chance.
    """
    last = math.exp(min(-math.log(a) / b, math.log(_FAR_RANK)))
    # The share of rank x is about a b x^(b-1).
    log_hot = math.log(max(a * b * keys / _HOT, 1.0)) / (1.0 - b) if b < 1.0 else 0.0
    hot = max(math.floor(min(math.exp(min(log_hot, 700.0)), last, keys)), 1)
    edges = _rank_edges(hot)
    width = np.diff(edges)
    each = np.diff(power_shares(edges, a, b)) / width
    rest = 1.0 - float(power_shares([float(hot)], a, b)[0])
    if rest <= 0.0:
        return width, each
    steps = math.ceil(math.log(max(last / hot, 1.0)) / math.log(_RANKS_APART))
    far = np.minimum(hot * _RANKS_APART ** np.arange(steps + 1), max(last, hot))
    ranks, drawn = np.diff(far), np.diff(power_shares(far, a, b))
    chances, of_mean = _sums_on_a_key(ranks / keys, drawn / ranks * keys)
    cold = max(keys - hot, 0)
    mean = rest / keys
    return np.concatenate([width, cold * chances]), np.concatenate([each + mean, of_mean / keys])


def _sums_on_a_key(ranks: Array, each: Array) -> tuple[Array, Array]:
    """The chances (m,) that what falls on a key adds up to these sums (m,).

    In the mean `ranks` (n,) ranks fall on it, which draw `each` (n,), at most `_HOT`: Poisson's
    numbers, whose sum has the product of their characteristic functions.
    """
    step = _HOT / _STEPS
    # Of those below a step so many fall on each key that chance does not count.
    small = each < step
    at = np.where(small, 0.0, np.minimum(each, _HOT) / step)
    low = np.floor(at).astype(np.int64)
    weights = np.bincount(low, ranks * (low + 1 - at), _STEPS_MOST)
    weights += np.bincount(low + 1, ranks * (at - low), _STEPS_MOST)
    weights[0] = 0.0
    spectrum = np.fft.rfft(weights)
    chance = np.maximum(np.fft.irfft(np.exp(spectrum - spectrum[0]), _STEPS_MOST), 0.0)
    likely = np.flatnonzero(chance > _UNLIKELY)
    sums = likely * step + float((ranks * each)[small].sum())
    # Put together where they are about the same. They ascend.
    logs = np.round(np.log(np.maximum(sums, _UNLIKELY)) / math.log(_RANKS_APART))
    group = np.cumsum(np.diff(logs, prepend=logs[:1]) > 0)
    whole = np.bincount(group, chance[likely]).astype(np.float64)
    return whole, np.bincount(group, chance[likely] * sums) / whole


def _numbers_per_rank(a: float, b: float, keys: int) -> tuple[Array, Array, float]:
    """How many of `keys` random numbers lead to one hot rank (m,), and to how many ranks (m,).

    And how many numbers lead to a rank of their own, or to one that few share with them.
    """
    # The share of rank x is about a b x^(b-1): from this rank on it is less than one number's.
    log_hot = math.log(a * b * keys) / (1.0 - b) if b < 1.0 else math.inf
    hot = keys if log_hot >= math.log(keys) else max(math.ceil(math.exp(log_hot)), 1)
    edges = _rank_edges(hot)
    ranks, numbers = np.diff(edges), np.diff(np.floor(keys * power_shares(edges, a, b)))
    # Of ranks that are about as hot, each has the whole part of their mean, or one more.
    least = np.floor(numbers / ranks)
    more = numbers - least * ranks
    several, group = np.unique(np.concatenate([least, least + 1.0]), return_inverse=True)
    width = np.bincount(group, np.concatenate([ranks - more, more])).astype(np.float64)
    used = (several > 0.0) & (width > 0.0)
    return several[used], width[used], max(keys - float(numbers.sum()), 0.0)


def _grained_groups(several: Array, ranks: Array, lone: float, keys: int, come_up: float) -> Groups:
    """The groups where `several` numbers lead to each of `ranks`; `lone` fall on keys by chance.

    Of all `keys` random numbers only so many `come_up`.
    """
    part = come_up / keys
    # Onto a key fall so many of the lone ones: Poisson's, of the mean number per key.
    counts = np.arange(_LONE_MOST)
    mean = max(lone * part / keys, TINY)
    chance = np.exp(counts * math.log(mean) - mean - scipy.special.gammaln(counts + 1))
    hot_each = (several[:, None] * part + counts) / come_up
    cold = max(keys - float(ranks.sum()), 0.0) * chance[1:]
    return (
        np.concatenate([(ranks[:, None] * chance).ravel(), cold]),
        np.concatenate([hot_each.ravel(), counts[1:] / come_up]),
    )


def uniform_groups(keys: int, range_shares: ArrayLike = (1.0,)) -> Groups:
    """The groups of `keys` keys where all keys of a range are equally hot."""
    ranges = shares(range_shares)
    each = max(keys // len(ranges), 1)
    return np.full(len(ranges), float(each)), ranges / each


def zipf_groups(theta: float, items: float, keys: int) -> Groups:
    """The groups of YCSB's scrambled Zipfian: `items` ranks, hashed onto `keys` keys.

    Rank k draws a share that goes as 1 / k^theta. It is the hottest of its key where no hotter one
    fell there, by chance exp(-k / keys) (Poisson's); of all colder ranks the key has its part. Keys
    onto which no rank falls are left out. Raises ValueError for a theta that is 1 or not above 0,
    and fewer items than keys.
    """
    if theta <= 0 or theta == 1 or items < keys:
        raise ValueError(f"theta {theta:g}, {items:g} items of {keys} keys")
    # exp(-30): no key is left for colder ranks.
    edges = _rank_edges(math.floor(min(items, 30.0 * keys)))
    below = _zipf_sum(edges, theta) / float(_zipf_sum(np.array([float(items)]), theta)[0])
    each = np.diff(below) / np.diff(edges) + (1.0 - (below[1:] + below[:-1]) / 2) / keys
    return _normalised((-keys * np.diff(np.exp(-edges / keys)), each))


def _zipf_sum(ranks: Array, theta: float) -> Array:
    """The sum of k^-theta for k up to each of `ranks`: the first exactly, then by the integral."""
    exact = np.concatenate([[0.0], np.cumsum(np.arange(1, _EXACT_RANKS + 1) ** -theta)])
    at = np.minimum(ranks, _EXACT_RANKS).astype(np.int64)
    far = np.maximum(ranks, _EXACT_RANKS) + 0.5
    near = _EXACT_RANKS + 0.5
    return np.asarray(exact[at] + (far ** (1 - theta) - near ** (1 - theta)) / (1 - theta))


def _rank_edges(keys: int) -> Array:
    """0, then every rank at first, and ranks ever further apart, up to `keys`."""
    steps = math.ceil(math.log(max(keys, 2)) / math.log(_RANKS_APART))
    edges = np.round(_RANKS_APART ** np.arange(steps + 1))
    edges = edges[np.diff(edges, prepend=0.0) > 0.0]
    return np.concatenate([[0.0], edges[edges < keys], [float(keys)]])


def power_shares(ranks: ArrayLike, a: float, b: float) -> Array:
    """What the first `ranks` (n,) ranks draw, each: a * x^b, up to the rank where that is 1."""
    return np.asarray(
        np.minimum(a * np.maximum(np.asarray(ranks, dtype=np.float64), 0.0) ** b, 1.0)
    )


# --- fits of the laws

# Expected counts, and the counts that they are compared with, lie on grids whose steps are small
# beside the scatter of a count of up to 10,000, which is 1 %.
_STEP = 1.02
_SMALLEST = 1e-3
_FEWEST_POINTS = 3
_HOTTEST_SHARE = 0.5


@dataclass(frozen=True)
class PowerLaw:
    """Ranks of which the x hottest draw a share of a * x^b, up to the rank where that is 1.

    `log_likelihood` is that of the curve it was fitted to.
    """

    a: float
    b: float
    log_likelihood: float


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
        self._keys = scipy.special.gammainc(at_least, means)
        more = np.where(
            at_least > 1, scipy.special.gammainc(np.maximum(at_least - 1, 1), means), 1.0
        )
        self._accesses = means * more

    def cumulative(self, keys: Array, each: Array, ranks: ArrayLike) -> Array:
        """The share of the hottest `ranks` (n,) where `keys` (m,) keys draw `each` (m,)."""
        weights = self._on_grid(keys, each * self._total)
        sums = np.concatenate([[0.0], self._keys @ weights])
        drawn = np.concatenate([[0.0], self._accesses @ weights]) / self._total
        return np.asarray(np.interp(np.asarray(ranks, float), sums, np.minimum(drawn, 1.0)))

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
        # Of the others only what they drew together counts: which cold keys db_bench asked for at
        # all depends on remainders that the model leaves out.
        hot = max(int(np.searchsorted(drawn, _HOTTEST_SHARE)), _FEWEST_POINTS)
        at, drawn = at[:hot], np.minimum(drawn[:hot], 1.0)
    ranges = shares(range_shares)
    first = min(max(drawn[0] / at[0] / float(ranges.max()), 1e-9), 0.5)

    def groups(point: Array) -> Groups | None:
        log_b, log_a = (float(value) for value in point)
        if log_a > 0.0 or log_b > 0.0:
            return None  # the first rank would draw everything, or colder ranks more
        return power_groups(math.exp(log_a), math.exp(log_b), keys, ranges, grains=grains)

    starts = [(math.log(b), math.log(first)) for b in (0.15, 0.35, 0.7)]
    point, loss = _fitted(at, drawn, total, groups, starts)
    return PowerLaw(math.exp(point[1]), math.exp(point[0]), -loss)


def _fitted(
    at: Array,
    drawn: Array,
    total: int,
    groups: Callable[[Array], Groups | None],
    starts: Sequence[tuple[float, ...]],
) -> tuple[Array, float]:
    """The point that makes the curve most likely, and the negative logarithm of how likely."""
    observed = np.diff(np.concatenate([[0.0], drawn, [1.0]])) * total
    curve = SortedCurve(total, drawn[0] / at[0] * total)

    def loss(point: Array) -> float:
        result = groups(point)
        if result is None:
            return math.inf
        modelled = curve.cumulative(*result, at)
        expected = np.diff(np.concatenate([[0.0], modelled, [1.0]]))
        return -float(observed @ np.log(np.maximum(expected, TINY)))

    return minimised(loss, starts, tolerance=(1e-4, 1e-2), most=300)


def _checked(ranks: ArrayLike, cumulative: ArrayLike, keys: int) -> tuple[Array, Array]:
    at, drawn = np.asarray(ranks, dtype=np.float64), np.asarray(cumulative, dtype=np.float64)
    if at.ndim != 1 or at.shape != drawn.shape or len(at) < _FEWEST_POINTS:
        raise ValueError(f"allowed: two rows alike of at least {_FEWEST_POINTS} numbers")
    if at[0] < 1 or (np.diff(at) <= 0).any() or drawn[0] <= 0 or (np.diff(drawn) < 0).any():
        raise ValueError("ranks and the shares of the hottest so many must increase")
    if at[-1] > keys:
        raise ValueError(f"{at[-1]:.0f} ranks of {keys} keys")
    return at, drawn


def _grid(low: float, high: float) -> Array:
    steps = math.ceil(math.log(high / low) / math.log(_STEP))
    return np.asarray(low * _STEP ** np.arange(steps + 1))


def fit_zipf(
    ranks: ArrayLike, cumulative: ArrayLike, total: int, keys: int, items: float
) -> tuple[float, float]:
    """The most likely theta, and its log likelihood; arguments as those of `fit_power_law`."""
    at, drawn = _checked(ranks, cumulative, keys)

    def groups(point: Array) -> Groups | None:
        theta = float(point[0])
        if not 0.05 <= theta <= 3.0 or theta == 1.0:
            return None
        return zipf_groups(theta, items, keys)

    point, loss = _fitted(at, drawn, total, groups, [(0.5,), (0.97,), (1.3,)])
    return float(point[0]), -loss
