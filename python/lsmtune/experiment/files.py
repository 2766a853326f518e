"""What a folder of lsmtune needs of the disk: clear errors, a lock, a marker, scratch folders."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import optuna
import sqlalchemy.exc
from filelock import FileLock, Timeout

import lsmtune
from lsmtune.errors import InputError, LsmtuneError, disk_full, disk_trouble, is_utf8, not_writable
from lsmtune.machine.files import MARKER, file_lock, folder_in_use, is_owned
from lsmtune.model.text import NotPlainError, open_plain

MEASUREMENTS_DB, STUDY_DB = "measurements.db", "study.db"
# The other database of a study, and what it still has where one is damaged.
_KEPT = {
    STUDY_DB: (MEASUREMENTS_DB, f"every run is still in {MEASUREMENTS_DB}"),
    MEASUREMENTS_DB: (STUDY_DB, f"{STUDY_DB} still has the trials, which Optuna can open"),
}
_HOW_CHARACTERS = 160
_DAMAGED = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_ERROR,  # a table, or a column, that is not there
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_MISMATCH,
    }
)
# What Python finds wrong in what a database holds.
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError)
_SQLITE_READ_ONLY = frozenset(
    {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}
)
_PRIMARY_CODE = 0xFF  # SQLite's extended result codes keep the primary one in the low byte


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of the disk under `path` into an LsmtuneError that says what to do.

    A full disk and a damaged database are LsmtuneError; a place that cannot be written is
    InputError. Every other error passes unchanged.
    """
    try:
        yield
    except OSError as error:
        raise disk_trouble(error, path) from error
    except sqlite3.IntegrityError:
        raise
    except (
        sqlite3.Error,
        sqlalchemy.exc.SQLAlchemyError,
        optuna.exceptions.StorageInternalError,
    ) as error:
        raise _database_error(path, error) from error


def _database_error(path: Path, error: BaseException) -> Exception:
    # The SQLite error is under the layers that Optuna and SQLAlchemy put around it.
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, sqlite3.Error):
        cause = getattr(cause, "orig", None) or cause.__cause__ or cause.__context__
    cause = cause or error
    code = getattr(cause, "sqlite_errorcode", 0) & _PRIMARY_CODE
    if code == sqlite3.SQLITE_FULL:
        return disk_full(path)
    name = getattr(cause, "sqlite_errorname", "")
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        refused = _refused(path, writing="READ" not in name)
        if refused is not None:
            return disk_trouble(refused, path)
    if code in _SQLITE_READ_ONLY:
        return not_writable(path, str(cause))
    # Text that is not UTF-8 has no code.
    if code in _DAMAGED or (isinstance(cause, sqlite3.OperationalError) and not code):
        return damaged(path, str(cause))
    detail = " ".join(str(getattr(cause, "orig", None) or cause).split())
    detail += f" ({name})" if name else ""
    return LsmtuneError(f"{path}: the database failed: {detail}; what was stored is kept")


def _refused(path: Path, *, writing: bool) -> OSError | None:
    """What the operating system says where SQLite failed at `path`: SQLite keeps that to itself.

    None where the fault has passed.
    """
    try:
        if path.is_file():
            with path.open("rb") as file:
                file.read()
        if writing:
            with tempfile.TemporaryFile(dir=path if path.is_dir() else path.parent) as probe:
                probe.write(b"\0")
                probe.flush()
                os.fsync(probe.fileno())
    except OSError as error:
        return error
    return None


def damaged(path: Path, how: str) -> LsmtuneError:
    """The error for a database that is not as it was written; `how` says how that was noticed."""
    # What the disk fails to read, SQLite calls corrupt as well (SQLITE_IOERR_CORRUPTFS).
    if (refused := _refused(path, writing=False)) is not None:
        return disk_trouble(refused, path)
    other, kept = _KEPT.get(path.name, ("", ""))
    kept = f"; {kept}" if other and path.with_name(other).is_file() else ""
    return LsmtuneError(
        f"{path}: damaged database ({how[:_HOW_CHARACTERS]}); nothing was changed: if it is so "
        f"again, put a copy back, or use another folder (--dir DIR){kept}"
    )


@contextmanager
def readable(path: Path, what: str = "") -> Iterator[None]:
    """As `explained`, where the database at `path` is read.

    What Python finds wrong in `what` it holds is damage as well.
    """
    with explained(path):
        try:
            yield
        except _UNREADABLE as error:
            how = f"{type(error).__name__}: {error}"
            raise damaged(path, f"{what} cannot be read: {how}" if what else how) from error


