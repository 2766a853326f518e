"""The filesystem that holds a folder, its device, and whether its files can miss the page cache."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lsmtune.machine.host import ROOT, number_of, reason, text_of

_FILE_BYTES = 1 << 20
_ESCAPED = re.compile(r"\\([0-7]{3})")  # blanks, tabs and backslashes of mount points


@dataclass(frozen=True)
class Mount:
    """One mounted filesystem; `options` are those of the mount and of the filesystem."""

    filesystem: str
    device: str
    mount_point: str
    options: tuple[str, ...] = ()
    rotational: bool | None = None


def mount_of(path: Path, root: Path = ROOT) -> Mount | None:
    """The filesystem of `path`: the deepest mount point above it, the last one mounted there.

    Lines are those of proc_pid_mountinfo(5).
    """
    best: Mount | None = None
    for line in (text_of(root / "proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) < 6 or len(kind) < 2:
            continue
        point = _ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), fields[4])
        if not path.is_relative_to(point) or (best and len(point) < len(best.mount_point)):
            continue
        of_filesystem = kind[2] if len(kind) > 2 else ""
        options = dict.fromkeys([*fields[5].split(","), *of_filesystem.split(",")])
        options.pop("", None)
        best = Mount(kind[0], kind[1], point, tuple(options), _rotational(fields[2], root))
    return best


def _rotational(number: str, root: Path) -> bool | None:
    """Whether the block device `major:minor` turns; a partition asks its disk."""
    folder = (root / "sys/dev/block" / number).resolve()
    for device in (folder, folder.parent):
        rotational = number_of(device / "queue/rotational")
        if rotational is not None:
            return rotational != 0
    return None


# --- whether files can be kept out of the page cache: found out by trying it on one


def page_cache_obstacles(directory: Path) -> dict[str, str]:
    """What stands against `cold` and `direct` in `directory`, in a clause; empty for nothing.

    This user can write to it. The file that it is tried on has no name (`O_TMPFILE`, where the
    filesystem knows it), so that nothing can be left behind. Raises OSError when no file can be
    made there, as on a full disk.
    """
    with tempfile.TemporaryFile(dir=directory) as file:
        return {
            "cold": _cold_obstacle(file.fileno()),
            "direct": _direct_obstacle(file.fileno()),
        }


def cached_share(descriptor: int, length: int) -> float:
    """The share of the pages of an open file's first `length` bytes that are in the page cache.

    By mincore(2), which tells only those who may write to the file. Raises OSError.
    """
    pages = -(-length // mmap.PAGESIZE)
    resident = (ctypes.c_ubyte * pages)()
    library = ctypes.CDLL(None, use_errno=True)
    # A private mapping is asked about the file's pages until it is written to, and it is not; only
    # a writable one has an address that ctypes can take.
    with mmap.mmap(descriptor, length, mmap.MAP_PRIVATE) as mapped:
        first = ctypes.c_char.from_buffer(mapped)
        try:
            address = ctypes.c_void_p(ctypes.addressof(first))
            failed = library.mincore(address, ctypes.c_size_t(length), resident)
        finally:
            del first
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return sum(page & 1 for page in resident) / pages


def _cold_obstacle(descriptor: int) -> str:
    os.pwrite(descriptor, os.urandom(_FILE_BYTES), 0)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    try:
        left = cached_share(descriptor, _FILE_BYTES)
    except OSError as error:
        return f"what is cached cannot be asked ({reason(error)})"
    if left > 0:
        return f"{100 * left:.0f} % of a file stayed in the page cache after it was dropped"
    return ""


def _direct_obstacle(descriptor: int) -> str:
    """Direct writes need memory, offset and length aligned (open(2)); a page always is."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_DIRECT)
        with mmap.mmap(-1, mmap.PAGESIZE) as page:
            os.pwrite(descriptor, page, 0)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
        return f"the filesystem refuses O_DIRECT ({reason(error)})"
    return ""
