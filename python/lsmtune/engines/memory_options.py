"""What memory models share: typed options with the engine's defaults."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.option_names import parts_of
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.units import UnitError, option_value


def clipped(number: int, low: int, high: int) -> int:
    """`number` as the engines themselves bring options into bounds (`ClipToRange`)."""
    return min(max(number, low), high)


# --- options

# What RocksDB itself reads behind a number (ParseSizeT, util/string_util.cc).
_SUFFIXES = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SIZE = re.compile(r"(-?\d+)([KMGT]?)", re.ASCII | re.IGNORECASE)
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
        size = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
        number = value
        if size is not None:
            number = int(size[1]) << _SUFFIXES[size[2].upper()]
        else:
            with suppress(UnitError):  # it then stays text
                number = option_value(value)
        if (
            isinstance(number, int | float)
            and not isinstance(number, bool)
            and math.isfinite(number)
            and low <= number == math.floor(number)
        ):
            return int(number)
        allowed = f"a whole number, with K, M, G or T at most; {low} at the least"
        raise InputError(self.source, name, found=value, allowed=allowed)

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
        truth_value = _BOOLEANS.get(str(value).lower())
        if truth_value is None:
            raise InputError(self.source, name, found=value, allowed="true, false")
        return truth_value

    def word(self, name: str, allowed: Sequence[str]) -> str:
        """One of the words `allowed`."""
        value = str(self.value(name))
        if value not in allowed:
            raise InputError(self.source, name, found=value, known=allowed)
        return value


def model_options(
    engine: str, options: Mapping[str, OptionValue], version: str, source: str
) -> ModelOptions:
    """`options` with nested values (`{capacity=8M;}`) taken apart.

    Raises `InputError` for a nested value with unbalanced braces.
    """
    flat: dict[str, OptionValue] = {}
    for name, value in options.items():
        if not isinstance(value, str) or not value.strip().startswith("{"):
            flat[name] = value
            continue
        parts = parts_of(name, value, source)
        inner = {f"{name}.{part}": text for part, text in parts.items()}
        flat |= model_options(engine, inner, version, source).given
    return ModelOptions(engine, version, flat, source)
