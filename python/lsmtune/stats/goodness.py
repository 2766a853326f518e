"""How well a model fits what was counted: distances between distributions, pure functions.

Counts are weights over whole numbers; a distance of 0 is a perfect fit, one of 1 is none at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def shares(weights: ArrayLike) -> Array:
    """`weights` (n,) divided by their sum.

    Raises ValueError for another shape, a weight that is negative or not finite, and a sum of 0.
    """
    found = np.asarray(weights, dtype=np.float64)
    if found.ndim != 1 or not np.isfinite(found).all() or (found < 0).any():
        raise ValueError("weights must be one row of finite numbers of at least 0")
    total = float(found.sum())
    if total <= 0:
        raise ValueError("weights add up to nothing")
    return np.asarray(found / total)


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
    return float(
        np.abs(
            distribution(sizes, weights, support)
            - distribution(other_sizes, other_weights, support)
        ).max()
    )


def distribution(sizes: ArrayLike, weights: ArrayLike, at: ArrayLike) -> Array:
    """The share of weight at values of at most `at` (m,), each."""
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


def relative_error(found: float, expected: float) -> float:
    """|found - expected| / |expected|; 0 where both are 0, infinite where only `expected` is."""
    if found == expected:
        return 0.0
    return abs(found - expected) / abs(expected) if expected else float("inf")


def explained_share(observed: ArrayLike, modelled: ArrayLike) -> float:
    """The share of the variance of `observed` (n,) that `modelled` (n,) explains: R squared.

    0 where the observed values are all the same; negative where the mean would do better.
    """
    values, model = np.asarray(observed, float), np.asarray(modelled, float)
    scatter = float(((values - values.mean()) ** 2).sum())
    return 0.0 if scatter == 0 else 1.0 - float(((values - model) ** 2).sum()) / scatter
