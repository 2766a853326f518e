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
from lsmtune.engines.options.spaces import READY_SPACES, ready_space
from lsmtune.errors import InputError, nearest_name
from lsmtune.samplers import SAMPLERS, sampler_kind
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
    space: Annotated[
        str | None,
        typer.Option("--space", help="A ready space (lsmtune options ENGINE --spaces)."),
    ] = None,
    sampler: Annotated[
        str, typer.Option("--sampler", help=", ".join(SAMPLERS), metavar="NAME")
    ] = "tpe",
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
    if space is not None and ready_space(space, "init", "--space").engine != engine:
        ours = ", ".join(name for name, ready in READY_SPACES.items() if ready.engine == engine)
        raise InputError("init", "--space", found=space, allowed=ours)
    sampler_kind(sampler, "init", "--sampler")
    text = study_text(
        engine, workload, parameters, budget, str(output), space=space, sampler=sampler
    )
    # What we write must load: an error here is one between flags (LevelDB without its log).
    parse_spec(text, output)
    if output.is_file() and not force:
        allowed = "another --output, or --force to replace it"
        raise InputError(str(output), why="exists already", allowed=allowed)
    write_file(output, text)
    typer.echo(f"wrote {output}\nnext: lsmtune tune {output}")
