"""What an export format is, and what the formats share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lsmtune.errors import InputError
from lsmtune.records.config import OptionValue

SOURCE = "export"

# Suffixes that RocksDB's own option parser takes for whole numbers, all binary.
_SUFFIX_SHIFT = {"k": 10, "m": 20, "g": 30, "t": 40}


@dataclass(frozen=True)
class ExportRequest:
    """What to export. `label` says where the Config came from; `version` is the engine's."""

    engine_name: str
    options: Mapping[str, OptionValue]
    version: str | None = None
    label: str = "default"

    def title(self) -> str:
        """One line for a comment."""
        engine = " ".join(filter(None, (self.engine_name, self.version)))
        return " ".join(f"Written by lsmtune: {engine}, configuration {self.label}".split())


@dataclass(frozen=True)
class ExportFormat:
    """A format: its name on the command line, the engines it serves, the default file name."""

    name: str
    engines: tuple[str, ...]
    file_name: str
    write: Callable[[ExportRequest], str]


def whole_number(name: str, text: str) -> int:
    """`text` as an integer; suffixes K, M, G, T are binary. InputError naming `name` if not."""
    found = re.fullmatch(r"(-?\d+)([kmgtKMGT]?)", text)
    if found is None:
        raise InputError(SOURCE, name, found=text, allowed="a whole number")
    number, suffix = int(found.group(1)), found.group(2).lower()
    return number << _SUFFIX_SHIFT[suffix] if suffix else number


def truth(name: str, text: str) -> str:
    """`text` as `true` or `false`. InputError naming `name` when it is neither (nor 0, 1)."""
    known = {"true": "true", "1": "true", "false": "false", "0": "false"}
    if text.lower() not in known:
        raise InputError(SOURCE, name, found=text, allowed="true, false")
    return known[text.lower()]


def one_of(name: str, text: str, known: Mapping[str, str]) -> str:
    """What `text` is called in the other program. InputError naming `name` when not known."""
    if text not in known:
        raise InputError(SOURCE, name, found=text, allowed=", ".join(known))
    return known[text]
