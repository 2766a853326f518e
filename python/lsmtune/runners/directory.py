"""Whether a run can be made in a directory; what is wrong with it, the user can mend."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.units import format_bytes

# With less free space an engine cannot even be opened reliably: RocksDB preallocates its log.
FREE_BYTES_MIN = 64 << 20


def check_directory(directory: Path) -> None:
    """Raises InputError unless a run can write into `directory`."""
    if not directory.is_dir() or not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(str(directory), why="runs need a folder here that can be written to")


def check_free_space(directory: Path) -> None:
    """Raises LsmtuneError when the disk of `directory` has too little space for any run."""
    # Not an outcome: whatever configuration came next would meet the same disk.
    free_bytes = shutil.disk_usage(directory).free
    if free_bytes < FREE_BYTES_MIN:
        raise LsmtuneError(
            f"{directory}: {format_bytes(free_bytes)} free, and a run needs at least "
            f"{format_bytes(FREE_BYTES_MIN)}; free some space and repeat the command"
        )
