"""Writes a report whole or not at all."""

from __future__ import annotations

from pathlib import Path

from lsmtune.errors import InputError
from lsmtune.storage.folder import write_whole


def write_text(output: Path, content: str) -> Path:
    """Replace `output` by `content`; makes its folder. Returns `output`.

    Raises InputError when it cannot be written.
    """
    if output.is_dir():
        raise InputError(str(output), why="is a directory", allowed="a file to write")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_whole(output, content)
    except OSError as error:
        raise InputError(
            str(output), why=f"cannot be written: {error.strerror or error}"
        ) from error
    return output
