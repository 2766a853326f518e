"""Configurations by name, in the same way in every command:

default                       the engine's defaults
name=value,name=value         options in the engine's own spelling
rocksdb-gist-winner           a preset
OPTIONS-000007, a.properties  an option file, in any form that `lsmtune import` reads
study.yaml, study.lsmtune     the best of a study
study.yaml#17                 one trial of it
result.json                   what an earlier result with --json speaks for; #baseline of it
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsmtune.cli.output import note
from lsmtune.errors import InputError, nearest_name
from lsmtune.model.config import Config, EngineIdentity, option_text
from lsmtune.model.text import is_file, is_there, read_text
from lsmtune.units import is_digits
from lsmtune.workloads.choice import options_of, pieces_of

if TYPE_CHECKING:
    from lsmtune.experiment.folder import StudyFolder

ALLOWED = (
    "default, name=value,name=value, a preset, an OPTIONS or .properties file, "
    "a study file or folder, study.yaml#TRIAL, result.json"
)
STUDY_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class NamedConfig:
    """A Config and, when a file, a preset or a study says it, the engine that it is for.

    `baseline` is what a study compared it with, `memory_bytes` what its runs had.
    """

    config: Config = field(default_factory=Config)
    engine: EngineIdentity | None = None
    baseline: Config = field(default_factory=Config)
    memory_bytes: int | None = None


def resolve_named(text: str, engine_name: str | None = None, source: str = "CONFIG") -> NamedConfig:
    """The Config that `text` names, and the engine that it is for, unless it is not `engine_name`.

    What cannot be carried over from an option file is said on stderr. Raises InputError, naming
    `source`, when `text` names no Config, or one for another engine.
    """
    if text == "default":
        return NamedConfig(Config())
    named, kind = _named(text, engine_name, source)
    if engine_name is not None and named.engine and named.engine.name != engine_name:
        why = f"{kind} {named.engine.name}"
        raise InputError(source, "--engine", found=engine_name, why=why, allowed=named.engine.name)
    return named


def _named(text: str, engine_name: str | None, source: str) -> tuple[NamedConfig, str]:
    """The configuration, and what ties it to its engine, in words."""
    path, _, trial = text.rpartition("#")
    if not path or is_there(Path(text)):  # a name may have the sign in it, too
        path, trial = text, ""
    result = _result_of(Path(path))
    if result is not None:
        return config_of_result(text, result, trial, source), "the result is of"
    file = Path(text)
    if is_file(file) and file.suffix not in STUDY_SUFFIXES:
        from lsmtune.engines.formats import read_config

        imported = read_config(file, engine_name)
        for line in imported.notes:
            note(str(line))
        engine = EngineIdentity(imported.engine, imported.version)
        return NamedConfig(Config(imported.options, label=text), engine), "the file is of"
    if path and is_there(Path(path)):
        return _from_study(Path(path), trial, source), "the study tuned"
    from lsmtune.engines.ready import known_presets

    if (preset := known_presets().get(text)) is not None:
        engine = EngineIdentity(preset.engine)
        return NamedConfig(Config(preset.options, label=text), engine), "the preset is for"
    if "=" in text:
        return NamedConfig(Config(options_of(source, pieces_of(text)), label=text)), ""
    why = "neither options, nor a preset, nor a file that exists"
    nearest = nearest_name(text, ["default", *known_presets()])
    raise InputError(source, found=text, why=why, allowed=ALLOWED, nearest=nearest)


def _result_of(file: Path) -> dict[str, Any] | None:
    """What `verify`, `minimise` or `tune` printed with --json, or wrote, at `file`; else None."""
    if file.suffix != ".json" or not is_file(file):
        return None
    return parse_result(read_text(file, "a result of lsmtune, or an option file,"))


def parse_result(text: str) -> dict[str, Any] | None:
    """An earlier result; None for JSON, or other text, that is none."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None  # who reads option files says what is wrong with it
    is_result = isinstance(document, dict) and {"verdict", "gain"} & document.keys()
    return document if is_result else None


def config_of_result(text: str, result: dict[str, Any], part: str, source: str) -> NamedConfig:
    """Of an earlier result the `part` that is named; else what it speaks for.

    That is the candidate where it was proved better, and the baseline where it was not.
    """
    sides = {name: result.get(name) for name in ("candidate", "best", "baseline")}
    if isinstance(result.get("configuration"), dict):  # of minimise: the least of its candidate
        sides["candidate"] = {"options": result["configuration"]}
    known = {name: side for name, side in sides.items() if _has_options(side)}
    verdict = result.get("verdict") or result.get("gain")
    better = isinstance(verdict, dict) and verdict.get("outcome") == "better"
    name = part or next((name for name in known if better or name == "baseline"), "")
    side = known.get(name)
    if side is None:
        allowed = ", ".join(f"#{name}" for name in known) or ALLOWED
        raise InputError(source, found=text, why="this result has none of it", allowed=allowed)
    engine, identity = side.get("engine"), None
    if isinstance(engine, dict) and isinstance(engine.get("name"), str):
        version = engine.get("version")
        identity = EngineIdentity(engine["name"], version if isinstance(version, str) else None)
    return NamedConfig(Config(side["options"], label=text), identity)


