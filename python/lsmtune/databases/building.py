"""Making a golden database: a folder of its own, everything in it synced, then its name."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Set
from pathlib import Path

from lsmtune.databases.clone import TABLE_SUFFIXES
from lsmtune.databases.durable import sync, write
from lsmtune.databases.fingerprint import database_files
from lsmtune.databases.golden import BUILDING, FACTS, LEDGER, READY, Facts, Golden
from lsmtune.databases.key import GoldenKey
from lsmtune.runners.native_run import DATABASE
from lsmtune.storage.codec import encode
from lsmtune.storage.marker import MARKER, claim

_TABLE_MODE = 0o444


def begin_building(golden: Path) -> Path:
    """A fresh marked folder in which the golden database at `golden` is made.

    Its name was never used before: the driver of a tuner that was killed may write on for a moment,
    by the names of its files. Raises OSError.
    """
    building = Path(tempfile.mkdtemp(prefix=f"{golden.name}.", suffix=BUILDING, dir=golden.parent))
    claim(building, "golden database")
    return building


def tidy_building(building: Path) -> int:
    """Protect and sync the database that was loaded in `building`, and drop what is not of it.

    Returns the space that it takes on the disk, in bytes. Raises OSError.
    """
    database, ledger = building / DATABASE, building / LEDGER
    _drop_others(building, {MARKER, DATABASE, LEDGER})
    files = database_files(database)
    _drop_others(database, {file.name for file in files})
    for file in files:
        if file.suffix in TABLE_SUFFIXES:
            file.chmod(_TABLE_MODE)
    for path in (*files, ledger, database):
        sync(path)
    # Only now: a file takes its space on the disk when it is synced.
    return sum(_disk_bytes(path) for path in (*files, ledger))


def publish(building: Path, golden: Path, key: GoldenKey, facts: Facts) -> Golden:
    """Make the tidy database in `building`, of `key`, the golden one at `golden`.

    Nothing is in use before. Raises OSError.
    """
    document = {"key": key.document, **encode(facts)}
    write(building / FACTS, json.dumps(document, indent=1) + "\n")
    sync(building)
    write(building / READY, "")
    sync(building)
    building.rename(golden)
    sync(golden.parent)
    return Golden(golden, facts)


def _drop_others(folder: Path, kept: Set[str]) -> None:
    """Delete the files in `folder` other than `kept`."""
    for entry in folder.iterdir():
        if entry.name not in kept and not entry.is_dir():
            entry.unlink()


def _disk_bytes(path: Path) -> int:
    # st_blocks counts units of 512 bytes, whatever the file system's own are (stat(2)).
    return path.stat().st_blocks * 512
