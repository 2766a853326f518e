"""One process at a time works on a golden database: a lock file beside it, locked by the kernel."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

SUFFIX = ".lock"
_RETRY_S = 0.05

Clock = Callable[[], float]


class GoldenLock:
    """A lock that is held, until `release`, the end of the context, or the end of the process.

    The lock is the kernel's (`flock`), not the file: what a killed process left behind locks
    nothing. It is exclusive among processes, and among the threads of one.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        """For `try_lock`."""
        self._path = path
        self._descriptor = descriptor

    def forget(self) -> None:
        """Delete the lock file, still holding the lock: nothing is there that it would guard."""
        self._path.unlink(missing_ok=True)

    def release(self) -> None:
        """Let the next one in. May be called more than once."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> GoldenLock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def lock_path(golden: Path) -> Path:
    """The lock file of the golden database at `golden`."""
    return golden.with_name(golden.name + SUFFIX)


def try_lock(golden: Path) -> GoldenLock | None:
    """The lock of the golden database at `golden`, which need not exist; None when it is held."""
    path = lock_path(golden)
    while True:
        # Not inheritable (Python's default), so that a driver that outlives us holds none.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if _is_at(path, descriptor):
            return GoldenLock(path, descriptor)
        # Its last holder deleted the file between our opening and our locking it: whoever comes
        # next would lock another file of this name.
        os.close(descriptor)


def wait_for_lock(
    golden: Path,
    cancel: threading.Event | None,
    patience_s: float,
    clock: Clock = time.monotonic,
) -> GoldenLock | None:
    """As `try_lock`, waiting for it; None after `patience_s` seconds, and once `cancel` is set."""
    until = clock() + patience_s
    never = threading.Event()
    while True:
        lock = try_lock(golden)
        if lock is not None or clock() >= until:
            return lock
        if (cancel or never).wait(_RETRY_S):
            return None


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
