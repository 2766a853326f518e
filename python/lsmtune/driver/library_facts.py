"""Engine libraries with the facts that only the driver can tell: version and compressions."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lsmtune.driver.conversation import find_driver
from lsmtune.driver.native import probe
from lsmtune.engines.libraries import (
    Registry,
    find_library,
    library_warnings,
    list_libraries,
    registry_warnings,
)
from lsmtune.engines.library import (
    BUILT_IN_ENGINES,
    ENGINE_KINDS,
    ENGINE_NAMES,
    Library,
    build_type,
    detect_engine,
    logs_folder,
    packaged_file,
    snappy_place,
)
from lsmtune.engines.steps import unregistered
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.machine.files import file_lock, temporary_folder, write_whole
from lsmtune.machine.findings import Finding, Level
from lsmtune.model.config import Build, EngineIdentity


def with_facts(library: Library, driver: Path) -> Library:
    """`library` with its version and compressions, asked of the driver when not yet known.

    Raises InputError when it is not the engine it is taken for; LsmtuneError when it cannot be
    loaded.
    """
    if library.identity.version is not None:
        return library
    with temporary_folder("probe") as directory:
        probed = probe(driver, library.identity.name, library.path, directory)
    identity = dataclasses.replace(library.identity, version=probed.engine.version)
    return dataclasses.replace(library, identity=identity, compressions=probed.compressions)


def examined(fetched: Library, driver: Path) -> Library:
    """A fetched library with its facts.

    Raises what `detect_engine` and `with_facts` raise, and LsmtuneError when it lacks a compression
    that its recipe promised.
    """
    detect_engine(fetched.path, fetched.origin)
    engine = fetched.identity.name
    identity = dataclasses.replace(fetched.identity, build=build_type(fetched.path, engine))
    library = with_facts(dataclasses.replace(fetched, identity=identity), driver)
    lacks = _missing(fetched, library)
    if lacks:
        raise LsmtuneError(
            f"{engine} ({fetched.origin}) was made without {', '.join(lacks)} and is "
            f"not installed; next step: read the log in {logs_folder()}"
        )
    return library


def _missing(fetched: Library, library: Library) -> list[str]:
    return [name for name in fetched.compressions if name not in library.compressions]


# As `make setup` and a wheel of this machine name it, and a wheel that brings RocksDB.
_SNAPPY = ("lsmtune-snappy.so", "librocksdb.snappy.so")


def give_fast_snappy(library: Path, driver: Path) -> None:
    """Lay lsmtune's Snappy beside a library whose own was compiled without optimisation.

    Only for releases that lsmtune installs, which stand for the library that will be deployed; what
    the user names is measured as it is. Nothing happens where that Snappy is not built: the
    library's build then tells, and `library_warnings`.
    """
    place, snappies = snappy_place(library), (Build.SLOW_SNAPPY, Build.OWN_SNAPPY)
    if place is None or build_type(library, "rocksdb") not in snappies:
        return
    folders = (driver.parent, Path(sys.executable).parent)
    places = [*(folder / _SNAPPY[0] for folder in folders), *map(packaged_file, _SNAPPY)]
    built = next((path for path in places if path and path.is_file()), None)
    if built is None:
        return
    with file_lock(library.parent / ".snappy.lock"):
        content = built.read_bytes()
        if not place.is_file() or place.read_bytes() != content:
            write_whole(place, content)


def register_fetched(fetched: Library, driver: Path) -> Library:
    """Register a fetched library; at once when it is registered already.

    Raises what `examined` raises; then nothing is registered.
    """
    build = build_type(fetched.path, fetched.identity.name)
    for known in Registry().present():
        is_this = (known.path, known.origin) == (fetched.path, fetched.origin)
        if is_this and known.identity.build is build and not _missing(fetched, known):
            return known
    library = examined(fetched, driver)
    Registry().add(library)
    return library


def chosen_engine(
    name: str, library: Path | None, driver: Path
) -> tuple[EngineIdentity, tuple[str, ...]]:
    """The engine `name` from `library`, or from the best one known; and warnings for the user.

    Raises InputError when there is none, or when it is not that engine.
    """
    if name not in ENGINE_NAMES and (library is None or name != _own_name(library)):
        raise InputError("--engine", found=name, known=ENGINE_NAMES)
    if name in BUILT_IN_ENGINES:
        if library is not None:
            why = f"{name} is built into the driver and has no library"
            raise InputError("--library", found=str(library), why=why)
        return EngineIdentity(name), ()
    chosen = with_facts(find_library(name, library), driver)
    return chosen.identity, library_warnings(chosen)


def _own_name(library: Path) -> str:
    """The engine that a library says it is; empty for one that is none."""
    try:
        return detect_engine(library.expanduser(), "--library")
    except InputError:
        return ""


@dataclass(frozen=True)
class Listing:
    """Every usable library, the default of each engine first, and what is wrong."""

    libraries: tuple[Library, ...]
    warnings: tuple[str, ...]

    def is_default(self, library: Library) -> bool:
        """Whether commands use this library unless told otherwise."""
        name = library.identity.name
        return next(x for x in self.libraries if x.identity.name == name) is library


def known_libraries() -> Listing:
    """Every usable library with its facts; those that cannot be probed are warned about."""
    registered = {entry.path for entry in Registry().entries()}
    libraries, warnings = [], [*registry_warnings(), *unregistered(registered)]
    try:
        driver = find_driver()
    except InputError as error:
        return Listing(tuple(list_libraries()), (*warnings, str(error)))
    for library in list_libraries():
        try:
            libraries.append(with_facts(library, driver))
        except LsmtuneError as error:
            warnings.append(f"left out: {error}")
    listing = Listing(tuple(libraries), ())
    for library in filter(listing.is_default, libraries):
        warnings += library_warnings(library)
    return dataclasses.replace(listing, warnings=tuple(warnings))


def driver_finding() -> Finding:
    """Whether there is a driver."""
    try:
        return Finding(Level.OK, "driver", str(find_driver()))
    except InputError as error:
        return Finding(Level.PROBLEM, "driver", str(error), "make setup")


def engine_findings(listing: Listing) -> Iterator[Finding]:
    """The library that each engine would run with, and what is wrong with others."""
    for name in ENGINE_KINDS:
        step = f"lsmtune engines install {name}"
        library = next((x for x in listing.libraries if x.identity.name == name), None)
        if library is None:
            yield Finding(Level.WARNING, name, "no library is known", step)
            continue
        identity = library.identity
        facts = f"{identity.version or 'version not known'}, {identity.build.value}, "
        facts += f"compressions {' '.join(library.compressions) or 'not known'}, {library.path}"
        warned = library_warnings(library)
        level = Level.WARNING if warned else Level.OK
        yield Finding(level, name, facts, step if warned else "")
        if library.compressions == ("none",):
            why = "this library compresses nothing, so measurements without compression only"
            yield Finding(Level.NOTE, name, why, step)
    shown = [w for x in listing.libraries for w in library_warnings(x)]
    for warning in listing.warnings:
        if warning not in shown:
            text, _, step = warning.partition("; next step: ")
            yield Finding(Level.WARNING, "engines", text, step)
