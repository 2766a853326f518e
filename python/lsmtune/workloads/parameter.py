"""A parameter of a workload: what it means, what it may be, and how what was given is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from lsmtune.errors import InputError, nearest_name
from lsmtune.units import UnitError, option_value, parse_bytes, parse_duration

ParameterValue = int | float | str | bool | None
Reader = Callable[[object], ParameterValue]

COUNT_MAX = 2**53  # the largest whole number that every JSON reader keeps exactly
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class WorkloadParameter:
    """One parameter of a workload: `default` None means "not set", which `description` explains.

    `names` are those of which a value is one, where it is a name.
    """

    name: str
    description: str
    default: ParameterValue
    unit: str
    allowed: str
    read: Reader
    names: tuple[str, ...] = ()

    def parse(self, value: object, source: str) -> ParameterValue:
        """`value` read and checked. Raises `InputError` naming `source` and this parameter."""
        try:
            return self.read(value)
        except UnitError as error:
            raise InputError(
                source,
                self.name,
                found=value,
                allowed=error.allowed if error.nearest else self.allowed,
                nearest=error.nearest,
            ) from None
        except ValueError:
            nearest = nearest_name(str(value), self.names)
            raise InputError(
                source, self.name, found=value, allowed=self.allowed, nearest=nearest
            ) from None


def read_number(value: object) -> int | float:
    """A finite number, also as text. Raises ValueError."""
    typed = option_value(value) if isinstance(value, str) else value
    if isinstance(typed, bool) or not isinstance(typed, int | float) or not math.isfinite(typed):
        raise ValueError(value)
    return typed


def read_count(low: int, high: int) -> Callable[[object], int]:
    """A reader of whole numbers from `low` to `high`, which raises ValueError."""

    def read(value: object) -> int:
        number = read_number(value)
        if number != int(number) or not low <= number <= high:
            raise ValueError(value)
        return int(number)

    return read


def read_size(low: int, high: int) -> Callable[[object], int]:
    """A reader of sizes from `low` to `high` bytes, which raises ValueError."""

    def read(value: object) -> int:
        size = parse_bytes(value)
        if not low <= size <= high:
            raise ValueError(value)
        return size

    return read


def read_positive(high: float) -> Callable[[object], float]:
    """A reader of numbers above 0, at most `high`, which raises ValueError."""

    def read(value: object) -> float:
        number = float(read_number(value))
        if not 0 < number <= high:
            raise ValueError(value)
        return number

    return read


def read_fraction(value: object) -> float:
    """A number from 0 to 1. Raises ValueError."""
    number = float(read_number(value))
    if not 0 <= number <= 1:
        raise ValueError(value)
    return number


def read_positive_duration(value: object) -> float:
    """A duration above 0, in seconds. Raises ValueError."""
    duration_s = parse_duration(value)
    if duration_s <= 0:
        raise ValueError(value)
    return duration_s


def read_one_of(names: tuple[str, ...]) -> Callable[[object], str]:
    """A reader of one of `names`, which raises ValueError."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise ValueError(value)
        return value

    return read


def read_text(value: object) -> str:
    """Text of one line. Raises ValueError."""
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError(value)
    return value


def read_truth(value: object) -> bool:
    """A truth value, also as text. Raises ValueError."""
    text = str(value).lower() if isinstance(value, str | bool) else ""
    if text not in _TRUTHS:
        raise ValueError(value)
    return _TRUTHS[text]


def count_parameter(
    name: str,
    description: str,
    default: int | None,
    low: int,
    high: int = COUNT_MAX,
    unit: str = "",
) -> WorkloadParameter:
    """A whole number from `low` to `high`."""
    allowed = f"a whole number from {low} to {high}"
    return WorkloadParameter(name, description, default, unit, allowed, read_count(low, high))


def size_parameter(
    name: str, description: str, default: int, low: int, high: int
) -> WorkloadParameter:
    """A size from `low` to `high` bytes."""
    allowed = f"{low} to {high} bytes"
    return WorkloadParameter(name, description, default, "bytes", allowed, read_size(low, high))


def choice_parameter(
    name: str, description: str, default: str, names: tuple[str, ...]
) -> WorkloadParameter:
    """One of `names`."""
    allowed = ", ".join(names)
    return WorkloadParameter(name, description, default, "", allowed, read_one_of(names), names)


def fraction_parameter(name: str, description: str, default: float) -> WorkloadParameter:
    """A number from 0 to 1."""
    return WorkloadParameter(name, description, default, "", "a number from 0 to 1", read_fraction)


def positive_parameter(
    name: str, description: str, default: float | None, high: float, unit: str = ""
) -> WorkloadParameter:
    """A number above 0, at most `high`."""
    allowed = f"a number above 0, at most {high:.12g}"
    return WorkloadParameter(name, description, default, unit, allowed, read_positive(high))
