"""How the cube of a space is laid out for CatCMAwM, and how what it draws becomes a point.

| variable | is to CatCMAwM |
|---|---|
| categorical, selector, number of two values | a categorical; selectors begin with their weights |
| number of at most `GRID_MAX` values | a discrete number |
| any other number | continuous in [0, 1] |

A variable of one value is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lsmtune.samplers.column import Column, FloatArray, Shares
from lsmtune.samplers.cube import Cube

if TYPE_CHECKING:
    from cmaes import CatCMAwM

GRID_MAX = 64
# How much of a categorical's first distribution lies on the choice of the start.
START_SHARE = 0.5


@dataclass(frozen=True)
class CmaLayout:
    """Indices of the cube's columns, by what they are to CatCMAwM."""

    cube: Cube
    continuous: tuple[int, ...]
    discrete: tuple[int, ...]
    categorical: tuple[int, ...]

    def make(self, start: FloatArray, sigma: float, population: int | None) -> CatCMAwM:
        """A distribution around `start` (dimensions,), where NaN stands for the middle.

        `sigma` is the standard deviation of every number in units of its range; `population` None
        leaves the number of trials per generation to the library (4 + 3 log(dimensions)).
        """
        # Loaded when it is used: commands that search nothing are not to wait for it.
        from cmaes import CatCMAwM

        numbers = [*self.continuous, *self.discrete]
        mean = np.where(np.isnan(start), 0.5, start)[numbers]
        return CatCMAwM(
            x_space=[[0.0, 1.0]] * len(self.continuous) or None,
            z_space=[self._column(i).coordinates().tolist() for i in self.discrete] or None,
            c_space=[self._column(i).scale.cells for i in self.categorical] or None,
            population_size=population,
            mean=mean if numbers else None,
            sigma=sigma,
            cov=np.eye(len(numbers)) if numbers else None,
            cat_param=self._choices(start) if self.categorical else None,
            seed=0,
        )

    def _choices(self, start: FloatArray) -> FloatArray:
        """The first distributions of the categoricals; shape (categoricals, most choices)."""
        columns = [self._column(index) for index in self.categorical]
        shares = np.zeros((len(columns), max(column.scale.cells for column in columns)))
        for row, (index, column) in enumerate(zip(self.categorical, columns, strict=True)):
            prior = _prior(column)
            shares[row, : len(prior)] = prior
            if not np.isnan(start[index]):
                shares[row] *= 1 - START_SHARE
                shares[row, _nearest(column.coordinates(), start[index])] += START_SHARE
        return shares

    def record(self, solution: CatCMAwM.Solution) -> dict[str, list[float]]:
        """What was drawn, in JSON: all that `point` and `tell` need of `solution`."""
        # `_v_raw` is the normal draw before it was moved into its bounds and onto its grid. It is
        # private, and the library offers no other way to tell a solution after a restart.
        numbers = [] if solution._v_raw is None else solution._v_raw.tolist()
        choices = [] if solution.c is None else np.argmax(solution.c, axis=1).tolist()
        return {"numbers": numbers, "choices": choices}

    def point(self, record: Mapping[str, Sequence[float]]) -> FloatArray:
        """The point that was drawn: each number the nearest that the space has, as the library."""
        coordinates = np.full(self.cube.dimensions, 0.5)
        numbers = np.clip(record["numbers"], 0.0, 1.0)
        coordinates[[*self.continuous, *self.discrete]] = numbers
        for index in self.discrete:
            of_cells = self._column(index).coordinates()
            coordinates[index] = of_cells[_nearest(of_cells, coordinates[index])]
        for index, choice in zip(self.categorical, record["choices"], strict=True):
            coordinates[index] = self._column(index).coordinates()[int(choice)]
        point: FloatArray = self.cube.complete(coordinates[np.newaxis])[0]
        return point

    def solution(self, record: Mapping[str, Sequence[float]]) -> CatCMAwM.Solution:
        """The solution that `record` was made of, as far as `tell` looks at it."""
        from cmaes import CatCMAwM

        chosen = None
        if self.categorical:
            most = max(self._column(index).scale.cells for index in self.categorical)
            chosen = np.zeros((len(self.categorical), most), dtype=np.bool_)
            chosen[np.arange(len(chosen)), np.array(record["choices"], dtype=np.intp)] = True
        return CatCMAwM.Solution(c=chosen, _v_raw=np.array(record["numbers"]))

    def _column(self, index: int) -> Column:
        return self.cube.columns[index]


def _prior(column: Column) -> FloatArray:
    if isinstance(column.scale, Shares):
        return np.diff((0.0, *column.scale.ends))
    return np.full(column.scale.cells, 1 / column.scale.cells)


def _nearest(coordinates: FloatArray, wanted: float) -> int:
    return int(np.argmin(np.abs(coordinates - wanted)))


def make_layout(cube: Cube) -> CmaLayout:
    """The layout of `cube`."""
    cells = [column.scale.cells for column in cube.columns]
    ordered = [column.ordered for column in cube.columns]
    return CmaLayout(
        cube,
        continuous=tuple(i for i, n in enumerate(cells) if n == 0 or (ordered[i] and n > GRID_MAX)),
        discrete=tuple(i for i, n in enumerate(cells) if ordered[i] and 2 < n <= GRID_MAX),
        categorical=tuple(i for i, n in enumerate(cells) if n == 2 or (n > 2 and not ordered[i])),
    )
