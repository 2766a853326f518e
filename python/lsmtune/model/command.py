"""How a program performs the runs of a study: one of the user's own, or one that people trust.

A CommandSpec is a program of the user's own, with placeholders where values belong, and where its
results are. A ProgramSpec names one of the programs that lsmtune knows.
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated

from jsonpointer import JsonPointer, JsonPointerException

from lsmtune.errors import FieldError, nearest_name
from lsmtune.model.fields import STRICT, described


def placeholders(text: str) -> tuple[str, ...]:
    """The names between braces in `text`, in order; dotted option names are names.

    Raises ValueError, with a line that says why, for braces that are not a placeholder.
    """
    return tuple(name for _, name in _parts(text) if name is not None)


def filled(text: str, values: Mapping[str, str]) -> str:
    """`text` with every placeholder replaced. Raises KeyError for one without a value."""
    return "".join(
        literal + ("" if name is None else values[name]) for literal, name in _parts(text)
    )


def _parts(text: str) -> Iterator[tuple[str, str | None]]:
    # string.Formatter takes the text apart; its attribute access and formats are not for us.
    for literal, name, form, conversion in string.Formatter().parse(text):
        if name is not None and (not name.strip() or form or conversion):
            raise ValueError("a placeholder is a name between braces; a literal brace is doubled")
        yield literal, name


# What every run has a value for, beside the parameters; also in the environment as LSMTUNE_<NAME>.
RUN_PLACEHOLDERS = ("seed", "directory", "trial", "num")
RESERVED_PREFIX = "LSMTUNE_"

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class ParametersFile:
    """A file that is written into the run's directory before the program starts.

    Without a `template` it is a JSON object, parameter to value. A study file that has none gives
    the name alone.
    """

    __pydantic_config__ = STRICT

    name: Annotated[str, described("a name inside the run's directory", min_length=1)]
    template: Annotated[str | None, described("text with {parameter} where a value belongs")] = None


@dataclass(frozen=True)
class JsonLines:
    """Each line is a JSON object, metric to number; one that has a `step` is intermediate.

    They are appended to the file that LSMTUNE_RESULTS names. With `stdout`, the lines of the
    program's standard output that begin with `{` count too.
    """

    stdout: bool = False


@dataclass(frozen=True)
class RegularExpressions:
    """Metric to a pattern with one group, looked for in standard output; the last match counts.

    Patterns are Python's, and `^` and `$` match at every line.
    """

    patterns: Mapping[str, str]


@dataclass(frozen=True)
class JsonPointers:
    """Where in a JSON document each metric is, by a JSON pointer (RFC 6901)."""

    __pydantic_config__ = STRICT

    pointers: Annotated[
        dict[str, str], described("metric to JSON pointer, as /latency/p99", alias="metrics")
    ]
    file: Annotated[
        str | None, described("a name inside the run's directory; standard output if not given")
    ] = None


Results = JsonLines | RegularExpressions | JsonPointers


@dataclass(frozen=True)
class CommandSpec:
    """A program as the trial. `check_command` finds what is wrong with one.

    `command` has the program and its arguments. An element that is a tuple is a group of
    arguments: left out where one of its parameters is not active. `environment` is added to
    lsmtune's own, a variable being left out in the same way. The program is started in `folder`,
    that of the study file. `metrics` are the names that a run has to report; the first is the one
    that a result without a name is taken for.
    """

    command: tuple[str | tuple[str, ...], ...]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    parameters_file: ParametersFile | None = None
    results: Results = JsonLines()
    metrics: tuple[str, ...] = ()


def check_command(spec: CommandSpec, names: Collection[str], optional: Collection[str]) -> None:
    """Raises FieldError, of the study file, for the first thing that is wrong with `spec`.

    `names` are the parameters, `optional` those of them that are not active in every
    configuration.
    """
    if not spec.command or not spec.command[0] or isinstance(spec.command[0], tuple):
        raise FieldError("runner.command", why="begins with the program, a text")
    clash = sorted(set(names) & set(RUN_PLACEHOLDERS))
    if clash:
        why = f"{{{clash[0]}}} is lsmtune's own word in a command"
        raise FieldError(f"space.{clash[0]}", why=why)
    for place, text, may_be_left_out in _texts(spec):
        _check_placeholders(f"runner.{place}", text, names, () if may_be_left_out else optional)
    for name in spec.environment:
        if name.startswith(RESERVED_PREFIX):
            why = f"{RESERVED_PREFIX}* is lsmtune's own"
            raise FieldError(f"runner.environment.{name}", why=why)
        if not _VARIABLE.fullmatch(name):
            allowed = "letters, digits and _, no digit first"
            raise FieldError("runner.environment", found=name, allowed=allowed)
    if spec.parameters_file is not None:
        _check_inside(spec.parameters_file.name, "runner.parameters_file")
    if isinstance(spec.results, JsonPointers) and spec.results.file is not None:
        _check_inside(spec.results.file, "runner.results.json_pointer.file")
    _check_results(spec.results, spec.metrics)


def _texts(spec: CommandSpec) -> Iterator[tuple[str, str, bool]]:
    """Place, text, and whether it is left out where one of its parameters is not active."""
    for index, element in enumerate(spec.command):
        group = isinstance(element, tuple)
        for text in element if isinstance(element, tuple) else (element,):
            yield f"command[{index}]", text, group
    for name, text in spec.environment.items():
        yield f"environment.{name}", text, True
    file = spec.parameters_file
    if file is not None and file.template is not None:
        yield "parameters_file.template", file.template, False


def _check_placeholders(
    field: str, text: str, names: Collection[str], optional: Collection[str]
) -> None:
    """Raises FieldError for a placeholder of `text` that is no name, or that is `optional`."""
    if "\0" in text:
        raise FieldError(field, found=text, why="a NUL character cannot be passed on")
    try:
        used = placeholders(text)
    except ValueError as error:
        raise FieldError(field, found=text, why=str(error)) from None
    known = [*names, *RUN_PLACEHOLDERS]
    for name in used:
        shown = f"{{{name}}}"
        if name not in known:
            allowed, nearest = ", ".join(known), nearest_name(name, known)
            why = "unknown placeholder"
            raise FieldError(field, found=shown, why=why, allowed=allowed, nearest=nearest)
        if name in optional:
            why = f"{name} is not active in every configuration"
            allowed = f'a list of arguments, which is left out then: ["--{name}", "{shown}"]'
            raise FieldError(field, found=shown, why=why, allowed=allowed)


def _check_inside(name: str, field: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.name or "\0" in name:
        raise FieldError(field, found=name, allowed="a name inside the run's directory")


def _check_results(results: Results, metrics: Collection[str]) -> None:
    """Patterns and pointers name every metric that they give; JSON lines cannot be foreseen."""
    if isinstance(results, JsonLines):
        return
    if isinstance(results, RegularExpressions):
        given = results.patterns
        allowed = "a regular expression with one group, which is the number"
        for metric, pattern in given.items():
            place = f"runner.results.regex.{metric}"
            try:
                groups = re.compile(pattern, re.MULTILINE).groups
            except (re.error, OverflowError, RecursionError) as error:  # `a{99999999999}`
                raise FieldError(place, found=pattern, why=str(error), allowed=allowed) from None
            if groups != 1:
                raise FieldError(place, found=pattern, why=f"{groups} groups", allowed=allowed)
    else:
        given, allowed = results.pointers, "a JSON pointer, as /latency/p99"
        for metric, pointer in given.items():
            place = f"runner.results.json_pointer.metrics.{metric}"
            try:
                JsonPointer(pointer)
            except JsonPointerException as error:
                raise FieldError(place, found=pointer, why=str(error), allowed=allowed) from None
    missing = [metric for metric in metrics if metric not in given]
    if missing:
        why, found = f"nothing gives the metric {missing[0]}", ", ".join(given) or "none"
        nearest = nearest_name(missing[0], given)
        raise FieldError("runner.results", why=why, found=found, nearest=nearest)


@dataclass(frozen=True)
class ProgramSpec:
    """The program by its name; `path` None: the first one on PATH. `arguments` go to every call."""

    name: str
    path: Path | None = None
    arguments: tuple[str, ...] = ()
