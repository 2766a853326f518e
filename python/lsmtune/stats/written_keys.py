"""How often a read meets a key that was written before: pure functions.

Where operation and key are drawn independently, hot keys are soon written, and most reads of them
find what was written last in memory. In production and in db_bench's `mixgraph` many keys are only
ever read: there the key decides the operation. The model has a share of draws of that kind.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

Array = NDArray[np.float64]


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
        met = float((keys * each * _met(each * written * accesses)).sum())
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
    return float(optimize.brentq(above, 0.0, 1.0, xtol=1e-6))


def _met(expected: Array) -> Array:
    """The mean over time of the chance that one of the writes, Poisson's in number, has been."""
    few = expected < 1e-6
    safe = np.where(few, 1.0, expected)
    return np.asarray(np.where(few, expected / 2.0, 1.0 + np.expm1(-safe) / safe))
