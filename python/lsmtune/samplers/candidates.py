"""Candidates: points near good ones, and the search for the point that a score likes best.

Model-based samplers rank candidates instead of following gradients: half of the options of an
engine are categorical, stepped or conditional, and a tree has no gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Set

import numpy as np
import numpy.typing as npt

from lsmtune.samplers.column import FloatArray
from lsmtune.samplers.cube import Cube

# Standard deviations of a changed coordinate, one drawn per neighbour: from a nudge to a leap.
STEP_SIZES = (0.02, 0.08, 0.3)
# The mean number of further coordinates that change together with the first one.
FURTHER_CHANGES = 1.0

Score = Callable[[FloatArray], FloatArray]


def neighbours(
    cube: Cube, rng: np.random.Generator, points: FloatArray, count_each: int
) -> FloatArray:
    """`count_each` neighbours of every point; shape (len(points) * count_each, dimensions).

    One coordinate, and sometimes a few more, takes a normal step that is reflected at the bounds;
    an unordered one is drawn anew. A variable that becomes active by that is drawn at random.
    """
    full = np.where(np.isnan(points), rng.random(points.shape), points)
    origin = np.repeat(full, count_each, axis=0)
    total, dimensions = origin.shape
    changes = rng.random(origin.shape) < FURTHER_CHANGES / dimensions
    changes[np.arange(total), _active_column(rng, np.repeat(points, count_each, axis=0))] = True
    sizes = rng.choice(STEP_SIZES, size=(total, 1))
    # A step smaller than a cell would leave the value as it is.
    widths = np.array([1 / c.scale.cells if c.scale.cells else 0.0 for c in cube.columns])
    stepped = _reflected(origin + rng.normal(size=origin.shape) * np.maximum(sizes, widths))
    ordered = np.array([column.ordered for column in cube.columns])
    moved = np.where(ordered, stepped, rng.random(origin.shape))
    return cube.complete(np.where(changes, moved, origin))


def _active_column(rng: np.random.Generator, points: FloatArray) -> npt.NDArray[np.intp]:
    """One active coordinate of each point, each equally likely; shape (len(points),)."""
    chances = np.where(np.isnan(points), -1.0, rng.random(points.shape))
    chosen: npt.NDArray[np.intp] = np.argmax(chances, axis=1)
    return chosen


def _reflected(coordinates: FloatArray) -> FloatArray:
    """Coordinates folded back into [0, 1], as often as it takes."""
    folded = np.mod(coordinates, 2.0)
    return np.minimum(folded, 2.0 - folded)


def ranked(
    cube: Cube,
    rng: np.random.Generator,
    score: Score,
    starts: FloatArray,
    known: Set[bytes],
    *,
    drawn: int,
    near: int,
    rounds: int,
    beam: int = 10,
) -> FloatArray:
    """New points, best score first; none is `known`, none comes twice.

    `drawn` random points and `near` neighbours of `starts` are scored (higher is better); then, in
    `rounds` rounds, `near` neighbours of the `beam` best so far. Shape (n, dimensions), n may be 0
    where a small space holds nothing new.
    """
    pool = [cube.draw(rng, drawn)]
    if len(starts):
        pool.append(neighbours(cube, rng, starts, max(1, near // len(starts))))
    points = np.vstack(pool)
    scores = score(points)
    for _ in range(rounds):
        best = points[np.argsort(-scores, kind="stable")[:beam]]
        more = neighbours(cube, rng, best, max(1, near // len(best)))
        points, scores = np.vstack([points, more]), np.concatenate([scores, score(more)])
    return _new_points(points[np.argsort(-scores, kind="stable")], known)


def _new_points(points: FloatArray, known: Set[bytes]) -> FloatArray:
    seen = set(known)
    rows = []
    for index, row in enumerate(points):
        text = row.tobytes()
        if text not in seen:
            seen.add(text)
            rows.append(index)
    return points[rows]
