"""How a configuration is named on the command line, the same in every command.

default                       the engine's defaults
name=value,name=value         options in the engine's own spelling
rocksdb-gist-winner           a preset
OPTIONS-000007, a.properties  an option file, in any form that `lsmtune import` reads
study.yaml, study.lsmtune     the best of a study
study.yaml#17                 one trial of it
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from lsmtune.analysis.runs import best_trial
from lsmtune.analysis.source import read_study
from lsmtune.cli.flags import option_of
from lsmtune.engines.options.presets import PRESETS
from lsmtune.errors import InputError, nearest_name
from lsmtune.importers import read_config
from lsmtune.records.config import Config, OptionValue
from lsmtune.records.engine import EngineIdentity
from lsmtune.storage.folder import StudyFolder, default_folder
from lsmtune.storage.measurements import Role, StoredMeasurement

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
