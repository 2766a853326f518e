"""Engine libraries: registered, of lsmtune's wheel, of the distribution; which one is used.

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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lsmtune.engines.library import (
    BUILT_IN_ENGINES,
    ENGINE_KINDS,
    PLUGIN_ENGINES,
    Library,
    PluginEngine,
    build_type,
    detect_engine,
    engines_folder,
    file_sha256,
    packaged_file,
    snappy_beside,
    version_key,
)
from lsmtune.errors import InputError, LsmtuneError, by_name, check_name
from lsmtune.machine.files import file_lock, write_whole
from lsmtune.model.codec import ProtocolError, encode, read
from lsmtune.model.config import Build, EngineIdentity

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Entry:
    """A registered library, and the file as it was when it was registered."""

    engine: str
    version: str | None
    path: str
    build: Build
    compressions: tuple[str, ...]
    origin: str
    sha256: str
    file_bytes: int
    modified_ns: int

    @property
    def library(self) -> Library:
        """The library."""
        identity = EngineIdentity(self.engine, self.version, self.path, self.build)
        return Library(Path(self.path), identity, self.compressions, self.origin)

    def trouble(self) -> str:
        """What became of the file since it was registered, and the next step; empty for nothing.

        Reads the whole file only when its size agrees and its time does not.
        """
        path = Path(self.path)
        try:
            status = path.stat()
        except OSError:
            return f"is gone; next step: lsmtune engines remove {self.path}"
        same = status.st_size == self.file_bytes and (
            status.st_mtime_ns == self.modified_ns or file_sha256(path) == self.sha256
        )
        return "" if same else f"has changed; next step: lsmtune engines add {self.path}"


class Registry:
    """The registered libraries, in the order in which they were registered.

    Every method reads the file afresh: an object of this class holds no state but the path.
    """

    def __init__(self) -> None:
        self.path = engines_folder() / "registry.json"
        self._locked_by = self.path.with_suffix(".lock")  # locking it makes the folder, too

    def entries(self) -> tuple[Entry, ...]:
        """All entries; none when there is no registry yet.

        Raises LsmtuneError when the file cannot be read or is not a registry of this format.
        """
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise LsmtuneError(f"{self.path}: {error.strerror}") from error
        try:
            document = json.loads(content)
            version, items = document["format_version"], document["libraries"]
            if version == FORMAT_VERSION:
                return tuple(read(Entry, item, f"libraries[{n}]") for n, item in enumerate(items))
        except (ValueError, KeyError, TypeError, RecursionError, ProtocolError) as error:
            why = f"not an engine registry ({type(error).__name__}: {error})"
            raise LsmtuneError(f"{self.path}: {why}; move it away and install again") from error
        why = f"format version {version}, this lsmtune reads {FORMAT_VERSION}"
        raise LsmtuneError(f"{self.path}: {why}; use the lsmtune that wrote it")

    def present(self) -> list[Library]:
        """The libraries whose files are there, unchanged."""
        return [entry.library for entry in self.entries() if not entry.trouble()]

    def add(self, library: Library) -> None:
        """Register `library` as its file is now; replaces an entry of the same path.

        Raises OSError when the library cannot be read or the registry cannot be written.
        """
        status, identity = library.path.stat(), library.identity
        entry = Entry(
            engine=identity.name,
            version=identity.version,
            path=str(library.path),
            build=identity.build,
            compressions=library.compressions,
            origin=library.origin,
            sha256=file_sha256(library.path),
            file_bytes=status.st_size,
            modified_ns=status.st_mtime_ns,
        )
        with file_lock(self._locked_by):
            self._write([*(e for e in self.entries() if e.path != entry.path), entry])

    def remove(self, path: Path) -> Library:
        """Forget the library at `path`; its file stays. InputError when it is not registered."""
        with file_lock(self._locked_by):
            entries = {entry.path: entry for entry in self.entries()}
            if str(path) not in entries:
                allowed = ", ".join(entries) or "nothing is registered"
                raise InputError("engines remove", "PATH", found=str(path), allowed=allowed)
            removed = entries.pop(str(path))
            self._write(list(entries.values()))
        return removed.library

    def _write(self, entries: list[Entry]) -> None:
        document = {"format_version": FORMAT_VERSION, "libraries": encode(entries)}
        write_whole(self.path, json.dumps(document, indent=2) + "\n")


# --- of lsmtune's own wheel

PACKAGED = "packaged with lsmtune"


def packaged_libraries(engine: str) -> list[Library]:
    """The library of `engine` in the wheel that lsmtune was installed from; none in a checkout.

    What makes a wheel puts release builds into it.
    """
    path = packaged_file(f"lib{engine}.so")
    if path is None or not path.is_file():
        return []
    build = Build.OWN_SNAPPY if snappy_beside(path) else Build.RELEASE
    return [Library.unprobed(path, engine, PACKAGED, build)]


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


def distribution_libraries(engine: str) -> list[Library]:
    """Libraries of `engine` that the system's loader knows, each file once.

    Works without the `-dev` package: it looks for versioned names (`librocksdb.so.7.8`), not
    for the development symlink.
    """
    paths: list[Path] = []
    ldconfig = next((place for place in _LDCONFIG_PLACES if Path(place).exists()), None)
    if ldconfig is not None:
        done = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False)
        # A system without a loader cache says so with a status; its folders are still read.
        paths += parse_loader_cache(done.stdout, engine) if done.returncode == 0 else []
    for template in _KNOWN_FOLDERS:
        folder = Path(template.format(machine=platform.machine()))
        paths += sorted(folder.glob(f"lib{engine}.so*"))
    libraries: dict[Path, Library] = {}
    for path in paths:
        real = path.resolve()
        if real not in libraries and real.is_file():
            build = build_type(real, engine)
            libraries[real] = Library.unprobed(path, engine, DISTRIBUTION, build)
    return list(libraries.values())


def parse_loader_cache(text: str, engine: str) -> list[Path]:
    """Paths of the engine's libraries in what `ldconfig -p` prints."""
    line = re.compile(rf"^\s*lib{engine}\.so(?:\.\S+)? \([^)]*\) => (/\S+)\s*$")
    return [Path(m.group(1)) for m in map(line.match, text.splitlines()) if m]


