"""Option values, ranges and conditions in words: pure text, for tables and for one option."""

from __future__ import annotations

from lsmtune.engines.options import OptionInfo
from lsmtune.records.config import OptionValue, option_text
from lsmtune.space import Parameter
from lsmtune.units import BYTES_PER_UNIT

NOTHING = "-"
_BINARY = ("TiB", "GiB", "MiB", "KiB")


def value_text(value: OptionValue | None, unit: str) -> str:
    """`value` as people read it, exactly: `64MiB` only where it is a whole number of MiB."""
    if value is None:
        return NOTHING
    if isinstance(value, bool | str):
        return option_text(value)
    if unit.startswith("bytes"):
        return size_text(value) + unit.removeprefix("bytes")
    number = f"{value:,}" if isinstance(value, int) else option_text(value)
    return f"{number} {unit}" if unit else number


def size_text(size: float) -> str:
    """A number of bytes in the largest binary unit that it is a whole multiple of."""
    if size == 0:
        return "0"
    for unit in _BINARY:
        if size % BYTES_PER_UNIT[unit] == 0:
            return f"{size // BYTES_PER_UNIT[unit]}{unit}"
    return f"{size:,}B"


def default_text(info: OptionInfo) -> str:
    """The engine's default; a size also as the number that an option file holds."""
    text = value_text(info.default, info.unit)
    if info.unit.startswith("bytes") and isinstance(info.default, int) and "i" in text:
        return f"{text} ({info.default})"
    return text


def range_text(info: OptionInfo) -> str:
    """What a search tries: `64KiB to 512MiB, log, steps of 64KiB`, or the choices."""
    if info.low is None or info.high is None:
        return " | ".join(option_text(choice) for choice in info.choices) or NOTHING
    parts = [f"{value_text(info.low, _bare(info))} to {value_text(info.high, info.unit)}"]
    if info.log:
        parts.append("log")
    if info.step is not None:
        parts.append(f"steps of {value_text(info.step, info.unit)}")
    parts += [f"or {value_text(value, '')}" for value, _ in info.specials]
    return ", ".join(parts)


def _bare(info: OptionInfo) -> str:
    """The unit of a range's lower end: left out where the upper end states it."""
    return info.unit if info.unit.startswith("bytes") else ""


def parameter_range(parameter: Parameter) -> str:
    """The same for a parameter of a ready space."""
    numbers = parameter.numbers
    if numbers is None:
        return " | ".join(option_text(choice) for choice in parameter.choices)
    parts = [f"{value_text(n, parameter.unit)}" for n in (numbers.low, numbers.high)]
    shown = [" to ".join(parts)]
    if numbers.log:
        shown.append("log")
    if numbers.step is not None:
        shown.append(f"steps of {value_text(numbers.step, parameter.unit)}")
    shown += [f"or {special.value}" for special in parameter.specials]
    return ", ".join(shown)


def condition_text(name: str, values: tuple[OptionValue, ...]) -> str:
    """`compaction_style is kCompactionStyleUniversal`."""
    return f"{name} is {' or '.join(option_text(value) for value in values)}"


def versions_text(info: OptionInfo) -> str:
    """The versions with the option, in words."""
    if info.since and info.until:
        return f"{info.since} to {info.until}"
    if info.since:
        return f"since {info.since}"
    return f"up to {info.until}" if info.until else "all that the catalogue covers"
