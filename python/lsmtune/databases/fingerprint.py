"""The fingerprint of a closed database: its files, and how they lie in the levels of its tree."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from lsmtune.records.measurement import PhaseMeasurement

# What an engine makes anew whenever it opens a database: its lock, and its log of events.
_MADE_ANEW = re.compile(r"LOCK|LOG(\.old.*)?")


@dataclass(frozen=True)
class FileFact:
    """One file of a database: `blake2b` is the digest of its bytes, in hexadecimal."""

    name: str
    bytes: int
    blake2b: str


@dataclass(frozen=True)
class Fingerprint:
    """The files of a database, by name; files and bytes of each level, None where not known."""

    files: tuple[FileFact, ...]
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
    return Fingerprint(
        tuple(
            FileFact(file.name, file.stat().st_size, _blake2b(file))
            for file in database_files(database)
        ),
        settled.files_per_level if settled else None,
        settled.bytes_per_level if settled else None,
    )


def difference(database: Path, fingerprint: Fingerprint, *, checksums: bool) -> str:
    """What of `database` is not as in `fingerprint`, in words; empty when nothing is.

    Names and sizes are compared, and every byte with `checksums`. Raises OSError.
    """
    noted = {fact.name: fact for fact in fingerprint.files}
    found = {file.name: file for file in database_files(database)}
    for name in sorted(noted.keys() | found.keys()):
        if name not in found:
            return f"{name} is missing"
        if name not in noted:
            return f"{name} was added"
        size = found[name].stat().st_size
        if size != noted[name].bytes:
            return f"{name} has {size} bytes instead of {noted[name].bytes}"
        if checksums and _blake2b(found[name]) != noted[name].blake2b:
            return f"the content of {name} was changed"
    return ""


def _blake2b(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
