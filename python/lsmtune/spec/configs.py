"""Configurations as a study file names them: default, a preset, an option file, or a mapping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lsmtune.engines.options.presets import PRESETS, preset
from lsmtune.errors import InputError, nearest_name
from lsmtune.importers import read_config
from lsmtune.records.config import Config, OptionValue
from lsmtune.spec.fields import CONFIG_ALLOWED

DEFAULT = "default"


@dataclass(frozen=True)
class Named:
    """A Config, and what the file that it came from says and a Config cannot, one line each."""

    config: Config
    notes: tuple[str, ...] = ()


def named_config(
    named: str | Mapping[str, OptionValue], engine: str, path: Path, source: str, field: str
) -> Named:
    """The Config that `field` of the study file at `path` names; a mapping is labelled by `field`.

    Raises `InputError` for a name that is neither a preset of `engine` nor a file beside `path`.
    """
    if not isinstance(named, str):
        return Named(Config(dict(named), field))
    if named == DEFAULT:
        return Named(Config())
    ours = [name for name, known in PRESETS.items() if known.engine == engine]
    if named in PRESETS:
        found = preset(named)
        if found.engine != engine:
            why = f"a preset of {found.engine}"
            raise InputError(source, field, why=why, found=named, allowed=", ".join(ours))
        return Named(Config(found.options, named))
    file = _file(named, path)
    if file is not None:
        return _from_file(file, engine, named, source, field)
    nearest = nearest_name(named, [DEFAULT, *ours])
    raise InputError(source, field, found=named, allowed=CONFIG_ALLOWED, nearest=nearest)


def _file(named: str, path: Path) -> Path | None:
    """The file that `named` means in the study file at `path`, if there is one."""
    try:
        file = path.parent / Path(named).expanduser()
        return file if file.is_file() else None
    except (OSError, RuntimeError):  # a name too long for any file, or of a user that is none
        return None


def _from_file(file: Path, engine: str, named: str, source: str, field: str) -> Named:
    try:
        found = read_config(file, engine)
        return Named(Config(found.options, named), tuple(map(str, found.notes)))
    except InputError as error:
        # The field is the study file's; the line of the other file is part of what is wrong.
        raise InputError(source, field, why=str(error)) from None
