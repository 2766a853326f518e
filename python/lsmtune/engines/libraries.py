"""Engine libraries: those registered, those of the distribution, and which one a command uses.

The registry is a JSON file that remembers libraries and what was found out about them. It is
written whole to a temporary file and renamed, under a lock, so that two commands at once lose
nothing and a reader never sees half a file.

Format versions:
  1  {"format_version": 1, "libraries": [{engine, version, path, build, compressions, origin,
     sha256, file_bytes, modified_ns}]}
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lsmtune.engines.library import (
    BUILT_IN_ENGINES,
    ENGINE_KINDS,
    EngineKind,
    Library,
    build_type,
    detect_engine,
    engine_kind,
    engines_folder,
    file_sha256,
    version_key,
)
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.machine.files import file_lock, write_whole
from lsmtune.model.config import Build, EngineIdentity

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
            status = self.library.path.stat()
        except OSError:
            return FileState.MISSING
        if status.st_size != self.file_bytes:
            return FileState.CHANGED
        if status.st_mtime_ns == self.modified_ns:
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
                version = document["format_version"]
                why = f"format version {version}, this lsmtune reads {FORMAT_VERSION}"
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
            removed = [e for e in entries if e.library.path == path]
            if not removed:
                allowed = ", ".join(str(e.library.path) for e in entries) or "nothing is registered"
                raise InputError("engines remove", "PATH", found=str(path), allowed=allowed)
            self._write([e for e in entries if e.library.path != path])
        return removed[0]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(self.path.with_suffix(".lock")):
            yield

    def _write(self, entries: list[Entry]) -> None:
        document = {
            "format_version": FORMAT_VERSION,
            "libraries": [_to_json(entry) for entry in entries],
        }
        write_whole(self.path, json.dumps(document, indent=2) + "\n")


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


# --- of the distribution

DISTRIBUTION = "distribution package"

# The cache of the dynamic loader does not list folders that only the loader's default path
# covers; these are Debian's and Fedora's.
_KNOWN_FOLDERS = (
    "/usr/lib/{machine}-linux-gnu",
    "/lib/{machine}-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
)
_LDCONFIG_PLACES = ("/sbin/ldconfig", "/usr/sbin/ldconfig")


def distribution_libraries(kind: EngineKind) -> list[Library]:
    """Libraries of this engine that the system's loader knows, each file once.

    Works without the `-dev` package: it looks for versioned names (`librocksdb.so.7.8`), not
    for the development symlink.
    """
    libraries: dict[Path, Library] = {}
    for path in (*_loader_cache(kind), *_known_folders(kind)):
        real = path.resolve()
        if real in libraries or not real.is_file():
            continue
        build = build_type(real, kind.name)
        identity = EngineIdentity(kind.name, None, str(path), build)
        libraries[real] = Library(path, identity, (), DISTRIBUTION)
    return list(libraries.values())


def parse_loader_cache(text: str, kind: EngineKind) -> list[Path]:
    """Paths of the engine's libraries in what `ldconfig -p` prints."""
    line = re.compile(rf"^\s*{re.escape(kind.soname_stem)}\.so(?:\.\S+)? \([^)]*\) => (/\S+)\s*$")
    return [Path(m.group(1)) for m in map(line.match, text.splitlines()) if m]


def _loader_cache(kind: EngineKind) -> list[Path]:
    for place in _LDCONFIG_PLACES:
        if Path(place).exists():
            done = subprocess.run([place, "-p"], capture_output=True, text=True, check=False)
            # A system without a loader cache says so with a status; its folders are still read.
            return parse_loader_cache(done.stdout, kind) if done.returncode == 0 else []
    return []


def _known_folders(kind: EngineKind) -> Iterator[Path]:
    for template in _KNOWN_FOLDERS:
        folder = Path(template.format(machine=platform.machine()))
        yield from sorted(folder.glob(f"{kind.soname_stem}.so*"))


