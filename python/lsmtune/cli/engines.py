"""`lsmtune engines`: list, install and register engine libraries."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lsmtune.cli.choices import register_fetched, with_facts
from lsmtune.driver.conversation import find_driver
from lsmtune.engines.install import INSTALLABLE, add, install_all
from lsmtune.engines.libraries import (
    Registry,
    find_library,
    library_warnings,
    list_libraries,
    registry_warnings,
)
from lsmtune.engines.library import Library
from lsmtune.errors import InputError, LsmtuneError

_JSON = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]


@dataclasses.dataclass(frozen=True)
class Listing:
    """Every usable library, the default of each engine first, and what is wrong."""

    libraries: tuple[Library, ...]
    warnings: tuple[str, ...]

    def is_default(self, library: Library) -> bool:
        """Whether commands use this library unless told otherwise."""
        name = library.identity.name
        return next(x for x in self.libraries if x.identity.name == name) is library


def register(app: typer.Typer) -> None:
    """Add the `engines` group to `app`."""
    group = typer.Typer(help="List, install and register engine libraries.")
    group.callback(invoke_without_command=True)(_list)
    group.command("add")(_add)
    group.command("install")(_install)
    group.command("remove")(_remove)
    group.command("path")(_path)
    app.add_typer(group, name="engines")


def _list(context: typer.Context, as_json: _JSON = False) -> None:
    """List every engine library that is known; `*` marks the one that commands use."""
    if context.invoked_subcommand is not None:
        return
    listing = collect()
    if as_json:
        print(json.dumps(document(listing), indent=2))
        return
    _print_table(listing)
    for warning in listing.warnings:
        print(f"lsmtune: warning: {warning}", file=sys.stderr)


def _add(
    path: Annotated[Path, typer.Argument(help="A shared library, a rocksdbjni jar, sources.")],
    engine: Annotated[str | None, typer.Option("--engine", help="Refuse any other engine.")] = None,
    as_json: _JSON = False,
) -> None:
    """Register a library; a jar is unpacked, a source tree is built in release mode."""
    driver = find_driver()
    fetched = add(path, _progress)
    if engine is not None and engine != fetched.engine_name:
        why = f"is {fetched.engine_name}"
        raise InputError("engines add", "--engine", found=engine, why=f"{path} {why}")
    _say([register_fetched(fetched, driver)], as_json)


def _install(
    names: Annotated[list[str] | None, typer.Argument(help=", ".join(INSTALLABLE))] = None,
    as_json: _JSON = False,
) -> None:
    """Install release builds (all of them unless named); at once when they are there."""
    driver = find_driver()
    fetched = install_all(tuple(names or INSTALLABLE), _progress)
    _say([register_fetched(each, driver) for each in fetched], as_json)


def _remove(
    path: Annotated[Path, typer.Argument(help="The path, as `lsmtune engines` shows it.")],
) -> None:
    """Forget a registered library. Its file stays."""
    entry = Registry().remove(path.expanduser().absolute())
    print(f"forgot {entry.library.path}")


def _path(
    engine: Annotated[str, typer.Argument(help="An engine's name.")],
) -> None:
    """Print the path of the library that commands use for an engine."""
    print(find_library(engine).path)


def collect() -> Listing:
    """Every usable library with its facts; those that cannot be probed are warned about."""
    libraries, warnings = [], list(registry_warnings())
    try:
        driver = find_driver()
    except InputError as error:
        return Listing(tuple(list_libraries()), (*warnings, str(error)))
    for library in list_libraries():
        try:
            libraries.append(with_facts(library, driver))
        except LsmtuneError as error:
            warnings.append(f"left out: {error}")
    listing = Listing(tuple(libraries), ())
    for library in libraries:
        if listing.is_default(library):
            warnings += library_warnings(library)
    return Listing(tuple(libraries), tuple(warnings))


def document(listing: Listing) -> dict[str, object]:
    """What `--json` prints."""
    rows = [{**_row(x), "default": listing.is_default(x)} for x in listing.libraries]
    return {"engines": rows, "warnings": list(listing.warnings)}


def _row(library: Library) -> dict[str, object]:
    return {
        "engine": library.identity.name,
        "version": library.identity.version,
        "build": library.identity.build.value,
        "compressions": list(library.compressions),
        "origin": library.origin,
        "path": str(library.path),
    }


def _print_table(listing: Listing) -> None:
    if not listing.libraries:
        print("no engine library is known; next step: lsmtune engines install")
        return
    table = Table(box=None, pad_edge=False)
    for column in ("", "engine", "version", "build", "compressions", "origin", "path"):
        table.add_column(column, overflow="fold")
    for library in listing.libraries:
        table.add_row(
            "*" if listing.is_default(library) else "",
            library.identity.name,
            library.identity.version or "not known",
            library.identity.build.value,
            " ".join(library.compressions) or "not known",
            library.origin,
            str(library.path),
        )
    # A pipe has no width of its own; a line per library is what a reader there wants.
    Console(width=None if sys.stdout.isatty() else 1000, highlight=False).print(table)


def _say(libraries: list[Library], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"engines": [_row(x) for x in libraries]}, indent=2))
        return
    for library in libraries:
        identity = library.identity
        print(f"{identity.name} {identity.version} ({identity.build.value}): {library.path}")
        for warning in library_warnings(library):
            print(f"lsmtune: warning: {warning}", file=sys.stderr)


def _progress(line: str) -> None:
    print(f"lsmtune: {line}", file=sys.stderr, flush=True)
