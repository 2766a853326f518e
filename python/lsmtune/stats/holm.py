"""Holm's correction of many tests made at once: a pure function of p-values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def holm_adjusted(
    p_values: Sequence[float] | NDArray[np.float64],
) -> NDArray[np.float64]:
    """The adjusted p-values of m tests, in their order, each at least as large as its own.

    Rejecting where the adjusted value is at most alpha makes any wrong rejection among all m tests
    with probability alpha at most, however the tests depend on each other (S. Holm, "A simple
    sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979).

    Raises ValueError for another shape, and for a value outside 0 to 1.
    """
    found = np.asarray(p_values, dtype=np.float64)
    if found.ndim != 1:
        raise ValueError(f"p-values must be one-dimensional, found shape {found.shape}")
    if not ((found >= 0.0) & (found <= 1.0)).all():
        raise ValueError("p-values must lie between 0 and 1")
    order = np.argsort(found, kind="stable")
    stepped = np.maximum.accumulate(found[order] * np.arange(len(found), 0, -1))
    adjusted = np.empty_like(found)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
