"""Fronts of several objectives, and counts of distinct things.

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

import numpy as np


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
    left, place = np.arange(len(losses)), 0
    while place < len(left):  # what one point beats is not compared with the others
        beaten = (losses >= losses[place]).all(axis=1) & (losses > losses[place]).any(axis=1)
        left, losses = left[~beaten], losses[~beaten]
        place += 1 - int(beaten[:place].sum())
    return [int(number) for number in left]


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
