"""The runs of an experiment, kept whole, in SQLite or on a PostgreSQL server: one row for each.

Each row is written in one transaction. The journal is SQLite's rollback journal with
`synchronous=FULL`: one commit per run costs nothing beside the run, a row that was committed
survives a power loss, and the file can be read where nothing can be written, which a write-ahead
log does not allow.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from lsmtune.errors import InputError
from lsmtune.experiment.files import (
    STUDY_DB,
    check_database,
    damaged,
    explained,
    readable,
    sqlite_uri,
)
from lsmtune.experiment.server import SERVER_FILE, ServerConnection, server_of
from lsmtune.model.codec import decode, encode
from lsmtune.model.config import Config
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.verdict import Verdict

# Raised when what is stored changes; there are no migrations.
VERSION = 5
BUSY_TIMEOUT_S = 30.0
_VERDICT, _FINALIST = "verdict", "finalist"
_LOST = "lost_s"
_VERSION = "version"  # of the tables on a server; SQLite has a place of its own for it
_ASIDE = "set_aside"

_TABLES = """
CREATE TABLE runs (
    id          INTEGER PRIMARY KEY,
    role        TEXT NOT NULL,
    arm         TEXT NOT NULL,
    library     TEXT,
    workload    INTEGER NOT NULL,
    round       INTEGER NOT NULL,
    pair        INTEGER,
    trial       INTEGER,
    repeat      INTEGER NOT NULL,
    rung        INTEGER,
    seed        INTEGER NOT NULL,
    outcome     TEXT NOT NULL,
    wall_s      REAL NOT NULL,
    config      TEXT NOT NULL,
    measurement TEXT NOT NULL,
    crc         INTEGER NOT NULL
);
CREATE UNIQUE INDEX one_run_per_trial ON runs (trial, workload, repeat) WHERE role = 'trial';
CREATE UNIQUE INDEX one_run_per_rung ON runs (trial, workload, rung) WHERE role = 'rung';
CREATE UNIQUE INDEX one_run_per_anchor ON runs (repeat, workload) WHERE role = 'anchor';
CREATE UNIQUE INDEX one_run_per_side ON runs (role, pair, workload, repeat)
    WHERE pair IS NOT NULL;
CREATE UNIQUE INDEX one_run_per_round ON runs (arm, round) WHERE role = 'round';
CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL);
"""
# What SQLite's types are called by a server, whose INTEGER has 32 bits.
_OF_SERVER = {
    "INTEGER PRIMARY KEY": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "INTEGER": "BIGINT",
    "REAL": "DOUBLE PRECISION",
}
# Columns that are in the measurement, too.
_COPIED = ("seed", "outcome")
# A checksum of the other columns. SQLite has none of its own, and a flipped bit in a figure is a
# figure.
_CRC = "crc"
_ID = "id"
# A tuner cannot store a run while another program's query goes on, and to decode all rows of a
# large study takes longer than it waits: so many are read at once, and decoded then.
_ROWS_AT_ONCE = 100


class Role(StrEnum):
    """What a run was for."""

    BASELINE = "baseline"
    TRIAL = "trial"
    RUNG = "rung"  # a smaller run of a trial, before the one that counts
    PROMOTION = "promotion"  # of the baseline or a trial, at the larger size of the proof
    PROOF_BASELINE = "proof_baseline"
    PROOF_CANDIDATE = "proof_candidate"
    BENCH = "bench"
    ROUND = "round"  # of one arm in one of the interleaved rounds
    ANCHOR = "anchor"  # the baseline again, in the middle of a study
    CALIBRATION = "calibration"  # the baseline against itself, before the search
    CRASH = "crash"  # a finalist's run that is killed, to see what its database keeps


# Runs of the baseline in which it meets no candidate.
OF_BASELINE = (Role.BASELINE, Role.CALIBRATION, Role.ANCHOR)


@dataclass(frozen=True)
class StoredMeasurement:
    """One row: what a run of one arm observed, and where it belongs in its experiment.

    `workload` is the index of its workload in the experiment; `rung` the index of a smaller run's
    size; `round` and `pair` count from 0; `repeat` counts the runs of one trial, or of one side of
    a pair, from 0, and numbers the anchors and the rounds of promotions. `arm` names what was
    measured, and `library` is the engine's file, None for an engine without one. `wall_s` is all
    the time that the run cost, its preparation and clean-up included, in seconds.
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
    round: int = 0
    arm: str = ""
    library: str | None = None

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self.measurement.seed


