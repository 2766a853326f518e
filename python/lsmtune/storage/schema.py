"""The tables of `measurements.db`, and the way from each version to the next.

Version 1: `measurements`, one row per run; `facts`, one JSON value per key.
Version 2: a trial, and a side of a pair, has one run per `workload` (its index in the study); a
trial may have smaller runs before it, each on a `rung`.
Version 3: a trial, an anchor, and a side of a pair may be run again: `repeat` counts its runs from
0 (of the anchors it is their number). Those written before have not been repeated.

To change a table, append a script: never edit one that was released.
"""

from __future__ import annotations

import sqlite3

from lsmtune.errors import InputError

_MIGRATIONS = (
    """
    CREATE TABLE measurements (
        id          INTEGER PRIMARY KEY,
        role        TEXT NOT NULL,
        trial       INTEGER,
        pair        INTEGER,
        outcome     TEXT NOT NULL,
        seed        INTEGER NOT NULL,
        wall_s      REAL NOT NULL,
        config      TEXT NOT NULL,
        measurement TEXT NOT NULL
    );
    CREATE UNIQUE INDEX one_measurement_per_trial ON measurements (trial) WHERE role = 'trial';
    CREATE UNIQUE INDEX one_measurement_per_side ON measurements (role, pair)
        WHERE pair IS NOT NULL;
    CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL);
    """,
    """
    ALTER TABLE measurements ADD COLUMN workload INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE measurements ADD COLUMN rung INTEGER;
    DROP INDEX one_measurement_per_trial;
    DROP INDEX one_measurement_per_side;
    CREATE UNIQUE INDEX one_measurement_per_trial ON measurements (trial, workload)
        WHERE role = 'trial';
    CREATE UNIQUE INDEX one_measurement_per_rung ON measurements (trial, workload, rung)
        WHERE role = 'rung';
    CREATE UNIQUE INDEX one_measurement_per_side ON measurements (role, pair, workload)
        WHERE pair IS NOT NULL;
    """,
    """
    ALTER TABLE measurements ADD COLUMN repeat INTEGER NOT NULL DEFAULT 0;
    DROP INDEX one_measurement_per_trial;
    DROP INDEX one_measurement_per_side;
    CREATE UNIQUE INDEX one_measurement_per_trial ON measurements (trial, workload, repeat)
        WHERE role = 'trial';
    CREATE UNIQUE INDEX one_measurement_per_anchor ON measurements (repeat, workload)
        WHERE role = 'anchor';
    CREATE UNIQUE INDEX one_measurement_per_side ON measurements (role, pair, workload, repeat)
        WHERE pair IS NOT NULL;
    """,
)
VERSION = len(_MIGRATIONS)


def migrate(connection: sqlite3.Connection, source: str) -> None:
    """Bring the database to `VERSION`; raises InputError when a newer lsmtune wrote it."""
    for number in range(checked_version(connection, source), VERSION):
        # DDL is transactional in SQLite: a kill in the middle leaves the old version whole.
        connection.executescript(
            f"BEGIN IMMEDIATE; {_MIGRATIONS[number]} PRAGMA user_version = {number + 1}; COMMIT;"
        )


def checked_version(connection: sqlite3.Connection, source: str) -> int:
    """The version of the database; raises InputError when it is newer than `VERSION`."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        raise InputError(
            source,
            "user_version",
            found=version,
            allowed=f"up to {VERSION}; a newer lsmtune wrote this, use that one",
        )
    return version
