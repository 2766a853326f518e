"""A baseline for an imported study of a program, which has no defaults of its own.

The study needs a point of its space to compare with. What the file says is taken where the space
holds it; the rest is the middle of each range, and the first choice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from lsmtune.cli.flags import (
    BudgetOption,
    JsonOption,
    SeedOption,
    TrialsOption,
    WorkloadSetOption,
    duration_of,
)
from lsmtune.cli.import_study import Role, Wanted, engine_of, make_study
from lsmtune.cli.output import write_file
from lsmtune.engines.importers import IMPORTERS, chosen_format
from lsmtune.engines.importers.base import Imported, ImportedConfig, ImportRequest, read_text
from lsmtune.engines.library import engine_kind
from lsmtune.errors import InputError, nearest_name
from lsmtune.study.build import parse_spec
from lsmtune.study.template import render_options, render_study
from lsmtune.workloads.stated import WORKLOAD_NAMES

# ----------
# `lsmtune import`: what other programs wrote, as options or as a study file.

COMMAND = "import"
DEFAULT_OUTPUT = "study.yaml"
EPILOG = "\n\n".join(
    (
        "Examples:",
        "lsmtune import OPTIONS-000007",
        "lsmtune import OPTIONS-000007 --as baseline --output study.yaml",
        "lsmtune import search_space.json --engine rocksdb --output study.yaml",
        "lsmtune import config_tpe.yml --output study.yaml",
        'lsmtune import tunables.jsonc --command "./run.sh" --output study.yaml',
        "What cannot be carried over is said on stderr, line by line.",
    )
)


def register(app: typer.Typer) -> None:
    """Add the `import` command to `app`."""
    app.command(COMMAND, epilog=EPILOG)(_import)


def _import(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="What to import.")],
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="NAME", help=f"Found out when not given: {', '.join(IMPORTERS)}."
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option("--engine", metavar="NAME", help="Where the files do not say it."),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--command", metavar="COMMAND", help="The program whose parameters a space holds."
        ),
    ] = None,
    role: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="ROLE",
            help="A study with an option file as its baseline, options (the fixed base) or start; "
            "study is baseline. Without it, the options alone.",
        ),
    ] = None,
    workload: Annotated[
        str | None, typer.Option("--workload", metavar="NAME", help="Of the study: fillrandom.")
    ] = None,
    workload_set: WorkloadSetOption = None,
    budget: BudgetOption = None,
    trials: TrialsOption = None,
    seed: SeedOption = 0,
    keep_defaults: Annotated[
        bool,
        typer.Option("--keep-defaults", help="Keep what has the engine's default value anyway."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write to this file, not to stdout."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Read the spaces and option files of other programs."""
    if engine is not None:
        engine_kind(engine, "--engine")
    if budget is not None:
        duration_of("--budget", budget)
    if output is not None and output.is_file() and not force:
        allowed = "another --output, or --force to replace it"
        raise InputError(str(output), why="exists already", allowed=allowed)
    wanted = Wanted(
        role=_role(role),
        engine=engine,
        command=command,
        workload=_workload(workload),
        workload_set=tuple(workload_set or ()),
        budget=budget,
        trials=trials,
        seed=seed,
    )
    document, text = _result(_Reader(files, format_name, keep_defaults), wanted, output)
    for note in document["notes"] if not as_json else ():
        typer.echo(f"lsmtune: note: {note}", err=True)
    if output is not None:
        write_file(output, text)
        document["output"] = str(output)
    if as_json:
        typer.echo(json.dumps(document, indent=2))
    elif output is None:
        typer.echo(text, nl=False)
    else:
        next_step = f"\nnext: lsmtune tune {output}" if "study" in document else ""
        typer.echo(f"wrote {output}{next_step}")


def _role(text: str | None) -> Role | None:
    names = [role.value for role in Role]
    if text is not None and text not in names:
        nearest = nearest_name(text, names)
        raise InputError("--as", found=text, allowed=", ".join(names), nearest=nearest)
    return None if text is None else Role(text)


def _workload(name: str | None) -> str | None:
    if name is not None and name not in WORKLOAD_NAMES:
        allowed, nearest = ", ".join(WORKLOAD_NAMES), nearest_name(name, WORKLOAD_NAMES)
        raise InputError("--workload", found=name, allowed=allowed, nearest=nearest)
    return name


@dataclass(frozen=True)
class _Reader:
    files: list[Path]
    format_name: str | None
    keep_defaults: bool

    def read(self, engine: str | None) -> tuple[list[dict[str, str]], list[Imported]]:
        """The format of each file as `--json` says it, and what the file holds."""
        formats, imported = [], []
        for path in self.files:
            text = read_text(path)
            format_ = chosen_format(text, path, self.format_name)
            formats.append({"file": str(path), "format": format_.name})
            imported.append(format_.read(ImportRequest(text, path, engine, self.keep_defaults)))
        return formats, imported


def _result(reader: _Reader, wanted: Wanted, output: Path | None) -> tuple[dict[str, Any], str]:
    """What `--json` prints, and the text."""
    formats, imported = reader.read(wanted.engine)
    if wanted.role is None and all(isinstance(what, ImportedConfig) for what in imported):
        return _options(reader.files, formats, imported)
    engine = engine_of(reader.files, imported, wanted)
    if engine != wanted.engine:  # now that it is known, the names of a space can be read
        formats, imported = reader.read(engine)
    study, comments, notes = make_study(reader.files, imported, wanted, engine)
    header = tuple(f"Imported by lsmtune from {path}" for path in reader.files)
    text = render_study(study, comments, header)
    _check(text, output or Path(DEFAULT_OUTPUT), reader.files)
    return {"files": formats, "study": study, "notes": list(notes)}, text


def _options(
    files: list[Path], formats: list[dict[str, str]], imported: list[Imported]
) -> tuple[dict[str, Any], str]:
    if len(imported) > 1:
        allowed = "one option file, or --as start for several"
        raise InputError(str(files[1]), why="a second option file", allowed=allowed)
    (config,) = (what for what in imported if isinstance(what, ImportedConfig))
    document = {
        "files": formats,
        "engine": config.engine,
        "version": config.version,
        "options": dict(config.options),
        "notes": list(config.notes),
    }
    return document, render_options(config.options, config.engine)


def _check(text: str, path: Path, files: list[Path]) -> None:
    """What is written must load: an error here is one of the file that was imported."""
    try:
        parse_spec(text, path)
    except InputError as error:
        names = ", ".join(map(str, files))
        raise InputError(names, why=f"makes no study that loads: {error}") from None
