"""`lsmtune init`: write a commented study file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lsmtune.cli.files import write_file
from lsmtune.cli.flags import (
    WORKLOAD_FLAG,
    WorkloadOption,
    WorkloadSetOption,
    assignments,
    duration_of,
    workload_of,
)
from lsmtune.errors import InputError, nearest_name
from lsmtune.spec import TEMPLATE_ENGINES, parse_spec, study_text


def register(app: typer.Typer) -> None:
    """Add the `init` command to `app`."""
    app.command("init")(_init)


def _init(
    engine: Annotated[
        str, typer.Option("--engine", help=", ".join(TEMPLATE_ENGINES), metavar="NAME")
    ] = "rocksdb",
    workload: WorkloadOption = "fillrandom",
    workload_set: WorkloadSetOption = None,
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
    workload_of(workload, workload_set)
    duration_of("--budget", budget)
    parameters = assignments(WORKLOAD_FLAG, workload_set)
    text = study_text(engine, workload, parameters, budget, str(output))
    # What we write must load: an error here is one between flags (LevelDB without its log).
    parse_spec(text, output)
    if output.is_file() and not force:
        allowed = "another --output, or --force to replace it"
        raise InputError(str(output), why="exists already", allowed=allowed)
    write_file(output, text)
    typer.echo(f"wrote {output}\nnext: lsmtune tune {output}")
