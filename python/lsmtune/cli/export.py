"""`lsmtune export`: a configuration in the form that another program reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lsmtune.cli.choices import ALLOWED, resolve_named
from lsmtune.cli.flags import command, option
from lsmtune.cli.output import write_file
from lsmtune.engines.formats import EXPORTERS, export
from lsmtune.engines.library import ENGINE_KINDS, engine_kind
from lsmtune.errors import InputError

EXAMPLES = (
    "lsmtune export study.yaml --format rocksdb-options --output OPTIONS",
    "lsmtune export study.yaml#17 --format db_bench",
    "lsmtune export write_buffer_size=4MiB --engine leveldb --format properties",
)
app = typer.Typer()


@command(app, "export", EXAMPLES)
def _export(
    config: Annotated[str, typer.Argument(help=f"{ALLOWED}.")],
    format_name: Annotated[str, typer.Option("--format", help=", ".join(EXPORTERS))],
    engine: str | None = option("--engine", "Not needed when CONFIG is a study.", None),
    output: Path | None = option("--output", "Write to this file, not to stdout.", None),
) -> None:
    """Write a configuration as an OPTIONS file, a .properties file, or db_bench flags."""
    if engine is not None:
        engine_kind(engine, "--engine")
    named = resolve_named(config, engine)
    engine_name = engine or (named.engine.name if named.engine else None)
    if engine_name is None:
        raise InputError("export", "--engine", why="missing", allowed=", ".join(ENGINE_KINDS))
    text = export(
        format_name,
        engine_name,
        named.config.options,
        version=named.engine.version if named.engine else None,
        label=named.config.label,
    )
    if output is None:
        typer.echo(text, nl=False)
        return
    write_file(output, text)
    typer.echo(output)
