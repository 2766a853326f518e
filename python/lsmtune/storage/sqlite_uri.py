"""How a SQLite file of a study is opened."""

from __future__ import annotations

import os
from pathlib import Path


def sqlite_uri(path: Path, *, read_only: bool) -> str:
    """The URI that opens `path`, created unless `read_only`.

    A reader that may write opens for writing all the same: after a kill in the middle of a
    commit SQLite has to roll back the journal before anyone can read.
    """
    mode = "rwc"
    if read_only:
        writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
        mode = "rw" if writable else "ro"
    return f"{path.resolve().as_uri()}?mode={mode}"
