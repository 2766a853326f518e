"""How a configuration is named on the command line, the same in every command.

default                    the engine's defaults
name=value,name=value      options in the engine's own spelling
study.yaml, study.lsmtune  the best of a study
study.yaml#17              one trial of it
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lsmtune.cli.options import option_of
from lsmtune.errors import InputError
from lsmtune.records.config import Config, OptionValue
from lsmtune.records.engine import EngineIdentity
from lsmtune.storage.folder import StudyFolder, default_folder
from lsmtune.storage.measurements import Role, StoredMeasurement

ALLOWED = "default, name=value,name=value, a study file or folder, study.yaml#TRIAL"


@dataclass(frozen=True)
class NamedConfig:
    """A Config and, when it came out of a study, the engine it was measured on."""

    config: Config
    engine: EngineIdentity | None = None


def resolve(text: str, engine_name: str | None = None, source: str = "CONFIG") -> Config:
    """The Config that `text` names; `engine_name` is refused when a study used another engine.

    Raises InputError, naming `source`, when it names none.
    """
    return resolve_named(text, engine_name, source).config


def resolve_named(text: str, engine_name: str | None = None, source: str = "CONFIG") -> NamedConfig:
    """As `resolve`, with the engine of the study that the Config came from."""
    if text == "default":
        return NamedConfig(Config())
    path, _, trial = text.rpartition("#") if "#" in text else (text, "", "")
    if path and Path(path).exists():
        named = _from_study(Path(path), trial, source)
    elif "=" in text:
        return NamedConfig(Config(parse_options(text, source), label=text))
    else:
        why = "neither options nor a file that exists"
        raise InputError(source, found=text, why=why, allowed=ALLOWED)
    if engine_name is not None and named.engine and named.engine.name != engine_name:
        why = f"the study tuned {named.engine.name}"
        raise InputError(source, "--engine", found=engine_name, why=why, allowed=named.engine.name)
    return named


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
    if path.is_file() and path.suffix not in (".yaml", ".yml"):
        raise InputError(source, found=str(path), why="not a study", allowed=ALLOWED)
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
    try:
        return folder.optuna_study().best_trial.number
    except ValueError as error:
        why = "the study has no finished trial yet"
        raise InputError(source, found=str(folder.path), why=why) from error


def _trial(
    trials: list[StoredMeasurement], number: int, study: str, source: str
) -> StoredMeasurement:
    for stored in trials:
        if stored.trial == number:
            return stored
    known = [stored.trial for stored in trials if stored.trial is not None]
    allowed = f"a trial between {min(known)} and {max(known)}" if known else "no trial yet"
    raise InputError(source, found=f"{study}#{number}", why="no such trial", allowed=allowed)
