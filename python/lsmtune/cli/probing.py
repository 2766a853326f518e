"""Ask the driver what an engine library is: the step between a file and its registry entry."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

from lsmtune.engines.build import build_type
from lsmtune.engines.libraries import Library, find_library, library_warnings
from lsmtune.engines.registry import Registry
from lsmtune.engines.staging import Fetched
from lsmtune.records.engine import EngineIdentity
from lsmtune.runners.native import probe


def with_facts(library: Library, driver: Path) -> Library:
    """`library` with its version and compressions, asked of the driver when not yet known.

    Raises InputError when it is not the engine it is taken for; LsmtuneError when it cannot be
    loaded.
    """
    if library.identity.version is not None:
        return library
    with tempfile.TemporaryDirectory(prefix="lsmtune-probe-") as directory:
        found = probe(driver, library.identity.name, library.path, Path(directory))
    identity = dataclasses.replace(library.identity, version=found.identity.version)
    return dataclasses.replace(library, identity=identity, compressions=found.compressions)


def register_fetched(fetched: Fetched, driver: Path) -> Library:
    """Probe a fetched library and register it; at once when it is registered already.

    Raises what `with_facts` raises, and then registers nothing.
    """
    for entry in Registry().entries():
        known = entry.library
        if (known.path, known.origin) == (fetched.path, fetched.origin) and entry.is_present():
            return known
    build = build_type(fetched.path, fetched.engine_name)
    identity = EngineIdentity(fetched.engine_name, None, str(fetched.path), build)
    library = with_facts(Library(fetched.path, identity, (), fetched.origin), driver)
    return Registry().add(library).library


def choose_library(
    name: str, explicit: Path | None, driver: Path
) -> tuple[Library, tuple[str, ...]]:
    """The library a command measures, with its facts, and warnings for the user.

    Raises what `find_library` and `with_facts` raise.
    """
    library = with_facts(find_library(name, explicit), driver)
    return library, library_warnings(library)
