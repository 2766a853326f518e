"""Whether the axes of a grid act independently: a pure function of an array."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats as distributions


@dataclass(frozen=True)
class Interaction:
    """How far a grid is from a product of one factor per axis.

    `largest` is the largest factor, above 1, by which a cell is away from that product, and `cell`
    its index on each axis. `p_value` is that of an F test of all such deviations against the
    scatter of the repeats; None with a single repeat, which shows no scatter.
    """

    largest: float
    cell: tuple[int, ...]
    p_value: float | None


def interaction(values: NDArray[np.float64]) -> Interaction | None:
    """The interaction in `values`, of shape (n1, ..., nk, repeats), all finite and above zero.

    Axes of length one count for nothing; None where fewer than two are longer. On logarithms, what
    no sum of one term per axis explains is compared with what neither cells nor repeats explain
    (repeats are blocks: what a whole round has in common cancels); F test of the analysis of
    variance (R. A. Fisher, "The Design of Experiments", 1935, chapters IV and VI).

    Raises ValueError for values that are not finite and above zero.
    """
    values = np.asarray(values, dtype=np.float64)
    if not (np.isfinite(values).all() and (values > 0.0).all()):
        raise ValueError("values must be finite and above zero")
    sizes, repeats = values.shape[:-1], values.shape[-1]
    if sum(size > 1 for size in sizes) < 2:
        return None
    logs = np.log(values)
    cells = logs.mean(axis=-1)
    beyond = cells - _additive(cells)
    worst = np.unravel_index(int(np.argmax(np.abs(beyond))), cells.shape)
    return Interaction(
        largest=math.exp(float(np.abs(beyond).max())),
        cell=tuple(int(index) for index in worst),
        p_value=_p_value(logs, cells, beyond) if repeats > 1 else None,
    )


def _additive(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    """The best sum of one term per axis; in a full grid the terms are the marginal means."""
    grand = cells.mean()
    fitted = np.full_like(cells, grand)
    for axis in range(cells.ndim):
        others = tuple(other for other in range(cells.ndim) if other != axis)
        fitted = fitted + (cells.mean(axis=others, keepdims=True) - grand)
    return fitted


def _p_value(
    logs: NDArray[np.float64], cells: NDArray[np.float64], beyond: NDArray[np.float64]
) -> float:
    repeats = logs.shape[-1]
    rounds = logs.reshape(-1, repeats).mean(axis=0)
    scatter = logs - cells[..., np.newaxis] - (rounds - rounds.mean())
    error_freedom = (cells.size - 1) * (repeats - 1)
    freedom = cells.size - 1 - sum(size - 1 for size in cells.shape)
    error = float((scatter**2).sum()) / error_freedom
    found = repeats * float((beyond**2).sum()) / freedom
    # Sums of squares of logs that are equal but for rounding are no evidence of anything.
    if found <= 1e-24:
        return 1.0
    if error <= 1e-24:
        return 0.0
    return float(distributions.f.sf(found / error, freedom, error_freedom))
