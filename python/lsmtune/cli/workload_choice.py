"""Which workload a command line means: a name or a file, its parameters, YCSB's -P and -p."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from lsmtune.cli.flags import assignments, stated_workload
from lsmtune.engines.workload_options import check_workload, with_merge_operator
from lsmtune.errors import InputError
from lsmtune.records.config import Config, OptionValue
from lsmtune.records.workload import Workload
from lsmtune.workloads import FAMILIES
from lsmtune.workloads.properties_file import Properties, properties_of
from lsmtune.workloads.stated import Stated
from lsmtune.workloads.ycsb import NAME as YCSB

PROPERTIES_FLAG = "-P/--properties"
PROPERTY_FLAG = "-p/--property"

PropertiesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "-P",
        "--properties",
        metavar="FILE",
        help="A file of YCSB's properties, again for each; those of the engine become options.",
    ),
]
PropertyOption = Annotated[
    list[str] | None,
    typer.Option(
        "-p",
        "--property",
        metavar="NAME=VALUE",
        help="A property over those of the files, again for each.",
    ),
]


@dataclass(frozen=True)
class Choice:
    """The workload of a command, and the options of its engine that came with its properties.

    `fields` is what a study file says of the workload. `files` names the files of `options`.
    """

    workload: Workload
    fields: Mapping[str, Any]
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    files: str = ""

    def config(self, config: Config, engine: str, source: str) -> Config:
        """`config` over the options of the files, with those that the workload stands for."""
        label = config.label
        if self.options:
            label = self.files if label == Config().label else f"{self.files},{label}"
        whole = Config({**self.options, **config.options}, label)
        return with_merge_operator(whole, engine, self.workload, source)


def choose_workload(
    name: str | None,
    texts: Sequence[str] | None,
    files: Sequence[Path] | None,
    settings: Sequence[str] | None,
    engine: str,
) -> Choice:
    """The workload of `--workload`, `-w`, `-P` and `-p` for `engine`.

    Without a name it is that of the properties. What has no effect, and which options come from
    properties, is said on stderr. Raises InputError for what cannot be meant, and for what the
    engine cannot do.
    """
    properties = properties_of(files or (), assignments(PROPERTY_FLAG, settings))
    if name is None and not properties:
        allowed = f"the name of a workload or a file, or {PROPERTIES_FLAG} or {PROPERTY_FLAG}"
        raise InputError("--workload", why="missing", allowed=allowed)
    name = YCSB if name is None else name
    stated = stated_workload(name, texts, properties)
    _say(stated.notes)
    check_workload(stated.workload, engine, "--workload")
    _check_traces(stated.workload)
    options = _options(stated.engine, engine)
    where = dict.fromkeys(found.source for found in stated.engine.values())
    fields = _fields(name, stated)
    return Choice(stated.workload, fields, options, ",".join(where))


def _check_traces(workload: Workload) -> None:
    """What is not there is said before a database is loaded for it."""
    for phase in workload.phases:
        path = None if phase.replay is None else Path(phase.replay.path)
        if path is not None and not path.is_file():
            why = f"phase {phase.name} replays what is no file"
            raise InputError("--workload", found=str(path), why=why, allowed="a trace of RocksDB")


def _fields(name: str, stated: Stated) -> dict[str, Any]:
    """The properties of a file of YCSB's stand in the study file itself."""
    if name not in FAMILIES and not stated.parameters:
        return {"file": name}
    return {"name": name if name in FAMILIES else YCSB, **stated.given}


def _options(properties: Properties, engine: str) -> Mapping[str, OptionValue]:
    """The options in the properties of engines, which are said, and what was left out of them."""
    if not properties:
        return {}
    from lsmtune.importers.properties import ENGINES, read_given

    if engine not in ENGINES:
        _say([f"{p.where}: {n}: has no effect on {engine}" for n, p in properties.items()])
        return {}
    imported = read_given(properties, engine)
    _say(imported.notes)
    if imported.options:
        said = ", ".join(f"{name}={value}" for name, value in imported.options.items())
        _say([f"options of {engine} from properties: {said}"])
    return imported.options


def _say(notes: Sequence[str]) -> None:
    for note in notes:
        typer.echo(f"lsmtune: note: {note}", err=True)
