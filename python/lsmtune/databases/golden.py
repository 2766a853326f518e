"""Golden databases on the disk: where they are, what they hold, how one is removed.

databases/                the cache; marked as ours
  <digest>.lock           held by whoever works on the golden database of that digest
  <digest>.*.building/    one that is being made; left behind, it is nothing
  <digest>/
    .lsmtune-owned        the marker, written first
    db/                   the closed database, tables read-only
    ledger                what the load noted of the keys it wrote
    golden.json           the key in full, the fingerprint, when it was made
    ready                 written last; its time is that of the last use

A kill or a power failure at any moment leaves a golden database whole or without `ready`. It is
made under another name, synced, and renamed; it is unmade by deleting `ready` before all else.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lsmtune.databases.durable import sync
from lsmtune.databases.fingerprint import Fingerprint, difference
from lsmtune.databases.key import GoldenKey
from lsmtune.databases.lock import SUFFIX as LOCK_SUFFIX
from lsmtune.runners.native_run import DATABASE
from lsmtune.storage.codec import decode
from lsmtune.storage.marker import is_owned
from lsmtune.storage.scratch import remove_owned

LEDGER = "ledger"
FACTS = "golden.json"
READY = "ready"
BUILDING = ".building"
_NAME = re.compile(rf"([0-9a-f]{{64}})(\.\w+{re.escape(BUILDING)}|{re.escape(LOCK_SUFFIX)})?")


@dataclass(frozen=True)
class Facts:
    """What `golden.json` says beside the key.

    `disk_bytes` is the space that the files take on the disk.
    """

    fingerprint: Fingerprint
    disk_bytes: int
    loaded_s: float
    built_unix_s: float


@dataclass(frozen=True)
class Golden:
    """A whole golden database."""

    path: Path
    facts: Facts

    @property
    def database(self) -> Path:
        """The closed database."""
        return self.path / DATABASE

    @property
    def ledger(self) -> Path:
        """What was written into it."""
        return self.path / LEDGER

    def used_unix_ns(self) -> int:
        """When it was last used. Raises OSError."""
        return (self.path / READY).stat().st_mtime_ns

    def note_use(self, unix_s: float) -> None:
        """Remember that it was used at `unix_s`. Raises OSError."""
        os.utime(self.path / READY, (unix_s, unix_s))

    def damage(self, *, checksums: bool) -> str:
        """What became of its files since it was made, in words; empty when nothing did."""
        try:
            if not self.ledger.is_file():
                return f"{LEDGER} is missing"
            return difference(self.database, self.facts.fingerprint, checksums=checksums)
        except OSError as error:
            return f"cannot be read: {error.strerror}"


def golden_path(directory: Path, key: GoldenKey) -> Path:
    """Where the golden database of `key` belongs in the cache `directory`."""
    return directory / key.digest


def building_paths(golden: Path) -> list[Path]:
    """Where the golden database at `golden` is being made, or was. Raises OSError."""
    return sorted(golden.parent.glob(f"{golden.name}.*{BUILDING}"))


def names_in(directory: Path) -> list[Path]:
    """The places of golden databases of which anything is in `directory`. Raises OSError."""
    matches = (_NAME.fullmatch(entry.name) for entry in directory.iterdir())
    return [directory / digest for digest in sorted({m[1] for m in matches if m})]


def find_golden(path: Path) -> Golden | None:
    """The golden database at `path`; None when there is no whole one. Raises OSError."""
    if not (is_owned(path) and (path / READY).is_file()):
        return None
    try:
        stored = json.loads((path / FACTS).read_text(encoding="utf-8"))
        return Golden(path, decode(Facts, stored))
    except (FileNotFoundError, ValueError, TypeError):
        # Damaged: the next one who needs it makes it again.
        return None


def is_strange(path: Path) -> bool:
    """Whether something that is not ours is at `path`, where a golden database belongs."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        return True
    return path.is_dir() and not is_owned(path) and any(path.iterdir())


def remove_golden(path: Path) -> None:
    """Delete the golden database at `path`, or what is left of it; its lock must be held.

    Raises OSError, and LsmtuneError for a folder without our marker.
    """
    with contextlib.suppress(FileNotFoundError):
        if is_owned(path):
            (path / READY).unlink()
            sync(path)
    remove_remains(path)


def remove_remains(path: Path) -> None:
    """Delete a marked folder, or an empty one, which a kill before the marker leaves."""
    if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
        path.rmdir()
        return
    remove_owned(path)


def goldens_in(directory: Path) -> Iterator[Golden]:
    """The whole golden databases in the cache `directory`. Raises OSError."""
    for path in names_in(directory):
        golden = find_golden(path)
        if golden is not None:
            yield golden
