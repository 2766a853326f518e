"""The optimum of the landscape, by search with the noiseless function at a million points a second.

    .venv/bin/python benchmarks/samplers/optimum.py

From each of many random starts: neighbours of the best points, round after round, until nothing
improves; then every value of every single variable and every pair of neighbouring values of two
variables around the best, until that finds nothing either. Prints what all the starts ended at, and
the best configuration. `landscape.OPTIMUM_OPS_S` holds the result.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from landscape import FloatArray, columns_of, make_landscape_space, throughput_ops_s

from lsmtune.search.model_based import neighbours
from lsmtune.search.unit_space import UnitSpace, make_unit_space

BEAM = 20
NEIGHBOURS = 20_000
VALUES_MAX = 600  # of one variable, spread evenly over its coordinate


def score(unit_space: UnitSpace, points: FloatArray) -> FloatArray:
    """Noiseless throughput, ops/s, minus infinity where the store is killed."""
    return np.nan_to_num(throughput_ops_s(columns_of(unit_space, points)), nan=-np.inf)


def climb(
    unit_space: UnitSpace, rng: np.random.Generator, patience: int = 8
) -> tuple[FloatArray, float]:
    """The best point (1, dimensions) that one start leads to."""
    points = unit_space.sample(rng, NEIGHBOURS)
    scores = score(unit_space, points)
    best, idle = -np.inf, 0
    while idle < patience:
        order = np.argsort(-scores, kind="stable")[:BEAM]
        points, scores = points[order], scores[order]
        idle = idle + 1 if scores[0] <= best else 0
        best = float(scores[0])
        near = neighbours(unit_space, rng, points, NEIGHBOURS // BEAM)
        points = np.vstack([points, near])
        scores = np.concatenate([scores, score(unit_space, near)])
    return points[:1], best


def polish(unit_space: UnitSpace, point: FloatArray, value: float) -> tuple[FloatArray, float]:
    """Every value of one variable, and every pair of steps of two, until none is better."""
    while True:
        around = np.vstack([_singles(unit_space, point), _pairs(unit_space, point)])
        values = score(unit_space, around)
        best = int(np.argmax(values))
        if values[best] <= value:
            return point, value
        point, value = around[best : best + 1], float(values[best])


def _singles(unit_space: UnitSpace, point: FloatArray) -> FloatArray:
    full = np.nan_to_num(point, nan=0.5)
    blocks = []
    for index in range(unit_space.dimension_count):
        block = np.repeat(full, VALUES_MAX, axis=0)
        block[:, index] = (np.arange(VALUES_MAX) + 0.5) / VALUES_MAX
        blocks.append(block)
    return unit_space.complete(np.vstack(blocks))


def _pairs(unit_space: UnitSpace, point: FloatArray) -> FloatArray:
    full = np.nan_to_num(point, nan=0.5)
    steps = np.array(list(itertools.product((-2, -1, 0, 1, 2), repeat=2)))
    widths = [
        1 / c.scale.cells if 0 < c.scale.cells < 200 else 0.005 for c in unit_space.dimensions
    ]
    blocks = []
    for one, two in itertools.combinations(range(unit_space.dimension_count), 2):
        block = np.repeat(full, len(steps), axis=0)
        block[:, one] += steps[:, 0] * widths[one]
        block[:, two] += steps[:, 1] * widths[two]
        blocks.append(np.clip(block, 0.0, 1.0))
    return unit_space.complete(np.vstack(blocks))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    unit_space = make_unit_space(make_landscape_space())
    ends = []
    for start in range(arguments.starts):
        rng = np.random.default_rng([arguments.seed, start])
        ends.append(polish(unit_space, *climb(unit_space, rng)))
    values = np.array([value for _, value in ends])
    point = ends[int(np.argmax(values))][0]
    within = int(np.sum(values > values.max() * (1 - 1e-4)))
    print(f"{values.max():.3f} ops/s; {within} of {len(values)} starts ended within 0.01 % of it")
    print(f"the others: {sorted({round(float(v), 1) for v in values})}")
    print(unit_space.decode(point[0]))


if __name__ == "__main__":
    main()
