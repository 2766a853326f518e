"""db_bench's mixgraph as a model of its own: the numbers it draws, without a database.

Written from tools/db_bench_tool.cc of RocksDB 7.8.3, but for its hash and its order of ranges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


def scattered(numbers: Array) -> NDArray[np.uint64]:
    """A hash of each number (Steele, Lea, Flood: SplitMix, OOPSLA 2014)."""
    x = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def power_keys(rng: np.random.Generator, draws: int, num: int, a: float, b: float) -> Whole:
    """Keys by key_dist_a and key_dist_b alone."""
    u = rng.integers(0, num, draws) / num
    return (scattered(np.ceil((u / a) ** (1 / b))) % np.uint64(num)).astype(np.int64)


def range_keys(
    rng: np.random.Generator,
    draws: int,
    num: int,
    key: tuple[float, float],
    keyrange: tuple[float, float, float, float],
    ranges: int,
) -> Whole:
    """Keys by keyrange_dist_a to _d, and key_dist_a and _b within a range."""
    one = rng.integers(0, num, draws)
    a, b, c, d = keyrange
    i = np.arange(ranges, 0, -1)
    p = a * np.exp(b * i) + c * np.exp(d * i)
    units = np.floor((int(1 / p[0]) + 1) * p).astype(np.int64)
    units = units[np.random.default_rng(5).permutation(ranges)]
    of_range = np.repeat(np.arange(ranges), units)[one % units.sum()]
    size = num // ranges
    u = (one % size) / size
    rank = np.ceil((u / key[0]) ** (1 / key[1]))
    return of_range * size + (scattered(rank) % np.uint64(size)).astype(np.int64)


def pareto_sizes(
    rng: np.random.Generator, draws: int, k: float, sigma: float, largest: int = 1024
) -> Whole:
    """Value sizes: the ceiling, then 10 for less, then the remainder of what is too large."""
    u = 1.0 - rng.random(draws)
    sizes = np.ceil(sigma * (u**-k - 1) / k)
    sizes = np.where(sizes < 10, 10, np.where(sizes > largest, sizes % largest, sizes))
    return sizes.astype(np.int64)


def hottest(keys: Whole) -> tuple[Array, Array]:
    """The points of a hotness curve: ranks, and the shares of so many hottest keys."""
    counts = np.sort(np.unique(keys, return_counts=True)[1])[::-1]
    ranks = [1]
    while ranks[-1] < len(counts):
        ranks.append(min(max(ranks[-1] + 1, int(ranks[-1] * 1.03)), len(counts)))
    at = np.array(ranks)
    return at.astype(float), np.cumsum(counts)[at - 1] / len(keys)
