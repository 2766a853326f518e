"""Ask the driver what an engine library is: the step between a file and its registry entry."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from lsmtune.cli.flags import assignments, option_of, stated_workload
from lsmtune.driver.native import probe
from lsmtune.engines.importers import read_config
from lsmtune.engines.libraries import Registry, find_library, library_warnings
from lsmtune.engines.library import BUILT_IN_ENGINES, ENGINE_NAMES, Library, build_type, logs_folder
from lsmtune.engines.properties import Properties, properties_of
from lsmtune.engines.ready import PRESETS
from lsmtune.engines.steps import Fetched, remove_owned
from lsmtune.engines.workload_options import check_workload, with_merge_operator
from lsmtune.errors import InputError, LsmtuneError, nearest_name
from lsmtune.experiment.folder import StudyFolder, default_folder
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.workload import Workload
from lsmtune.report.source import best_trial, read_study
from lsmtune.workloads.stated import FAMILIES, Stated
from lsmtune.workloads.ycsb import NAME as YCSB


def with_facts(library: Library, driver: Path) -> Library:
    """`library` with its version and compressions, asked of the driver when not yet known.

    Raises InputError when it is not the engine it is taken for; LsmtuneError when it cannot be
    loaded.
    """
    if library.identity.version is not None:
        return library
    with tempfile.TemporaryDirectory(prefix="lsmtune-probe-") as directory:
        found = probe(driver, library.identity.name, library.path, Path(directory))
    identity = dataclasses.replace(library.identity, version=found.identity.version)
    return dataclasses.replace(library, identity=identity, compressions=found.compressions)


def register_fetched(fetched: Fetched, driver: Path) -> Library:
    """Probe a fetched library and register it; at once when it is registered already.

    Raises what `with_facts` raises, and LsmtuneError when the library lacks a compression that its
    recipe promised. Then nothing is registered, and what the recipe made is removed.
    """
    for entry in Registry().entries():
        known = entry.library
        is_this = (known.path, known.origin) == (fetched.path, fetched.origin)
        if is_this and entry.is_present() and not _missing(fetched, known):
            return known
    build = build_type(fetched.path, fetched.engine_name)
    identity = EngineIdentity(fetched.engine_name, None, str(fetched.path), build)
    library = with_facts(Library(fetched.path, identity, (), fetched.origin), driver)
    missing = _missing(fetched, library)
    if missing:
        remove_owned(fetched.path.parent)
        raise LsmtuneError(
            f"{fetched.path} ({fetched.origin}) was made without {', '.join(missing)} and is "
            f"removed, not registered; next step: read the log in {logs_folder()}"
        )
    return Registry().add(library).library


def _missing(fetched: Fetched, library: Library) -> list[str]:
    """What the recipe of `fetched` promised and `library`, once probed, lacks."""
    return [name for name in fetched.compressions if name not in library.compressions]


def choose_library(
    name: str, explicit: Path | None, driver: Path
) -> tuple[Library, tuple[str, ...]]:
    """The library a command measures, with its facts, and warnings for the user.

    Raises what `find_library` and `with_facts` raise.
    """
    library = with_facts(find_library(name, explicit), driver)
    return library, library_warnings(library)


# ----------
# The engine that a command measures: from its name, and its library where it has one.


def chosen_engine(
    name: str, library: Path | None, driver: Path
) -> tuple[EngineIdentity, tuple[str, ...]]:
    """The engine `name` from `library`, or from the best one known; and warnings for the user.

    Raises InputError when there is none, or when it is not that engine.
    """
    if name not in ENGINE_NAMES:
        nearest = nearest_name(name, ENGINE_NAMES)
        allowed = ", ".join(ENGINE_NAMES)
        raise InputError("--engine", found=name, allowed=allowed, nearest=nearest)
    if name not in BUILT_IN_ENGINES:
        found, warnings = choose_library(name, library, driver)
        return found.identity, warnings
    if library is not None:
        why = f"{name} is built into the driver and has no library"
        raise InputError("--library", found=str(library), why=why)
    return EngineIdentity(name), ()


# ----------
# How a configuration is named on the command line, the same in every command.
#
# default                       the engine's defaults
# name=value,name=value         options in the engine's own spelling
# rocksdb-gist-winner           a preset
# OPTIONS-000007, a.properties  an option file, in any form that `lsmtune import` reads
# study.yaml, study.lsmtune     the best of a study
# study.yaml#17                 one trial of it

ALLOWED = (
    "default, name=value,name=value, a preset, an OPTIONS or .properties file, "
    "a study file or folder, study.yaml#TRIAL"
)
STUDY_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class NamedConfig:
    """A Config and, when a file, a preset or a study says it, the engine that it is for."""

    config: Config
    engine: EngineIdentity | None = None


def resolve(text: str, engine_name: str | None = None, source: str = "CONFIG") -> Config:
    """The Config that `text` names; `engine_name` is refused when it is for another engine.

    What cannot be carried over from an option file is said on stderr. Raises InputError, naming
    `source`, when `text` names no Config.
    """
    return resolve_named(text, engine_name, source).config


def resolve_named(text: str, engine_name: str | None = None, source: str = "CONFIG") -> NamedConfig:
    """As `resolve`, with the engine that the Config is for."""
    if text == "default":
        return NamedConfig(Config())
    named, kind = _named(text, engine_name, source)
    if engine_name is not None and named.engine and named.engine.name != engine_name:
        why = f"{kind} {named.engine.name}"
        raise InputError(source, "--engine", found=engine_name, why=why, allowed=named.engine.name)
    return named


def _named(text: str, engine_name: str | None, source: str) -> tuple[NamedConfig, str]:
    """The configuration, and what ties it to its engine, in words."""
    path, _, trial = text.rpartition("#") if "#" in text else (text, "", "")
    file = Path(text)
    if file.is_file() and file.suffix not in STUDY_SUFFIXES:
        return _from_option_file(file, engine_name), "the file is of"
    if path and Path(path).exists():
        return _from_study(Path(path), trial, source), "the study tuned"
    if text in PRESETS:
        chosen = PRESETS[text]
        engine = EngineIdentity(chosen.engine)
        return NamedConfig(Config(chosen.options, label=text), engine), "the preset is for"
    if "=" in text:
        return NamedConfig(Config(parse_options(text, source), label=text)), ""
    why = "neither options, nor a preset, nor a file that exists"
    nearest = nearest_name(text, ["default", *PRESETS])
    raise InputError(source, found=text, why=why, allowed=ALLOWED, nearest=nearest)


def _from_option_file(path: Path, engine_name: str | None) -> NamedConfig:
    imported = read_config(path, engine_name)
    for note in imported.notes:
        typer.echo(f"lsmtune: note: {note}", err=True)
    engine = EngineIdentity(imported.engine, imported.version)
    return NamedConfig(Config(imported.options, label=str(path)), engine)


def parse_options(text: str, source: str) -> dict[str, OptionValue]:
    """`a=1,b={c=2,d=3}` as options; a comma inside braces separates nothing.

    Raises InputError for a part that is not name=value, and for a name given twice.
    """
    options: dict[str, OptionValue] = {}
    for part in _split(text):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            raise InputError(source, found=part, allowed="name=value")
        if name in options:
            raise InputError(source, name, why="given twice")
        options[name] = option_of(source, name, value)
    return options


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _from_study(path: Path, trial: str, source: str) -> NamedConfig:
    if path.is_file() and path.suffix not in STUDY_SUFFIXES:
        why = "only a study has trials"
        raise InputError(source, found=f"{path}#{trial}", why=why, allowed=ALLOWED)
    folder_path = path if path.is_dir() else default_folder(path)
    if trial and not trial.isdigit():
        raise InputError(source, found=f"{path}#{trial}", allowed="a trial's number after #")
    with StudyFolder.open(folder_path) as folder:
        number = int(trial) if trial else _best_trial(folder, source)
        trials = [m for m in folder.measurements.all() if m.role is Role.TRIAL]
    stored = _trial(trials, number, f"{path}", source)
    config = Config(stored.config.options, label=f"{path}#{number}")
    return NamedConfig(config, stored.measurement.engine)


def _best_trial(folder: StudyFolder, source: str) -> int:
    """The trial that is best by all that is known; of several objectives, the one picked."""
    if folder.was_tuned:
        best = best_trial(read_study(folder))
        number = None if best is None else best.number
    else:
        number = _best_told(folder)
    if number is None:
        why = "the study has no finished trial yet"
        raise InputError(source, found=str(folder.path), why=why)
    return number


def _best_told(folder: StudyFolder) -> int | None:
    """Of a search from Python, whose values are those that were told."""
    try:
        return folder.optuna_study().best_trial.number
    except (ValueError, RuntimeError):  # no trial yet; several objectives
        return None


def _trial(
    trials: list[StoredMeasurement], number: int, study: str, source: str
) -> StoredMeasurement:
    for stored in trials:
        if stored.trial == number:
            return stored
    known = [stored.trial for stored in trials if stored.trial is not None]
    allowed = f"a trial between {min(known)} and {max(known)}" if known else "no trial yet"
    raise InputError(source, found=f"{study}#{number}", why="no such trial", allowed=allowed)


# ----------
# Which workload a command line means: a name or a file, its parameters, YCSB's -P and -p.

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
    from lsmtune.engines.importers.properties import ENGINES, read_given

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
