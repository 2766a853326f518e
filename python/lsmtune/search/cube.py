"""A Column: one Optuna variable as one coordinate of the unit interval.

| variable | coordinate |
|---|---|
| float | linear or logarithmic from low (0) to high (1) |
| integer, or float with a step | as many cells of equal width as there are values |
| integer on a log scale | cells from `value - 0.5` to `value + 0.5` in the logarithm |
| categorical | one cell of equal width per choice; only the cell's index means anything |
| selector `<name>?` | one cell per special value, as wide as its weight, and one for the range |
| quantile `<name>~` of a prior | one cell per number, as wide as its probability |

A coordinate drawn uniformly from [0, 1] therefore has exactly the distribution of Optuna's random
sampler. `snap` moves a coordinate to the one that its value has, inside the same cell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from lsmtune.model.config import OptionValue
from lsmtune.space.parameter import Condition, Parameter
from lsmtune.space.range import Number, Range
from lsmtune.space.space import Space

FloatArray = npt.NDArray[np.float64]

# Coordinates of a continuum are rounded, so that a value has the same one after a logarithm and
# back: points are compared bit by bit.
DIGITS = 12


class Scale(Protocol):
    """How Optuna's internal numbers (a choice's index, a number) lie in the unit interval."""

    @property
    def cells(self) -> int:
        """How many values there are; 0 for a continuum."""

    def to_unit(self, internal: FloatArray) -> FloatArray:
        """The coordinates of internal numbers, each inside its cell; the inverse of `from_unit`."""

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """The internal numbers at coordinates in [0, 1]."""

    def values(self) -> FloatArray:
        """The internal number of every cell in ascending order; none for a continuum."""


@dataclass(frozen=True)
class Continuum:
    """A float without a step."""

    low: float
    high: float
    log: bool
    cells: int = 0

    def to_unit(self, internal: FloatArray) -> FloatArray:
        """See `Scale`."""
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        numbers = np.log(internal) if self.log else internal
        if high == low:
            return np.full(internal.shape, 0.5)
        unit: FloatArray = np.round((numbers - low) / (high - low), DIGITS)
        return unit

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """See `Scale`."""
        if self.log:
            numbers = np.exp(math.log(self.low) + unit * math.log(self.high / self.low))
        else:
            numbers = self.low + unit * (self.high - self.low)
        # Only what rounding carried over a bound is moved.
        inside: FloatArray = np.clip(numbers, self.low, self.high)
        return inside

    def values(self) -> FloatArray:
        """See `Scale`."""
        return np.empty(0)


@dataclass(frozen=True)
class EvenCells:
    """`cells` values from `low` in steps of `step`, each with the same width."""

    low: float
    high: float
    step: float
    cells: int

    def to_unit(self, internal: FloatArray) -> FloatArray:
        """See `Scale`."""
        return (np.rint((internal - self.low) / self.step) + 0.5) / self.cells

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """See `Scale`."""
        index = np.minimum(np.floor(unit * self.cells), self.cells - 1)
        # A float's last step can pass `high` by a rounding error, and Optuna refuses it then.
        inside: FloatArray = np.minimum(self.low + index * self.step, self.high)
        return inside

    def values(self) -> FloatArray:
        """See `Scale`."""
        numbers: FloatArray = np.minimum(self.low + np.arange(self.cells) * self.step, self.high)
        return numbers


@dataclass(frozen=True)
class LogCells:
    """The integers from `low` to `high`, each as wide as the logarithm makes it."""

    low: int
    high: int

    @property
    def cells(self) -> int:
        """See `Scale`."""
        return self.high - self.low + 1

    def to_unit(self, internal: FloatArray) -> FloatArray:
        """See `Scale`."""
        unit: FloatArray = (np.log(internal) - self._start) / self._width
        return unit

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """See `Scale`."""
        numbers = np.rint(np.exp(self._start + unit * self._width))
        return np.clip(numbers, self.low, self.high)

    def values(self) -> FloatArray:
        """See `Scale`."""
        return np.arange(self.low, self.high + 1, dtype=np.float64)

    @property
    def _start(self) -> float:
        return math.log(self.low - 0.5)

    @property
    def _width(self) -> float:
        return math.log((self.high + 0.5) / (self.low - 0.5))


@dataclass(frozen=True)
class Shares:
    """Cells that end at `ends` (ascending, the last is 1); the number is the coordinate itself."""

    ends: tuple[float, ...]

    @property
    def cells(self) -> int:
        """See `Scale`."""
        return len(self.ends)

    def index(self, unit: FloatArray) -> npt.NDArray[np.intp]:
        """Which cell holds each coordinate."""
        # A cell holds its lower end and not its upper one, as `space.parameter.selected` has it.
        return np.searchsorted(np.array(self.ends[:-1]), unit, side="right")

    def to_unit(self, internal: FloatArray) -> FloatArray:
        """See `Scale`."""
        unit: FloatArray = self.values()[self.index(internal)]
        return unit

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """See `Scale`."""
        return self.to_unit(unit)

    def values(self) -> FloatArray:
        """See `Scale`."""
        middles: FloatArray = (np.array((0.0, *self.ends[:-1])) + np.array(self.ends)) / 2
        return middles


@dataclass(frozen=True)
class Column:
    """The variable `name` with its Optuna distribution and its scale.

    `ordered` is False where neighbouring cells have nothing in common: categoricals and selectors.
    """

    name: str
    distribution: BaseDistribution
    scale: Scale
    ordered: bool

    def internal(self, value: object) -> float:
        """Optuna's internal number for a value of the variable."""
        return float(self.distribution.to_internal_repr(value))

    def external(self, internal: float) -> object:
        """The value of the variable for Optuna's internal number."""
        return self.distribution.to_external_repr(internal)

    def snap(self, unit: FloatArray) -> FloatArray:
        """Coordinates (any shape), each moved to the one of its value."""
        return self.scale.to_unit(self.scale.from_unit(unit))

    def coordinates(self) -> FloatArray:
        """The coordinate of every cell, ascending; shape (cells,)."""
        return self.scale.to_unit(self.scale.values())

    def index(self, unit: FloatArray) -> npt.NDArray[np.intp]:
        """The cell of each coordinate, for variables that are not ordered."""
        if isinstance(self.scale, Shares):
            return self.scale.index(unit)
        return self.scale.from_unit(unit).astype(np.intp)


