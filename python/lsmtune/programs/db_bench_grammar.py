"""The lines that both db_benches print alike: headers, warnings, benchmarks skipped, and notes.

LevelDB's db_bench is where RocksDB's began, so the two still share these rules. What belongs to no
rule of either is a note: kept, with its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from lsmtune.errors import InputError
from lsmtune.programs.text_lines import LineReader

NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
# The name of a benchmark and the time of one of its operations; nothing done divides by zero.
NAME_AND_MICROS = rf"(?P<name>\S+) +: +(?P<micros>{NUMBER}|-?nan|inf) micros/op"
RATE_AND_MESSAGE = rf"(?: +(?P<mb>{NUMBER}|-?nan|inf) MB/s)?(?: (?P<message>.*))?"
DASHES = re.compile(r"-{3,}")
_WARNING = re.compile(r"WARNING: (?P<text>.*)")
_SKIPPED = re.compile(r"(?P<name>\S+) +: skipped \((?P<why>.*)\)")


class CommonLines:
    """What was read so far by the rules that both have; `header` is the rule of a header line."""

    def __init__(self, lines: LineReader, header: re.Pattern[str]) -> None:
        self._lines = lines
        self._header = header
        self.headers: dict[str, str] = {}
        self.warnings: list[str] = []
        self.skipped: dict[str, str] = {}
        self.notes: list[str] = []

    def take(self) -> bool:
        """Reads a warning, a header, or that a benchmark was skipped; False where none is next."""
        take = self._lines.take_if
        if (match := take(_WARNING)) is not None:
            self.warnings.append(match["text"])
        elif (match := take(self._header)) is not None:
            self.headers[match["name"]] = match["value"]
        elif (match := take(_SKIPPED)) is not None:
            self.skipped[match["name"]] = match["why"]
        else:
            return False
        return True

    def take_note(self) -> None:
        """Reads a line that belongs to no rule; a blank one says nothing."""
        text = self._lines.take().text.strip()
        if text:
            self.notes.append(text)


def read_all(take_one: Callable[[], bool]) -> None:
    """Reads one rule after another, until `take_one` finds none."""
    while take_one():
        pass


def engine_version(headers: Mapping[str, str], engine: str) -> str | None:
    """What the header of `engine` says; None where stderr, on which it is printed, was not read."""
    text = headers.get(engine)
    return None if text is None else text.removeprefix("version").strip()


def another_program(text: str, source: str, allowed: str) -> InputError:
    """The error for `text` in which there is neither a header nor a result."""
    return InputError(source, found=text[:80], allowed=f"output of {allowed}")
