"""The unit cube of a Space: every Optuna variable is one coordinate in [0, 1].

A *point* is a row of coordinates in the order of `Cube.columns`, NaN where the variable is not
active: its parameter's conditions do not hold, or the selector picked a special value. What is
active is known without asking a trial, for thousands of points at once, so a sampler can rank
candidates before one is asked for.

Models see points as *features*. Trees get the coordinates with `INACTIVE` in place of NaN: it lies
outside the unit interval, so one split tells active from inactive, and a categorical is its cell's
coordinate. Distances get `0.5` in place of NaN (the value of an inactive variable must not move a
point) and one column per cell of each unordered variable, of height `1/sqrt(2)`, so that any two
choices are at distance 1; activity needs no column of its own, because the variables that decide it
have theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from optuna.distributions import BaseDistribution

from lsmtune.records.config import OptionValue
from lsmtune.samplers.column import (
    Column,
    FloatArray,
    make_column,
    make_quantile_column,
    make_selector_column,
)
from lsmtune.space import Condition, Parameter, Space
from lsmtune.space.range import Number, Range

BoolArray = npt.NDArray[np.bool_]

INACTIVE = -1.0
# A prior over more numbers than this is one continuum of quantiles.
QUANTILES_MAX = 1000
_ONE_HOT = math.sqrt(0.5)


@dataclass(frozen=True)
class Cube:
    """The cube of `space`; `columns` are its variables, in the order of `space.distributions()`."""

    space: Space
    columns: tuple[Column, ...]

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The index of each variable's column."""
        return {column.name: index for index, column in enumerate(self.columns)}

    @property
    def dimensions(self) -> int:
        """The number of coordinates."""
        return len(self.columns)

    def draw(self, rng: np.random.Generator, count: int) -> FloatArray:
        """`count` points as the random sampler draws them; shape (count, dimensions)."""
        return self.complete(rng.random((count, self.dimensions)))

    def complete(self, points: FloatArray) -> FloatArray:
        """Points of full coordinates, each coordinate snapped, and NaN where it is not active."""
        snapped = self.snap(points)
        return np.where(self.active(snapped), snapped, np.nan)

    def snap(self, points: FloatArray) -> FloatArray:
        """Coordinates in [0, 1], each moved to the one of its value; shape (n, dimensions)."""
        snapped = np.empty_like(points)
        for index, column in enumerate(self.columns):
            snapped[:, index] = column.snap(points[:, index])
        return snapped

    def active(self, points: FloatArray) -> BoolArray:
        """Which coordinates of snapped points are of an active variable; shape as `points`."""
        marks = np.ones(points.shape, dtype=np.bool_)
        parameters: dict[str, BoolArray] = {}
        for parameter in self.space.evaluation_order:
            active = np.ones(len(points), dtype=np.bool_)
            for condition in parameter.conditions:
                active &= parameters[condition.name] & self._has_one_of(points, condition)
            parameters[parameter.name] = active
            own = self.position[parameter.variable]
            marks[:, own] = active
            if parameter.selector is not None:
                selector = self.position[parameter.selector]
                marks[:, selector] = active
                in_range = self.columns[selector].index(points[:, selector]) == len(
                    parameter.specials
                )
                marks[:, own] = active & in_range
        return marks

    def encode(self, rows: Sequence[Mapping[str, object]]) -> FloatArray:
        """The points of trials, given as `trial.params`; shape (len(rows), dimensions).

        A variable that a trial lacks is one that was not active.
        """
        points = np.full((len(rows), self.dimensions), np.nan)
        for row, params in enumerate(rows):
            for name, value in params.items():
                index = self.position.get(name)
                if index is not None:
                    points[row, index] = self.columns[index].internal(value)
        for index, column in enumerate(self.columns):
            known = ~np.isnan(points[:, index])
            points[known, index] = column.scale.to_unit(points[known, index])
        return points

    def decode(self, point: FloatArray) -> dict[str, object]:
        """The values of the active variables of one point; shape (dimensions,)."""
        return {
            column.name: column.external(float(column.scale.from_unit(point[index : index + 1])[0]))
            for index, column in enumerate(self.columns)
            if not math.isnan(point[index])
        }

    def tree_features(self, points: FloatArray) -> FloatArray:
        """Points as trees see them; shape as `points`."""
        return np.where(np.isnan(points), INACTIVE, points)

    def distance_features(self, points: FloatArray) -> FloatArray:
        """Points as distances see them; shape (n, features)."""
        blocks = []
        for index, column in enumerate(self.columns):
            values = points[:, index]
            if column.ordered:
                blocks.append(np.where(np.isnan(values), 0.5, values)[:, np.newaxis])
                continue
            block = np.zeros((len(points), column.scale.cells))
            known = np.flatnonzero(~np.isnan(values))
            block[known, column.index(values[known])] = _ONE_HOT
            blocks.append(block)
        return np.hstack(blocks)

    def _has_one_of(self, points: FloatArray, condition: Condition) -> BoolArray:
        """Where the parameter that `condition` names, if active, has one of its values."""
        parameter = self.space[condition.name]
        found = np.zeros(len(points), dtype=np.bool_)
        for value in condition.values:
            found |= self._has(points, parameter, value)
        return found

    def _has(self, points: FloatArray, parameter: Parameter, value: OptionValue) -> BoolArray:
        """Where `parameter`, if active, has `value`: all its variables are in that value's cells.

        A float without a step has a given value with probability zero; only the exact one counts.
        """
        found = np.ones(len(points), dtype=np.bool_)
        for name, wanted in parameter.variables_of(value).items():
            index = self.position[name]
            column = self.columns[index]
            unit = column.scale.to_unit(np.array([column.internal(wanted)]))
            found &= points[:, index] == unit[0]
        return found


def make_cube(space: Space) -> Cube:
    """The cube of `space`. Raises `ValueError` for a distribution that Optuna does not know."""
    columns = [
        _column(parameter, name, distribution)
        for parameter in space.evaluation_order
        for name, distribution in parameter.distributions().items()
    ]
    return Cube(space, tuple(columns))


def _column(parameter: Parameter, name: str, distribution: BaseDistribution) -> Column:
    if name == parameter.selector:
        return make_selector_column(name, distribution, [s.weight for s in parameter.specials])
    if parameter.prior is not None:
        quantiles = _quantiles(parameter)
        if quantiles:
            return make_quantile_column(name, distribution, quantiles)
    return make_column(name, distribution)


def _quantiles(parameter: Parameter) -> list[float]:
    """The quantiles that stand for the numbers of a prior; none if they are too many to list."""
    numbers = parameter.numbers
    if numbers is None:
        return []
    reached = (number for number in _listed(numbers) if parameter.contains(number))
    return [float(parameter.variables_of(number)[parameter.variable]) for number in reached]


def _listed(numbers: Range) -> Sequence[Number]:
    """Every number of the range, ascending; none if it is a continuum or they are too many."""
    if numbers.binned:
        return numbers.binned
    step = 1 if numbers.integer and numbers.step is None else numbers.step
    if step is None:
        return ()
    count = round((numbers.high - numbers.low) / step) + 1
    if count > QUANTILES_MAX:
        return ()
    return [numbers.on_grid(numbers.low + index * step) for index in range(count)]
