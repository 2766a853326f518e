"""Options that recur, spelled the same in every command, and the reading of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from lsmtune.engines.library import ENGINE_NAMES
from lsmtune.engines.properties import Properties
from lsmtune.errors import InputError, nearest_name
from lsmtune.model.config import Config, OptionValue
from lsmtune.model.request import LIMITS_DEFAULT, SEED_MAX, TRIALS_MAX, Limits
from lsmtune.model.workload import Workload
from lsmtune.units import (
    UnitError,
    format_bytes,
    format_duration,
    option_text_allowed,
    option_value,
    parse_bytes,
    parse_duration,
)
from lsmtune.workloads.stated import FAMILIES, WORKLOAD_NAMES, Stated, state_workload

DEADLINE_DEFAULT = format_duration(LIMITS_DEFAULT.deadline_s)
MEMORY_DEFAULT = format_bytes(LIMITS_DEFAULT.memory_bytes)
DISK_DEFAULT = format_bytes(LIMITS_DEFAULT.disk_bytes)

OPTION_FLAG = "-o/--option"
WORKLOAD_FLAG = "-w/--workload-set"


def whole_number(flag: str, low: int, high: int) -> Callable[[str], int]:
    """A reader of the value of `flag`, which raises InputError outside `low` to `high`."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise InputError(flag, found=text, allowed=f"a whole number from {low} to {high}")
        return number

    return read


EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        help=f"{', '.join(ENGINE_NAMES)}.",
        autocompletion=lambda: list(ENGINE_NAMES),
    ),
]
LibraryOption = Annotated[
    Path | None,
    typer.Option("--library", metavar="PATH", help="The engine's shared library to measure."),
]
WorkloadOption = Annotated[
    str | None,
    typer.Option(
        "--workload",
        metavar="NAME",
        help=f"{', '.join(WORKLOAD_NAMES)}; or a workload file, or one of YCSB's.",
        autocompletion=lambda: list(WORKLOAD_NAMES),
    ),
]
WorkloadSetOption = Annotated[
    list[str] | None,
    typer.Option(
        "-w",
        "--workload-set",
        metavar="KEY=VALUE",
        help="A workload parameter, again for each: num=1000000, value_bytes=100; "
        "`lsmtune workload show NAME` lists them.",
    ),
]
OptionSetOption = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--option",
        metavar="NAME=VALUE",
        help="An engine option by the engine's own name, again for each; 4MiB is a value.",
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="N",
        parser=whole_number("--seed", 0, SEED_MAX),
        help="All randomness follows from it.",
    ),
]
RepeatOption = Annotated[
    int,
    typer.Option(
        "--repeat",
        metavar="N",
        parser=whole_number("--repeat", 1, 1000),
        help="Runs, each on a new seed.",
    ),
]
BudgetOption = Annotated[
    str | None, typer.Option("--budget", metavar="TIME", help="Time for all of it: 30m, 1h30m.")
]
TrialsOption = Annotated[
    int | None,
    typer.Option(
        "--trials",
        metavar="N",
        parser=whole_number("--trials", 1, TRIALS_MAX),
        help="At most so many trials.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
DeadlineOption = Annotated[
    str, typer.Option("--deadline", metavar="TIME", help="A run is killed after this time.")
]
MemoryOption = Annotated[
    str, typer.Option("--memory", metavar="SIZE", help="A run is killed above this memory.")
]
DiskOption = Annotated[
    str, typer.Option("--disk", metavar="SIZE", help="A run is killed above this disk space.")
]


def assignments(flag: str, texts: Sequence[str] | None) -> dict[str, str]:
    """`name=value` texts as a mapping. Raises InputError, naming `flag`, for any other form."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InputError(flag, found=text, allowed="name=value")
        if name in found:
            raise InputError(flag, name, why="given twice")
        found[name] = value
    return found


def config_of(texts: Sequence[str] | None) -> Config:
    """The Config of the `-o` flags; `default` without any."""
    options: dict[str, OptionValue] = {}
    for name, text in assignments(OPTION_FLAG, texts).items():
        options[name] = option_of(OPTION_FLAG, name, text)
    label = ",".join(f"{name}={value}" for name, value in options.items())
    return Config(options, label=label or "default")


def option_of(source: str, name: str, text: str) -> OptionValue:
    """The value of option `name` that `text` states. Raises InputError, naming `source`."""
    allowed = option_text_allowed(text)
    if allowed:
        raise InputError(source, name, found=text, allowed=allowed)
    try:
        return option_value(text)
    except UnitError as error:
        raise _unit_error(source, name, error) from error


def workload_of(name: str, texts: Sequence[str] | None) -> Workload:
    """The Workload of `--workload`, a name or a file, and the `-w` flags."""
    return stated_workload(name, texts).workload


def stated_workload(
    name: str, texts: Sequence[str] | None, properties: Properties | None = None
) -> Stated:
    """The workload of `--workload` and the `-w` flags over `properties`, and what is said of it.

    Raises InputError for a name that is neither a workload's nor a file's, and for what the file,
    the properties or the flags have wrong.
    """
    parameters = assignments(WORKLOAD_FLAG, texts)
    if name in FAMILIES:
        return state_workload(name, parameters, WORKLOAD_FLAG, properties)
    if not Path(name).exists():
        nearest = nearest_name(name, WORKLOAD_NAMES)
        allowed = f"{', '.join(WORKLOAD_NAMES)}; or a file"
        raise InputError("--workload", found=name, allowed=allowed, nearest=nearest)
    from lsmtune.workloads.study_fields import workload_from_file

    return workload_from_file(Path(name), parameters, WORKLOAD_FLAG, properties)


def limits_of(deadline: str, memory: str, disk: str) -> Limits:
    """The Limits of `--deadline`, `--memory` and `--disk`."""
    return Limits(
        deadline_s=duration_of("--deadline", deadline),
        memory_bytes=bytes_of("--memory", memory),
        disk_bytes=bytes_of("--disk", disk),
    )


def duration_of(flag: str, text: str) -> float:
    """A duration above zero, in seconds. Raises InputError naming `flag`."""
    try:
        seconds = parse_duration(text)
    except UnitError as error:
        raise _unit_error(flag, "", error) from error
    if seconds <= 0:
        raise InputError(flag, found=text, allowed="a duration above 0")
    return seconds


def bytes_of(flag: str, text: str) -> int:
    """A size above zero, in bytes. Raises InputError naming `flag`."""
    try:
        size = parse_bytes(text)
    except UnitError as error:
        raise _unit_error(flag, "", error) from error
    if size <= 0:
        raise InputError(flag, found=text, allowed="a size above 0")
    return size


def _unit_error(flag: str, field: str, error: UnitError) -> InputError:
    return InputError(flag, field, found=error.found, allowed=error.allowed, nearest=error.nearest)
