"""Whole or not at all: an engine's folder is filled under another name and then renamed.

A folder that lsmtune may delete bears the marker file. `installed.json` says what the folder
holds, with the library's checksum, so that a later command can tell that it is still whole.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from lsmtune.engines.home import engines_folder
from lsmtune.engines.library import file_sha256
from lsmtune.errors import LsmtuneError

MARKER = ".lsmtune-owned"
_RECORD = "installed.json"


@dataclass(frozen=True)
class Fetched:
    """An engine library on disk that is ready to be probed and registered.

    `compressions` are those that its recipe promises, by their short names; none for a library
    that the user brought.
    """

    path: Path
    engine_name: str
    origin: str
    compressions: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Record:
    engine_name: str
    origin: str
    file: str
    sha256: str
    compressions: tuple[str, ...] = ()


def installed(name: str) -> Fetched | None:
    """What the folder `name` holds, or None when it is absent or no longer whole."""
    folder = engines_folder() / name
    try:
        record = _Record(**json.loads((folder / _RECORD).read_text(encoding="utf-8")))
        if file_sha256(folder / record.file) != record.sha256:
            return None
    except (OSError, ValueError, TypeError):
        return None
    return Fetched(
        folder / record.file, record.engine_name, record.origin, tuple(record.compressions)
    )


def install_folder(
    name: str,
    engine_name: str,
    origin: str,
    fill: Callable[[Path], Path],
    *,
    compressions: tuple[str, ...] = (),
    again: bool = False,
) -> Fetched:
    """The folder `name`, made by `fill` unless it is already there, whole, and promises the same.

    `fill` gets an empty work folder and returns the library's path within it; only that file is
    kept. A second process that wants the same folder waits for the first. With `again` a folder
    that is there is made anew and replaced.

    Raises LsmtuneError when a folder of that name is not ours, and whatever `fill` raises; then
    nothing is left behind.
    """
    root = engines_folder()
    root.mkdir(parents=True, exist_ok=True)
    with (root / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        present = installed(name)
        if present is not None and present.compressions == compressions and not again:
            return present
        work, staging = root / f".work-{name}", root / f".staging-{name}"
        try:
            library = fill(_fresh(work))
            _stage(_fresh(staging), library, engine_name, origin, compressions)
            remove_owned(root / name)
            staging.rename(root / name)
        finally:
            remove_owned(work)
            remove_owned(staging)
    whole = installed(name)
    if whole is None:
        raise LsmtuneError(f"{root / name}: written, but cannot be read back; next step: try again")
    return whole


def remove_owned(folder: Path) -> None:
    """Delete `folder` if it exists. Raises LsmtuneError when it does not bear the marker."""
    if not folder.exists():
        return
    if not (folder / MARKER).is_file():
        why = f"has no {MARKER} file, so it was not made by lsmtune and is left alone"
        raise LsmtuneError(f"{folder}: {why}; next step: move it away")
    shutil.rmtree(folder)


def _fresh(folder: Path) -> Path:
    """An empty folder that bears the marker; a leftover of a killed command is removed."""
    remove_owned(folder)
    folder.mkdir()
    (folder / MARKER).touch()
    return folder


def _stage(
    staging: Path, library: Path, engine_name: str, origin: str, compressions: tuple[str, ...]
) -> None:
    kept = staging / library.name
    shutil.copyfile(library, kept)
    record = _Record(engine_name, origin, kept.name, file_sha256(kept), compressions)
    text = json.dumps(asdict(record), indent=2) + "\n"
    (staging / _RECORD).write_text(text, encoding="utf-8")
