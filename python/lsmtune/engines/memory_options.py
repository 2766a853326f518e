"""Options as a memory model reads them: flattened, typed, with the engine's defaults."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lsmtune.engines.options import option_catalogue
from lsmtune.engines.rocksdb_catalogue import split_structure
from lsmtune.errors import InputError, nearest_name
from lsmtune.records.config import OptionValue
from lsmtune.units import UnitError, option_value

# What RocksDB itself reads behind a number (ParseSizeT, util/string_util.cc).
_SUFFIXES = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SIZE = re.compile(r"(-?\d+)([KMGT]?)", re.ASCII | re.IGNORECASE)
_SIZE_ALLOWED = "a whole number, with K, M, G or T at most"
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


@dataclass(frozen=True)
class ModelOptions:
    """`given` by dotted name; the rest are the defaults of `engine` in `version` (the newest: "").

    Every reader raises `InputError`, naming `source` and the option, for a value of another kind.
    """

    engine: str
    version: str
    given: Mapping[str, OptionValue]
    source: str

    def value(self, name: str) -> OptionValue:
        """The option as given, else its default."""
        if name in self.given:
            return self.given[name]
        info = option_catalogue(self.engine)[name]
        default = info.default_in(self.version) if self.version else info.default
        if default is None:
            raise LookupError(f"{name} has no default")
        return default

    def whole(self, name: str, low: int = 0) -> int:
        """A whole number of at least `low`."""
        value = self.value(name)
        number = _whole(value)
        if number is None or number < low:
            raise InputError(
                self.source, name, found=value, allowed=f"{_SIZE_ALLOWED}; {low} at the least"
            )
        return number

    def number(self, name: str) -> float:
        """A finite number."""
        value = self.value(name)
        typed = option_value(value) if isinstance(value, str) else value
        if isinstance(typed, bool | str) or not math.isfinite(typed):
            raise InputError(self.source, name, found=value, allowed="a number")
        return float(typed)

    def truth(self, name: str) -> bool:
        """True or false."""
        value = self.value(name)
        found = _BOOLEANS.get(str(value).lower())
        if found is None:
            raise InputError(self.source, name, found=value, allowed="true, false")
        return found

    def word(self, name: str, allowed: Sequence[str]) -> str:
        """One of the words `allowed`."""
        value = str(self.value(name))
        if value not in allowed:
            raise self.not_among(name, value, allowed)
        return value

    def not_among(self, name: str, value: object, allowed: Sequence[str]) -> InputError:
        """The error for a value of option `name` that is none of those `allowed`."""
        nearest = nearest_name(str(value), allowed)
        shown = ", ".join(allowed)
        return InputError(self.source, name, found=value, allowed=shown, nearest=nearest)


def _whole(value: OptionValue) -> int | None:
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        if match is not None:
            return int(match.group(1)) << _SUFFIXES[match.group(2).upper()]
        try:
            value = option_value(value)
        except UnitError:
            return None
    if isinstance(value, bool | str) or not math.isfinite(value) or value != math.floor(value):
        return None
    return int(value)


def model_options(
    engine: str, options: Mapping[str, OptionValue], version: str, source: str
) -> ModelOptions:
    """`options` with nested values (`{capacity=8M;}`) taken apart.

    Raises `InputError` for a nested value with unbalanced braces.
    """
    flat: dict[str, OptionValue] = {}
    for name, value in options.items():
        flat |= _flattened(name, value, source)
    return ModelOptions(engine, version, flat, source)


def _flattened(name: str, value: OptionValue, source: str) -> dict[str, OptionValue]:
    if not isinstance(value, str) or not value.strip().startswith("{"):
        return {name: value}
    try:
        parts = split_structure(value)
    except ValueError as error:
        raise InputError(
            source, name, found=value, why=str(error), allowed="{name=value;...}"
        ) from error
    found: dict[str, OptionValue] = {}
    for part, inner in parts.items():
        found |= _flattened(f"{name}.{part}", inner, source)
    return found
