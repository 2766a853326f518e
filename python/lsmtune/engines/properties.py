"""Properties as YCSB reads them: files given with -P, and over them what -p sets.

The form is that of Java's `java.util.Properties.load`: `name=value`, also with `:` or blanks
between; a line whose first letter is `#` or `!` is a comment; a `\\` at the end of a line continues
it. Two things are stricter, because YCSB and YCSB-cpp do not agree on them: a line with a name
alone is an error (to YCSB it is an empty value, YCSB-cpp passes it over), and blanks at the end of
a value do not count (YCSB keeps them and fails to read its numbers, YCSB-cpp drops them).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lsmtune.errors import InputError
from lsmtune.model.text import read_text

FILE_BYTES_MAX = 2**20
SETTING = "-p"  # the source of what the command line sets
_COMMENTS = ("#", "!")
_BLANKS = " \t\f"
# A name ends at the first separator that no backslash stands before.
_NAME = re.compile(r"((?:\\.|[^\\=: \t\f])+)[ \t\f]*(?:[=:][ \t\f]*|(?<=[ \t\f]))(.*)", re.S)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.S)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True)
class Property:
    """A property's value, and where it was given: `file` and `line`, or SETTING and None.

    `hidden_line` is where the same file gave another value before.
    """

    value: str
    source: str
    line: int | None = None
    hidden_line: int | None = None

    @property
    def where(self) -> str:
        """The place as errors name it."""
        return self.source if self.line is None else f"{self.source}:{self.line}"


Properties = Mapping[str, Property]


def parse_properties(text: str, source: str) -> dict[str, Property]:
    """The properties in `text`, the last of two values for one name.

    Raises InputError, naming `source`, for a line that is none.
    """

    def unescaped(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2])

    properties: dict[str, Property] = {}
    for number, line in _logical_lines(text):
        match = _NAME.fullmatch(line)
        if match is None:
            where = f"{source}:{number}"
            raise InputError(where, found=line, why="is no property", allowed="name=value")
        name, value = (_ESCAPE.sub(unescaped, part).strip() for part in match.groups())
        before = properties.get(name)
        hidden = None if before is None or before.value == value else before.line
        properties[name] = Property(value, source, number, hidden)
    return properties


def properties_of(files: Sequence[Path], settings: Mapping[str, str]) -> dict[str, Property]:
    """The properties of `files`, later ones over earlier ones, and over all of them `settings`.

    Raises InputError for what is no small text file, and for a line that is no property.
    """
    properties: dict[str, Property] = {}
    for path in files:
        text = read_text(path, "a file of properties", bytes_max=FILE_BYTES_MAX)
        properties = over(properties, parse_properties(text, str(path)))
    return over(properties, {name: Property(value, SETTING) for name, value in settings.items()})


def over(earlier: Properties, later: Properties) -> dict[str, Property]:
    """`earlier` with `later` over them; what was stated last comes last, whatever its name."""
    return {name: each for name, each in earlier.items() if name not in later} | dict(later)


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """The lines that hold something, with the number of the first line of each."""
    lines: list[tuple[int, str]] = []
    held, begun = "", 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        line = raw.lstrip(_BLANKS)
        if not begun and (not line or line.startswith(_COMMENTS)):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            held, begun = held + line[:-1], begun or number
            continue
        lines.append((begun or number, held + line))
        held, begun = "", 0
    return [*lines, (begun, held)] if begun and held else lines
