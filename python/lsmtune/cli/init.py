"""`lsmtune init`: write a commented study file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from lsmtune.errors import InputError, nearest_name
from lsmtune.spec import TEMPLATE_ENGINES, parse_spec, study_text
from lsmtune.units import UnitError, parse_duration
from lsmtune.workloads import WORKLOAD_NAMES, make_workload


def register(app: typer.Typer) -> None:
    """Add the `init` command to `app`."""
    app.command("init")(_init)


def _init(
    engine: Annotated[
        str, typer.Option("--engine", help=", ".join(TEMPLATE_ENGINES), metavar="NAME")
    ] = "rocksdb",
    workload: Annotated[
        str, typer.Option("--workload", help=", ".join(WORKLOAD_NAMES), metavar="NAME")
    ] = "fillrandom",
    workload_set: Annotated[
        list[str] | None,
        typer.Option(
            "-w", "--workload-set", help="A parameter of the workload.", metavar="KEY=VALUE"
        ),
    ] = None,
    budget: Annotated[
        str, typer.Option("--budget", help="Time for the whole study.", metavar="TIME")
    ] = "10m",
    output: Annotated[
        Path, typer.Option("--output", help="The file to write.", metavar="FILE")
    ] = Path("study.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a commented study file to start from."""
    if engine not in TEMPLATE_ENGINES:
        nearest = nearest_name(engine, TEMPLATE_ENGINES)
        allowed = ", ".join(TEMPLATE_ENGINES)
        raise InputError("init", "--engine", found=engine, allowed=allowed, nearest=nearest)
    _check_workload(workload)
    parameters = _parameters(workload_set or [])
    make_workload(workload, parameters, "-w")
    _check_budget(budget)
    text = study_text(engine, workload, parameters, budget, str(output))
    # What we write must load: an error here is one between flags (LevelDB without its log).
    parse_spec(text, output)
    _write(output, text, force)
    typer.echo(f"wrote {output}\nnext: lsmtune tune {output}")


def _check_workload(workload: str) -> None:
    if workload not in WORKLOAD_NAMES:
        nearest = nearest_name(workload, WORKLOAD_NAMES)
        allowed = ", ".join(WORKLOAD_NAMES)
        raise InputError("init", "--workload", found=workload, allowed=allowed, nearest=nearest)


def _parameters(pairs: list[str]) -> dict[str, object]:
    parameters: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not (name and equals and value):
            raise InputError("-w", found=pair, allowed="KEY=VALUE")
        if name in parameters:
            raise InputError("-w", name, why="given twice")
        parameters[name] = value
    return parameters


def _check_budget(budget: str) -> None:
    allowed = "a time above 0, such as 90s, 30m, 1h30m"
    try:
        duration_s = parse_duration(budget)
    except UnitError:
        duration_s = 0.0
    if duration_s <= 0:
        raise InputError("init", "--budget", found=budget, allowed=allowed)


def _write(output: Path, text: str, force: bool) -> None:
    """Write whole or not at all; replace an existing file only with `force`."""
    if output.is_dir():
        raise InputError(str(output), why="is a directory", allowed="a file to write")
    if output.exists() and not force:
        allowed = "another --output, or --force to replace it"
        raise InputError(str(output), why="exists already", allowed=allowed)
    if not output.parent.is_dir():
        raise InputError(str(output), why=f"no such folder: {output.parent}")
    partial = output.with_name(f".{output.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(output)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise InputError(str(output), why=f"cannot be written: {error.strerror}") from None
