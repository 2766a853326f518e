"""Reading a file that is to be imported."""

from __future__ import annotations

import stat
from pathlib import Path

from lsmtune.errors import InputError

# A LOG of a long run is large; only its head is of interest, but a copy of it is not refused.
FILE_BYTES_MAX = 64 << 20


def read_text(path: Path) -> str:
    """The text of `path`. Raises InputError, naming it, for all that is not a UTF-8 text file."""
    source = str(path)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise InputError(source, why=f"is {kind}", allowed="a file to import")
        if status.st_size > FILE_BYTES_MAX:
            why = f"is too large: {status.st_size} bytes"
            raise InputError(source, why=why, allowed=f"at most {FILE_BYTES_MAX} bytes")
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(source, why="no such file") from None
    except UnicodeDecodeError as error:
        found = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
        raise InputError(source, why=f"is not text: {found}", allowed="UTF-8") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(source, why=f"cannot be read: {reason}") from None
    if "\0" in text:
        raise InputError(source, why="is not text: it has NUL bytes", allowed="a text file")
    return text