# --- which one to use


def find_library(name: str, explicit: Path | None = None) -> Library:
    """The library to use for engine `name`: `explicit` if given, else the default one.

    The default is chosen by, in this order: a release build before any other; a registered one
    before the distribution's; the newest version; the one registered last. Registered files that
    vanished or changed are passed over (`registry_warnings` tells).

    Raises InputError for an unknown engine, an engine that has no library (built into the
    driver), a path that is no library of that engine, and when none is known.
    """
    if name in BUILT_IN_ENGINES:
        why = "is built into the driver and has no library"
        raise InputError("--engine", found=name, why=why)
    kind = engine_kind(name, "--engine")
    if explicit is not None:
        return _explicit(kind, explicit)
    candidates = _known_libraries(kind)
    if not candidates:
        lost = "; ".join(registry_warnings(name))
        install = f"lsmtune engines install {name}, or lsmtune engines add PATH"
        why = f"no {name} library is known{f' ({lost})' if lost else ''}; next step: {install}"
        raise InputError("--engine", found=name, why=why)
    return candidates[0]


def list_libraries() -> list[Library]:
    """Every usable library: engine by engine, the default of each first."""
    return [library for kind in ENGINE_KINDS.values() for library in _known_libraries(kind)]


def registry_warnings(name: str | None = None) -> tuple[str, ...]:
    """What is wrong with registered files (of engine `name`), each with the next step."""
    warnings = []
    for entry in Registry().entries():
        engine, path = entry.library.identity.name, entry.library.path
        if name not in (None, engine):
            continue
        match entry.state():
            case FileState.MISSING:
                step = f"lsmtune engines remove {path}"
                warnings.append(f"registered {engine} library {path} is gone; next step: {step}")
            case FileState.CHANGED:
                step = f"lsmtune engines add {path}"
                warnings.append(
                    f"registered {engine} library {path} has changed; next step: {step}"
                )
            case FileState.PRESENT:
                pass
    return tuple(warnings)


def library_warnings(library: Library) -> tuple[str, ...]:
    """What a user should know before trusting numbers from `library`, each with the next step."""
    name, build = library.identity.name, library.identity.build
    step = f"next step: lsmtune engines install {name}"
    if build is Build.ASSERTIONS_ON:
        why = "was built with assertions on and is slower than a release build"
        return (f"{name} library {library.path} ({library.origin}) {why}; {step}",)
    if build is Build.UNKNOWN:
        why = "does not tell whether it is a release build"
        return (f"{name} library {library.path} ({library.origin}) {why}; {step}",)
    return ()


def _explicit(kind: EngineKind, path: Path) -> Library:
    path = path.expanduser().absolute()
    detected = detect_engine(path, "--library")
    if detected.name != kind.name:
        allowed = f"a {kind.name} library, or --engine {detected.name}"
        why = f"is a {detected.name} library"
        raise InputError("--library", found=str(path), why=why, allowed=allowed)
    for entry in Registry().entries():
        if entry.library.path == path and entry.is_present():
            return entry.library
    identity = EngineIdentity(kind.name, None, str(path), build_type(path, kind.name))
    return Library(path, identity, (), f"user: {path}")


def _known_libraries(kind: EngineKind) -> list[Library]:
    registered = [
        entry.library
        for entry in Registry().entries()
        if entry.library.identity.name == kind.name and entry.is_present()
    ]
    paths = {library.path.resolve() for library in registered}
    others = [x for x in distribution_libraries(kind) if x.path.resolve() not in paths]
    # The sort is stable, so of two equals the one registered last comes first.
    last_first = [*reversed(registered), *others]
    return sorted(last_first, key=_rank, reverse=True)


def _rank(library: Library) -> tuple[bool, bool, tuple[int, ...]]:
    identity = library.identity
    is_registered = library.origin != DISTRIBUTION
    return (identity.build is Build.RELEASE, is_registered, version_key(identity.version))
