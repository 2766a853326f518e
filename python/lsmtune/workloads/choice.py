"""Which workload a user means: a name or a file, its parameters, and YCSB's properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from lsmtune.engines.properties import Properties, properties_of
from lsmtune.engines.workload_options import check_workload, with_merge_operator
from lsmtune.errors import InputError
from lsmtune.model.config import Config, OptionValue
from lsmtune.model.text import is_file, is_there
from lsmtune.model.workload import Workload
from lsmtune.units import UnitError, option_text_allowed, option_value
from lsmtune.workloads.stated import FAMILIES, WORKLOAD_NAMES, Stated, state_workload
from lsmtune.workloads.ycsb import NAME as YCSB

Value = TypeVar("Value")

WORKLOAD_FLAG = "-w/--workload-set"
PROPERTIES_FLAG = "-P/--properties"
PROPERTY_FLAG = "-p/--property"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Choice:
    """The workload that a user chose, and the options of the engine that came with its properties.

    `fields` is what a study file says of the workload, `parameters` all those that it was made
    with, none of a workload file. `files` names the files of `options`.
    """

    workload: Workload
    fields: Mapping[str, Any]
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    files: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

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
    say: Say,
) -> Choice:
    """The workload of `--workload`, `-w`, `-P` and `-p` for `engine`.

    Without a name it is that of the properties. `say` is told what has no effect, and which options
    come from properties.

    Raises:
        InputError: flags that cannot be meant, or a workload that the engine cannot perform.
    """
    properties = properties_of(files or (), assignments(PROPERTY_FLAG, settings))
    if name is None and not properties:
        allowed = f"the name of a workload or a file, or {PROPERTIES_FLAG} or {PROPERTY_FLAG}"
        raise InputError("--workload", why="missing", allowed=allowed)
    name = YCSB if name is None else name
    stated = stated_workload(name, texts, properties, engine)
    for note in stated.notes:
        say(note)
    check_workload(stated.workload, engine, "--workload")
    check_traces(stated.workload, "--workload")
    if name not in FAMILIES and not stated.parameters:
        fields: dict[str, Any] = {"file": name}
    else:  # the properties of a file of YCSB's stand in the study file itself
        fields = {"name": name if name in FAMILIES else YCSB, **stated.given}
    sources = ",".join(dict.fromkeys(given.source for given in stated.engine.values()))
    options = _options(stated.engine, engine, say)
    return Choice(stated.workload, fields, options, sources, stated.parameters)


def check_traces(workload: Workload, source: str, field: str = "") -> None:
    """Raises InputError for a trace that is not there, before a database is loaded for it."""
    for phase in workload.phases:
        if phase.replay is not None and not is_file(Path(phase.replay.path)):
            why = f"phase {phase.name} replays what is no file"
            found, allowed = phase.replay.path, "a trace of RocksDB"
            raise InputError(source, field, found=found, why=why, allowed=allowed)


def _options(properties: Properties, engine: str, say: Say) -> Mapping[str, OptionValue]:
    """The options of `engine` in the properties; `say` is told of them, and of what is left out."""
    if not properties:
        return {}
    from lsmtune.engines.formats.properties import PROPERTIES, read_given

    if engine not in PROPERTIES:
        for name, given in properties.items():
            say(f"{given.where}: {name}: has no effect on {engine}")
        return {}
    imported = read_given(properties, engine)
    for note in imported.notes:
        say(note)
    if imported.options:
        values = ", ".join(f"{name}={value}" for name, value in imported.options.items())
        say(f"options of {engine} from properties: {values}")
    return imported.options


def stated_workload(
    name: str, texts: Sequence[str] | None, properties: Properties | None = None, engine: str = ""
) -> Stated:
    """The workload of `--workload` and the `-w` flags over `properties`, and what is said of it.

    `engine` performs it; empty where that is not known. Raises InputError for a name that is
    neither a workload's nor a file's, and for what the file, the properties or the flags have
    wrong.
    """
    parameters = assignments(WORKLOAD_FLAG, texts)
    if name in FAMILIES:
        return state_workload(name, parameters, WORKLOAD_FLAG, properties, engine_name=engine)
    if not is_there(Path(name)):
        allowed = f"{', '.join(WORKLOAD_NAMES)}; or a file"
        raise InputError("--workload", found=name, allowed=allowed, known=WORKLOAD_NAMES)
    from lsmtune.workloads.file import workload_from_file

    return workload_from_file(Path(name), parameters, WORKLOAD_FLAG, properties, engine_name=engine)


def assignments(flag: str, texts: Sequence[str] | None) -> dict[str, str]:
    """`name=value` texts as a mapping. Raises InputError, naming `flag`, for any other form."""
    values: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = (piece.strip() for piece in text.partition("="))
        if not (name and equals and value):
            raise InputError(flag, found=text, allowed="name=value")
        if name in values:
            raise InputError(flag, name, why="given twice")
        values[name] = value
    return values


def pieces_of(text: str, at: str = ",") -> list[str]:
    """`text` cut at each of the letters `at`, but not within braces: of `a=1,b={c=2,d=3}` two."""
    pieces, depth = [""], 0
    for letter in text:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter in at and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces]


def options_of(source: str, texts: Sequence[str] | None) -> dict[str, OptionValue]:
    """The options that `name=value` texts set, as `source` names. Raises as `option_of` does."""
    given = assignments(source, texts)
    return {name: option_of(source, name, text) for name, text in given.items()}


def option_of(source: str, name: str, text: str) -> OptionValue:
    """The value of option `name` that `text` states. Raises InputError, naming `source`."""
    allowed = option_text_allowed(text)
    if allowed:
        raise InputError(source, name, found=text, allowed=allowed)
    return parsed(option_value, text, source, name)


def parsed(parse: Callable[[str], Value], text: str, source: str, field: str = "") -> Value:
    """The value of `text`; what `parse` refuses as InputError that names `source` and `field`."""
    try:
        return parse(text)
    except UnitError as error:
        raise InputError(
            source, field, found=error.found, allowed=error.allowed, nearest=error.nearest
        ) from error