def check_database(path: Path, connection: sqlite3.Connection, tables: Collection[str]) -> None:
    """Raises LsmtuneError for a database whose pages do not fit together, or without its `tables`.

    A flipped bit in a page of numbers or texts is not seen by that.
    """
    with readable(path):
        ((checked,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if checked != "ok":
        raise damaged(path, f"SQLite's quick_check: {checked}")
    if missing := sorted(set(tables) - names):
        raise damaged(path, f"it has no table {missing[0]}")


# --- How a SQLite file of a study is opened.


def sqlite_uri(path: Path, *, read_only: bool) -> str:
    """The URI that opens `path`, created unless `read_only`.

    A reader that may write opens for writing all the same: after a kill in the middle of a
    commit SQLite has to roll back the journal before anyone can read.
    """
    mode = "rwc"
    if read_only:
        writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
        mode = "rw" if writable else "ro"
    # `Path.resolve` has an error of its own for a link to itself; SQLite cannot open one.
    return f"{Path(os.path.realpath(path)).as_uri()}?mode={mode}"


# --- One tuner at a time in a study's folder.

LOCK = ".lock"


def lock_folder(folder: Path) -> FileLock:
    """The lock on `folder`. Raises InputError, naming the holder's process, when it is in use."""
    file = folder / LOCK
    lock = file_lock(file)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        holder = file.read_text(encoding="ascii", errors="replace").strip()
        raise InputError(
            str(folder),
            why=f"in use by another tuner (process {holder or 'unknown'})",
            allowed="wait until it ends, or use another folder (--dir DIR)",
        ) from None
    file.write_text(f"{os.getpid()}\n", encoding="ascii")
    return lock


# --- The marker file: lsmtune writes in, and deletes, only directories that bear it.
#
# The marker is the first thing written into a directory and the last thing deleted from it, so
# that a kill at any moment leaves a directory that is either marked or empty.


def claim(directory: Path, purpose: str, owner: Path | None = None) -> None:
    """Make `directory` ours: create it when missing, and mark it when new or empty.

    A directory that is marked already is left as it is. What `owner` has made, a folder that is
    claimed, only `owner` deletes (`why_kept`). Raises InputError when it is not a directory, or has
    content but no marker; nothing is written then.
    """
    if not is_utf8(directory.absolute()):
        # SQLite and the driver's protocol hold paths as UTF-8.
        found = str(directory.absolute())
        raise InputError("folder", found=found, allowed="a path in UTF-8 (--dir DIR)")
    if directory.exists() and not directory.is_dir():
        raise InputError(str(directory), why="is a file, and a folder is needed here")
    directory.mkdir(parents=True, exist_ok=True)
    if is_owned(directory):
        return
    if directory.is_symlink() or any(directory.iterdir()):
        raise not_ours(directory)
    content: dict[str, object] = {
        "tool": "lsmtune",
        "version": lsmtune.__version__,
        "purpose": purpose,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "id": uuid.uuid4().hex,
    }
    if owner is not None:
        content["owner"] = marker_of(owner).get("id", "")
    # One file, made exclusively and not renamed into place: a kill may leave it empty, but never
    # a folder with content and no marker.
    with (directory / MARKER).open("x", encoding="utf-8") as file:
        file.write(json.dumps(content) + "\n")
        file.flush()
        os.fsync(file.fileno())


_NO_MARKER = (FileNotFoundError, NotADirectoryError, NotPlainError, ValueError, RecursionError)
_MARKER_BYTES_MAX = 1 << 16


def marker_of(directory: Path) -> dict[str, object]:
    """What the marker of an owned directory says; empty where it is damaged.

    Raises OSError where the machine cannot read it: what it says is not known then.
    """
    try:
        with open_plain(directory / MARKER) as file:
            written = json.loads(file.read(_MARKER_BYTES_MAX))
    except _NO_MARKER:  # a kill may leave the marker empty
        return {}
    return written if isinstance(written, dict) else {}


def not_ours(directory: Path) -> InputError:
    """The error for a folder that lsmtune did not make, and for a link to any."""
    how = f"it has content but no {MARKER} file"
    allowed = "a new or empty folder, or one that lsmtune made (--dir DIR)"
    if directory.is_symlink():
        how, allowed = "it is a link", f"{os.path.realpath(directory)} itself (--dir DIR)"
    why = f"this folder is not ours: {how}; nothing was changed"
    return InputError(str(directory), why=why, allowed=allowed)


# --- What of an experiment, or of its loaded databases, may be deleted is decided here.

RUN, GOLDEN = "run", "golden database"  # purposes
PREFIX = "run-"
_NAMES = {RUN: re.compile(rf"{PREFIX}.+"), GOLDEN: re.compile(r"[0-9a-f]{16,}(\..+)?")}


def why_kept(directory: Path, purpose: str, owner: Path) -> str:
    """Why `directory` must not be deleted as a `purpose` of the folder `owner`; "" if it may.

    It may where its name and its marker say so, no link leads to it, and it is on the file system
    of its owner. A kill before the marker leaves an empty directory, or an empty marker in it.
    """
    if directory.is_symlink() or not directory.is_dir():
        return "is no folder"
    if elsewhere := _elsewhere(directory, owner):
        return elsewhere
    if not _NAMES[purpose].fullmatch(directory.name):
        return f"has no name of a {purpose}"
    try:
        marker = marker_of(directory)
    except PermissionError as error:  # as that of another user, which is none of ours
        return f"has a {MARKER} file that cannot be read ({error.strerror})"
    if not marker:
        left = {entry.name for entry in directory.iterdir()}
        return "" if left <= {MARKER} else f"bears no {MARKER} file that says what it is"
    if marker.get("purpose") != purpose:
        return f"is a {marker.get('purpose')}"
    if marker.get("owner") != marker_of(owner).get("id", ""):
        return "was made by another folder"
    return ""


def _elsewhere(folder: Path, owner: Path) -> str:
    if folder.resolve() != owner.resolve() / folder.relative_to(owner):
        return "is reached by a link"
    return "" if folder.stat().st_dev == owner.stat().st_dev else "is on another file system"


# --- Scratch directories of runs: fresh, marked, removed afterwards, swept after a kill.

# A driver whose tuner died exits by itself when its stdin ends; until then it may add files to
# a directory that is being emptied. Two orders of magnitude above the 0.1 s this should take.
REMOVAL_PATIENCE_S = 10.0
_RETRY_S = 0.05


@contextmanager
def run_directory(parent: Path, owner: Path | None = None) -> Iterator[Path]:
    """A fresh marked directory under `parent` for one run of the folder `owner`, then removed.

    Without an owner it belongs to `parent`, whatever that is, and what killed processes left of
    such directories is removed first. Raises InputError where a link leads to `parent`, or it is on
    another file system than its owner.
    """
    alone, owner = owner is None, owner or parent
    check_within(parent, owner)
    if alone:
        _sweep_unlocked(parent)
    with explained(parent):
        directory = new_folder(parent, PREFIX)
    with ExitStack() as stack:
        if alone:
            stack.enter_context(folder_in_use(directory, required=False))
        stack.callback(remove_owned, directory, RUN, owner)
        with explained(parent):
            claim(directory, RUN, owner)
        yield directory


def new_folder(parent: Path, prefix: str, suffix: str = "") -> Path:
    """A new folder in `parent`, of a name that was never used before."""
    # Since Python 3.12 mkdtemp's path is absolute, whatever `parent` is.
    return parent / Path(tempfile.mkdtemp(suffix, prefix, parent)).name


def _sweep_unlocked(parent: Path) -> None:
    """Remove what killed runs left that belonged to no experiment; nobody has locked that."""
    for entry in sorted(parent.glob(f"{PREFIX}*")):
        # In use, or another user's, who will do it, and whose marker may not even be readable.
        with suppress(OSError, LsmtuneError):
            # Without a marker it may be about to be locked.
            if marker_of(entry) and not why_kept(entry, RUN, parent):
                with folder_in_use(entry):
                    remove_owned(entry, RUN, parent)


def check_within(folder: Path, owner: Path) -> None:
    """Raises InputError where `folder` of `owner` is reached by a link, or is a mount."""
    if _elsewhere(folder, owner):
        why = "is a link, or another file system: what lies there is not deleted"
        raise InputError(str(folder), why=why, allowed="another folder for all of it (--dir DIR)")


def sweep_leftovers(parent: Path, owner: Path) -> None:
    """Remove what killed runs of `owner` left under `parent`."""
    for entry in sorted(parent.iterdir()):
        if not why_kept(entry, RUN, owner):
            remove_owned(entry, RUN, owner)


def remove_owned(directory: Path, purpose: str, owner: Path) -> None:
    """Delete a `purpose` of the folder `owner`, its marker last; no error when it is gone already.

    Tries again for `REMOVAL_PATIENCE_S` while something still writes into it. Raises LsmtuneError
    when the directory is not ours, or cannot be deleted by then.
    """
    if not directory.exists():
        return
    if why := why_kept(directory, purpose, owner):
        raise LsmtuneError(f"{directory}: not deleted: it {why}")
    for _ in range(round(REMOVAL_PATIENCE_S / _RETRY_S)):
        if _removed(directory):
            return
        time.sleep(_RETRY_S)
    raise LsmtuneError(
        f"{directory}: cannot be deleted: another process still writes there; end it and try again"
    )


def _removed(directory: Path) -> bool:
    """Delete `directory` and everything in it; False when it changed meanwhile."""
    with explained(directory):
        try:
            for entry in directory.iterdir():
                if entry.name == MARKER:
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()
            (directory / MARKER).unlink(missing_ok=True)
            directory.rmdir()
        except FileNotFoundError:
            return not directory.exists()
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
    return True
