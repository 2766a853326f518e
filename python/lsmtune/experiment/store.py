"""The tables of `measurements.db`, and the way from each version to the next.

Version 1: `measurements`, one row per run; `facts`, one JSON value per key.
Version 2: a trial, and a side of a pair, has one run per `workload` (its index in the study); a
trial may have smaller runs before it, each on a `rung`.
Version 3: a trial, an anchor, and a side of a pair may be run again: `repeat` counts its runs from
0 (of the anchors it is their number). Those written before have not been repeated.

To change a table, append a script: never edit one that was released.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.experiment.files import explained, sqlite_uri
from lsmtune.model.codec import decode, encode
from lsmtune.model.config import Config
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.verdict import Verdict

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


# ----------
# Measurements of a study, kept whole, in SQLite beside the Optuna study.
#
# Each run is one row, written in one transaction. The journal is SQLite's rollback journal with
# `synchronous=FULL`: one commit per run costs nothing beside the run, a row that was committed
# survives a power loss, and the file can be read where nothing can be written, which a write-ahead
# log does not allow.

FILE = "measurements.db"
BUSY_TIMEOUT_S = 30.0
_VERDICT = "verdict"


class Role(StrEnum):
    """What a run was for."""

    BASELINE = "baseline"
    TRIAL = "trial"
    RUNG = "rung"  # a smaller run of a trial, before the one that counts
    PROOF_BASELINE = "proof_baseline"
    PROOF_CANDIDATE = "proof_candidate"
    BENCH = "bench"
    ANCHOR = "anchor"  # the baseline again, in the middle of a study
    CALIBRATION = "calibration"  # the baseline against itself, before the search
    CRASH = "crash"  # a finalist's run that is killed, to see what its database keeps


# Runs of the baseline in which it meets no candidate.
OF_BASELINE = (Role.BASELINE, Role.CALIBRATION, Role.ANCHOR)


@dataclass(frozen=True)
class StoredMeasurement:
    """One row: a Measurement with the place it has in its study.

    `workload` is its index in the study; `rung` the index of a smaller run's size; `repeat` counts
    the runs of one trial, or of one side of a pair, from 0, and numbers the anchors. `wall_s` is
    all the time that the run cost, its preparation and clean-up included.
    """

    id: int
    role: Role
    trial: int | None
    pair: int | None
    config: Config
    measurement: Measurement
    wall_s: float = 0.0
    workload: int = 0
    rung: int | None = None
    repeat: int = 0


class MeasurementStore:
    """The measurements in one SQLite file. For use by one thread."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Open `path`, creating it unless `read_only`.

        Raises InputError when it is missing, cannot be written, or is of a newer version.
        """
        if read_only and not path.is_file():
            raise InputError(str(path), why="there are no measurements here")
        self._path = path
        with explained(path):
            self._connection = sqlite3.connect(
                sqlite_uri(path, read_only=read_only), uri=True, timeout=BUSY_TIMEOUT_S
            )
            try:
                self._prepare(read_only)
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self, read_only: bool) -> None:
        if read_only:
            self._version = checked_version(self._connection, str(self._path))
            self._connection.execute("PRAGMA query_only = ON")
            return
        self._connection.execute("PRAGMA synchronous = FULL")
        migrate(self._connection, str(self._path))
        self._version = VERSION

    def close(self) -> None:
        """Close the file. May be called more than once."""
        self._connection.close()

    def add(
        self,
        role: Role,
        measurement: Measurement,
        *,
        config: Config,
        trial: int | None = None,
        pair: int | None = None,
        wall_s: float | None = None,
        workload: int = 0,
        rung: int | None = None,
        repeat: int = 0,
    ) -> int:
        """Store one run and return its id; it is on the disk when this returns.

        Raises ValueError when the trial, the anchor, or this side of the pair, has a measurement of
        that workload (and rung, and repeat) already; LsmtuneError when the disk is full.
        """
        row = {
            "role": role.value,
            "trial": trial,
            "pair": pair,
            "workload": workload,
            "rung": rung,
            "repeat": repeat,
            "outcome": measurement.outcome.value,
            "seed": measurement.seed,
            "wall_s": measurement.elapsed_s if wall_s is None else wall_s,
            "config": json.dumps(encode(config)),
            "measurement": json.dumps(encode(measurement)),
        }
        names = ", ".join(row)
        marks = ", ".join(f":{name}" for name in row)
        try:
            with explained(self._path), self._connection:
                cursor = self._connection.execute(
                    f"INSERT INTO measurements ({names}) VALUES ({marks})", row
                )
        except sqlite3.IntegrityError as error:
            which = f"{role} (trial {trial}, pair {pair}, repeat {repeat})"
            raise ValueError(f"{which} is measured already") from error
        return int(cursor.lastrowid or 0)

    def get(self, measurement_id: int) -> StoredMeasurement:
        """The row with that id; raises KeyError when there is none."""
        for stored in self._select("WHERE id = ?", (measurement_id,)):
            return stored
        raise KeyError(measurement_id)

    def all(self) -> list[StoredMeasurement]:
        """Every row, in the order in which they were stored."""
        return list(self._select("ORDER BY id"))

    def of(self, role: Role) -> list[StoredMeasurement]:
        """The rows of one role, in the order in which they were stored."""
        return list(self._select("WHERE role = ? ORDER BY id", (role.value,)))

    def last_pair(self) -> int | None:
        """The largest number of a proof's pair, of which any run is stored; None without one."""
        roles = (Role.PROOF_BASELINE.value, Role.PROOF_CANDIDATE.value)
        query = "SELECT max(pair) FROM measurements WHERE role IN (?, ?)"
        with explained(self._path):
            row = self._connection.execute(query, roles).fetchone()
        return None if row[0] is None else int(row[0])

    def spent_s(self) -> float:
        """Seconds that all stored runs cost together."""
        with explained(self._path):
            row = self._connection.execute("SELECT total(wall_s) FROM measurements").fetchone()
        return float(row[0])

    def any_ok(self) -> bool:
        """Whether some run ended `ok`, the baseline's aside, which alone says nothing."""
        marks = ", ".join("?" for _ in OF_BASELINE)
        query = f"SELECT 1 FROM measurements WHERE outcome = ? AND role NOT IN ({marks}) LIMIT 1"
        values = (Outcome.OK.value, *(role.value for role in OF_BASELINE))
        with explained(self._path):
            return self._connection.execute(query, values).fetchone() is not None

    def clear(self) -> None:
        """Forget everything, in one transaction."""
        with explained(self._path), self._connection:
            self._connection.execute("DELETE FROM measurements")
            self._connection.execute("DELETE FROM facts")

    def set_fact(self, key: str, value: object) -> None:
        """Store a JSON value under `key`, replacing what was there."""
        with explained(self._path), self._connection:
            self._connection.execute(
                "INSERT OR REPLACE INTO facts (key, value) VALUES (?, ?)",
                (key, json.dumps(encode(value))),
            )

    def fact(self, key: str) -> Any:
        """The JSON value under `key`, or None."""
        with explained(self._path):
            row = self._connection.execute(
                "SELECT value FROM facts WHERE key = ?", (key,)
            ).fetchone()
        with self._readable(f"the fact {key!r}"):
            return None if row is None else json.loads(row[0])

    def set_verdict(self, verdict: Verdict | None) -> None:
        """Store the study's verdict; None takes back one that no longer holds."""
        self.set_fact(_VERDICT, verdict)

    def verdict(self) -> Verdict | None:
        """The study's verdict, or None when it has none yet."""
        stored = self.fact(_VERDICT)
        with self._readable("the verdict"):
            return None if stored is None else decode(Verdict, stored)

    def _select(self, where: str, values: tuple[object, ...] = ()) -> Iterator[StoredMeasurement]:
        # A file of an older version, opened for reading only, has not got the newer columns.
        newer = "workload, rung" if self._version > 1 else "0, NULL"
        newest = "repeat" if self._version > 2 else "0"
        query = (
            f"SELECT id, role, trial, pair, config, measurement, wall_s, {newer}, {newest} "
            f"FROM measurements {where}"
        )
        with explained(self._path), closing(self._connection.execute(query, values)) as rows:
            for row in rows:
                with self._readable(f"measurement {row[0]}"):
                    stored = _stored(row)
                yield stored

    @contextmanager
    def _readable(self, what: str) -> Iterator[None]:
        """Turn what decoding raises into an LsmtuneError: the text in the file is not ours."""
        try:
            yield
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            why = f"{type(error).__name__}: {error}"
            raise LsmtuneError(
                f"{self._path}: {what} cannot be read ({why}); use another folder (--dir DIR)"
            ) from error


def _stored(row: tuple[Any, ...]) -> StoredMeasurement:
    """A row with the columns in the order in which `_select` asks for them."""
    number, role, trial, pair, config, measurement, wall_s, workload, rung, repeat = row
    return StoredMeasurement(
        id=number,
        role=Role(role),
        trial=trial,
        pair=pair,
        config=decode(Config, json.loads(config)),
        measurement=decode(Measurement, json.loads(measurement)),
        wall_s=wall_s,
        workload=workload,
        rung=rung,
        repeat=repeat,
    )
