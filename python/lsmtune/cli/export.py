"""`lsmtune export`: a configuration in the form that another program reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lsmtune.cli.choices import ALLOWED, NamedConfig, resolve_named
from lsmtune.cli.flags import ForceOption, JsonOption, TextOutputOption, command, option
from lsmtune.cli.output import new_file, note, print_result, put_out
from lsmtune.engines.formats import EXPORTERS, exported
from lsmtune.engines.formats.base import ExportRequest
from lsmtune.engines.library import ENGINE_KINDS, PLUGIN_ENGINES
from lsmtune.errors import InputError, check_name
from lsmtune.model.codec import encode

ENGINES = (*ENGINE_KINDS, *PLUGIN_ENGINES)
SET_OPTIONS = "set-options"  # the one format of two configurations
EXAMPLES = (
    "lsmtune export study.yaml --format rocksdb-options --output OPTIONS",
    "lsmtune export study.yaml#17 --format db_bench",
    "lsmtune export study.yaml --format java --output TunedOptions.java --force",
    "lsmtune export study.yaml --diff default",
    "lsmtune export study.yaml --format set-options --diff OPTIONS-000007",
    "lsmtune export write_buffer_size=4MiB --engine leveldb --format properties",
)
app = typer.Typer()


@command(app, "export", EXAMPLES)
def _export(
    config: Annotated[str, typer.Argument(metavar="CONFIG", help=f"{ALLOWED}.")],
    format_name: str | None = option(
        "--format FORMAT", f"{', '.join(EXPORTERS)}.", None, known=EXPORTERS
    ),
    diff: str | None = option(
        "--diff CONFIG", f"Only what differs from CONFIG; with {SET_OPTIONS}, the way back.", None
    ),
    engine: str | None = option(
        "--engine NAME", "Not needed when CONFIG says it.", None, known=ENGINES
    ),
    output: TextOutputOption = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Write a configuration for another program: as its options, as code, or as a difference.

    What a format cannot say is written beside it: as comments at the top, and on stderr.
    """
    if format_name is None and diff is None:
        allowed = f"{', '.join(EXPORTERS)}; or --diff CONFIG"
        raise InputError("export", "--format", why="missing", allowed=allowed)
    check_name(engine, ENGINES, "--engine")
    named = resolve_named(config, engine)
    engine_name = engine or (named.engine.name if named.engine else None)
    other = NamedConfig() if diff is None else resolve_named(diff, engine_name, "--diff")
    engine_name = engine_name or (other.engine.name if other.engine else None)
    if engine_name is None:
        raise InputError("export", "--engine", why="missing", allowed=", ".join(ENGINES))
    version = next((each.engine.version for each in (named, other) if each.engine), None)
    back = named.baseline if diff is None else other.config
    request = ExportRequest(
        engine_name, named.config.options, version, named.config.label, back.options
    )
    if format_name is None:
        if output is not None:
            raise InputError(
                "export", "--output", why="a difference is no file", allowed="--format"
            )
        _show_differences(request, back.label, as_json=json)
        return
    if diff is not None and format_name != SET_OPTIONS:
        why = f"{format_name} says one configuration"
        raise InputError("export", "--diff", why=why, allowed=f"--format {SET_OPTIONS}, or none")
    _write(format_name, request, output, force, as_json=json)


def _write(
    format_name: str, request: ExportRequest, output: Path | None, force: bool, *, as_json: bool
) -> None:
    made = exported(format_name, request)
    for each in made.left_out:
        note(f"left out: {each}")
    document = {
        **_about(request),
        "format": format_name,
        "text": made.text,
        "left_out": [{"option": e.option, "value": e.value, "why": e.why} for e in made.left_out],
        "output": None,
    }
    file = new_file(output, force=force)
    put_out(made.text, file, document, as_json=as_json, message="{}")


def _about(request: ExportRequest) -> dict[str, object]:
    return {
        "engine": request.engine_name,
        "version": request.version,
        "configuration": request.label,
    }


def _show_differences(request: ExportRequest, there: str, *, as_json: bool) -> None:
    """What differs from the configuration `there`: as people read it, or as JSON."""
    from lsmtune.report.differences import difference_table

    differing = request.differences()
    document = {**_about(request), "other": there, "differences": encode(differing)}
    print_result(document, [difference_table(differing, request.label, there)], as_json=as_json)
