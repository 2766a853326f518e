"""Errors that a user meets, each one clear line, and the exit status that goes with it.

Everything below `cli` raises these; only `cli` prints them and exits.
"""

from __future__ import annotations

import difflib
import errno
import io
import math
import traceback
from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Any, SupportsFloat, TypeVar

T = TypeVar("T")


class ExitStatus(IntEnum):
    """What `lsmtune` exits with."""

    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    NOT_PROVEN = 3
    WORSE = 4
    INTERRUPTED = 130


class LsmtuneError(Exception):
    """The work failed; `str()` is one line for the user, with the next step where there is one.

    Line breaks, which engines and operating systems put into their texts, become spaces. Once it is
    `in_document`, the JSON on standard output has it.
    """

    exit_status = ExitStatus.FAILED
    in_document = False

    def __init__(self, line: str) -> None:
        super().__init__(" ".join(line.split()))

    def __reduce__(self) -> tuple[Any, ...]:
        """As it is: Python's own way makes it anew from its line, as if that were its source."""
        return Exception.__new__, (type(self), *self.args), vars(self)

    def document(self) -> dict[str, object]:
        """What programs read of it: the exit status, and the line."""
        return {"status": int(self.exit_status), "message": str(self)}


class InterruptedByUserError(LsmtuneError):
    """The user ended the work."""

    exit_status = ExitStatus.INTERRUPTED


class InputError(LsmtuneError):
    """The user's input is wrong.

    `str()` is one line: `source: field: found X; allowed: Y; did you mean Z?` Where `found` had to
    be one of the names `known`, they are what is allowed, and the nearest of them is named.
    """

    exit_status = ExitStatus.BAD_INPUT

    def __init__(
        self,
        source: str,
        field: str = "",
        *,
        found: object = None,
        allowed: str = "",
        nearest: str = "",
        why: str = "",
        known: Iterable[str] = (),
    ) -> None:
        names = tuple(known)
        self.source = source
        self.field = field
        self.found = found
        self.allowed = allowed or ", ".join(names)
        self.nearest = nearest or (nearest_name(str(found), names) if names else "")
        self.why = why
        super().__init__(self._line())

    def document(self) -> dict[str, object]:
        """As in the base class, and the parts of the line; None for one that it has not."""
        parts = ("source", "field", "why", "allowed", "nearest")
        found = None if self.found is None else str(self.found)
        return {
            **super().document(),
            **{name: getattr(self, name) or None for name in parts},
            "found": found,
        }

    def but(self, **changes: Any) -> InputError:
        """The same with `changes` of what it was made from."""
        parts = ("source", "field", "found", "allowed", "nearest", "why")
        return InputError(**{name: getattr(self, name) for name in parts} | changes)

    def _line(self) -> str:
        place = ": ".join(part for part in (self.source, self.field) if part)
        facts = [self.why] if self.why else []
        if self.found is not None:
            facts.append(f"found {_shortened(self.found)}")
        if self.allowed:
            facts.append(f"allowed: {self.allowed}")
        if self.nearest:
            facts.append(f"did you mean {self.nearest}?")
        return f"{place}: {'; '.join(facts)}"


class FieldError(InputError):
    """A field of the file that is being read is wrong; who reads it adds the file and the line."""

    def __init__(self, field: str = "", **parts: Any) -> None:
        super().__init__("", field, **parts)


def _shortened(found: object, limit: int = 120) -> str:
    text = repr(found) if isinstance(found, str) else str(found)
    if isinstance(found, bool):
        text = text.lower()  # as study files and engines spell it
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def is_utf8(text: object) -> bool:
    """Whether `text`, a file name for example, has no bytes that are not UTF-8."""
    try:
        str(text).encode()
    except UnicodeEncodeError:
        return False
    return True


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_NOT_WRITABLE = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_WRONG_PLACE = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EEXIST,
        errno.EISDIR,
        errno.ENAMETOOLONG,
        errno.ELOOP,
        errno.EILSEQ,
    }
)


