"""`lsmtune init`: write a commented study file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from lsmtune.cli.choices import choose_workload
from lsmtune.cli.flags import (
    ForceOption,
    PropertiesOption,
    PropertyOption,
    WorkloadOption,
    WorkloadSetOption,
    duration_of,
)
from lsmtune.cli.output import check_new, write_file
from lsmtune.engines.ready import READY_SPACES, ready_space
from lsmtune.errors import InputError, nearest_name
from lsmtune.search.samplers import SAMPLERS, sampler_kind
from lsmtune.study.build import parse_spec
from lsmtune.study.template import TEMPLATE_ENGINES, study_text

DEFAULT_WORKLOAD = "fillrandom"
EPILOG = "\n\n".join(
    (
        "Examples:",
        "lsmtune init --workload fillrandom -w num=1000000",
        "lsmtune init --engine leveldb --workload ycsb-a --budget 30m --output ycsb.yaml",
        "lsmtune init -P workloada --space rocksdb-basic --sampler gp",
    )
)


def register(app: typer.Typer) -> None:
    """Add the `init` command to `app`."""
    app.command("init", epilog=EPILOG)(_init)


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
    force: ForceOption = False,
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
    fields = dict(choice.fields)
    if "file" in fields:  # named from the study file
        fields["file"] = os.path.relpath(fields["file"], output.parent)
    text = study_text(
        engine,
        fields,
        budget,
        str(output),
        workload=choice.workload,
        space=space,
        sampler=sampler,
        options=choice.options,
    )
    # What we write must load: an error here is one between flags (LevelDB without its log).
    parse_spec(text, output)
    check_new(output, "--output", force=force)
    write_file(output, text)
    typer.echo(f"wrote {output}\nnext: lsmtune tune {output}")
