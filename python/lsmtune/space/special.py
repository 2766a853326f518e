"""Special values: values outside a range that have a meaning of their own (`-1`: no limit).

A parameter with special values has a second variable in Optuna, its *selector*, named `<name>?`: a
float in [0, 1] that is cut into shares, one per special value (in the order of the file, each as
wide as its weight) and the last for the range. A uniform draw picks each special value with exactly
its weight, which no categorical of Optuna can do, and TPE learns which share does well. The
range's own variable is suggested only when the selector picks it, so a special value leaves no
observation that means nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from lsmtune.errors import InputError
from lsmtune.space.range import Number, Range

DEFAULT_WEIGHT_TOTAL = 0.2  # shared by the special values that state no weight of their own


@dataclass(frozen=True)
class Special:
    """A value outside the range, drawn with probability `weight` before anything is known."""

    value: Number
    weight: float


def selected(specials: tuple[Special, ...], selector: float) -> Special | None:
    """The special value whose share holds `selector`, or None for the range's share."""
    upper = 0.0
    for special in specials:
        upper += special.weight
        if selector < upper:
            return special
    return None


def selector_of(specials: tuple[Special, ...], value: Number) -> float:
    """The middle of the share of `value`; of the range's share when `value` is not special."""
    lower = 0.0
    for special in specials:
        if special.value == value:
            return lower + special.weight / 2
        lower += special.weight
    return (lower + 1.0) / 2


def make_specials(
    given: list[tuple[Number, float | None]], numbers: Range, source: str, field: str
) -> tuple[Special, ...]:
    """Checked special values; those without a weight share `DEFAULT_WEIGHT_TOTAL` evenly.

    Raises `InputError` for a value inside the range, repeated values, and weights that leave the
    range no share.
    """
    unweighted = sum(1 for _, weight in given if weight is None)
    specials: list[Special] = []
    for index, (value, weight) in enumerate(given):
        place = f"{field}[{index}]"
        if numbers.low <= value <= numbers.high:
            outside = f"values outside {numbers.low} to {numbers.high}"
            raise InputError(
                source, place, why="a special value inside the range", found=value, allowed=outside
            )
        if any(special.value == value for special in specials):
            raise InputError(source, place, why="the same special value twice", found=value)
        if weight is not None and not 0 < weight < 1:
            raise InputError(
                source, f"{place}.weight", found=weight, allowed="a number between 0 and 1"
            )
        specials.append(Special(value, weight or DEFAULT_WEIGHT_TOTAL / unweighted))
    total = sum(special.weight for special in specials)
    if total >= 1:
        why = f"the weights leave nothing for the range: their sum is {total:g}"
        raise InputError(source, field, why=why, allowed="a sum of less than 1")
    return tuple(specials)
