"""One tuner at a time in a study's folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from lsmtune.errors import InputError

LOCK = ".lock"


class FolderLock:
    """An exclusive lock on a folder, held until `release` or the end of the process.

    The lock is the kernel's (`flock`), not the file: a lock file that a killed tuner left behind
    locks nothing. Raises InputError, naming the holder's process id, when another holds it.
    """

    def __init__(self, folder: Path) -> None:
        # Not inheritable (Python's default), so that a driver that outlives its tuner holds none.
        self._descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise InputError(
                str(folder),
                why=f"in use by another tuner (process {holder or 'unknown'})",
                allowed="wait until it ends, or use another folder (--dir DIR)",
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode("ascii"), 0)

    def release(self) -> None:
        """Let the next tuner in. May be called more than once."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
