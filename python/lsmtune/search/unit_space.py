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
from typing import Any

import numpy as np
import numpy.typing as npt
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from lsmtune.model.config import OptionValue
from lsmtune.search.sampler import suggestion_of
from lsmtune.space.parameter import Parameter
from lsmtune.space.space import Space

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Column = npt.NDArray[Any]

# Coordinates of a continuum are rounded, so that a value has the same one after a logarithm and
# back: points are compared bit by bit.
DIGITS = 12
# What a tree sees of a variable that is not active.
INACTIVE = -1.0
# A prior over more numbers than this is one continuum of quantiles.
QUANTILES_MAX = 1000
_ONE_HOT = math.sqrt(0.5)


@dataclass(frozen=True)
class NumberScale:
    """The numbers from `low` to `high`: a continuum without a `step`, else as many cells.

    Scales map Optuna's internal numbers (a number, a choice's index) to the unit interval and back.
    On a log scale a step is 1.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    @property
    def cells(self) -> int:
        """How many values there are; 0 for a continuum."""
        return 0 if self.step is None else round((self.high - self.low) / self.step) + 1

    def to_unit(self, internal: FloatArray) -> FloatArray:
        """The coordinates of internal numbers, each inside its cell; the inverse of `from_unit`."""
        if self.step is not None and not self.log:
            return (np.rint((internal - self.low) / self.step) + 0.5) / self.cells
        start, width = self._span
        unit: FloatArray = ((np.log(internal) if self.log else internal) - start) / (width or 1.0)
        if self.step is not None:
            return unit
        return np.round(unit, DIGITS) if width else np.full(internal.shape, 0.5)

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """The internal numbers at coordinates in [0, 1]."""
        if self.step is not None and not self.log:
            index = np.minimum(np.floor(unit * self.cells), self.cells - 1)
            numbers = self.low + index * self.step
        else:
            start, width = self._span
            exact = np.exp(start + unit * width) if self.log else start + unit * width
            numbers = exact if self.step is None else np.rint(exact)
        # Only what rounding carried over a bound is moved, which Optuna would refuse.
        inside: FloatArray = np.clip(numbers, self.low, self.high)
        return inside

    def values(self) -> FloatArray:
        """The internal number of every cell in ascending order; none for a continuum."""
        steps = np.arange(self.cells, dtype=np.float64) * (self.step or 1.0)
        numbers: FloatArray = np.minimum(self.low + steps, self.high)
        return numbers

    @property
    def _span(self) -> tuple[float, float]:
        """Where the unit interval begins, and its width, in the logarithm on a log scale."""
        margin = 0.0 if self.step is None else 0.5
        low, high = self.low - margin, self.high + margin
        if not self.log:
            return low, high - low
        return math.log(low), math.log(high / low)


@dataclass(frozen=True)
class Shares:
    """Cells that end at `ends` (ascending, the last is 1); the number is the coordinate itself."""

    ends: tuple[float, ...]

    @property
    def cells(self) -> int:
        """See `NumberScale`, as below."""
        return len(self.ends)

    def index(self, unit: FloatArray) -> npt.NDArray[np.intp]:
        """Which cell holds each coordinate."""
        # A cell holds its lower end and not its upper one, as `space.parameter.selected` has it.
        return np.searchsorted(np.array(self.ends[:-1]), unit, side="right")

    def to_unit(self, internal: FloatArray) -> FloatArray:
        """See `NumberScale`."""
        unit: FloatArray = self.values()[self.index(internal)]
        return unit

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """See `NumberScale`."""
        return self.to_unit(unit)

    def values(self) -> FloatArray:
        """See `NumberScale`: the middles, but of a cell so narrow that this is its end."""
        starts, ends = np.array((0.0, *self.ends[:-1])), np.array(self.ends)
        middles = (starts + ends) / 2
        return np.where(middles < ends, middles, starts)


@dataclass(frozen=True)
class Dimension:
    """The variable `name` with its Optuna distribution and its scale.

    `ordered` is False where neighbouring cells have nothing in common: categoricals and selectors.
    """

    name: str
    distribution: BaseDistribution
    scale: NumberScale | Shares
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
    if isinstance(distribution, CategoricalDistribution):
        scale = NumberScale(0.0, len(distribution.choices) - 1.0, step=1.0)
        return Dimension(name, distribution, scale, ordered=False)
    if isinstance(distribution, FloatDistribution | IntDistribution):
        low, high, step = distribution.low, distribution.high, distribution.step
        scale = NumberScale(low, high, distribution.log, step)
        return Dimension(name, distribution, scale, ordered=True)
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
                parent = self.space[condition.name]
                holds = [self._has(points, parent, value) for value in condition.values]
                active &= parameters[condition.name] & np.any(holds, axis=0)
            parameters[parameter.name] = active
            own = self.position[parameter.variable]
            marks[:, own] = active
            if parameter.selector is not None:
                selector = self.position[parameter.selector]
                marks[:, selector] = active
                cells = self.dimensions[selector].index(points[:, selector])
                marks[:, own] = active & (cells == len(parameter.specials))
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

    def values_at(self, point: FloatArray) -> dict[str, OptionValue]:
        """The options at one point; shape (dimensions,)."""
        return dict(suggestion_of(self.space, self.decode(point)).values)

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

    def column(
        self, points: FloatArray, name: str, default: OptionValue | None = None
    ) -> Column | None:
        """The values of the option `name` at `points`; None where nobody knows one.

        Where its parameter is not active, and where there is none, it has the engine's `default`.
        """
        parameter = self.space.by_name.get(name)
        if parameter is None:
            return None if default is None else np.full(len(points), default)
        default = parameter.default if default is None else default
        values, inactive = self._values(parameter, points)
        if inactive.any():
            if default is None:
                return None
            values = np.where(inactive, default, values)
        return values

    def _values(self, parameter: Parameter, points: FloatArray) -> tuple[Column, BoolArray]:
        """By point, and where the parameter is not active; there the value means nothing."""
        own = self.position[parameter.variable]
        dimension, coordinates = self.dimensions[own], points[:, own]
        inactive = np.isnan(coordinates)
        known = np.where(inactive, 0.5, coordinates)
        if parameter.numbers is None:
            return np.array(parameter.choices, dtype=object)[dimension.index(known)], inactive
        drawn, which = np.unique(dimension.scale.from_unit(known), return_inverse=True)
        whole = parameter.numbers.integer and parameter.prior is None
        numbers = [parameter.value_of(int(n) if whole else float(n)) for n in drawn]
        values = np.array(numbers, dtype=np.float64)[which]
        if parameter.selector is not None:
            selector = self.position[parameter.selector]
            picked = points[:, selector]
            active = ~np.isnan(picked)
            cells = self.dimensions[selector].index(np.where(active, picked, 1.0))
            for index, special in enumerate(parameter.specials):
                is_special = active & (cells == index)
                values[is_special], inactive = special.value, inactive & ~is_special
        return values, inactive

    def _has(self, points: FloatArray, parameter: Parameter, value: OptionValue) -> BoolArray:
        """Where `parameter`, if active, has `value`: all its variables are in that value's cells.

        A float without a step has a given value with probability zero; only the exact one counts.
        """
        holds = np.ones(len(points), dtype=np.bool_)
        for name, wanted in parameter.variables_of(value).items():
            index = self.position[name]
            dimension, units = self.dimensions[index], points[:, index]
            if parameter.prior is not None and dimension.scale.cells == 0:
                # A continuum of quantiles, of which each number has a part.
                lower, upper = parameter.quantiles_of(value)
                holds &= (units >= lower) & ((units < upper) | (upper >= 1.0))
            else:
                unit = dimension.scale.to_unit(np.array([dimension.internal(wanted)]))
                holds &= units == unit[0]
        return holds


def make_unit_space(space: Space) -> UnitSpace:
    """The unit space of `space`. Raises `ValueError` for a distribution that Optuna lacks."""
    dimensions: list[Dimension] = []
    for parameter in space.evaluation_order:
        ends = _ends_of_prior(parameter)
        for name, distribution in parameter.distributions().items():
            if name == parameter.selector:
                weights = [special.weight for special in parameter.specials]
                shares = Shares((*np.cumsum(weights).tolist(), 1.0))
                dimensions.append(Dimension(name, distribution, shares, ordered=False))
            elif ends:
                dimensions.append(Dimension(name, distribution, Shares(ends), ordered=True))
            else:
                dimensions.append(make_dimension(name, distribution))
    return UnitSpace(space, tuple(dimensions))


def _ends_of_prior(parameter: Parameter) -> tuple[float, ...]:
    """Up to which quantile each number of a prior goes; none if they are too many to list."""
    numbers = parameter.numbers
    if numbers is None or parameter.prior is None:
        return ()
    listed = numbers.binned or numbers.listed(QUANTILES_MAX) or ()
    return tuple(parameter.quantiles_of(n)[1] for n in listed if parameter.contains(n))
