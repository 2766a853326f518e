"""A ProgramSpec: which program that people trust performs the runs of a study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProgramSpec:
    """The program by its name; `path` None: the first one on PATH. `arguments` go to every call."""

    name: str
    path: Path | None = None
    arguments: tuple[str, ...] = ()
