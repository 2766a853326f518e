"""Options that recur, spelled the same in every command, and the reading of their values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lsmtune.engines.names import BUILT_IN_ENGINES, ENGINE_KINDS
from lsmtune.errors import InputError, nearest_name
from lsmtune.records.config import Config, OptionValue
from lsmtune.records.request import Limits
from lsmtune.records.workload import Workload
from lsmtune.units import UnitError, option_value, parse_bytes, parse_duration
from lsmtune.workloads import WORKLOAD_NAMES, WORKLOAD_PARAMETERS, make_workload

SEED_MAX = 2**53 - 1  # the largest whole number that every JSON reader keeps exactly
DEADLINE_DEFAULT = "10m"
MEMORY_DEFAULT = "4GiB"
DISK_DEFAULT = "20GiB"

OPTION_FLAG = "-o/--option"
WORKLOAD_FLAG = "-w/--workload-set"


def engine_names() -> list[str]:
    """The engines that a command can measure."""
    return [*ENGINE_KINDS, *BUILT_IN_ENGINES]


EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        help=f"{', '.join(engine_names())}.",
        autocompletion=engine_names,
    ),
]
LibraryOption = Annotated[
    Path | None,
    typer.Option("--library", metavar="PATH", help="The engine's shared library to measure."),
]
WorkloadOption = Annotated[
    str,
    typer.Option(
        "--workload",
        metavar="NAME",
        help=f"{', '.join(WORKLOAD_NAMES)}.",
        autocompletion=lambda: list(WORKLOAD_NAMES),
    ),
]
WorkloadSetOption = Annotated[
    list[str] | None,
    typer.Option(
        "-w",
        "--workload-set",
        metavar="KEY=VALUE",
        help=f"A workload parameter, again for each: {', '.join(WORKLOAD_PARAMETERS)}.",
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
    int, typer.Option("--seed", metavar="N", min=0, max=SEED_MAX, help="Seed of the first run.")
]
RepeatOption = Annotated[
    int, typer.Option("--repeat", metavar="N", min=1, max=1000, help="Runs, each on a new seed.")
]
BudgetOption = Annotated[
    str | None, typer.Option("--budget", metavar="TIME", help="Time for all of it: 30m, 1h30m.")
]
TrialsOption = Annotated[
    int | None, typer.Option("--trials", metavar="N", min=1, help="At most so many trials.")
]
PairsOption = Annotated[
    int, typer.Option("--pairs", metavar="N", min=5, max=1000, help="Pairs of runs.")
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
        try:
            options[name] = option_value(text)
        except UnitError as error:
            raise _unit_error(OPTION_FLAG, name, error) from error
    label = ",".join(f"{name}={value}" for name, value in options.items())
    return Config(options, label=label or "default")


def workload_of(name: str, texts: Sequence[str] | None) -> Workload:
    """The Workload of `--workload` and the `-w` flags."""
    if name not in WORKLOAD_NAMES:
        allowed, nearest = ", ".join(WORKLOAD_NAMES), nearest_name(name, WORKLOAD_NAMES)
        raise InputError("--workload", found=name, allowed=allowed, nearest=nearest)
    return make_workload(name, assignments(WORKLOAD_FLAG, texts), WORKLOAD_FLAG)


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
