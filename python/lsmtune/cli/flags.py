"""What a command line is made of: flags that several commands have, and what their values mean.

A command is a function. A parameter of it is a flag, or a dataclass whose fields are flags, so that
those that go together are declared once. All of this is cheap to import: `--help` needs no more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from lsmtune.cli.commands import Command
from lsmtune.cli.output import note
from lsmtune.engines.library import ENGINE_NAMES
from lsmtune.engines.properties import properties_of
from lsmtune.engines.workload_options import with_page_cache
from lsmtune.errors import InputError
from lsmtune.model.config import Config
from lsmtune.model.request import FIRST_SEED_MAX, LIMITS_DEFAULT, SEED_MAX, TRIALS_MAX, Limits
from lsmtune.units import format_bytes, format_duration, parse_bytes, parse_duration, parse_share
from lsmtune.workloads.choice import (
    PROPERTY_FLAG,
    WORKLOAD_FLAG,
    Choice,
    assignments,
    choose_workload,
    options_of,
    parsed,
    stated_workload,
)
from lsmtune.workloads.stated import WORKLOAD_NAMES, Stated

OPTION_FLAG = "-o/--option"
_OPTION = "option"  # in the metadata of a field
_NO_COLOR = "no_color"
CONFIDENCE_DEFAULT = "95%"
_CONFIDENCE_LOW, _CONFIDENCE_HIGH = 0.5, 0.9999


def command(
    app: typer.Typer, name: str, examples: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function the command `name` of `app`; `examples` and notes stand below its help."""
    epilog = "\n\n".join(("Examples:", *examples)) if examples else None

    def add(function: Callable[..., None]) -> Callable[..., None]:
        app.command(name, epilog=epilog, cls=Command)(_of_flags(function))
        return function

    return add


def _of_flags(function: Callable[..., None]) -> Callable[..., None]:
    """`function`, with the fields of a dataclass in the place of the parameter that it is."""
    groups: dict[str, type[Any]] = {}
    parameters: list[Parameter] = []
    for parameter in signature(function, eval_str=True).parameters.values():
        group: type[Any] = parameter.annotation
        if is_dataclass(group):
            groups[parameter.name] = group
            ours = {each.name: each.metadata.get(_OPTION) for each in fields(group)}
            for each in signature(group, eval_str=True).parameters.values():
                parameters.append(each.replace(default=ours[each.name] or each.default))
        else:
            parameters.append(parameter)

    colours = option("--no-color", "No colours; as NO_COLOR in the environment.", False)
    parameters.append(
        Parameter(_NO_COLOR, Parameter.KEYWORD_ONLY, default=colours, annotation=bool)
    )

    def called(**values: Any) -> None:
        plain = values.pop(_NO_COLOR)
        for name, group in groups.items():
            values[name] = group(**{each.name: values.pop(each.name) for each in fields(group)})
        with _without_colours() if plain else nullcontext():
            function(**values)

    called.__doc__ = function.__doc__
    # What typer reads the flags from. By keyword, no order of required ones is prescribed.
    called.__dict__["__signature__"] = Signature(
        [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters]
    )
    return called


@contextmanager
def _without_colours() -> Iterator[None]:
    """NO_COLOR is what every library that prints looks at; here for one command."""
    before = os.environ.get("NO_COLOR")
    os.environ["NO_COLOR"] = "1"
    try:
        yield
    finally:
        os.environ.pop("NO_COLOR")
        if before is not None:
            os.environ["NO_COLOR"] = before


def option(
    spelling: str,
    about: str,
    default: Any = ...,
    *,
    known: Iterable[str] = (),
    number: tuple[int, int] | None = None,
) -> Any:
    """A flag as the default of a parameter, or in its `Annotated`, spelled as help texts do.

    `-o --option NAME=VALUE` are two names, and what stands for the value. A shell completes values
    that are `known`; `number` has the least and the largest whole number.
    """
    words, values = spelling.split(), list(known)
    names = [word for word in words if word.startswith("-")]
    return typer.Option(
        default,
        *names,
        metavar=words[-1] if len(words) > len(names) else None,
        help=about,
        parser=None if number is None else whole_number(names[-1], *number),
        autocompletion=(lambda: values) if values else None,
    )


