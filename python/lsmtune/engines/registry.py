"""The registry: a JSON file that remembers engine libraries and what was found out about them.

It is written whole to a temporary file and renamed, under a lock, so that two commands at once
lose nothing and a reader never sees half a file.

Format versions:
  1  {"format_version": 1, "libraries": [{engine, version, path, build, compressions, origin,
     sha256, file_bytes, modified_ns}]}
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lsmtune.engines.home import engines_folder
from lsmtune.engines.library import Library, file_sha256
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.records.engine import Build, EngineIdentity

FORMAT_VERSION = 1


class FileState(StrEnum):
    """What became of a registered file."""

    PRESENT = "present"
    MISSING = "missing"
    CHANGED = "changed"


@dataclass(frozen=True)
class Entry:
    """A registered library, and the file as it was when it was registered."""

    library: Library
    sha256: str
    file_bytes: int
    modified_ns: int

    def state(self) -> FileState:
        """Whether the file is still the one that was registered.

        Reads the whole file only when its size agrees and its time does not.
        """
        try:
            found = self.library.path.stat()
        except OSError:
            return FileState.MISSING
        if found.st_size != self.file_bytes:
            return FileState.CHANGED
        if found.st_mtime_ns == self.modified_ns:
            return FileState.PRESENT
        same = file_sha256(self.library.path) == self.sha256
        return FileState.PRESENT if same else FileState.CHANGED

    def is_present(self) -> bool:
        """Whether the file is there, unchanged."""
        return self.state() is FileState.PRESENT


class Registry:
    """The registered libraries, in the order in which they were registered.

    Every method reads the file afresh: an object of this class holds no state but the path.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.path = (folder or engines_folder()) / "registry.json"

    def entries(self) -> tuple[Entry, ...]:
        """All entries; none when there is no registry yet.

        Raises LsmtuneError when the file cannot be read or is not a registry of this format.
        """
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise LsmtuneError(f"{self.path}: {error.strerror}") from error
        try:
            document = json.loads(text)
            if document["format_version"] != FORMAT_VERSION:
                found = document["format_version"]
                why = f"format version {found}, this lsmtune reads {FORMAT_VERSION}"
                raise LsmtuneError(f"{self.path}: {why}; use the lsmtune that wrote it")
            return tuple(_from_json(item) for item in document["libraries"])
        except (ValueError, KeyError, TypeError) as error:
            why = f"not an engine registry ({type(error).__name__}: {error})"
            raise LsmtuneError(f"{self.path}: {why}; move it away and install again") from error

    def add(self, library: Library) -> Entry:
        """Register `library` as its file is now; replaces an entry of the same path.

        Raises OSError when the library cannot be read or the registry cannot be written.
        """
        status = library.path.stat()
        sha256 = file_sha256(library.path)
        entry = Entry(library, sha256, status.st_size, status.st_mtime_ns)
        with self._locked():
            kept = [e for e in self.entries() if e.library.path != library.path]
            self._write([*kept, entry])
        return entry

    def remove(self, path: Path) -> Entry:
        """Forget the library at `path`; its file stays. InputError when it is not registered."""
        with self._locked():
            entries = self.entries()
            found = [e for e in entries if e.library.path == path]
            if not found:
                allowed = ", ".join(str(e.library.path) for e in entries) or "nothing is registered"
                raise InputError("engines remove", "PATH", found=str(path), allowed=allowed)
            self._write([e for e in entries if e.library.path != path])
        return found[0]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write(self, entries: list[Entry]) -> None:
        document = {
            "format_version": FORMAT_VERSION,
            "libraries": [_to_json(entry) for entry in entries],
        }
        with tempfile.NamedTemporaryFile(
            "w", dir=self.path.parent, prefix="registry.", suffix=".tmp", delete=False
        ) as file:
            json.dump(document, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(self.path)


def _to_json(entry: Entry) -> dict[str, object]:
    library = entry.library
    return {
        "engine": library.identity.name,
        "version": library.identity.version,
        "path": str(library.path),
        "build": library.identity.build.value,
        "compressions": list(library.compressions),
        "origin": library.origin,
        "sha256": entry.sha256,
        "file_bytes": entry.file_bytes,
        "modified_ns": entry.modified_ns,
    }


def _from_json(item: dict[str, object]) -> Entry:
    path = str(item["path"])
    version = item["version"]
    compressions = item["compressions"]
    if not isinstance(compressions, list):
        raise TypeError("compressions is not a list")
    identity = EngineIdentity(
        name=str(item["engine"]),
        version=None if version is None else str(version),
        library=path,
        build=Build(str(item["build"])),
    )
    library = Library(Path(path), identity, tuple(map(str, compressions)), str(item["origin"]))
    file_bytes, modified_ns = item["file_bytes"], item["modified_ns"]
    if not isinstance(file_bytes, int) or not isinstance(modified_ns, int):
        raise TypeError("file_bytes or modified_ns is not a whole number")
    return Entry(library, str(item["sha256"]), file_bytes, modified_ns)
