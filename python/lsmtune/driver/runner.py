"""The contract of a Runner, and what every runner checks first: the directory and the cores."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from lsmtune.driver.messages import Message
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.machine.cgroup import memory_here
from lsmtune.machine.host import usable_cores
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import PageCache
from lsmtune.units import format_bytes

DATABASE = "db"  # in a run's directory


class Runner(Protocol):
    """A way to perform one run.

    Obligations: `run` never raises for what an engine does, it says so in the outcome; it raises
    `LsmtuneError` only for what the user can mend (no driver, no library, no space, a disk that
    fails). When it returns or raises, no process of the run is left. Whatever the run had observed
    until it ended, however it ended, is in the Measurement. Runs in several threads do not disturb
    each other.
    """

    def run(
        self,
        request: RunRequest,
        on_message: Callable[[Message], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> Measurement:
        """Performs `request`.

        `on_message` is called in this thread with each message as it arrives; what it raises ends
        the run and is raised again. Setting `cancel` ends the run as `cancelled`.
        """
        ...


def cached_beyond(request: RunRequest, measurement: Measurement) -> str:
    """What to say of a run without a control group whose files were cached past its memory limit.

    Its process and its files took more than the limit together: a group would have had the kernel
    drop pages, and more be read from the device. Empty where all fits, where direct I/O leaves the
    page cache alone, and where this machine has no more memory than the limit.
    """
    limit_bytes = request.limits.memory_bytes
    direct = request.workload.page_cache is PageCache.DIRECT
    if measurement.outcome is not Outcome.OK or direct or memory_here() <= limit_bytes:
        return ""
    database_bytes = max((p.database_bytes or 0 for p in measurement.measured_phases), default=0)
    if database_bytes + (measurement.rss_bytes_max or 0) <= limit_bytes:
        return ""
    needs_none = "; page_cache: direct needs none" if request.engine.name == "rocksdb" else ""
    return (
        f"no control group held it to {format_bytes(limit_bytes)}, page cache included, and its "
        f"files were cached beyond that: reads are faster than with that memory{needs_none}"
    )


# --- whether a run can be made in a directory; what is wrong with it, the user can mend

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


def check_cores(cpus: Sequence[int]) -> None:
    """Raises InputError unless this process may use each of `cpus`."""
    usable = usable_cores()
    missing = sorted(set(cpus) - set(usable))
    if missing:
        raise InputError(
            "cores of a run",
            found=_listed(missing),
            allowed=f"cores that lsmtune may use on this machine: {_listed(usable)}",
        )


def halves(cores: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two equal shares of `cores`, the first ones first; an odd one is in neither.

    Raises LsmtuneError for fewer than two.
    """
    size = len(cores) // 2
    if size == 0:
        raise LsmtuneError(
            "two runs at once need a core each, and lsmtune may use only "
            f"{_listed(cores)}; pair runs in slices, or one after the other"
        )
    return tuple(cores[:size]), tuple(cores[size : 2 * size])


def _listed(cores: Sequence[int]) -> str:
    return ", ".join(map(str, cores))