def make_column(name: str, distribution: BaseDistribution) -> Column:
    """The column of an Optuna variable. Raises `ValueError` for a kind that Optuna lacks."""
    if isinstance(distribution, CategoricalDistribution):
        count = len(distribution.choices)
        cells = EvenCells(0.0, count - 1.0, 1.0, count)
        return Column(name, distribution, cells, ordered=False)
    if isinstance(distribution, IntDistribution):
        return Column(name, distribution, _integers(distribution), ordered=True)
    if isinstance(distribution, FloatDistribution):
        return Column(name, distribution, _floats(distribution), ordered=True)
    raise ValueError(f"{name}: no such distribution: {distribution}")


def make_selector_column(
    name: str, distribution: BaseDistribution, weights: Sequence[float]
) -> Column:
    """The column of a selector whose special values have `weights` (sum below 1)."""
    ends = (*np.cumsum(weights).tolist(), 1.0)
    return Column(name, distribution, Shares(ends), ordered=False)


def make_quantile_column(
    name: str, distribution: BaseDistribution, middles: Sequence[float]
) -> Column:
    """The column of a quantile; `middles` (ascending) are those that the numbers stand for.

    The first cell begins at 0, and each number stands in the middle of its cell.
    """
    ends: list[float] = []
    for middle in middles:
        ends.append(2 * middle - (ends[-1] if ends else 0.0))
    return Column(name, distribution, Shares((*ends[:-1], 1.0)), ordered=True)


def _integers(distribution: IntDistribution) -> Scale:
    if distribution.log:
        return LogCells(distribution.low, distribution.high)
    count = (distribution.high - distribution.low) // distribution.step + 1
    return EvenCells(distribution.low, distribution.high, distribution.step, count)


def _floats(distribution: FloatDistribution) -> Scale:
    if distribution.step is None:
        return Continuum(distribution.low, distribution.high, distribution.log)
    count = round((distribution.high - distribution.low) / distribution.step) + 1
    return EvenCells(distribution.low, distribution.high, distribution.step, count)


# ----------
# The unit cube of a Space: every Optuna variable is one coordinate in [0, 1].
#
# A *point* is a row of coordinates in the order of `Cube.columns`, NaN where the variable is not
# active: its parameter's conditions do not hold, or the selector picked a special value. What is
# active is known without asking a trial, for thousands of points at once, so a sampler can rank
# candidates before one is asked for.
#
# Models see points as *features*. Trees get the coordinates with `INACTIVE` in place of NaN: it
# lies outside the unit interval, so one split tells active from inactive, and a categorical is its
# cell's coordinate. Distances get `0.5` in place of NaN (the value of an inactive variable must
# not move a point) and one column per cell of each unordered variable, of height `1/sqrt(2)`, so
# that any two choices are at distance 1; activity needs no column of its own, because the
# variables that decide it have theirs.

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
