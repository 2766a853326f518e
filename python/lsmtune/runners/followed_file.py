"""A file that a program appends lines to, read while it grows."""

from __future__ import annotations

import os
from pathlib import Path

from lsmtune.errors import LsmtuneError
from lsmtune.runners.plain_file import NotPlainError, open_plain

# A program that never stops talking must not keep us from its limits: this much takes some 50 ms.
_BYTES_PER_READ = 1 << 17
_LINE_BYTES_MAX = 1 << 20  # far above any result; bounds our memory against a garbage writer


class UnreadableError(LsmtuneError):
    """The file cannot be followed; `str()` says which and why."""


class LineTooLongError(UnreadableError):
    """A line of absurd length; `str()` says how long and in which file."""


class FollowedFile:
    """The lines of the file at `path`, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._unfinished = b""

    def read(self) -> tuple[list[bytes], bool]:
        """Whole lines that were added since the last call, and whether more is there already.

        A file that became shorter was begun anew and is read from its start. Raises
        LineTooLongError, and UnreadableError for what a program put in the file's place.
        """
        chunk = self._new_bytes()
        *whole, self._unfinished = (self._unfinished + chunk).split(b"\n")
        if len(self._unfinished) > _LINE_BYTES_MAX:
            raise LineTooLongError(
                f"{self._path.name}: a line of more than {_LINE_BYTES_MAX} bytes"
            )
        return [line for line in whole if line.strip()], len(chunk) == _BYTES_PER_READ

    def last(self) -> list[bytes]:
        """The last line, if it has no line end: for when nothing can follow any more."""
        line, self._unfinished = self._unfinished, b""
        return [line] if line.strip() else []

    def _new_bytes(self) -> bytes:
        try:
            with open_plain(self._path) as file:
                if os.fstat(file.fileno()).st_size < self._offset:
                    self._offset, self._unfinished = 0, b""
                file.seek(self._offset)
                chunk = file.read(_BYTES_PER_READ)
        except FileNotFoundError:
            return b""
        except NotPlainError as error:
            raise UnreadableError(f"{self._path.name}: {error}") from None
        except OSError as error:
            raise UnreadableError(f"{self._path.name}: cannot be read: {error.strerror}") from None
        self._offset += len(chunk)
        return chunk