def disk_trouble(error: OSError, path: Path | str = "") -> LsmtuneError:
    """What the file system refused under `path`, as the user is told it.

    A full disk and a failing one are LsmtuneError; a place that cannot be used is InputError. The
    file is the one that the error names, or else the one that was open where it was raised.
    """
    where = str(error.filename or _open_file(error) or path or "the operating system")
    path, reason = path or where, error.strerror or str(error)
    if error.filename2 is not None:  # of two files that were copied, renamed or linked
        where = f"{where}, to {error.filename2}"
    if error.errno in _FULL:
        return disk_full(path)
    if error.errno in _NOT_WRITABLE:
        return not_writable(path, f"{where}: {reason}")
    if error.errno in _WRONG_PLACE:
        return InputError(where, why=f"cannot be used: {reason}")
    return LsmtuneError(f"{where}: {reason}")


def _open_file(error: OSError) -> str:
    """The name of the open file that the innermost call had in hand, empty where it had none.

    Reads, writes and syncs of an open file fail without its name.
    """
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        for value in frame.f_locals.values():
            if isinstance(value, io.IOBase) and isinstance(name := getattr(value, "name", 0), str):
                return name
    return ""


def disk_full(path: Path | str) -> LsmtuneError:
    """The error for a disk without space at `path`."""
    return LsmtuneError(
        f"{path}: the disk is full; what was stored is kept: free some space and repeat the command"
    )


def not_writable(path: Path | str, detail: str) -> InputError:
    """The error for a place that cannot be written; `detail` is what refused, and why."""
    return InputError(
        str(path), why=f"cannot be written ({detail})", allowed="a writable folder (--dir DIR)"
    )


def by_name(
    known: Mapping[str, T],
    name: str,
    source: str,
    field: str = "",
    *,
    why: str = "",
    allowed: str = "",
) -> T:
    """`known[name]`. Raises InputError at `source` and `field`, with the nearest name, for none.

    So it does for a plugin that cannot be used.
    """
    if name not in known:
        raise InputError(source, field, found=name, why=why, allowed=allowed, known=known)
    try:
        return known[name]
    except FieldError as error:
        raise error.but(source=source, field=field) from error


# Packages that not everybody installs: what each is imported as, and lsmtune's extra that has it.
EXTRAS = {
    "psycopg": ("psycopg", "postgres"),
    "pyarrow": ("pyarrow", "parquet"),
    "ray": ("ray", "fleet"),
    "scikit-learn": ("sklearn", "forest"),
    "submitit": ("submitit", "slurm"),
}


def need_package(package: str, source: str, field: str = "", *, found: object = None) -> None:
    """Raises InputError at `source` and `field` where `package`, which `found` needs, is absent."""
    module, extra = EXTRAS[package]
    if find_spec(module) is None:
        why = f"needs the package {package}, which is not installed: pip install 'lsmtune[{extra}]'"
        raise InputError(source, field, found=found, why=why)


def check_names(
    names: Iterable[str], known: Collection[str], source: str, field: str = "", *, why: str
) -> None:
    """Raises InputError, saying `why`, for the first of `names` (in `field`) that is unknown."""
    for name in names:
        if name not in known:
            place = f"{field}.{name}" if field else name
            allowed, nearest = ", ".join(known) or "none", nearest_name(str(name), known)
            raise InputError(source, place, why=why, allowed=allowed, nearest=nearest)


def nearest_name(name: str, known: Iterable[str]) -> str:
    """The known name most like `name`, or an empty string when none is close."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else ""


def check_name(name: str | None, known: Iterable[str], source: str, field: str = "") -> None:
    """Raises InputError, with the one that was perhaps meant, for a name that is not `known`.

    None is what nobody gave: there is nothing to refuse.
    """
    names = tuple(known)
    if name is not None and name not in names:
        raise InputError(source, field, found=name, known=names)


def finite_number(value: object, source: str, field: str = "") -> float:
    """`value` as a number to judge by. Raises InputError for anything else."""
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        raise InputError(source, field, found=value, allowed="a number")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):  # an array of several, or 10**400
        number = math.nan
    if not math.isfinite(number):
        raise InputError(source, field, found=value, allowed="a finite number")
    return number
