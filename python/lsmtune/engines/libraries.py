"""Which engine libraries there are, and which one a command uses."""

from __future__ import annotations

from pathlib import Path

from lsmtune.engines.build import build_type, detect_engine
from lsmtune.engines.distribution import ORIGIN as DISTRIBUTION
from lsmtune.engines.distribution import distribution_libraries
from lsmtune.engines.library import Library, version_key
from lsmtune.engines.names import BUILT_IN_ENGINES, ENGINE_KINDS, EngineKind, engine_kind
from lsmtune.engines.registry import FileState, Registry
from lsmtune.errors import InputError
from lsmtune.records.engine import Build, EngineIdentity

__all__ = ["Library", "find_library", "library_warnings", "list_libraries", "registry_warnings"]


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
    found = []
    for entry in Registry().entries():
        engine, path = entry.library.identity.name, entry.library.path
        if name not in (None, engine):
            continue
        match entry.state():
            case FileState.MISSING:
                step = f"lsmtune engines remove {path}"
                found.append(f"registered {engine} library {path} is gone; next step: {step}")
            case FileState.CHANGED:
                step = f"lsmtune engines add {path}"
                found.append(f"registered {engine} library {path} has changed; next step: {step}")
            case FileState.PRESENT:
                pass
    return tuple(found)


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
    found = detect_engine(path, "--library")
    if found.name != kind.name:
        allowed = f"a {kind.name} library, or --engine {found.name}"
        why = f"is a {found.name} library"
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