def flag(spelling: str, about: str, default: Any = None, **details: Any) -> Any:
    """The field of a dataclass that is such an `option`."""
    made = option(spelling, about, default, **details)
    return field(default=default, metadata={_OPTION: made})


def whole_number(name: str, low: int, high: int) -> Callable[[str], int]:
    """A reader of the value of the flag `name`, which raises InputError outside `low` to `high`."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise InputError(name, found=text, allowed=f"a whole number from {low} to {high}")
        return number

    return read


def refuse_others(context: typer.Context, effective: Collection[str], why: str) -> None:
    """Raises InputError, saying `why`, for what was given and is not `effective`."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name)
        is_given = source is not None and source.name == "COMMANDLINE"
        if is_given and parameter.name not in {*effective, "quiet", _NO_COLOR}:
            is_flag = parameter.opts[0].startswith("-")
            name = "/".join(parameter.opts) if is_flag else parameter.metavar
            raise InputError(name or parameter.name, why=why)


# --- flags of several commands

EngineOption = Annotated[
    str, option("--engine NAME", f"{', '.join(ENGINE_NAMES)}.", known=ENGINE_NAMES)
]
LibraryOption = Annotated[
    Path | None, option("--library PATH", "The engine's shared library to measure.")
]
MEMORY = "Memory of the machine you deploy on, page cache included."
WORKLOADS = f"{', '.join(WORKLOAD_NAMES)}; or a workload file, or one of YCSB's."
WorkloadOption = Annotated[str | None, option("--workload NAME", WORKLOADS, known=WORKLOAD_NAMES)]
WorkloadSetOption = Annotated[
    list[str] | None,
    option(
        "-w --workload-set KEY=VALUE",
        "A workload parameter, again for each: num=1000000, value_bytes=100; "
        "`lsmtune workload show NAME` lists them.",
    ),
]
OptionSetOption = Annotated[
    list[str] | None,
    option(
        "-o --option NAME=VALUE",
        "An engine option by the engine's own name, again for each; 4MiB is a value.",
    ),
]
SeedOption = Annotated[
    int, option("--seed N", "All randomness follows from it.", number=(0, SEED_MAX))
]
FirstSeedOption = Annotated[
    int, option("--seed N", "All randomness follows from it.", number=(0, FIRST_SEED_MAX))
]
BudgetOption = Annotated[str | None, option("--budget TIME", "Time for all of it: 30m, 1h30m.")]
TrialsOption = Annotated[
    int | None, option("--trials N", "At most so many trials.", number=(1, TRIALS_MAX))
]
StudyArgument = Annotated[Path, typer.Argument(metavar="STUDY", help="A study file or its folder.")]
StudyDirOption = Annotated[
    Path | None, option("--dir DIR", "The study's folder, if not beside STUDY.")
]
TextOutputOption = Annotated[
    Path | None, option("--output FILE", "Write to this file, not to stdout; - is stdout.")
]
ForceOption = Annotated[bool, option("--force", "Replace the file if it exists.")]
JsonOption = Annotated[bool, option("--json", "One JSON document on stdout.")]
QuietOption = Annotated[
    bool, option("--quiet", "No progress: only the result, warnings and errors.")
]
RunsDirOption = Annotated[
    Path | None, option("--dir DIR", "Keep the runs here, and go on from them.")
]


