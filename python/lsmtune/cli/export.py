"""`lsmtune export`: a configuration in the form that another program reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from lsmtune.cli.choices import ALLOWED, NamedConfig, resolve_named
from lsmtune.cli.flags import ForceOption, JsonOption, command, option
from lsmtune.cli.output import new_file, note, print_json, print_view, put_out
from lsmtune.engines.formats import EXPORTERS, exported
from lsmtune.engines.formats.base import Difference, ExportRequest, differences
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
    output: Path | None = option("--output FILE", "Write here, not to stdout; - is stdout.", None),
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
    request = ExportRequest(engine_name, named.config.options, version, named.config.label)
    if format_name is None:
        if output is not None:
            raise InputError(
                "export", "--output", why="a difference is no file", allowed="--format"
            )
        _show_differences(request, other, as_json=json)
        return
    if diff is not None and format_name != SET_OPTIONS:
        why = f"{format_name} says one configuration"
        raise InputError("export", "--diff", why=why, allowed=f"--format {SET_OPTIONS}, or none")
    back = named.baseline if diff is None else other.config
    _write(format_name, replace(request, other=back.options), output, force, as_json=json)


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
    put_out(made.text, file, document, as_json=as_json, said="{}")


def _about(request: ExportRequest) -> dict[str, object]:
    return {
        "engine": request.engine_name,
        "version": request.version,
        "configuration": request.label,
    }


def _show_differences(request: ExportRequest, other: NamedConfig, *, as_json: bool) -> None:
    """What differs, with both values: as people read them, or as JSON."""
    label = other.config.label
    found = differences(request.engine_name, request.version, request.options, other.config.options)
    if as_json:
        print_json({**_about(request), "other": label, "differences": encode(found)})
    elif not found:
        typer.echo(f"{request.label} and {label} set the same options")
    else:
        _print_table(found, request.label, label)


def _print_table(found: Iterable[Difference], here: str, there: str) -> None:
    from lsmtune.report.document import Table, words
    from lsmtune.report.options import value_text

    def shown(value: str | int | float | bool | None, unit: str, is_set: bool) -> str:
        text = value_text(value, unit)
        return text if is_set else f"{text} (default)" if value is not None else "default"

    rows = [
        (
            each.option,
            shown(each.value, each.unit, each.is_set),
            shown(each.other_value, each.unit, each.other_is_set),
        )
        for each in found
    ]
    print_view([Table(words("option", here, there), rows)])
