"""A Setting of a sampler or a pruner, and how settings are read from what a study file gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from lsmtune.errors import InputError, check_names

AUTO = "auto"  # the word for a value that follows from something else


@dataclass(frozen=True)
class Setting:
    """One setting by name.

    `read` turns what a study file holds into the value, and raises ValueError when it is not
    `allowed`; the error's text, if any, says why.
    """

    name: str
    default: object
    description: str
    allowed: str
    read: Callable[[object], object]


def whole_setting(
    name: str, default: int | str, description: str, low: int, high: int, *, auto: bool = False
) -> Setting:
    """A setting of the whole numbers from `low` to `high`; with `auto`, of that word as well."""

    def read(value: object) -> object:
        is_whole = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        if not is_whole and not (auto and value == AUTO):
            raise ValueError
        return value

    allowed = f"{'auto, or ' if auto else ''}a whole number from {low} to {high}"
    return Setting(name, default, description, allowed, read)


def real_setting(
    name: str,
    default: float,
    description: str,
    low: float,
    high: float = math.inf,
    *,
    low_excluded: bool = False,
) -> Setting:
    """A setting of the finite numbers from `low` to `high`; with `low_excluded`, above `low`."""

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError
        if not math.isfinite(value) or not low <= value <= high or (low_excluded and value == low):
            raise ValueError
        return float(value)

    end = "" if high == math.inf else f", at most {high:g}" if low_excluded else f" to {high:g}"
    allowed = f"a number {'above' if low_excluded else 'from'} {low:g}{end}"
    return Setting(name, default, description, allowed, read)


def word_setting(name: str, default: str, description: str, words: Sequence[str]) -> Setting:
    """A setting of one of `words`."""

    def read(value: object) -> object:
        if value not in words:
            raise ValueError
        return value

    return Setting(name, default, description, ", ".join(words), read)


def read_settings(
    settings: Sequence[Setting], given: Mapping[str, object], source: str, field: str
) -> Mapping[str, object]:
    """`given` read and completed by defaults.

    Raises `InputError` for a setting that does not exist, or whose value is not allowed.
    """
    known = {setting.name: setting for setting in settings}
    check_names(given, known, source, field, why="no such setting")
    values = {name: setting.default for name, setting in known.items()}
    for name in (name for name in known if name in given):
        try:
            values[name] = known[name].read(given[name])
        except ValueError as error:
            found, allowed = "null" if given[name] is None else given[name], known[name].allowed
            place = f"{field}.{name}"
            raise InputError(source, place, why=str(error), found=found, allowed=allowed) from error
    return MappingProxyType(values)
