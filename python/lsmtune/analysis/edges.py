"""Best values on the edge of a range, and a wider range to try: the optimum may lie beyond."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lsmtune.records.config import OptionValue
from lsmtune.space import Parameter, Range

# How far a range is widened on the side of the edge: by a factor on a log scale, else by a share
# of its width. Two doublings reach a new region without leaving most of the old one behind.
_FACTOR = 4
_SHARE = 0.5
# A sampler that wants to go beyond an edge stops short of it by a little: so near is on it.
_NEAR = 0.01  # of the range, on its own scale


@dataclass(frozen=True)
class Edge:
    """`value` of `parameter` is on its `side` (`low` or `high`); `proposed` is the range to try.

    On the side is also what is within 1 % of the range of it, on the range's scale. `proposed` is
    None where nothing sensible lies beyond (a range that begins at zero or one, or next to a
    special value).
    """

    parameter: Parameter
    side: str
    value: OptionValue
    proposed: tuple[float, float] | None

    def bound(self) -> float:
        """The bound of the range on that side; 0 for what has no range."""
        numbers = self.parameter.numbers
        return 0 if numbers is None else numbers.low if self.side == "low" else numbers.high

    def needs_finer_step(self) -> bool:
        """Whether the proposed range does not lie on the grid of the parameter's step."""
        numbers = self.parameter.numbers
        if numbers is None or numbers.step is None or self.proposed is None:
            return False
        steps = (numbers.low - self.proposed[0]) / numbers.step
        return not math.isclose(steps, round(steps), abs_tol=1e-6)


def edges(parameters: tuple[Parameter, ...], options: Mapping[str, OptionValue]) -> list[Edge]:
    """The parameters whose value in `options` lies on a bound of its range, or next to it.

    A special value is on no edge: it lies outside the range.
    """
    found = []
    for parameter in parameters:
        value, numbers = options.get(parameter.name), parameter.numbers
        if numbers is None or isinstance(value, str | bool) or value is None:
            continue
        side = side_of(numbers, value)
        if side is not None:
            specials = [special.value for special in parameter.specials]
            proposed = proposed_range(numbers, side, specials)
            found.append(Edge(parameter, side, value, proposed))
    return found


def side_of(numbers: Range, value: float) -> str | None:
    """`low` or `high` when `value` lies on that bound or within 1 % of the range of it."""
    if not numbers.low <= value <= numbers.high:
        return None
    if value in (numbers.low, numbers.high):
        return "low" if value == numbers.low else "high"
    low, high, at = numbers.low, numbers.high, float(value)
    if numbers.log:
        low, high, at = math.log(low), math.log(high), math.log(at)
    place = (at - low) / (high - low)
    if place <= _NEAR:
        return "low"
    return "high" if place >= 1 - _NEAR else None


def proposed_range(
    numbers: Range, side: str, specials: Sequence[float] = ()
) -> tuple[float, float] | None:
    """`numbers` widened on `side`, on the grid of its step, or None where it cannot be.

    A wider range stops before the next of the `specials`, which mean something else.
    """
    if side == "high":
        beyond = _beyond_high(numbers)
        first = min((special for special in specials if special > numbers.high), default=None)
        if first is not None and beyond >= first:
            beyond = first - _gap(numbers)
        high = _on_grid(numbers, beyond)
        return (numbers.low, high) if high > numbers.high else None
    if numbers.low == 0:
        return None
    beyond = _below_low(numbers)
    last = max((special for special in specials if special < numbers.low), default=None)
    if last is not None and beyond <= last:
        beyond = last + _gap(numbers)
    low = _on_grid(numbers, beyond)
    if low >= numbers.low and numbers.step is not None:
        # A range that begins at its own step has no grid point below; a finer step has.
        low = _on_grid(replace(numbers, step=None), beyond)
    return (low, numbers.high) if low < numbers.low else None


def _gap(numbers: Range) -> float:
    """How far from a special value a range keeps: one step, or a hundredth of its width."""
    return numbers.step or (1 if numbers.integer else _NEAR * (numbers.high - numbers.low))


def _beyond_high(numbers: Range) -> float:
    if numbers.log:
        return numbers.high * _FACTOR
    step = numbers.step or (1 if numbers.integer else 0)
    return numbers.high + max(step, (numbers.high - numbers.low) * _SHARE)


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
