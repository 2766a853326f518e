"""A setting: a named value with a description, a default, and the values that it may have.

Samplers and pruners have settings, and so have the workloads that a name stands for, where they are
called parameters. What a distribution takes has no default: there a Domain stands alone.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lsmtune.errors import InputError, check_names, nearest_name
from lsmtune.units import UnitError, option_value, parse_bytes, parse_duration

AUTO = "auto"  # the word for a value that follows from something else
COUNT_MAX = 2**53  # the largest whole number that every JSON reader keeps exactly


@dataclass(frozen=True)
class Domain:
    """The values that something may have, in words: `allowed`.

    `read` turns what a file or a command line states into the value. It raises ValueError for what
    is not allowed; the error's text, if any, says why. `names` are those of which a value is one,
    where it is a name.
    """

    allowed: str
    read: Callable[[object], Any]
    unit: str = ""
    names: tuple[str, ...] = ()

    def parse(self, value: object, source: str, field: str) -> Any:
        """`value` read. Raises `InputError` at `field` of `source`."""
        try:
            return self.read(value)
        except UnitError as error:
            why, nearest = "", error.nearest
            allowed = error.allowed if nearest else self.allowed
        except ValueError as error:
            why, nearest = str(error), nearest_name(str(value), self.names)
            allowed = self.allowed
        found = "null" if value is None else value
        raise InputError(source, field, why=why, found=found, allowed=allowed, nearest=nearest)


@dataclass(frozen=True)
class Setting:
    """One setting by name; a default of None is "not set", which the description explains."""

    name: str
    description: str
    default: Any
    domain: Domain


def read_settings(
    settings: Iterable[Setting], given: Mapping[str, object], source: str, field: str = ""
) -> Mapping[str, Any]:
    """`given` read and completed by defaults; `field` is the dotted place of all of them.

    Raises `InputError` for a setting that does not exist, or whose value is not allowed.
    """
    known = {setting.name: setting for setting in settings}
    check_names(given, known, source, field, why="no such setting")
    values = {name: setting.default for name, setting in known.items()}
    for name, value in given.items():
        place = f"{field}.{name}" if field else name
        values[name] = known[name].domain.parse(value, source, place)
    return MappingProxyType(values)


def read_number(value: object) -> int | float:
    """A finite number, also as text. Raises ValueError."""
    typed = option_value(value) if isinstance(value, str) else value
    if isinstance(typed, bool) or not isinstance(typed, int | float):
        raise ValueError
    if not abs(typed) <= sys.float_info.max:  # nor is a whole number of 400 digits one to compute
        raise ValueError
    return typed


def whole(low: int, high: int = COUNT_MAX, *, unit: str = "", auto: bool = False) -> Domain:
    """The whole numbers from `low` to `high`; with `auto`, that word as well."""

    def read(value: object) -> int | str:
        if auto and value == AUTO:
            return AUTO
        stated = read_number(value)
        if stated != int(stated) or not low <= stated <= high:
            raise ValueError
        return int(stated)

    allowed = f"{'auto, or ' if auto else ''}a whole number from {low} to {high}"
    return Domain(allowed, read, unit)


def size(low: int, high: int) -> Domain:
    """The sizes from `low` to `high` bytes."""

    def read(value: object) -> int:
        size_bytes = parse_bytes(value)
        if not low <= size_bytes <= high:
            raise ValueError
        return size_bytes

    return Domain(f"{low} to {high} bytes", read, "bytes")


def number(allowed: str, holds: Callable[[float], bool], *, unit: str = "") -> Domain:
    """The numbers for which `holds` is true, which `allowed` says."""

    def read(value: object) -> float:
        stated = float(read_number(value))
        if not holds(stated):
            raise ValueError
        return stated

    return Domain(allowed, read, unit)


def real(low: float, high: float = math.inf) -> Domain:
    """The numbers from `low` to `high`."""
    end = "" if high == math.inf else f" to {high:.12g}"
    return number(f"a number from {low:.12g}{end}", lambda stated: low <= stated <= high)


def above(low: float, high: float = math.inf, *, unit: str = "") -> Domain:
    """The numbers above `low`, up to `high`."""
    end = "" if high == math.inf else f", at most {high:.12g}"
    allowed = f"a number above {low:.12g}{end}"
    return number(allowed, lambda stated: low < stated <= high, unit=unit)


def one_of(*names: str) -> Domain:
    """One of `names`."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise ValueError
        return value

    return Domain(", ".join(names), read, names=names)


def duration(allowed: str) -> Domain:
    """The times above 0, in seconds."""

    def read(value: object) -> float:
        duration_s = parse_duration(value)
        if duration_s <= 0:
            raise ValueError
        return duration_s

    return Domain(allowed, read, "s")


def _read_line(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError
    return value


TEXT = Domain("text of one line", _read_line)
