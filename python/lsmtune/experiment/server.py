"""Both databases of a study on a PostgreSQL server: in a schema of its own, one for each folder.

The folder stays where the tuner runs, with its lock, its scratch files and its result; the file
`server.json` in it says where the rows are. What SQLite promises holds here as well: a row, or a
trial, is one transaction, and is on the server's disk when it is acknowledged.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy
from sqlalchemy.engine import CursorResult
from sqlalchemy.pool import NullPool

from lsmtune.errors import InputError, need_package
from lsmtune.machine.files import write_whole
from lsmtune.model.files import read_text

SERVER_FILE = "server.json"
_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
_ALLOWED = "postgresql://USER@HOST:PORT/DATABASE, or postgresql:///DATABASE?host=/FOLDER/OF/SOCKET"


@dataclass(frozen=True)
class Server:
    """Where the rows of one folder are."""

    url: str
    schema: str

    def arguments(self, *, read_only: bool) -> dict[str, Any]:
        """What SQLAlchemy's engine is made with, beside the URL."""
        options = f"-c search_path={self.schema}"
        # As SQLite's `synchronous=FULL`, whatever the server's own setting is.
        options += " -c default_transaction_read_only=on" if read_only else ""
        options += " -c synchronous_commit=on"
        return {"poolclass": NullPool, "connect_args": {"options": options}}


def parsed_url(text: str, source: str) -> str:
    """The URL of a server as SQLAlchemy has it. Raises InputError, about `source`, for another."""
    try:
        url = sqlalchemy.make_url(text)
    except (sqlalchemy.exc.ArgumentError, ValueError):  # a port may be no number
        # What cannot be taken apart may hold a password.
        raise InputError(source, why="is no URL of a server", allowed=_ALLOWED) from None
    passwords = [name for name in url.query if "password" in name]  # libpq has `sslpassword`, too
    shown = url.difference_update_query(passwords).render_as_string(hide_password=True)
    if url.drivername not in _SCHEMES or not url.database:
        raise InputError(source, found=shown, allowed=_ALLOWED)
    if url.password is not None or passwords:
        why = "a password would be kept in the folder and shown"
        allowed = "a URL without one: PostgreSQL reads ~/.pgpass and PGPASSWORD"
        raise InputError(source, found=shown, why=why, allowed=allowed)
    need_package("psycopg", source, "", found=shown)
    return url.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def server_of(folder: Path) -> Server | None:
    """The server of the rows of `folder`; None where they are in files there."""
    path = folder / SERVER_FILE
    if not path.is_file():
        return None
    try:
        stored = json.loads(read_text(path))
        server = Server(str(stored["url"]), str(stored["schema"]))
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(str(path), why=f"cannot be read: {error!r}") from None
    parsed_url(server.url, str(path))
    return server


def use_server(folder: Path, storage: str, *, has_files: bool) -> bool:
    """Keep the rows of `folder` on the server at `storage`; whether that is new.

    Raises InputError when they are elsewhere already: a study does not move.
    """
    url, known = parsed_url(storage, "--storage"), server_of(folder)
    if known is not None and known.url == url:
        return False
    if known is not None or has_files:
        where = "files of the folder" if known is None else known.url
        why = f"the rows of {folder} are in {where}, and a study does not move"
        raise InputError("--storage", found=storage, why=why, allowed="another folder (--dir DIR)")
    ServerConnection(Server(url, "public"), read_only=True).close()  # it answers
    server = {"url": url, "schema": f"lsmtune_{uuid.uuid4().hex}"}
    write_whole(folder / SERVER_FILE, json.dumps(server) + "\n")
    return True


# By place, by name, or several by name.
Values = tuple[object, ...] | Mapping[str, object] | Sequence[Mapping[str, object]]


class ServerConnection:
    """A connection with the methods of `sqlite3.Connection` that a store calls, to one `schema`.

    Each statement is a transaction unless it is in a `with`.
    """

    def __init__(self, server: Server, *, read_only: bool) -> None:
        """Raises InputError when the server does not answer, or does not let us in."""
        self.schema = server.schema
        arguments = server.arguments(read_only=read_only)
        engine = sqlalchemy.create_engine(server.url, isolation_level="AUTOCOMMIT", **arguments)
        try:
            self._connection = engine.connect()
        except sqlalchemy.exc.DBAPIError as error:  # a setting that there is not, too
            why = " ".join(str(error.orig).split())
            raise InputError(server.url, why=why, allowed="a server that answers") from None

    def execute(self, query: str, values: Values = ()) -> CursorResult[Any]:
        """As sqlite3's, whose IntegrityError it raises."""
        if isinstance(values, tuple):
            parts = query.split("?")
            query = "".join(f"{part}:p{number}" for number, part in enumerate(parts[:-1]))
            query += parts[-1]
            values = {f"p{number}": value for number, value in enumerate(values)}
        try:
            return self._connection.execute(sqlalchemy.text(query), values)
        except sqlalchemy.exc.IntegrityError as error:
            raise sqlite3.IntegrityError(str(error.orig)) from error

    executemany = execute

    def __enter__(self) -> ServerConnection:
        self.execute("BEGIN")
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.execute("COMMIT" if kind is None else "ROLLBACK")

    def close(self) -> None:
        """Close it. May be called more than once."""
        self._connection.close()
        self._connection.engine.dispose()
