"""`lsmtune options`: what an engine's options mean; the ready spaces and presets made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from lsmtune.cli.flags import JsonOption, command
from lsmtune.cli.output import print_result
from lsmtune.engines.catalogue import OptionInfo, option_catalogue
from lsmtune.engines.library import ENGINE_KINDS, PLUGIN_ENGINES
from lsmtune.engines.ready import Preset, ReadySpace, known_presets, known_spaces
from lsmtune.errors import InputError, check_name, nearest_name
from lsmtune.model.codec import encode
from lsmtune.report.document import Block, Paragraph
from lsmtune.report.options import (
    option_view,
    options_table,
    preset_view,
    presets_table,
    space_view,
    spaces_table,
    value_text,
)
from lsmtune.space.parameter import Parameter

COMMAND = "options"
EXAMPLES = (
    "lsmtune options rocksdb",
    "lsmtune options rocksdb write_buffer_size",
    "lsmtune options rocksdb block_cache --json",
    "lsmtune options rocksdb --spaces",
    "lsmtune options rocksdb rocksdb-write",
    "lsmtune options --presets",
    "lsmtune options rocksdb rocksdb-optimize-for-point-lookup",
)
_ENGINES = (*ENGINE_KINDS, *PLUGIN_ENGINES)
app = typer.Typer()


@command(app, COMMAND, EXAMPLES)
def _options(
    engine: Annotated[
        str | None,
        typer.Argument(
            metavar="ENGINE",
            help=f"{', '.join(_ENGINES)}.",
            autocompletion=lambda: list(_ENGINES),
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="An option, a ready space or a preset; all about it."),
    ] = None,
    spaces: Annotated[bool, typer.Option("--spaces", help="List the ready spaces.")] = False,
    presets: Annotated[bool, typer.Option("--presets", help="List the presets.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say what an engine's options mean, where to search them, and what they risk."""
    check_name(engine, _ENGINES, COMMAND)
    if spaces or presets:
        if name is not None:
            why = "given with --spaces or --presets, which list all"
            raise InputError(COMMAND, "NAME", found=name, why=why)
        _list_named(engine, spaces, presets, as_json)
    elif engine is None:
        raise InputError(COMMAND, "ENGINE", why="missing", allowed=", ".join(_ENGINES))
    elif name is None:
        infos = option_catalogue(engine).values()
        document = {"engine": engine, "options": [encode(info) for info in infos]}
        print_result(document, [options_table(infos)], as_json=as_json)
    else:
        _say_one(engine, name, as_json)


def _list_named(engine: str | None, spaces: bool, presets: bool, as_json: bool) -> None:
    """The ready spaces and the presets, of one engine or of all."""
    document: dict[str, object] = {}
    view: list[Block] = []
    if spaces:
        ready = [s for s in known_spaces().values() if engine in (None, s.engine)]
        document["spaces"] = [_space_document(space) for space in ready]
        view.append(spaces_table(ready))
    if presets:
        known = [p for p in known_presets().values() if engine in (None, p.engine)]
        document["presets"] = [encode(preset) for preset in known]
        view += [Paragraph("")] if spaces else []
        view.append(presets_table(known))
    print_result(document, view, as_json=as_json)


def _say_one(engine: str, name: str, as_json: bool) -> None:
    entry = find(engine, name)
    infos = option_catalogue(engine)
    document = encode(entry)
    if isinstance(entry, OptionInfo):
        kind, view = "option", option_view(engine, entry, _users(engine, entry.name))
    elif isinstance(entry, ReadySpace):
        kind, view = "space", space_view(entry)
        document = _space_document(entry)
    else:
        kind, view = "preset", preset_view(entry, infos)
    print_result({"engine": engine, kind: document}, view, as_json=as_json)


def find(engine: str, name: str) -> OptionInfo | ReadySpace | Preset:
    """What `name` is for `engine`; an option also by the last part of its name.

    Raises InputError when it is nothing, or the last part of several options.
    """
    options = option_catalogue(engine)
    known: dict[str, OptionInfo | ReadySpace | Preset] = {
        **{n: p for n, p in known_presets().items() if p.engine == engine},
        **{n: s for n, s in known_spaces().items() if s.engine == engine},
        **options,
    }
    ends = [name] if name in known else [full for full in options if full.endswith(f".{name}")]
    if len(ends) == 1:
        return known[ends[0]]
    if ends:
        raise InputError(COMMAND, "NAME", found=name, allowed=", ".join(ends))
    # Nested options are also known by their last part.
    by_part = {full.rpartition(".")[2]: full for full in known}
    nearest = nearest_name(name, [*known, *by_part])
    raise InputError(
        COMMAND,
        "NAME",
        found=name,
        why=f"no option, ready space or preset of {engine}",
        allowed=f"those of `lsmtune options {engine}`, --spaces and --presets",
        nearest=by_part.get(nearest, nearest),
    )


def _users(engine: str, option: str) -> Mapping[str, list[str]]:
    """The ready spaces that have `option`, and the presets with the value that they give it."""
    spaces = [
        space.name
        for space in known_spaces().values()
        if space.engine == engine and any(p.name == option for p in space.parameters)
    ]
    unit = option_catalogue(engine)[option].unit
    presets = [
        f"{preset.name} ({value_text(preset.options[option], unit)})"
        for preset in known_presets().values()
        if preset.engine == engine and option in preset.options
    ]
    return {"in spaces": spaces, "in presets": presets}


def _space_document(space: ReadySpace) -> dict[str, object]:
    """Every field by its name, and each parameter as a study file has it."""
    return {**encode(space), "parameters": [_parameter_document(p) for p in space.parameters]}


def _parameter_document(parameter: Parameter) -> dict[str, object]:
    numbers = parameter.numbers
    kind = "categorical" if numbers is None else "int" if numbers.integer else "float"
    return {
        "name": parameter.name,
        "type": kind,
        "unit": parameter.unit,
        "default": parameter.default,
        "low": numbers.low if numbers else None,
        "high": numbers.high if numbers else None,
        "log": numbers.log if numbers else False,
        "step": numbers.step if numbers else None,
        "choices": list(parameter.choices),
        "special": [special.value for special in parameter.specials],
        "when": {each.name: list(each.values) for each in parameter.conditions},
    }
