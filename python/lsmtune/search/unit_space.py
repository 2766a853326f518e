"""The unit space of a Space: every Optuna variable is one coordinate in [0, 1].

Models and designs work on numbers of one scale, as Optuna's own do on its `_SearchSpaceTransform`.
Here a coordinate also knows its cells, special values and conditions:

| variable | coordinate |
|---|---|
| float | linear or logarithmic from low (0) to high (1) |
| integer, or float with a step | as many cells of equal width as there are values |
| integer on a log scale | cells from `value - 0.5` to `value + 0.5` in the logarithm |
| categorical | one cell of equal width per choice; only the cell's index means anything |
| selector `<name>?` | one cell per special value, as wide as its weight, and one for the range |
| quantile `<name>~` of a prior | one cell per number, as wide as its probability |

A coordinate sampled uniformly from [0, 1] therefore has exactly the distribution of Optuna's random
sampler. To `snap` a coordinate is to move it to the one that its value has, inside the same cell.

A *point* is a row of coordinates in the order of `UnitSpace.dimensions`, NaN where the variable is
not active: its parameter's conditions do not hold, or the selector picked a special value. What is
active is known without asking a trial, for thousands of points at once, so a sampler can rank
candidates before one is asked for.

Models see points as *features*. Trees get the coordinates with `INACTIVE` in place of NaN: it lies
outside the unit interval, so one split tells active from inactive, and a categorical is its cell's
coordinate. Distances get `0.5` in place of NaN (the value of an inactive variable must not move a
point) and one feature per cell of each unordered variable, of height `1/sqrt(2)`, so that any two
choices are at distance 1. Activity needs no feature of its own, because the variables that decide
it have theirs.
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
from lsmtune.space.space import Space

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Coordinates of a continuum are rounded, so that a value has the same one after a logarithm and
# back: points are compared bit by bit.
DIGITS = 12
# What a tree sees of a variable that is not active.
INACTIVE = -1.0
# A prior over more numbers than this is one continuum of quantiles.
QUANTILES_MAX = 1000
_ONE_HOT = math.sqrt(0.5)


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
class Dimension:
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

    def value_at(self, coordinate: float) -> object:
        """The value of the variable at a coordinate in [0, 1]."""
        internal = self.scale.from_unit(np.array([coordinate]))[0]
        return self.distribution.to_external_repr(float(internal))

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


def make_dimension(name: str, distribution: BaseDistribution) -> Dimension:
    """The dimension of an Optuna variable. Raises `ValueError` for a kind that Optuna lacks."""
    ordered = not isinstance(distribution, CategoricalDistribution)
    return Dimension(name, distribution, _scale(name, distribution), ordered)


def _scale(name: str, distribution: BaseDistribution) -> Scale:
    if isinstance(distribution, CategoricalDistribution):
        count = len(distribution.choices)
        return EvenCells(0.0, count - 1.0, 1.0, count)
    if isinstance(distribution, FloatDistribution) and distribution.step is None:
        return Continuum(distribution.low, distribution.high, distribution.log)
    if isinstance(distribution, IntDistribution) and distribution.log:
        return LogCells(distribution.low, distribution.high)
    if isinstance(distribution, FloatDistribution | IntDistribution):
        low, high, step = distribution.low, distribution.high, distribution.step or 1
        return EvenCells(low, high, step, round((high - low) / step) + 1)
    raise ValueError(f"{name}: no such distribution: {distribution}")


@dataclass(frozen=True)
class UnitSpace:
    """`dimensions` are the variables of `space`, in the order of `space.distributions()`."""

    space: Space
    dimensions: tuple[Dimension, ...]

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The index of each variable's dimension."""
        return {dimension.name: index for index, dimension in enumerate(self.dimensions)}

    @property
    def dimension_count(self) -> int:
        """The number of coordinates of a point."""
        return len(self.dimensions)

    def sample(self, rng: np.random.Generator, count: int) -> FloatArray:
        """`count` points as the random sampler draws them; shape (count, dimensions)."""
        return self.complete(rng.random((count, self.dimension_count)))

    def complete(self, points: FloatArray) -> FloatArray:
        """Points of full coordinates, each coordinate snapped, and NaN where it is not active."""
        snapped = self.snap(points)
        return np.where(self.active(snapped), snapped, np.nan)

    def snap(self, points: FloatArray) -> FloatArray:
        """Coordinates in [0, 1], each moved to the one of its value; shape (n, dimensions)."""
        snapped = np.empty_like(points)
        for index, dimension in enumerate(self.dimensions):
            snapped[:, index] = dimension.snap(points[:, index])
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
                in_range = self.dimensions[selector].index(points[:, selector]) == len(
                    parameter.specials
                )
                marks[:, own] = active & in_range
        return marks

    def encode(self, rows: Sequence[Mapping[str, object]]) -> FloatArray:
        """The points of trials, given as `trial.params`; shape (len(rows), dimensions).

        A variable that a trial lacks is one that was not active.
        """
        points = np.full((len(rows), self.dimension_count), np.nan)
        for row, params in enumerate(rows):
            for name, value in params.items():
                index = self.position.get(name)
                if index is not None:
                    points[row, index] = self.dimensions[index].internal(value)
        for index, dimension in enumerate(self.dimensions):
            known = ~np.isnan(points[:, index])
            points[known, index] = dimension.scale.to_unit(points[known, index])
        return points

    def decode(self, point: FloatArray) -> dict[str, object]:
        """The values of the active variables of one point; shape (dimensions,)."""
        return {
            dimension.name: dimension.value_at(coordinate)
            for dimension, coordinate in zip(self.dimensions, point, strict=True)
            if not math.isnan(coordinate)
        }

    def tree_features(self, points: FloatArray) -> FloatArray:
        """Points as trees see them; shape as `points`."""
        return np.where(np.isnan(points), INACTIVE, points)

    def distance_features(self, points: FloatArray) -> FloatArray:
        """Points as distances see them; shape (n, features)."""
        blocks = []
        for index, dimension in enumerate(self.dimensions):
            values = points[:, index]
            if dimension.ordered:
                blocks.append(np.where(np.isnan(values), 0.5, values)[:, np.newaxis])
                continue
            block = np.zeros((len(points), dimension.scale.cells))
            known = np.flatnonzero(~np.isnan(values))
            block[known, dimension.index(values[known])] = _ONE_HOT
            blocks.append(block)
        return np.hstack(blocks)

    def _has_one_of(self, points: FloatArray, condition: Condition) -> BoolArray:
        """Where the parameter that `condition` names, if active, has one of its values."""
        parameter = self.space[condition.name]
        holds = np.zeros(len(points), dtype=np.bool_)
        for value in condition.values:
            holds |= self._has(points, parameter, value)
        return holds

    def _has(self, points: FloatArray, parameter: Parameter, value: OptionValue) -> BoolArray:
        """Where `parameter`, if active, has `value`: all its variables are in that value's cells.

        A float without a step has a given value with probability zero; only the exact one counts.
        """
        holds = np.ones(len(points), dtype=np.bool_)
        for name, wanted in parameter.variables_of(value).items():
            index = self.position[name]
            dimension = self.dimensions[index]
            unit = dimension.scale.to_unit(np.array([dimension.internal(wanted)]))
            holds &= points[:, index] == unit[0]
        return holds


