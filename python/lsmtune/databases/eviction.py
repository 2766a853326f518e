"""Keeping the golden databases within their space, and the cache free of what kills left."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from lsmtune.databases.golden import (
    Golden,
    building_paths,
    find_golden,
    goldens_in,
    is_strange,
    names_in,
    remove_golden,
)
from lsmtune.databases.lock import try_lock
from lsmtune.units import format_bytes

# A run on a copy may write the whole database again before it deletes the old tables, and the load
# of the next one may be as large: a cache must not be why either of them finds the disk full.
_FREE_FACTOR = 2

FreeBytes = Callable[[Path], int]


def disk_free_bytes(path: Path) -> int:
    """The free space of the disk of `path`. Raises OSError."""
    return shutil.disk_usage(path).free


def make_room(
    directory: Path, new_bytes: int, size_bytes: int, free: FreeBytes = disk_free_bytes
) -> str:
    """Make `new_bytes`, on the disk already, fit into the cache `directory` of `size_bytes`.

    Returns why they do not fit, empty when they do. For that, twice as much must stay `free` on
    the disk. Golden databases are removed, the one whose last use is longest ago first, but none
    that someone works on. Copies that runs made keep their tables until those runs end. Raises
    OSError and LsmtuneError.
    """
    room = f"the {format_bytes(size_bytes)} for loaded databases"
    if new_bytes > size_bytes:
        return f"{format_bytes(new_bytes)} do not fit into {room}"
    goldens = sorted(goldens_in(directory), key=_used_unix_ns)
    taken_bytes = sum(golden.facts.disk_bytes for golden in goldens)

    def lacking() -> str:
        if taken_bytes + new_bytes > size_bytes:
            return f"{room} are in use"
        free_bytes = free(directory)
        if free_bytes < _FREE_FACTOR * new_bytes:
            return f"the disk has only {format_bytes(free_bytes)} free"
        return ""

    for golden in goldens:
        if not lacking():
            return ""
        lock = try_lock(golden.path)
        if lock is not None:
            with lock:
                remove_golden(golden.path)
                lock.forget()
            taken_bytes -= golden.facts.disk_bytes
    return lacking()


def sweep(directory: Path) -> list[Path]:
    """Remove from `directory` what was never finished, or half removed; returns their places.

    Nothing is touched that is whole, that someone works on, or that is not ours. Raises OSError
    and LsmtuneError.
    """
    swept = []
    for path in names_in(directory):
        lock = try_lock(path)
        if lock is None:
            continue
        with lock:
            for building in building_paths(path):
                swept += _removed(building)
            if find_golden(path) is None:
                swept += _removed(path)
                lock.forget()
    return swept


def _removed(path: Path) -> list[Path]:
    if not path.exists() or is_strange(path):
        return []
    remove_golden(path)
    return [path]


def _used_unix_ns(golden: Golden) -> int:
    try:
        return golden.used_unix_ns()
    except FileNotFoundError:  # another tuner has removed it meanwhile
        return 0
