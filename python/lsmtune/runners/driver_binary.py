"""Where the driver's binary is."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from lsmtune.errors import InputError

DRIVER_NAME = "lsmtune-driver"
VARIABLE = "LSMTUNE_DRIVER"


def find_driver(
    environment: Mapping[str, str] = os.environ, interpreter: Path | None = None
) -> Path:
    """The driver to run, as an absolute path.

    Looked for in: the environment variable LSMTUNE_DRIVER (nothing else is tried when it is set),
    beside the Python `interpreter`, the files of the installed package, PATH. Raises InputError
    that lists the places tried and says what to do.
    """
    explicit = environment.get(VARIABLE)
    if explicit:
        return _explicit(Path(explicit))
    tried = []
    for place, candidate in _candidates(environment, interpreter or Path(sys.executable)):
        if candidate is not None and _runnable(candidate):
            return candidate.absolute()
        tried.append(place)
    raise InputError(
        DRIVER_NAME,
        why=f"not found; tried {', '.join(tried)}; "
        f"`make setup` builds and installs it, or set {VARIABLE} to its path",
    )


def _explicit(path: Path) -> Path:
    if not _runnable(path):
        raise InputError(
            "environment",
            VARIABLE,
            found=str(path),
            allowed="the path of an executable file",
            why="`make setup` builds the driver",
        )
    return path.absolute()


def _candidates(
    environment: Mapping[str, str], interpreter: Path
) -> Iterator[tuple[str, Path | None]]:
    beside = interpreter.parent / DRIVER_NAME
    yield str(beside), beside
    yield "the installed package lsmtune", _packaged()
    search_path = environment.get("PATH", "")
    found = shutil.which(DRIVER_NAME, path=search_path)
    yield f"PATH ({search_path or 'empty'})", Path(found) if found else None


def _packaged() -> Path | None:
    try:
        files = importlib.metadata.files("lsmtune") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(str(f.locate())) for f in files if f.name == DRIVER_NAME), None)


def _runnable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
