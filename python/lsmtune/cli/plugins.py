"""`lsmtune plugins`: what other packages add to this installation, and what of it is broken."""

from __future__ import annotations

import typer

from lsmtune.cli.flags import JsonOption, command
from lsmtune.cli.output import print_json, print_view
from lsmtune.plugins import GROUPS, is_any_installed

EXAMPLES = ("lsmtune plugins", "lsmtune plugins --json")
app = typer.Typer()


@command(app, "plugins", EXAMPLES)
def _plugins(as_json: JsonOption = False) -> None:
    """List the plugins that are installed: kind, name, package, version, and what is wrong."""
    rows = listed()
    if as_json:
        print_json({"plugins": rows})
    elif not rows:
        kinds = ", ".join(group.rpartition(".")[2] for group in GROUPS)
        typer.echo(f"no plugins; packages may add {kinds}: docs/plugins.md")
    else:
        from lsmtune.report.document import Table, words

        heads = ("kind", "name", "package", "version", "problem")
        cells = [tuple(row[head] or "" for head in heads) for row in rows]
        print_view([Table(words(*heads), cells)])


def listed() -> list[dict[str, str | None]]:
    """Each plugin, imported; `problem` is None for one that can be used."""
    if not is_any_installed():
        return []  # without a second for importing what they would be added to
    from lsmtune.engines.formats import EXPORTERS, IMPORTERS
    from lsmtune.engines.library import PLUGIN_ENGINES
    from lsmtune.programs.registry import PROGRAMS
    from lsmtune.report.study import FORMATS
    from lsmtune.search.pruners import PRUNERS
    from lsmtune.search.samplers import SAMPLERS
    from lsmtune.workloads.stated import FAMILIES

    every = (SAMPLERS, PRUNERS, PROGRAMS, IMPORTERS, EXPORTERS, FAMILIES, FORMATS, PLUGIN_ENGINES)
    return [
        {
            "kind": known.group.rpartition(".")[2].removesuffix("s"),
            "name": name,
            "package": origin.package,
            "version": origin.version,
            "place": origin.place,
            "problem": why or None,
        }
        for known in every
        for name, origin, why in known.added()
    ]
