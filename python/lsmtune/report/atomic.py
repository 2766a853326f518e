"""Writes a report whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from lsmtune.errors import InputError
from lsmtune.storage.folder import write_whole


def check_place(output: Path) -> None:
    """Raises InputError for a place where no file can be written, before there is one to write."""
    if output.is_dir():
        raise InputError(str(output), why="is a directory", allowed="a file to write")
    folder = next(parent for parent in output.absolute().parents if parent.exists())
    if not folder.is_dir():
        raise InputError(str(output), why=f"{folder} is no folder", allowed="a file to write")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(str(output), why=f"{folder} cannot be written", allowed="a file to write")


def write_text(output: Path, content: str) -> Path:
    """Replace `output` by `content`; makes its folder. Returns `output`.

    Raises InputError when it cannot be written.
    """
    check_place(output)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_whole(output, content)
    except OSError as error:
        raise InputError(
            str(output), why=f"cannot be written: {error.strerror or error}"
        ) from error
    return output
