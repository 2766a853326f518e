"""What an import format is, what it gives, and how it says what it could not carry over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsmtune.records.config import OptionValue

ENGINE_FLAG = "--engine"
_AFTER_ALL_LINES = 1 << 62


@dataclass(frozen=True)
class ImportRequest:
    """A file to import: its text, and what the user said of it.

    `engine` is the engine's name where the file's own form does not say it. `keep_defaults` keeps
    options of a whole dump that have the engine's default value.
    """

    text: str
    path: Path
    engine: str | None = None
    keep_defaults: bool = False

    @property
    def source(self) -> str:
        """The file as errors and notes name it."""
        return str(self.path)


@dataclass
class Notes:
    """Collects what an importer could not carry over, each `file:line: field: what and why`."""

    source: str
    lines: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int | None, place: str, text: str, where: str = "") -> None:
        """Say `text` of the field `place`; `line` is None for what concerns the whole file.

        `where` is the place in full, for what was put together from several files.
        """
        where = where or (self.source if line is None else f"{self.source}:{line}")
        said = ": ".join(part for part in (where, place, text) if part)
        self.lines.append((_AFTER_ALL_LINES if line is None else line, said))

    def taken(self) -> tuple[str, ...]:
        """All of them in the order of the file's lines, each once."""
        return tuple(dict.fromkeys(said for _, said in sorted(self.lines, key=lambda n: n[0])))


@dataclass(frozen=True)
class ImportedConfig:
    """Options of `engine` in lsmtune's spelling, and what could not be carried over.

    `version` is that of the engine which the file says wrote it.
    """

    engine: str
    options: Mapping[str, OptionValue]
    notes: tuple[str, ...] = ()
    version: str | None = None


@dataclass(frozen=True)
class ImportedStudy:
    """Fields of a study file (`space`, `baseline`, `sampler`, ...), and what is missing in them.

    `study` holds only what the file said: the caller adds the fields that a study needs besides.
    `comments` maps a dotted field (`space.name`) to a line about it.
    """

    study: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    comments: Mapping[str, str] = field(default_factory=dict)


Imported = ImportedConfig | ImportedStudy


@dataclass(frozen=True)
class ImportFormat:
    """A format: its name on the command line, how it is recognised, how it is read.

    `recognises` takes the file's text and must be quick and never raise. `read` raises InputError
    for a file that is not of the format.
    """

    name: str
    summary: str
    recognises: Callable[[str], bool]
    read: Callable[[ImportRequest], Imported]