class MeasurementStore:
    """The measurements in one SQLite file, or on a server. For use by one thread."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Open `path`, creating it unless `read_only`.

        Raises InputError when it is missing, cannot be written, or is of another version.
        """
        self._server = server_of(path.parent)
        if read_only and not path.is_file() and self._server is None:
            raise InputError(str(path), why="there are no measurements here")
        self._path = path if self._server is None else path.with_name(SERVER_FILE)
        # What all rows cost, once that was asked: from then on only this store adds to it.
        self._total_s: float | None = None
        self._read_only = read_only
        self._connection: sqlite3.Connection | ServerConnection
        with explained(self._path):
            if self._server is not None:
                self._connection = ServerConnection(self._server, read_only=read_only)
            else:
                if not read_only and is_empty(path) and not is_empty(path.with_name(STUDY_DB)):
                    raise damaged(path, "it is empty or gone, and the study has begun")
                uri = sqlite_uri(path, read_only=read_only)
                self._connection = sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S)
            try:
                if isinstance(self._connection, ServerConnection):
                    self._prepare_server(self._connection)
                else:
                    self._prepare_file(self._connection)
            except BaseException:
                self.close()
                raise

    def _prepare_file(self, connection: sqlite3.Connection) -> None:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        # A kill while the tables were made leaves a journal, which is rolled back by now.
        is_new = is_empty(self._path) and not self._read_only
        if version == 0 and not is_new:
            if is_empty(self._path) and is_empty(self._path.with_name(STUDY_DB)):
                # Killed, or out of space, before the tables were there: nothing has begun.
                raise InputError(str(self._path), why="there are no measurements here yet")
            raise damaged(self._path, "its version is 0")
        if not is_new:
            self._refuse_other(version)
        check_database(self._path, connection, () if is_new else ("runs", "facts"))
        if self._read_only:
            connection.execute("PRAGMA query_only = ON")
            return
        connection.execute("PRAGMA synchronous = FULL")
        if is_new:
            version_set = f"PRAGMA user_version = {VERSION};"
            connection.executescript(f"BEGIN IMMEDIATE;{_TABLES}{version_set}COMMIT;")

    def _prepare_server(self, connection: ServerConnection) -> None:
        query = "SELECT 1 FROM information_schema.schemata WHERE schema_name = ?"
        if self._first(query, connection.schema) is None:
            if self._read_only:
                raise InputError(str(self._path), why="there are no measurements there yet")
            tables = _TABLES
            for name, theirs in _OF_SERVER.items():
                tables = tables.replace(name, theirs)
            with connection:
                connection.execute(f"CREATE SCHEMA {connection.schema};{tables}")
                self._put_facts({_VERSION: VERSION})
        version = self.fact(_VERSION)
        if version is None:
            raise damaged(self._path, f"its schema {connection.schema} has no version")
        self._refuse_other(int(version))

    def _refuse_other(self, version: int) -> None:
        if version != VERSION:
            raise InputError(
                str(self._path),
                "user_version",
                found=version,
                allowed=f"{VERSION}; another lsmtune wrote this (use that one), or the file is "
                "damaged",
            )

    def changed_unix_s(self) -> float:
        """When something was stored last, in seconds since 1970."""
        return self._path.stat().st_mtime

    def close(self) -> None:
        """Close the file. May be called more than once."""
        self._connection.close()

    def insert(self, run: StoredMeasurement) -> StoredMeasurement:
        """`run` with the id of its row; it is on the disk when this returns.

        Raises ValueError when the trial, the anchor, the arm in its round, or this side of the
        pair, has a run of that workload (and rung, and repeat) already; LsmtuneError when the disk
        is full.
        """
        whole = encode(run)
        row = {name: value for name, value in whole.items() if name != _ID} | {
            "arm": run.arm or run.config.label,
            "seed": run.seed,
            "outcome": run.measurement.outcome.value,
            "wall_s": float(run.wall_s),
            "config": json.dumps(whole["config"]),
            "measurement": json.dumps(whole["measurement"]),
        }
        row[_CRC] = _crc(row)
        names = ", ".join(row)
        marks = ", ".join(f":{name}" for name in row)
        try:
            with explained(self._path), self._connection:
                number = self._insert(f"INSERT INTO runs ({names}) VALUES ({marks})", row)
        except sqlite3.IntegrityError as error:
            which = f"{run.role} (trial {run.trial}, pair {run.pair}, repeat {run.repeat})"
            raise ValueError(f"{which} is measured already") from error
        if self._total_s is not None:
            self._total_s += run.wall_s
        self._touch()
        return replace(run, id=number, arm=str(row["arm"]))

    def _insert(self, query: str, row: Mapping[str, object]) -> int:
        if isinstance(self._connection, sqlite3.Connection):
            return int(self._connection.execute(query, row).lastrowid or 0)
        return int(self._connection.execute(f"{query} RETURNING id", row).scalar_one())

    def all(self) -> list[StoredMeasurement]:
        """Every row, in the order in which they were stored."""
        return list(self._select(None, 0))

    def of(self, role: Role, after: int = 0) -> list[StoredMeasurement]:
        """The rows of one role, in the order in which they were stored: those `after` a row."""
        return list(self._select(role.value, after))

    def last_pair(self) -> int | None:
        """The largest number of a proof's pair, of which any run is stored; None without one."""
        roles = (Role.PROOF_BASELINE.value, Role.PROOF_CANDIDATE.value)
        row = self._first("SELECT max(pair) FROM runs WHERE role IN (?, ?)", *roles)
        return None if row is None or row[0] is None else int(row[0])

    def spent_s(self) -> float:
        """Seconds that all stored runs cost together, and those that are lost."""
        total_s = self._total_s
        if total_s is None:
            (total_s,) = self._first("SELECT coalesce(sum(wall_s), 0.0) FROM runs") or (0.0,)
            self._total_s = None if self._read_only else total_s
        return float(total_s) + float(self.fact(_LOST) or 0.0)

    def set_aside(self, key: str, value: object) -> None:
        """Store a fact by which the runs so far no longer count, but as the time that they cost."""
        last = self._first("SELECT max(id) FROM runs")
        self._set_facts({key: value, _ASIDE: last[0] if last else 0})

    def note_lost(self, wall_s: float) -> None:
        """A run that is not stored, as it was disturbed or there was no time, cost `wall_s`."""
        self.set_fact(_LOST, float(self.fact(_LOST) or 0.0) + wall_s)

    def trials_begun(self) -> int:
        """How many trials have a run that counts, of any size."""
        query = "SELECT count(DISTINCT trial) FROM runs WHERE role IN (?, ?) AND id > ?"
        aside = int(self.fact(_ASIDE) or 0)
        row = self._first(query, Role.TRIAL.value, Role.RUNG.value, aside)
        return 0 if row is None else int(row[0])

    def any_ok(self) -> bool:
        """Whether some run ended `ok`, the baseline's aside, which alone says nothing."""
        marks = ", ".join("?" for _ in OF_BASELINE)
        query = f"SELECT 1 FROM runs WHERE outcome = ? AND role NOT IN ({marks}) LIMIT 1"
        roles = (role.value for role in OF_BASELINE)
        return self._first(query, Outcome.OK.value, *roles) is not None

    def clear(self) -> None:
        """Forget everything but the version of the tables, in one transaction."""
        self._total_s = None
        with explained(self._path), self._connection:
            self._connection.execute("DELETE FROM runs")
            self._connection.execute("DELETE FROM facts WHERE key <> ?", (_VERSION,))

    def set_fact(self, key: str, value: object) -> None:
        """Store a JSON value under `key`, replacing what was there."""
        self._set_facts({key: value})

    def _set_facts(self, facts: Mapping[str, object]) -> None:
        """All of them or none."""
        with explained(self._path), self._connection:
            self._put_facts(facts)
        self._touch()

    def _touch(self) -> None:
        """Tell what follows a study on a server, which looks at the time of this file."""
        if self._server is not None:
            self._path.touch()

    def _put_facts(self, facts: Mapping[str, object]) -> None:
        rows = [{"key": key, "value": json.dumps(encode(facts[key]))} for key in facts]
        self._connection.executemany(
            "INSERT INTO facts (key, value, crc) VALUES (:key, :value, :crc) "
            "ON CONFLICT (key) DO UPDATE SET value = excluded.value, crc = excluded.crc",
            [row | {_CRC: _crc(row)} for row in rows],
        )

    def fact(self, key: str) -> Any:
        """The JSON value under `key`, or None."""
        with readable(self._path, f"the fact {key!r}"):
            rows = self._rows("SELECT * FROM facts WHERE key = ?", (key,))
            return next((json.loads(row["value"]) for row in rows), None)

    def set_verdict(self, verdict: Verdict | None, finalist: int | None = None) -> None:
        """Store the study's verdict on the trial `finalist`; None takes back one that is old."""
        self._set_facts({_VERDICT: verdict, _FINALIST: finalist})

    def finalist(self) -> int | None:
        """The trial that the verdict is about; None without any, and where nobody said."""
        number: int | None = self.fact(_FINALIST)
        return number

    def verdict(self) -> Verdict | None:
        """The study's verdict, or None when it has none yet."""
        stored = self.fact(_VERDICT)
        with readable(self._path, "the verdict"):
            return None if stored is None else decode(Verdict, stored)

    def _select(self, role: str | None, after: int) -> Iterator[StoredMeasurement]:
        after = max(after, int(self.fact(_ASIDE) or 0))
        query = "SELECT * FROM runs WHERE id > ? AND role = coalesce(?, role) ORDER BY id LIMIT ?"
        while rows := list(self._rows(query, (after, role, _ROWS_AT_ONCE))):
            for row in rows:
                with readable(self._path, f"measurement {row[_ID]}"):
                    parts: dict[str, Any] = {"role": Role(row["role"])}
                    for name, kind in (("config", Config), ("measurement", Measurement)):
                        parts[name] = decode(kind, json.loads(row[name]))
                    fields = {name: value for name, value in row.items() if name not in _COPIED}
                    stored = StoredMeasurement(**fields | parts)
                yield stored
            after = rows[-1][_ID]

    def _rows(self, query: str, values: tuple[object, ...]) -> Iterator[dict[str, Any]]:
        """The rows by column, without their checksums, which are as they should be."""
        with readable(self._path), closing(self._connection.execute(query, values)) as rows:
            if isinstance(rows, sqlite3.Cursor):
                names = [column[0] for column in rows.description]
            else:
                names = list(rows.keys())
            for values_of_row in rows:
                row = dict(zip(names, values_of_row, strict=True))
                if row.pop(_CRC) != _crc(row):
                    which = f"measurement {row[_ID]}" if _ID in row else f"the fact {row['key']!r}"
                    raise damaged(self._path, f"the checksum of {which} differs")
                yield row

    def _first(self, query: str, *values: object) -> tuple[Any, ...] | None:
        with explained(self._path):
            row: tuple[Any, ...] | None = self._connection.execute(query, values).fetchone()
        return row


def is_empty(path: Path) -> bool:
    """Whether nothing was ever written to the file at `path`."""
    return not path.is_file() or path.stat().st_size == 0


def _crc(row: Mapping[str, object]) -> int:
    """The checksum of a row, without the id that SQLite gives it."""
    parts = sorted((name, part) for name, part in row.items() if name != _ID)
    return zlib.crc32(json.dumps(parts).encode())
