"""Fronts of several objectives, axes that act independently, and counts of distinct things.

A point beats ("dominates") another when it is as good in every column and better in one (V. Pareto,
"Cours d'economie politique", 1896; K. Miettinen, "Nonlinear Multiobjective Optimization", 1999,
definition 2.2.1).

Distinct things are counted in constant memory by HyperLogLog: P. Flajolet, E. Fusy, O. Gandouet, F.
Meunier, "HyperLogLog: the analysis of a near-optimal cardinality estimation algorithm" (AofA 2007),
with 64-bit hashes, which need no correction for large counts, and linear counting for small ones
(K.-Y. Whang and others, TODS 1990).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray


def front(points: Sequence[Sequence[float]], maximize: Sequence[bool]) -> list[int]:
    """The indices of the points that no other beats, in the order of `points`.

    `points` are n rows of k values; `maximize` says for each of the k columns whether more is
    better. Points that are alike do not beat each other: all of them are on the front.

    Raises ValueError for rows of another length and for values that are not a number; infinite
    values count as the best or the worst.
    """
    if any(len(row) != len(maximize) for row in points):
        raise ValueError(f"every point must have {len(maximize)} values")
    rows = np.asarray(points, dtype=np.float64).reshape(len(points), len(maximize))
    if np.isnan(rows).any():
        raise ValueError("a point has a value that is not a number")
    losses = rows * np.where(np.asarray(maximize, dtype=bool), -1.0, 1.0)
    return [
        number
        for number, row in enumerate(losses)
        if not ((losses <= row).all(axis=1) & (losses < row).any(axis=1)).any()
    ]


# --- axes


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
    # The best sum of one term per axis; in a full grid the terms are the marginal means.
    additive = np.full_like(cells, cells.mean())
    for axis in range(cells.ndim):
        others = tuple(other for other in range(cells.ndim) if other != axis)
        additive = additive + (cells.mean(axis=others, keepdims=True) - cells.mean())
    beyond = cells - additive
    worst = np.unravel_index(int(np.argmax(np.abs(beyond))), cells.shape)
    return Interaction(
        largest=math.exp(float(np.abs(beyond).max())),
        cell=tuple(int(index) for index in worst),
        p_value=_p_value(logs, cells, beyond) if repeats > 1 else None,
    )


def _p_value(
    logs: NDArray[np.float64], cells: NDArray[np.float64], beyond: NDArray[np.float64]
) -> float:
    repeats = logs.shape[-1]
    rounds = logs.reshape(-1, repeats).mean(axis=0)
    scatter = logs - cells[..., np.newaxis] - (rounds - rounds.mean())
    error_freedom = (cells.size - 1) * (repeats - 1)
    freedom = cells.size - 1 - sum(size - 1 for size in cells.shape)
    error = float((scatter**2).sum()) / error_freedom
    between = repeats * float((beyond**2).sum()) / freedom
    # Sums of squares of logs that are equal but for rounding are no evidence of anything.
    if between <= 1e-24:
        return 1.0
    if error <= 1e-24:
        return 0.0
    return float(scipy.stats.f.sf(between / error, freedom, error_freedom))


# --- distinct things

_INDEX_BITS = 14
_REGISTERS = 1 << _INDEX_BITS
_REST_BITS = 64 - _INDEX_BITS
_ALPHA = 0.7213 / (1 + 1.079 / _REGISTERS)
_LINEAR_UP_TO = 2.5 * _REGISTERS

RELATIVE_ERROR = 1.04 / math.sqrt(_REGISTERS)


class DistinctCounter:
    """Counts the different things it is shown, to about RELATIVE_ERROR, in 16 KiB."""

    def __init__(self) -> None:
        self._registers = bytearray(_REGISTERS)

    def add(self, item: bytes) -> None:
        """Take note of `item`; a second time changes nothing."""
        digest = hashlib.blake2b(item, digest_size=8).digest()
        word = int.from_bytes(digest, "little")
        rest = word >> _INDEX_BITS
        rank = _REST_BITS - rest.bit_length() + 1
        index = word & (_REGISTERS - 1)
        if rank > self._registers[index]:
            self._registers[index] = rank

    def count(self) -> int:
        """The estimate; 0 before the first item."""
        raw = _ALPHA * _REGISTERS**2 / math.fsum(math.ldexp(1.0, -rank) for rank in self._registers)
        empty = self._registers.count(0)
        if raw <= _LINEAR_UP_TO and empty:
            return round(_REGISTERS * math.log(_REGISTERS / empty))
        return round(raw)
