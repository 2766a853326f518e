"""Files that a command writes where the user asks: whole, or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from lsmtune.errors import InputError


def check_file(path: Path) -> None:
    """Raises InputError for a path where no file can be written, before there is one to write."""
    if path.is_dir():
        raise InputError(str(path), why="is a directory", allowed="a file to write")
    if not path.parent.is_dir():
        raise InputError(str(path), why=f"no such folder: {path.parent}")


def write_file(path: Path, text: str) -> None:
    """Replace `path` by `text`. Raises InputError that names `source`; `path` is then as it was."""
    check_file(path)
    # A pipe or a device is written into; only a file is replaced.
    whole = path.is_file() or not path.exists()
    target = path.with_name(f".{path.name}.{os.getpid()}.partial") if whole else path
    try:
        target.write_text(text, encoding="utf-8")
        if whole:
            target.replace(path)
    except OSError as error:
        if whole:
            with suppress(OSError):  # what is told is why it could not be written
                target.unlink()
        raise InputError(str(path), why=f"cannot be written: {error.strerror}") from error
