"""The points that no other point beats: pure functions of arrays.

A point beats ("dominates") another when it is as good in every column and better in one (V. Pareto,
"Cours d'economie politique", 1896; K. Miettinen, "Nonlinear Multiobjective Optimization", 1999,
definition 2.2.1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def front(points: Sequence[Sequence[float]], maximize: Sequence[bool]) -> list[int]:
    """The indices of the points that no other beats, in the order of `points`.

    `points` are n rows of k values; `maximize` says for each of the k columns whether more is
    better. Points that are alike do not beat each other: all of them are on the front.

    Raises ValueError for rows of another length and for values that are not a number; infinite
    values count as the best or the worst.
    """
    losses = _losses(points, maximize)
    return [number for number, row in enumerate(losses) if not _beaten(row, losses)]


def _losses(points: Sequence[Sequence[float]], maximize: Sequence[bool]) -> NDArray[np.float64]:
    """`points` as rows of which less is better."""
    if any(len(row) != len(maximize) for row in points):
        raise ValueError(f"every point must have {len(maximize)} values")
    rows = np.asarray(points, dtype=np.float64).reshape(len(points), len(maximize))
    if np.isnan(rows).any():
        raise ValueError("a point has a value that is not a number")
    return rows * np.where(np.asarray(maximize, dtype=bool), -1.0, 1.0)


def _beaten(row: NDArray[np.float64], losses: NDArray[np.float64]) -> bool:
    as_good = (losses <= row).all(axis=1)
    better = (losses < row).any(axis=1)
    return bool((as_good & better).any())
