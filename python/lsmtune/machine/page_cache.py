"""Whether files of a folder can be kept out of the page cache, found by trying it on one.

The file has no name (`O_TMPFILE`, where the filesystem knows it), so nothing can be left behind.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

_FILE_BYTES = 1 << 20


@dataclass(frozen=True)
class PageCacheUse:
    """What stands against a cold cache and against direct I/O, in a clause; empty for nothing."""

    cold_obstacle: str
    direct_obstacle: str


def page_cache_use(directory: Path) -> PageCacheUse:
    """What can be done in `directory`, which this user can write to.

    Raises OSError when no file can be made there, as on a full disk.
    """
    with tempfile.TemporaryFile(dir=directory) as file:
        return PageCacheUse(_cold_obstacle(file.fileno()), _direct_obstacle(file.fileno()))


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
        return f"what is cached cannot be asked ({_reason(error)})"
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
        return f"the filesystem refuses O_DIRECT ({_reason(error)})"
    return ""


def _reason(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else str(error)
