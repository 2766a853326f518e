"""`lsmtune init`: write a commented study file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from lsmtune.cli.choices import choose_workload
from lsmtune.cli.flags import (
    PropertiesOption,
    PropertyOption,
    WorkloadOption,
    WorkloadSetOption,
    duration_of,
)
from lsmtune.cli.output import write_file
from lsmtune.engines.ready import READY_SPACES, ready_space
from lsmtune.errors import InputError, nearest_name
from lsmtune.search.samplers import SAMPLERS, sampler_kind
from lsmtune.study.build import parse_spec
from lsmtune.study.template import TEMPLATE_ENGINES, study_text
from lsmtune.workloads.choice import Choice

DEFAULT_WORKLOAD = "fillrandom"


def register(app: typer.Typer) -> None:
    """Add the `init` command to `app`."""
    app.command("init")(_init)


def _init(
    engine: Annotated[
        str, typer.Option("--engine", help=", ".join(TEMPLATE_ENGINES), metavar="NAME")
    ] = "rocksdb",
    workload: WorkloadOption = None,
    workload_set: WorkloadSetOption = None,
    properties: PropertiesOption = None,
    property_set: PropertyOption = None,
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
    if workload is None and not properties and not property_set:
        workload = DEFAULT_WORKLOAD
    choice = choose_workload(workload, workload_set, properties, property_set, engine)
    duration_of("--budget", budget)
    if space is not None and ready_space(space, "init", "--space").engine != engine:
        ours = ", ".join(name for name, ready in READY_SPACES.items() if ready.engine == engine)
        raise InputError("init", "--space", found=space, allowed=ours)
    sampler_kind(sampler, "init", "--sampler")
    text = study_text(
        engine,
        _fields(choice, output),
        budget,
        str(output),
        workload=choice.workload,
        space=space,
        sampler=sampler,
        options=choice.options,
    )
    # What we write must load: an error here is one between flags (LevelDB without its log).
    parse_spec(text, output)
    if output.is_file() and not force:
        allowed = "another --output, or --force to replace it"
        raise InputError(str(output), why="exists already", allowed=allowed)
    write_file(output, text)
    typer.echo(f"wrote {output}\nnext: lsmtune tune {output}")


def _fields(choice: Choice, output: Path) -> dict[str, Any]:
    """The fields of the workload; a file as it is named from the study file."""
    fields = dict(choice.fields)
    if "file" in fields:
        path = Path(fields["file"])
        fields["file"] = os.path.relpath(path, output.parent)
    return fields
