"""How another program spells an option and its values, in both directions.

Exporters say values with it, importers read them with it: one table serves both, so that what is
written can be read back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lsmtune.engines.exporters.base import SOURCE, one_of, truth, whole_number
from lsmtune.errors import InputError
from lsmtune.records.config import OptionValue

# What gflags and RocksDB take for a truth.
_TRUTHS = {
    **dict.fromkeys(("1", "t", "true", "y", "yes"), True),
    **dict.fromkeys(("0", "f", "false", "n", "no"), False),
}


@dataclass(frozen=True)
class Spelling:
    """An option's `name` in the other program.

    `say` takes the option's name here and its value's text, and raises InputError for what the
    program does not take. `read` is its inverse; its ValueError says what is allowed.
    """

    name: str
    say: Callable[[str, str], str]
    read: Callable[[str], OptionValue]
    is_truth: bool = False


def number(
    name: str,
    low: int | None = None,
    high: int | None = None,
    where: str = "",
    *,
    without: int | None = None,
) -> Spelling:
    """A whole number but `without`; `where` says whose bounds `low` and `high` are."""

    def say(option: str, text: str) -> str:
        found = whole_number(option, text)
        outside = (low is not None and found < low) or (high is not None and found > high)
        if outside or found == without:
            allowed = f"{low} to {high}{where}"
            allowed += "" if without is None else f", but not {without}"
            raise InputError(SOURCE, option, found=text, allowed=allowed)
        return str(found)

    return Spelling(name, say, _read_whole)


def _read_whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("a whole number") from None


def decimal(name: str) -> Spelling:
    """A number with a point, passed on as it is."""
    return Spelling(name, lambda _option, text: text, _read_decimal)


def _read_decimal(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number") from None


def boolean(name: str) -> Spelling:
    """True or false."""
    return Spelling(name, truth, read_truth, is_truth=True)


def read_truth(text: str) -> bool:
    """A truth as gflags writes it. Raises ValueError that says what is allowed."""
    if text.lower() not in _TRUTHS:
        raise ValueError("true, false")
    return _TRUTHS[text.lower()]


def word(name: str, known: Mapping[str, str]) -> Spelling:
    """One of the engine's words, by the program's own; the first engine's word is read back."""
    back: dict[str, str] = {}
    for ours, theirs in known.items():
        back.setdefault(theirs, ours)

    def read(text: str) -> str:
        if text.lower() not in back:
            raise ValueError(", ".join(back))
        return back[text.lower()]

    return Spelling(name, lambda option, text: one_of(option, text, known), read)
