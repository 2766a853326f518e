"""Best values on the edge of a range, and a wider range to try: the optimum may lie beyond."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lsmtune.records.config import OptionValue
from lsmtune.space import Parameter, Range

# How far a range is widened on the side of the edge: by a factor on a log scale, else by a share
# of its width. Two doublings reach a new region without leaving most of the old one behind.
_FACTOR = 4
_SHARE = 0.5


@dataclass(frozen=True)
class Edge:
    """`value` of `parameter` is its `side` (`low` or `high`); `proposed` is the range to try next.

    `proposed` is None where nothing sensible lies beyond (a range that begins at zero or one).
    """

    parameter: Parameter
    side: str
    value: OptionValue
    proposed: tuple[float, float] | None

    def needs_finer_step(self) -> bool:
        """Whether the proposed range does not lie on the grid of the parameter's step."""
        numbers = self.parameter.numbers
        if numbers is None or numbers.step is None or self.proposed is None:
            return False
        steps = (numbers.low - self.proposed[0]) / numbers.step
        return not math.isclose(steps, round(steps), abs_tol=1e-6)


def edges(parameters: tuple[Parameter, ...], options: Mapping[str, OptionValue]) -> list[Edge]:
    """The parameters whose value in `options` lies on a bound of its range."""
    found = []
    for parameter in parameters:
        value = options.get(parameter.name)
        if value is None or parameter.numbers is None:
            continue
        side = parameter.on_edge(value)
        if side is not None:
            found.append(Edge(parameter, side, value, proposed_range(parameter.numbers, side)))
    return found


def proposed_range(numbers: Range, side: str) -> tuple[float, float] | None:
    """`numbers` widened on `side`, on the grid of its step, or None where it cannot be."""
    if side == "high":
        return numbers.low, _on_grid(numbers, _beyond_high(numbers))
    if numbers.low == 0:
        return None
    low = _on_grid(numbers, _below_low(numbers))
    if low >= numbers.low and numbers.step is not None:
        # A range that begins at its own step has no grid point below; a finer step has.
        low = _on_grid(replace(numbers, step=None), _below_low(numbers))
    return (low, numbers.high) if low < numbers.low else None


def _beyond_high(numbers: Range) -> float:
    if numbers.log:
        return numbers.high * _FACTOR
    return numbers.high + (numbers.high - numbers.low) * _SHARE


def _below_low(numbers: Range) -> float:
    """Sizes and counts stay above zero: beyond it lies another meaning, not a smaller one."""
    if numbers.low > 0:
        return numbers.low / _FACTOR
    return numbers.low - (numbers.high - numbers.low) * _SHARE


def _on_grid(numbers: Range, bound: float) -> float:
    """`bound` moved towards the range onto the grid of its step, and onto integers."""
    step = numbers.step or (1 if numbers.integer else 0)
    if not step:
        return bound
    inward = math.ceil if bound < numbers.low else math.floor
    origin = 0 if numbers.log else numbers.low
    moved = origin + inward(round((bound - origin) / step, 9)) * step
    return int(moved) if numbers.integer else moved
