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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

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
        # A cell holds its lower end and not its upper one, as `space.special.selected` has it.
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
