"""Scratch directories of runs: fresh, marked, removed afterwards, swept after a kill."""

from __future__ import annotations

import errno
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lsmtune.errors import LsmtuneError
from lsmtune.storage.marker import MARKER, claim, is_owned
from lsmtune.storage.trouble import explained

PREFIX = "run-"
# A driver whose tuner died exits by itself when its stdin ends; until then it may add files to
# a directory that is being emptied. Two orders of magnitude above the 0.1 s this should take.
REMOVAL_PATIENCE_S = 10.0
_RETRY_S = 0.05

Sleep = Callable[[float], None]


@contextmanager
def run_directory(parent: Path) -> Iterator[Path]:
    """A fresh marked directory under `parent` for one run, removed on leaving the context."""
    with explained(parent):
        directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    try:
        with explained(parent):
            claim(directory, "run")
        yield directory
    finally:
        remove_owned(directory)


def sweep_leftovers(parent: Path) -> list[Path]:
    """Remove what killed runs left under `parent`; returns the directories removed.

    Only directories that bear the marker are deleted; and, as `rmdir` cannot lose anything,
    empty ones named like a run's, which a kill before the marker or after its removal leaves.
    """
    removed = []
    for entry in sorted(parent.iterdir()):
        empty_run = _is_empty_run(entry)
        if is_owned(entry) or empty_run:
            remove_owned(entry)
            removed.append(entry)
    return removed


def remove_owned(
    directory: Path, *, patience_s: float = REMOVAL_PATIENCE_S, sleep: Sleep = time.sleep
) -> None:
    """Delete a marked directory, its marker last; no error when it is gone already.

    Tries again for `patience_s` while something still writes into it. Raises LsmtuneError when
    the directory is not ours, or cannot be deleted by then.
    """
    if not directory.exists():
        return
    if not (is_owned(directory) or _is_empty_run(directory)):
        raise LsmtuneError(f"{directory}: not deleted: it bears no {MARKER} file")
    for _ in range(max(1, round(patience_s / _RETRY_S))):
        if _removed(directory):
            return
        sleep(_RETRY_S)
    raise LsmtuneError(
        f"{directory}: cannot be deleted: another process still writes there; end it and try again"
    )


def _removed(directory: Path) -> bool:
    """Delete `directory` and everything in it; False when it changed meanwhile."""
    with explained(directory):
        try:
            _empty(directory)
            (directory / MARKER).unlink(missing_ok=True)
            directory.rmdir()
        except FileNotFoundError:
            return not directory.exists()
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
    return True


def _empty(directory: Path) -> None:
    for entry in directory.iterdir():
        if entry.name == MARKER:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _is_empty_run(entry: Path) -> bool:
    if entry.is_symlink() or not entry.is_dir() or not entry.name.startswith(PREFIX):
        return False
    return not any(entry.iterdir())
