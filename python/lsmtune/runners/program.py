"""What a program of others' is to a runner: how it is recognised, planned for, and understood.

A new program is one file with a `PROGRAM`, one line in `program_registry.PROGRAMS`, and one subject
in the conformance suite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lsmtune.programs.info import ProgramInfo
from lsmtune.records.engine import Build
from lsmtune.records.measurement import Interval, PhaseMeasurement
from lsmtune.records.request import RunRequest


@dataclass(frozen=True)
class FoundProgram:
    """A program on this machine; `flags` are those it says it knows, empty where it does not."""

    name: str
    path: Path
    version: str | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepOutput:
    """What one process left: its output, and what was seen of it from outside.

    Times are microseconds since the epoch; `cpu_s` and `rss_bytes_max` are of the whole process.
    """

    stdout: Path
    stderr: Path
    started_unix_us: int
    finished_unix_us: int
    cpu_s: float
    rss_bytes_max: int | None
    database_bytes: int
    intervals: tuple[Interval, ...] = ()

    def text(self) -> str:
        """All of stdout."""
        return self.stdout.read_text(encoding="utf-8", errors="replace")

    def errors(self) -> str:
        """All of stderr."""
        return self.stderr.read_text(encoding="utf-8", errors="replace")


@dataclass(frozen=True)
class Observed:
    """What a step's output says: its phases, by their places, and what to know of the program."""

    phases: Mapping[int, PhaseMeasurement]
    warnings: tuple[str, ...] = ()
    version: str | None = None
    build: Build | None = None


@dataclass(frozen=True)
class Introduction:
    """How a program says what it is: the arguments that make it say so, and how that is read.

    `{database}` in an argument stands for a folder of its own.
    """

    arguments: tuple[str, ...]
    read: Callable[[str], Observed]


# Takes a line of the followed file; an interval where the line tells one.
Follow = Callable[[str], Interval | None]


@dataclass(frozen=True)
class Step:
    """One process of a run, in a folder of its own, from which paths are named.

    `arguments` follow the program; `phases` are the places of those that it performs. `files` are
    written into the folder before it starts, piece by piece; `stdin` is one of them.
    `followed` is a file, there or standard output (""), whose lines are read while it runs by what
    `follow` makes. `read` understands what it left, and raises InputError where it cannot.
    """

    arguments: tuple[str, ...]
    phases: tuple[int, ...]
    read: Callable[[StepOutput], Observed]
    files: Mapping[str, Callable[[], Iterator[str]]] = field(default_factory=dict)
    stdin: str | None = None
    followed: str | None = None
    follow: Callable[[], Follow] | None = None


@dataclass(frozen=True)
class Plan:
    """The processes of a run, one after another on one database, and what to know beforehand."""

    steps: tuple[Step, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """A program that people trust, as a runner calls it.

    `plan` says how it performs a request, and raises InputError for what of its configuration the
    program has no spelling of.
    """

    info: ProgramInfo
    plan: Callable[[RunRequest, FoundProgram], Plan]
    introduction: Introduction | None = None

    @property
    def name(self) -> str:
        """The program's name."""
        return self.info.name
