"""Golden databases on the disk: fingerprints, copies that share tables, and what is where."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lsmtune.driver.runner import DATABASE
from lsmtune.experiment.database_key import LEDGER
from lsmtune.experiment.files import GOLDEN, remove_owned
from lsmtune.machine.files import is_owned
from lsmtune.model.codec import decode
from lsmtune.model.measurement import PhaseMeasurement


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk. Raises OSError.

    File systems that cannot sync folders say so, and keep names in ways of their own.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP) or not path.is_dir():
            raise
    finally:
        os.close(descriptor)


# --- The fingerprint of a closed database: its files, and how they lie in the levels of its tree.

# What an engine makes anew whenever it opens a database: its lock, and its log of events.
_MADE_ANEW = re.compile(r"LOCK|LOG(\.old.*)?")


@dataclass(frozen=True)
class Fingerprint:
    """Bytes of each file of a database; files and bytes of each level, None where not known."""

    files: Mapping[str, int]
    files_per_level: tuple[int, ...] | None
    bytes_per_level: tuple[int, ...] | None


def database_files(database: Path) -> list[Path]:
    """The files that make up the closed `database`, by name.

    Left out are those that an engine makes anew at each opening, and folders: RocksDB's `archive`
    holds logs that nothing needs any more. Raises OSError.
    """
    return sorted(
        entry
        for entry in database.iterdir()
        if entry.is_file() and not entry.is_symlink() and not _MADE_ANEW.fullmatch(entry.name)
    )


def take_fingerprint(database: Path, settled: PhaseMeasurement | None) -> Fingerprint:
    """The fingerprint of `database`; `settled` is what was measured last. Raises OSError."""
    files = {file.name: file.stat().st_size for file in database_files(database)}
    if settled is None:
        return Fingerprint(files, None, None)
    return Fingerprint(files, settled.files_per_level, settled.bytes_per_level)


def difference(database: Path, fingerprint: Fingerprint) -> str:
    """What of `database` is not as in `fingerprint`, in words; empty when nothing is.

    Names and sizes are compared. What the tables hold the engine's own checksums guard, and each
    run reads back what was written. Raises OSError.
    """
    noted = fingerprint.files
    files = {file.name: file.stat().st_size for file in database_files(database)}
    for name in sorted(noted.keys() | files.keys()):
        if name not in files:
            return f"{name} is missing"
        if name not in noted:
            return f"{name} was added"
        if files[name] != noted[name]:
            return f"{name} has {files[name]} bytes instead of {noted[name]}"
    return ""


# --- Copies of a closed database that share its tables.
#
# Tables are hard-linked, everything else is copied. That is what RocksDB's own checkpoint does
# (`rocksdb/utilities/checkpoint.h`: "SST and blob files are hard linked [...] other required files
# (like MANIFEST) are always copied"); but a checkpoint is made by an open database, and opening the
# golden one would write a new MANIFEST, log and OPTIONS file into it. The database here is closed,
# all its data in tables, and so the same set of files can be taken without the engine.
#
# Neither engine writes to a table once it is complete: they open it to read, and delete it. LevelDB
# calls a table "immutable and persistent" (`leveldb/table.h`). RocksDB had two exceptions, neither
# of which is met here: `write_global_seqno` of ingested files, deprecated since 5.16
# (`rocksdb/options.h`), and deletion at a limited rate, which shortens a file only while it has one
# link (`file/delete_scheduler.cc`). A manifest and a log may be gone on with
# (`reuse_manifest_on_open`, `recycle_log_file_num`, LevelDB's `reuse_logs`), and are copied for
# that.

TABLE_SUFFIXES = frozenset({".sst", ".ldb", ".blob"})
# No links between these two places: another file system, one without links, too many links of one
# file, or a kernel that refuses links to files of others.
_NO_LINK = frozenset(
    {errno.EXDEV, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EPERM, errno.EACCES}
)


def clone(database: Path, to: Path, *, link: bool = True) -> str:
    """Make a copy of the closed `database` in the new folder `to`.

    Tables are linked unless `link` is false. Returns why they were copied all the same, empty when
    they were not. Raises OSError.
    """
    to.mkdir()
    why = ""
    for file in database_files(database):
        target = to / file.name
        if link and file.suffix in TABLE_SUFFIXES and not why:
            try:
                target.hardlink_to(file)
                continue
            except OSError as error:
                if error.errno not in _NO_LINK:
                    raise
                why = f"tables were copied, not linked: {error.strerror}"
        shutil.copyfile(file, target)
    return why


# --- Golden databases on the disk: where they are, what they hold, how one is removed.
#
# databases/                the cache; marked as ours, in a folder that one process has locked
#   <digest>.*.building/    one that is being made; left behind, it is nothing
#   <digest>/
#     .lsmtune-owned        the marker, written first
#     db/                   the closed database, tables read-only
#     ledger                what the load noted of the keys it wrote
#     golden.json           the key in full, the fingerprint, when it was made
#     ready                 written last; its time is that of the last use
#
# A kill or a power failure at any moment leaves a golden database whole or without `ready`. It is
# made under another name, synced, and renamed; it is unmade by deleting `ready` before all else.


FACTS = "golden.json"
READY = "ready"
BUILDING = ".building"


@dataclass(frozen=True)
class Facts:
    """What `golden.json` says beside the key.

    `disk_bytes` is the space that the files take on the disk.
    """

    fingerprint: Fingerprint
    disk_bytes: int
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

    def damage(self) -> str:
        """What became of its files since it was made, in words; empty when nothing did."""
        try:
            if not self.ledger.is_file():
                return f"{LEDGER} is missing"
            return difference(self.database, self.facts.fingerprint)
        except OSError as error:
            return f"cannot be read: {error.strerror}"


def find_golden(path: Path) -> Golden | None:
    """The golden database at `path`; None when there is no whole one. Raises OSError."""
    if not (is_owned(path) and (path / READY).is_file()):
        return None
    try:
        stored = json.loads((path / FACTS).read_text(encoding="utf-8"))
        return Golden(path, decode(Facts, stored))
    except (FileNotFoundError, ValueError, TypeError, RecursionError):
        # Damaged: the next one who needs it makes it again.
        return None


def remove_golden(path: Path) -> None:
    """Delete the golden database at `path`, or what is left of it.

    Raises OSError, and LsmtuneError for what is not ours.
    """
    with contextlib.suppress(FileNotFoundError):
        if is_owned(path):
            (path / READY).unlink()
            sync(path)
    remove_owned(path, GOLDEN, path.parent)


def goldens_in(directory: Path) -> Iterator[Golden]:
    """The whole golden databases in the cache `directory`. Raises OSError."""
    for path in sorted(directory.iterdir()):
        golden = None if path.suffix == BUILDING else find_golden(path)
        if golden is not None:
            yield golden