# --- which one to use


def find_library(name: str, explicit: Path | None = None) -> Library:
    """The library to use for engine `name`: `explicit` if given, else the default one.

    The default is chosen by, in this order: a release build before any other; a registered one
    before the wheel's, and this before the distribution's; the newest version; the one registered
    last. Registered files that vanished or changed are passed over (`registry_warnings` tells).

    Raises InputError for an unknown engine, an engine that has no library (built into the
    driver), a path that is no library of that engine, and when none is known.
    """
    if name in BUILT_IN_ENGINES:
        why = "is built into the driver and has no library"
        raise InputError("--engine", found=name, why=why)
    if explicit is not None:
        path = explicit.expanduser().absolute()
        engine = detect_engine(path, "--library")
        if engine != name:
            allowed, why = f"a {name} library, or --engine {engine}", f"is a {engine} library"
            raise InputError("--library", found=str(path), why=why, allowed=allowed)
        for library in Registry().present():
            if library.path == path:
                return library
        return Library.unprobed(path, name, f"user: {path}", build_type(path, name))
    if name not in ENGINE_KINDS and name in PLUGIN_ENGINES:
        return _plugin_library(by_name(PLUGIN_ENGINES, name, "--engine"))
    check_name(name, ENGINE_KINDS, "--engine")
    candidates = _known_libraries(name)
    if not candidates:
        lost = "; ".join(registry_warnings(name))
        install = f"lsmtune engines install {name}, or lsmtune engines add PATH"
        why = f"no {name} library is known{f' ({lost})' if lost else ''}; next step: {install}"
        raise InputError("--engine", found=name, why=why)
    return candidates[0]


def list_libraries() -> list[Library]:
    """Every usable library: engine by engine, the default of each first."""
    known = [library for name in ENGINE_KINDS for library in _known_libraries(name)]
    for plugin in PLUGIN_ENGINES.usable().values():
        with suppress(InputError):  # `lsmtune plugins` and who asks for it are told
            known.append(_plugin_library(plugin))
    return known


def _plugin_library(plugin: PluginEngine) -> Library:
    """The library of a plugin's engine. Raises InputError where it is none."""
    path, origin = plugin.library(), PLUGIN_ENGINES.origin(plugin.name)
    if (name := detect_engine(path, f"plugin {plugin.name}")) != plugin.name:
        raise InputError(f"plugin {plugin.name}", found=str(path), why=f"is a {name} library")
    return Library.unprobed(path, plugin.name, f"plugin: {origin}")


def _known_libraries(engine: str) -> list[Library]:
    def rank(library: Library) -> tuple[bool, int, tuple[int, ...]]:
        identity = library.identity
        nearness = {DISTRIBUTION: 0, PACKAGED: 1}.get(library.origin, 2)
        return identity.build.is_release, nearness, version_key(identity.version)

    registered = [x for x in Registry().present() if x.identity.name == engine]
    paths = {library.path.resolve() for library in registered}
    present = [*packaged_libraries(engine), *distribution_libraries(engine)]
    unregistered = [library for library in present if library.path.resolve() not in paths]
    # The sort is stable, so of two equals the one registered last comes first.
    return sorted([*reversed(registered), *unregistered], key=rank, reverse=True)


def registry_warnings(name: str | None = None) -> tuple[str, ...]:
    """What is wrong with registered files (of engine `name`), each with the next step."""
    return tuple(
        f"registered {entry.engine} library {entry.path} {trouble}"
        for entry in Registry().entries()
        if name in (None, entry.engine) and (trouble := entry.trouble())
    )


def library_warnings(library: Library) -> tuple[str, ...]:
    """What a user should know before trusting numbers from `library`, each with the next step."""
    name, build = library.identity.name, library.identity.build
    install = f"lsmtune engines install {name}"
    problems = {
        Build.ASSERTIONS_ON: (
            "was built with assertions on and is slower than a release build",
            install,
        ),
        Build.SLOW_SNAPPY: (
            "holds a Snappy that was compiled without optimisation, against which every other "
            "compression seems better than it is",
            "take the library of `make setup` or of the wheel, unless you deploy this one",
        ),
        Build.UNKNOWN: ("does not tell whether it is a release build", install),
    }
    if build not in problems or name not in ENGINE_KINDS:
        return ()
    what, step = problems[build]
    return (f"{name} library {library.path} ({library.origin}) {what}; next step: {step}",)
