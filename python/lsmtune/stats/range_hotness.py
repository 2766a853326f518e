"""How hot ranges of keys are, and how often a read meets a written key: pure functions.

The model is that of Z. Cao and others, "Characterizing, modeling, and benchmarking RocksDB
key-value workloads at Facebook", FAST 2020: a sum of two exponentials of the rank of a range by its
hotness. db_bench's `mixgraph` draws from it, and its parameters have the meaning used here.
`key_hotness.py` fits how hot keys are within their range.

Where operation and key are drawn independently, hot keys are soon written, and most reads of them
find what was written last in memory. In production and in db_bench's `mixgraph` many keys are
only ever read: there the key decides the operation. The model has a share of draws of that kind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from lsmtune.stats.fitting import TINY, Array, minimised


@dataclass(frozen=True)
class TwoTermExponential:
    """Range number i by hotness, from 1, draws a share of a * exp(b i) + c * exp(d i).

    The shares of all `ranges` add up to 1. `stepped`: db_bench's rounding of them was fitted, in
    which each is a whole multiple of the smallest one.
    """

    a: float
    b: float
    c: float
    d: float
    ranges: int
    stepped: bool
    log_likelihood: float

    def shares(self) -> Array:
        """The share of each range, hottest first (ranges,)."""
        point = np.array([[self.b, self.d, math.log(self.a), math.log(self.c)]])
        return np.asarray(_range_shares(point, self.ranges, self.stepped)[0])


def fit_two_term_exponential(
    counts: ArrayLike, rng: np.random.Generator, *, stepped: bool = False
) -> TwoTermExponential:
    """The most likely a, b, c and d for `counts` (ranges,) of accesses per range, in any order.

    With `stepped` the likelihood has steps, and its maximum is looked for by drawing, ever closer
    to the best (R. Rubinstein, "The cross-entropy method for combinatorial and continuous
    optimization", 1999). b is the faster decay. Raises ValueError for fewer than 4 ranges, none of
    them used, and other shapes.
    """
    ranked = np.sort(np.asarray(counts, dtype=np.float64).ravel())[::-1]
    if np.asarray(counts).ndim != 1 or len(ranked) < 4 or ranked.sum() <= 0 or ranked[-1] < 0:
        raise ValueError("counts must be one row of at least four ranges, some of them used")
    point, best = _fit_smooth(ranked)
    if stepped:
        point, best = _fit_stepped(ranked, point, rng)
    b, d, log_a, log_c = (float(value) for value in point)
    if b > d:
        b, d, log_a, log_c = d, b, log_c, log_a
    # So that the unrounded shares add up to 1.
    logs = _log_terms(np.array([[b, d, log_a, log_c]]), len(ranked))
    scale = np.logaddexp.reduce(logs, axis=1)[0]
    a, c = math.exp(log_a - scale), math.exp(log_c - scale)
    return TwoTermExponential(a, b, c, d, len(ranked), stepped, best)


def _log_terms(points: Array, ranges: int) -> Array:
    """Logs of the unscaled shares (points, ranges)."""
    i = np.arange(1, ranges + 1)
    b, d, log_a, log_c = (points[:, [column]] for column in range(4))
    return np.asarray(np.logaddexp(log_a + b * i, log_c + d * i))


def _range_shares(points: Array, ranges: int, stepped: bool) -> Array:
    """The shares (points, ranges), hottest first."""
    logs = _log_terms(points, ranges)
    shares = np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None])
    if not stepped:
        return np.asarray(shares)
    # tools/db_bench_tool.cc, InitiateExpDistribution: what is below 1e-16 is never asked for, and
    # the smallest other share, which comes last, becomes the unit of all.
    shares = np.where(shares < 1e-16, 0.0, shares)
    smallest = np.where(shares > 0, shares, np.inf).min(axis=1)[:, None]
    whole = np.floor((np.floor(1.0 / smallest) + 1.0) * shares)
    return np.asarray(whole / whole.sum(axis=1)[:, None])


def _log_likelihoods(counts: Array, points: Array, stepped: bool) -> Array:
    shares = _range_shares(points, len(counts), stepped)
    return np.asarray(np.log(np.maximum(shares, TINY)) @ counts)


# Of the logs of both decays, and log a. Beyond these bounds shares stay the same, and where one
# range draws nearly everything a search would go on until `a` is endless.
_LEAST, _MOST = (-30.0, -30.0, -100.0), (4.0, 4.0, 100.0)


def _fit_smooth(counts: Array) -> tuple[Array, float]:
    def whole(point: Array) -> Array:
        """b, d, log a and log c of what is varied: the logs of both decays, and log a."""
        log_b, log_d, log_a = np.clip(point, _LEAST, _MOST)
        return np.array([-math.exp(log_b), -math.exp(log_d), log_a, 0.0])

    def loss(point: Array) -> float:
        return -float(_log_likelihoods(counts, whole(point)[None, :], stepped=False)[0])

    # The fast term as hot at rank 1 as a few of the slow one.
    starts = [
        (math.log(fast), math.log(slow / len(counts)), fast + 1.0)
        for fast in (0.3, 1.0, 3.0)
        for slow in (0.5, 3.0)
    ]
    point, least = minimised(loss, starts, tolerance=(1e-8, 1e-8), most=4000, calls=4000)
    return whole(point), -least


_DRAWS, _ELITE, _TURNS = 4000, 80, 40


def _fit_stepped(counts: Array, near: Array, rng: np.random.Generator) -> tuple[Array, float]:
    """From the smooth fit, which rounding has moved, to the middle of the best step."""
    centre, spread = near.copy(), np.array([abs(near[0]) * 0.3, abs(near[1]) * 0.5, 1.0, 0.0])
    best, best_point = -np.inf, near
    for _ in range(_TURNS):
        points = centre + rng.standard_normal((_DRAWS, 4)) * spread
        points = points[(points[:, 0] < 0) & (points[:, 1] < 0)]
        likelihoods = _log_likelihoods(counts, points, stepped=True)
        order = np.argsort(likelihoods)[::-1][:_ELITE]
        elite = points[order]
        if likelihoods[order[0]] > best:
            best, best_point = float(likelihoods[order[0]]), elite[0]
        centre = elite.mean(axis=0)
        # Half of the old spread stays in each turn, so that a step does not become a trap.
        spread = 0.5 * spread + 0.5 * elite.std(axis=0)
    middle = float(_log_likelihoods(counts, centre[None, :], stepped=True)[0])
    return (centre, middle) if middle >= best - 2.0 else (best_point, best)


# --- reads of written keys


def reads_of_written(
    keys: Array, each: Array, writes: float, by_key: float, accesses: float
) -> float:
    """The share of the reads that meet a key which was written since the beginning.

    `keys` (m,) keys draw a share of `each` (m,) each of `accesses` operations; a share `writes` are
    writes. In a share `by_key` of the draws a key has always the same operation. Raises ValueError
    for shares of operations that are not between 0 and 1.
    """
    if not (0.0 < writes < 1.0 and 0.0 <= by_key <= 1.0):
        raise ValueError(f"writes {writes:g}, by key {by_key:g}")
    alone = (1.0 - by_key) * writes
    # Keys that are written where they decide, and those that are read.
    share = 0.0
    for many, written in ((writes, by_key + alone), (1.0 - writes, alone)):
        # The mean over time of the chance that one of the writes, Poisson's in number, has been.
        expected = each * written * accesses
        few = expected < 1e-6
        safe = np.where(few, 1.0, expected)
        chance = np.where(few, expected / 2.0, 1.0 + np.expm1(-safe) / safe)
        met = float((keys * each * chance).sum())
        share += many * (1.0 - written) * met
    return share / (1.0 - writes)


def fit_by_key(keys: Array, each: Array, writes: float, accesses: float, share: float) -> float:
    """The `by_key` for which `share` of the reads meet a written key; 0 and 1 are its bounds.

    Arguments and errors as those of `reads_of_written`.
    """

    def above(by_key: float) -> float:
        return reads_of_written(keys, each, writes, by_key, accesses) - share

    if above(0.0) <= 0.0:
        return 0.0
    if above(1.0) >= 0.0:
        return 1.0
    return float(scipy.optimize.brentq(above, 0.0, 1.0, xtol=1e-6))
