"""A text file that somebody hands us: a regular file of bounded size in UTF-8, or one clear line.

A pipe without a writer would keep us waiting for ever, and a device has no end.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO

from lsmtune.errors import InputError

FILE_BYTES_MAX = 64 << 20  # a LOG of a long run is large, and only its head is of interest


class NotPlainError(Exception):
    """A pipe, a device or a directory stands where a file belongs; `str()` says so."""


def is_there(path: Path) -> bool:
    """Whether something is at `path`, which a user gave and which may be no path at all.

    A text of more than 255 bytes is a name too long for any file, and may be a list of options.
    """
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_file(path: Path) -> bool:
    """As `is_there`, of a file."""
    return is_there(path) and path.is_file()


def open_plain(path: Path) -> BinaryIO:
    """The regular file at `path`, for reading. Raises NotPlainError, or OSError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:
        raise NotPlainError(f"has no name that a file can have: {error}") from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise NotPlainError("is a directory" if stat.S_ISDIR(mode) else "is not a regular file")


def open_input(path: Path, what: str = "a text file", made_by: str = "") -> BinaryIO:
    """As `open_plain`; raises InputError, which says that `what` is allowed, for all else.

    `made_by` says what makes such a file.
    """
    try:
        return open_plain(path)
    except NotPlainError as error:
        raise InputError(str(path), why=str(error), allowed=what) from None
    except FileNotFoundError:
        allowed = "; ".join(part for part in (what, made_by) if part)
        raise InputError(str(path), why="no such file", allowed=allowed) from None
    except OSError as error:
        raise unreadable(path, error) from None


def read_text(
    path: Path, what: str = "a text file", *, bytes_max: int = FILE_BYTES_MAX, made_by: str = ""
) -> str:
    """The text of the file at `path`, which should be `what`, without a byte order mark.

    Raises InputError for what is no regular file, is longer than `bytes_max`, or is not UTF-8.
    """
    with open_input(path, what, made_by) as file, _in_one_line(path, what):
        size = os.fstat(file.fileno()).st_size
        # Files of /proc say that they are empty.
        content = b"" if size > bytes_max else file.read(bytes_max + 1)
        length = max(size, len(content))
        if length > bytes_max:
            allowed = f"{what} of at most {bytes_max} bytes"
            raise InputError(str(path), why=f"is too large: {length} bytes", allowed=allowed)
        text = content.decode("utf-8-sig")
    if "\0" in text:
        place = f"{path}:{text.count(chr(10), 0, text.index(chr(0))) + 1}"
        raise InputError(place, why="is not text: it has a NUL byte", allowed=f"{what} in UTF-8")
    return text


@contextmanager
def open_text(path: Path, what: str = "a text file") -> Iterator[TextIO]:
    """The text of the file at `path`, which should be `what`, for who reads it in parts.

    What is raised within for a text that is not UTF-8 becomes an InputError.
    """
    with (
        TextIOWrapper(open_input(path, what), encoding="utf-8-sig") as file,
        _in_one_line(path, what),
    ):
        yield file


@contextmanager
def _in_one_line(path: Path, what: str) -> Iterator[None]:
    """Turns what is raised while a file is read, which should be `what`, into an InputError."""
    try:
        yield
    except UnicodeDecodeError as error:
        why = f"is not text: byte 0x{error.object[error.start]:02x} at offset {error.start}"
        raise InputError(str(path), why=why, allowed=f"{what} in UTF-8") from None
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError) -> InputError:
    """The error for a file that the system does not let us read."""
    return InputError(str(path), why=f"cannot be read: {error.strerror or error}")