def _has_options(side: Any) -> bool:
    """Whether `side` of a result is a configuration."""
    options = side.get("options") if isinstance(side, dict) else None
    return isinstance(options, dict) and all(
        isinstance(value, bool | int | float | str) for value in options.values()
    )


def _from_study(path: Path, trial: str, source: str) -> NamedConfig:
    """The trial with the number `trial`, or the best one of the study."""
    from lsmtune.experiment.folder import StudyFolder, default_folder
    from lsmtune.experiment.store import OF_BASELINE, Role

    if path.is_file() and path.suffix not in STUDY_SUFFIXES:
        why = "only a study has trials"
        raise InputError(source, found=f"{path}#{trial}", why=why, allowed=ALLOWED)
    if trial and not is_digits(trial):
        raise InputError(source, found=f"{path}#{trial}", allowed="a trial's number after #")
    from lsmtune.study.build import stored_spec

    with StudyFolder.open(path if path.is_dir() else default_folder(path)) as folder:
        number = int(trial) if trial else _best_trial(folder, source)
        rows = folder.measurements.all()
        memory_bytes = stored_spec(folder).limits.memory_bytes if folder.was_tuned else None
    trials = [row for row in rows if row.role is Role.TRIAL]
    baseline = next((row.config for row in rows if row.role in OF_BASELINE), Config())
    for row in trials:
        if row.trial == number:
            config = Config(row.config.options, label=f"{path}#{number}")
            return NamedConfig(config, row.measurement.engine, baseline, memory_bytes)
    known = [row.trial for row in trials if row.trial is not None]
    allowed = f"a trial between {min(known)} and {max(known)}" if known else "no trial yet"
    raise InputError(source, found=f"{path}#{number}", why="no such trial", allowed=allowed)


def study_folder(study: Path, command: str, directory: Path | None) -> Path:
    """The folder of the STUDY, a file or the folder itself; `directory` is the one of --dir.

    Raises InputError for none, and for two.
    """
    from lsmtune.experiment.folder import default_folder

    if study.is_dir():
        if directory is not None:
            why = f"stands beside the study folder {study}"
            raise InputError("--dir", found=str(directory), why=why, allowed="one of the two")
        return study
    if not study.exists() or study.suffix not in STUDY_SUFFIXES:
        why = "not a study" if study.exists() else "no such file or folder"
        allowed = "a study file (.yaml) or a study folder"
        raise InputError(command, "STUDY", found=str(study), why=why, allowed=allowed)
    if directory is not None:
        return directory
    folder = default_folder(study)
    if not folder.is_dir():
        why = f"has no study folder {folder} yet; run `lsmtune tune {study}` first"
        raise InputError(str(study), why=why)
    return folder


def is_beside(folder: Path, study: Path) -> bool:
    """Whether the study file alone names the `folder`: it is the one that is kept beside it."""
    from lsmtune.experiment.folder import default_folder

    return os.path.realpath(folder) == os.path.realpath(default_folder(study))


def shortest(path: Path) -> str:
    """`path` as it is typed in the current folder."""
    return min(str(path), os.path.relpath(path), key=len)


def _best_trial(folder: StudyFolder, source: str) -> int:
    """The trial that is best by all that is known; of several objectives, the one picked."""
    from lsmtune.report.source import read_study

    number: int | None = None
    why, allowed = "the study has no finished trial yet", ""
    if folder.was_tuned:
        records = read_study(folder)
        number, broken = records.judgement.best, records.judgement.broken
        if records.trials:
            most = "".join(f"; {count} broke {text}" for text, count in broken.most_common(1))
            why = f"none of its {len(records.trials)} trials is to be recommended{most}"
            allowed = f"a trial by its number, such as {folder.path}#{records.trials[-1].number}"
    else:  # a search from Python, whose values are those that it was told
        with suppress(ValueError, RuntimeError):  # no trial yet; several objectives
            number = folder.optuna_study().best_trial.number
    if number is None:
        raise InputError(source, found=str(folder.path), why=why, allowed=allowed)
    return number


# --- The other way: a configuration as commands take it, and as their JSON has it


def config_text(config: Config) -> str:
    """The options as every command takes them: `name=value,name=value`."""
    pairs = (f"{name}={option_text(value)}" for name, value in config.options.items())
    return ",".join(pairs) or "default"


def config_document(config: Config) -> dict[str, object]:
    """A configuration as the commands' JSON has it."""
    return {"label": config.label, "options": dict(config.options)}