@dataclass(frozen=True)
class WorkloadFlags:
    """What changes the workload that is named; properties alone make YCSB's."""

    workload_set: WorkloadSetOption = None
    properties: list[Path] | None = flag(
        "-P --properties FILE",
        "A file of YCSB's properties, again for each; those of the engine become options.",
    )
    property_set: list[str] | None = flag(
        "-p --property NAME=VALUE", "A property over those of the files, again for each."
    )

    def choice(self, name: str | None, engine: str) -> Choice:
        """The workload `name` with these. Raises InputError for what is none of `engine`'s."""
        return choose_workload(
            name, self.workload_set, self.properties, self.property_set, engine, note
        )

    def stated(self, name: str) -> Stated:
        """The same for no engine, with what is said of it."""
        settings = assignments(PROPERTY_FLAG, self.property_set)
        given = properties_of(self.properties or (), settings)
        return stated_workload(name, self.workload_set, given)


@dataclass(frozen=True)
class RepeatFlags:
    """The configuration that is measured, and how often and where."""

    option: OptionSetOption = None
    seed: FirstSeedOption = 1
    repeat: int = flag("--repeat N", "Runs, each on a new seed.", 1, number=(1, 1000))
    directory: Path | None = flag("--dir DIR", "Where databases are made; here by default.")


@dataclass(frozen=True)
class LimitFlags:
    """When a run is killed."""

    deadline: str | None = flag(
        "--deadline TIME",
        f"A run is killed after this time; {format_duration(LIMITS_DEFAULT.deadline_s)} if unset.",
    )
    memory: str | None = flag(
        "--memory SIZE",
        f"A run is killed above this memory; {format_bytes(LIMITS_DEFAULT.memory_bytes)} if unset.",
    )
    disk: str | None = flag(
        "--disk SIZE",
        f"A run is killed above this disk space; {format_bytes(LIMITS_DEFAULT.disk_bytes)} if "
        "unset.",
    )

    @property
    def limits(self) -> Limits:
        """As runs have them. Raises InputError for a value that is none."""
        return self.over(LIMITS_DEFAULT)

    def over(self, unset: Limits) -> Limits:
        """The same, with those of `unset` where one is not given."""
        deadline, memory, disk = self.deadline, self.memory, self.disk
        return Limits(
            unset.deadline_s if deadline is None else duration_of("--deadline", deadline),
            unset.memory_bytes if memory is None else bytes_of("--memory", memory),
            unset.disk_bytes if disk is None else bytes_of("--disk", disk),
        )


# --- the values of flags


def config_of(texts: Sequence[str] | None) -> Config:
    """The Config of the `-o` flags; `default` without any."""
    options = options_of(OPTION_FLAG, texts)
    label = ",".join(f"{name}={value}" for name, value in options.items())
    return Config(options, label=label or "default")


def under_workload(config: Config, choice: Choice, engine: str, source: str) -> Config:
    """`config`, which `source` names, with the options that the workload of `choice` stands for."""
    config = choice.config(config, engine, source)
    return with_page_cache(config, engine, choice.workload.page_cache, WORKLOAD_FLAG)


def duration_of(flag: str, text: str) -> float:
    """A duration above zero, in seconds. Raises InputError naming `flag`."""
    seconds = parsed(parse_duration, text, flag)
    if seconds <= 0:
        raise InputError(flag, found=text, allowed="a duration above 0")
    return seconds


def bytes_of(flag: str, text: str) -> int:
    """A size above zero, in bytes. Raises InputError naming `flag`."""
    size = parsed(parse_bytes, text, flag)
    if size <= 0:
        raise InputError(flag, found=text, allowed="a size above 0")
    return size


def share_of(flag: str, text: str) -> float:
    """A share above 0 and below 1. Raises InputError naming `flag`."""
    return parsed(parse_share, text, flag)


def confidence_of(text: str) -> float:
    """The share of `--confidence`. Raises InputError for one that is of no use."""
    share = share_of("--confidence", text)
    if not _CONFIDENCE_LOW <= share <= _CONFIDENCE_HIGH:
        allowed = f"from {100 * _CONFIDENCE_LOW:g}% to {100 * _CONFIDENCE_HIGH:g}%"
        raise InputError("--confidence", found=text, allowed=allowed)
    return share
