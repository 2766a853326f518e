"""A Setting of a sampler or a pruner, and how settings are read from what a study file gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lsmtune.errors import InputError, nearest_name

# The samplers that a study file may name, as they are listed. What each is stands in `search/`.
SAMPLER_NAMES = (
    "tpe",
    "forest",
    "gp",
    "cmaes",
    "smac",
    "nsga2",
    "nsga3",
    "random",
    "sobol",
    "grid",
    "manual",
)

Reader = Callable[[object], object]


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
    read: Reader


def whole_setting(name: str, default: int, description: str, low: int, high: int) -> Setting:
    """A setting of the whole numbers from `low` to `high`."""
    allowed = f"a whole number from {low} to {high}"
    return Setting(name, default, description, allowed, whole_number(low, high))


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
    end = "" if high == math.inf else f", at most {high:g}" if low_excluded else f" to {high:g}"
    allowed = f"a number {'above' if low_excluded else 'from'} {low:g}{end}"
    reader = real_number(low, high, low_excluded=low_excluded)
    return Setting(name, default, description, allowed, reader)


@dataclass(frozen=True)
class Settings:
    """Complete and checked settings by name, each taken as the type that its reader returned.

    The accessors raise TypeError where a setting has another type: an error of the program, not
    of the user.
    """

    values: Mapping[str, object]

    def whole(self, name: str) -> int:
        """The integer `name`."""
        whole: int = self._typed(name, int, "an integer")
        return whole

    def real(self, name: str) -> float:
        """The number `name`."""
        return float(self._typed(name, (int, float), "a number"))

    def text(self, name: str) -> str:
        """The text `name`."""
        text: str = self._typed(name, str, "a text")
        return text

    def flag(self, name: str) -> bool:
        """The boolean `name`."""
        flag: bool = self._typed(name, bool, "a boolean")
        return flag

    def _typed(self, name: str, kind: Any, called: str) -> Any:
        value = self.values[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise TypeError(f"{name} is not {called}: {value!r}")
        return value


def read_settings(
    settings: Sequence[Setting], given: Mapping[str, object], source: str, field: str
) -> Mapping[str, object]:
    """`given` read and completed by defaults.

    Raises `InputError` for a setting that does not exist, or whose value is not allowed.
    """
    known = {setting.name: setting for setting in settings}
    for name in given:
        if name not in known:
            why, allowed = "no such setting", ", ".join(known) or "none"
            nearest = nearest_name(str(name), known)
            raise InputError(source, f"{field}.{name}", why=why, allowed=allowed, nearest=nearest)
    values = {name: setting.default for name, setting in known.items()}
    for name, setting in known.items():
        if name not in given:
            continue
        value = given[name]
        try:
            values[name] = setting.read(value)
        except ValueError as error:
            found, allowed = "null" if value is None else value, setting.allowed
            place = f"{field}.{name}"
            raise InputError(source, place, why=str(error), found=found, allowed=allowed) from error
    return MappingProxyType(values)


def whole_number(low: int, high: int | None = None) -> Reader:
    """A reader of integers from `low` to `high`; neither `true` nor `2.0` is one."""

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError
        if value < low or (high is not None and value > high):
            raise ValueError
        return value

    return read


def real_number(low: float, high: float = math.inf, *, low_excluded: bool = False) -> Reader:
    """A reader of finite numbers from `low` to `high`."""

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError
        if not math.isfinite(value) or not low <= value <= high or (low_excluded and value == low):
            raise ValueError
        return float(value)

    return read


def one_of(*words: str) -> Reader:
    """A reader of one of `words`."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError
        return value

    return read


def word_or(word: str, reader: Reader) -> Reader:
    """A reader of `word`, or else of what `reader` reads."""

    def read(value: object) -> object:
        return value if value == word else reader(value)

    return read
