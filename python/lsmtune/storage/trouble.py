"""What the file system and SQLite refuse, as one clear line for the user."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import optuna
import sqlalchemy.exc

from lsmtune.errors import LsmtuneError, disk_full, disk_trouble, not_writable

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
    except (sqlite3.Error, sqlalchemy.exc.SQLAlchemyError) as error:
        raise _explained_sqlite(path, error) from error
    except optuna.exceptions.StorageInternalError as error:
        raise _explained_sqlite(path, error) from error


def _explained_sqlite(path: Path, error: BaseException) -> Exception:
    cause = _sqlite_cause(error)
    code = getattr(cause, "sqlite_errorcode", 0) & _PRIMARY_CODE
    if code == sqlite3.SQLITE_FULL:
        return disk_full(path)
    if code in _SQLITE_READ_ONLY:
        return not_writable(path, str(cause))
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return LsmtuneError(f"{path}: damaged database ({cause}); use another folder (--dir DIR)")
    return LsmtuneError(f"{path}: the database failed: {cause}")


def _sqlite_cause(error: BaseException) -> BaseException:
    """The SQLite error under the layers that Optuna and SQLAlchemy put around it."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, sqlite3.Error):
            return seen
        seen = getattr(seen, "orig", None) or seen.__cause__ or seen.__context__
    return error
