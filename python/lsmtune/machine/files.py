"""Files that processes share: written whole or not at all, and locked by one process at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock

from lsmtune.errors import InputError, disk_trouble

# The marker file: lsmtune deletes only directories that bear it.
MARKER = ".lsmtune-owned"


def is_owned(directory: Path) -> bool:
    """Whether `directory` is a real directory (no symbolic link) that bears the marker."""
    return not directory.is_symlink() and (directory / MARKER).is_file()


def write_whole(path: Path, content: str | bytes | Iterable[str], *, suffix: str = ".new") -> None:
    """Replace `path` by `content`, or by its parts: a reader, or a kill, sees the old or the new.

    Its mode stays as it was. It is written to a file beside it, of the same name with `suffix`. The
    content is on the disk when this returns. Raises OSError; `path` is then as it was.
    """
    temporary = path.with_name(f"{path.name}{suffix}")
    try:
        with temporary.open("wb") as file:
            # Before there is something to read in it.
            with suppress(OSError):  # nothing is there, or a file system that knows no modes
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.writelines(_coded(content))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):  # the caller is told why it could not be written
            temporary.unlink()
        raise


def _coded(content: str | bytes | Iterable[str]) -> Iterator[bytes]:
    parts = [content] if isinstance(content, str | bytes) else content
    return (part.encode() if isinstance(part, str) else part for part in parts)


def locked_folder(folder: Path) -> int:
    """A descriptor of `folder` that locks it until it is closed, or the process ends.

    Raises BlockingIOError where it is in use, and OSError.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def folder_in_use(folder: Path, *, required: bool = True) -> Iterator[None]:
    """Locks `folder`, so that nobody else takes it for a leftover; raises as `locked_folder`.

    Not `required`: it goes on where folders cannot be locked, as nobody can take one there either.
    """
    descriptor: int | None = None
    try:
        descriptor = locked_folder(folder)
    except OSError:
        if required:
            raise
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


_TEMPORARY = ".lsmtune-temporary"


@contextmanager
def temporary_folder(purpose: str, parent: Path | None = None) -> Iterator[Path]:
    """A folder in `parent`, or among the system's temporary files, removed on the way out.

    So is what killed processes left of the same `purpose`: a folder that was made here, by its name
    and by a file in it, and that nobody has locked.
    """
    prefix, parent = f"lsmtune-{purpose}-", parent or Path(tempfile.gettempdir())
    for left in parent.glob(f"{prefix}*/{_TEMPORARY}"):
        if not left.parent.is_symlink():
            with suppress(OSError), folder_in_use(left.parent):
                shutil.rmtree(left.parent, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as made:
        folder = Path(made)
        with folder_in_use(folder, required=False):
            (folder / _TEMPORARY).touch()  # once it is locked
            yield folder


STDOUT = Path("-")


def check_output(path: Path) -> None:
    """Raises InputError for a path that cannot be written, before there is something to write."""
    if path == STDOUT:
        return
    # A link is followed: its target is replaced, not the link.
    target, why = Path(os.path.realpath(path)), ""
    folder = target.parent if path.is_symlink() else path.parent
    if path.is_dir():
        why = "is a directory"
    elif target.is_symlink():
        why = "is a link to itself"
    elif not folder.is_dir():
        why = f"{folder} is no folder" if folder.exists() else f"no such folder: {folder}"
    elif not os.access(path if path.exists() else folder, os.W_OK):
        why = "cannot be written"
    elif path.is_file() and not os.access(folder, os.W_OK | os.X_OK):
        # A new file is put in the place of an old one, and not into a device.
        why = f"cannot be replaced: {folder} takes no new file"
    if why:
        raise InputError(str(path), why=why, allowed="a file to write")


def write_output(path: Path, content: str | bytes | Iterable[str]) -> Path:
    """Write what a user asked for at `path`, and return that: `-` is standard output.

    A file is replaced whole or not at all, and so is the target of a link. Pipes and devices are
    written into. No folder is made. Raises InputError for a place that cannot be written to, and
    LsmtuneError for a disk that is full or fails; `path` is then as it was.
    """
    check_output(path)
    if path == STDOUT:
        if isinstance(content, bytes):
            sys.stdout.buffer.write(content)
        else:
            sys.stdout.writelines([content] if isinstance(content, str) else content)
        return path
    try:
        if path.is_file() or not path.exists():
            # Beside it are files of the user's own, and `.new` may well be one.
            write_whole(path.resolve(), content, suffix=".lsmtune-new")
        else:
            with path.open("wb") as file:
                file.writelines(_coded(content))
    except OSError as error:
        raise disk_trouble(error, path) from error
    return path


def file_lock(path: Path) -> FileLock:
    """A lock on the file `path`, made where it is missing; a context that waits until it is free.

    The lock is the kernel's (`flock`) and not the file: what a killed process left behind locks
    nothing. A process that is started meanwhile inherits none. Raises OSError where the file system
    knows no `flock`.
    """
    return FileLock(path, thread_local=False, fallback_to_soft=False)
