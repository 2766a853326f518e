"""How often a cache of a given size would hit, from how hot keys are: pure functions.

H. Che, Y. Tung, Z. Wang, "Hierarchical web caching systems: modeling, design and experimental
results", IEEE JSAC 20, 2002: in a cache that drops what was used longest ago, a key stays for about
the same number of accesses T, whichever it is, and T is the one for which the cache is full.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

Array = NDArray[np.float64]


def hit_ratios(keys: Array, each: Array, capacities: Sequence[float], accesses: float) -> Array:
    """The share of hits (n,) of caches that hold `capacities` (n,) keys and begin empty.

    `keys` (m,) keys draw a share of `each` (m,) each, independently; there are `accesses` of them,
    so that even the largest cache misses what is asked for the first time. Raises ValueError for
    shares that do not add up to 1 within a thousandth, and a capacity or `accesses` below 1.
    """
    whole = float((keys * each).sum())
    if abs(whole - 1.0) > 1e-3:
        raise ValueError(f"shares add up to {whole:g}")
    if accesses < 1 or min(capacities, default=1) < 1:
        raise ValueError("allowed: at least one access, and room for at least one key")
    return np.array([_hits(keys, each, float(room), accesses) for room in capacities])


def _hits(keys: Array, each: Array, room: float, accesses: float) -> float:
    stay = _characteristic_accesses(keys, each, room, accesses)
    # A key is hit when it was asked for in the last `stay` accesses, or since the beginning.
    missed = -np.expm1(-each * stay)
    drawn = np.where(each > 0, each, 1.0)
    since_beginning = stay - missed / drawn
    hit = (since_beginning + (accesses - stay) * missed) / accesses
    return float((keys * each * hit).sum())


def _characteristic_accesses(keys: Array, each: Array, room: float, accesses: float) -> float:
    """Accesses after which an idle key is dropped; all of them where nothing is ever dropped."""

    def filled(stay: float) -> float:
        return float((keys * -np.expm1(-each * stay)).sum()) - room

    if filled(accesses) <= 0:
        return accesses
    return float(optimize.brentq(filled, 0.0, accesses, xtol=1e-3))
