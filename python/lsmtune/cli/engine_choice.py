"""The engine that a command measures: from its name, and its library where it has one."""

from __future__ import annotations

from pathlib import Path

from lsmtune.cli.probing import choose_library
from lsmtune.engines.names import BUILT_IN_ENGINES, ENGINE_NAMES
from lsmtune.errors import InputError, nearest_name
from lsmtune.records.engine import EngineIdentity


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