def make_unit_space(space: Space) -> UnitSpace:
    """The unit space of `space`. Raises `ValueError` for a distribution that Optuna lacks."""
    dimensions = [
        _dimension(parameter, name, distribution)
        for parameter in space.evaluation_order
        for name, distribution in parameter.distributions().items()
    ]
    return UnitSpace(space, tuple(dimensions))


def _dimension(parameter: Parameter, name: str, distribution: BaseDistribution) -> Dimension:
    if name == parameter.selector:
        weights = [special.weight for special in parameter.specials]
        shares = Shares((*np.cumsum(weights).tolist(), 1.0))
        return Dimension(name, distribution, shares, ordered=False)
    quantiles = [] if parameter.prior is None else _quantiles(parameter)
    if not quantiles:
        return make_dimension(name, distribution)
    # The first cell begins at 0, and each number's quantile is the middle of its cell.
    ends: list[float] = []
    for quantile in quantiles:
        ends.append(2 * quantile - (ends[-1] if ends else 0.0))
    return Dimension(name, distribution, Shares((*ends[:-1], 1.0)), ordered=True)


def _quantiles(parameter: Parameter) -> list[float]:
    """The quantiles that stand for the numbers of a prior; none if they are too many to list."""
    numbers = parameter.numbers
    if numbers is None:
        return []
    listed = numbers.binned or numbers.listed(QUANTILES_MAX) or ()
    reached = (number for number in listed if parameter.contains(number))
    return [float(parameter.variables_of(number)[parameter.variable]) for number in reached]
