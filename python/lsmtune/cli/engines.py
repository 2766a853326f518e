"""`lsmtune engines`: list, install and register engine libraries."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lsmtune.cli.commands import Group
from lsmtune.cli.flags import JsonOption, command, option
from lsmtune.cli.output import print_json, print_view, say, warn
from lsmtune.driver.conversation import find_driver
from lsmtune.engines.install import RECIPES, add, install_all
from lsmtune.engines.libraries import Registry, find_library, library_warnings
from lsmtune.engines.library import Library
from lsmtune.errors import InputError

ADD_EXAMPLES = (
    "lsmtune engines add /usr/lib/x86_64-linux-gnu/librocksdb.so.7.8",
    "lsmtune engines add rocksdbjni-9.7.3.jar --engine rocksdb",
)
INSTALL_EXAMPLES = (
    "lsmtune engines install",
    "lsmtune engines install leveldb --json",
    "lsmtune engines install rocksdb-10.2.1",
)
app = typer.Typer(cls=Group, name="engines", help="List, install and register engine libraries.")


@app.callback(invoke_without_command=True)
def _list(context: typer.Context, as_json: JsonOption = False) -> None:
    """List every engine library that is known; `*` marks the one that commands use."""
    if (asked := context.invoked_subcommand) is not None:
        if as_json:
            allowed = f"lsmtune engines {asked} --json"
            raise InputError("--json", why=f"has no effect before {asked}", allowed=allowed)
        return
    from lsmtune.driver.library_facts import known_libraries

    listing = known_libraries()
    if as_json:
        engines = [{**_row(x), "default": listing.is_default(x)} for x in listing.libraries]
        print_json({"engines": engines, "warnings": list(listing.warnings)})
        return
    if not listing.libraries:
        typer.echo("no engine library is known; next step: lsmtune engines install")
    else:
        from lsmtune.report.document import Table, words

        rows = [
            (
                "*" if listing.is_default(library) else "",
                library.identity.name,
                library.identity.version or "not known",
                library.identity.build.value,
                " ".join(library.compressions) or "not known",
                library.origin,
                str(library.path),
            )
            for library in listing.libraries
        ]
        columns = words("", "engine", "version", "build", "compressions", "origin", "path")
        print_view([Table(columns, rows)])
    warn(listing.warnings)


@command(app, "add", ADD_EXAMPLES)
def _add(
    path: Annotated[Path, typer.Argument(help="A shared library, a rocksdbjni jar, sources.")],
    engine: str | None = option(
        "--engine NAME", "Fail unless the library is of this engine.", None
    ),
    as_json: JsonOption = False,
) -> None:
    """Register a library; a jar is unpacked, a source tree is built in release mode."""
    from lsmtune.driver.library_facts import examined, register_fetched

    driver = find_driver()
    fetched = add(path, say, partial(examined, driver=driver), engine)
    _print_registered([register_fetched(fetched, driver)], as_json)


@command(app, "install", INSTALL_EXAMPLES)
def _install(
    names: Annotated[list[str] | None, typer.Argument(help=", ".join(RECIPES))] = None,
    as_json: JsonOption = False,
) -> None:
    """Install release builds (of both engines unless named); at once when they are there."""
    from lsmtune.driver.library_facts import examined, give_fast_snappy, register_fetched

    driver = find_driver()
    fetched = install_all(tuple(names or ()), say, partial(examined, driver=driver))
    for each in fetched:
        if each.identity.name == "rocksdb":
            give_fast_snappy(each.path, driver)
    _print_registered([register_fetched(each, driver) for each in fetched], as_json)


@command(app, "remove")
def _remove(
    path: Annotated[Path, typer.Argument(help="The path, as `lsmtune engines` shows it.")],
    as_json: JsonOption = False,
) -> None:
    """Forget a registered library. Its file stays."""
    library = Registry().remove(path.expanduser().absolute())
    if as_json:
        print_json({"forgotten": _row(library)})
    else:
        typer.echo(f"forgot {library.path}")


@command(app, "path")
def _path(
    engine: Annotated[str, typer.Argument(help="An engine's name.")], as_json: JsonOption = False
) -> None:
    """Print the path of the library that commands use for an engine."""
    library = find_library(engine)
    if as_json:
        print_json(_row(library))
    else:
        typer.echo(library.path)


def _row(library: Library) -> dict[str, object]:
    return {
        "engine": library.identity.name,
        "version": library.identity.version,
        "build": library.identity.build.value,
        "compressions": list(library.compressions),
        "origin": library.origin,
        "path": str(library.path),
    }


def _print_registered(libraries: list[Library], as_json: bool) -> None:
    """Print what was registered."""
    if as_json:
        print_json({"engines": [_row(x) for x in libraries]})
        return
    for library in libraries:
        identity = library.identity
        typer.echo(f"{identity.name} {identity.version} ({identity.build.value}): {library.path}")
        warn(library_warnings(library))
