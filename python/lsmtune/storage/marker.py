"""The marker file: lsmtune writes in, and deletes, only directories that bear it.

The marker is the first thing written into a directory and the last thing deleted from it, so
that a kill at any moment leaves a directory that is either marked or empty.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import lsmtune
from lsmtune.errors import InputError, is_utf8

MARKER = ".lsmtune-owned"


def is_owned(directory: Path) -> bool:
    """Whether `directory` is a real directory (no symbolic link) that bears the marker."""
    return not directory.is_symlink() and (directory / MARKER).is_file()


def claim(directory: Path, purpose: str) -> None:
    """Make `directory` ours: create it when missing, and mark it when new or empty.

    A directory that is marked already is left as it is. Raises InputError when it is not a
    directory, or has content but no marker; nothing is written then.
    """
    if not is_utf8(directory.absolute()):
        # SQLite and the driver's protocol hold paths as UTF-8.
        found = str(directory.absolute())
        raise InputError("folder", found=found, allowed="a path in UTF-8 (--dir DIR)")
    if directory.exists() and not directory.is_dir():
        raise InputError(str(directory), why="is a file, and a folder is needed here")
    directory.mkdir(parents=True, exist_ok=True)
    if is_owned(directory):
        return
    if directory.is_symlink() or any(directory.iterdir()):
        raise not_ours(directory)
    _write_marker(directory, purpose)


def not_ours(directory: Path) -> InputError:
    """The error for a folder that lsmtune did not make."""
    return InputError(
        str(directory),
        why=f"this folder is not ours: it has content but no {MARKER} file; nothing was changed",
        allowed="a new or empty folder, or one that lsmtune made (--dir DIR)",
    )


def _write_marker(directory: Path, purpose: str) -> None:
    content = {
        "tool": "lsmtune",
        "version": lsmtune.__version__,
        "purpose": purpose,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    # One file, made exclusively and not renamed into place: a kill may leave it empty, but never
    # a folder with content and no marker.
    with (directory / MARKER).open("x", encoding="utf-8") as file:
        file.write(json.dumps(content) + "\n")
        file.flush()
        os.fsync(file.fileno())
