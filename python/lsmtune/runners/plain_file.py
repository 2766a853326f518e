"""Opening what a program of the user's own left behind: a file, and nothing that never ends."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO


class NotPlainError(Exception):
    """A pipe, a device or a directory stands where a file belongs; `str()` says so."""


def open_plain(path: Path) -> BinaryIO:
    """The regular file at `path`, for reading. Raises NotPlainError, or OSError.

    A pipe without a writer would keep us from the run's deadline, and a device has no end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise NotPlainError("is no regular file")
