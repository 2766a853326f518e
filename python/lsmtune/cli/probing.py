"""Ask the driver what an engine library is: the step between a file and its registry entry."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

from lsmtune.engines.build import build_type
from lsmtune.engines.home import logs_folder
from lsmtune.engines.libraries import Library, find_library, library_warnings
from lsmtune.engines.registry import Registry
from lsmtune.engines.staging import Fetched, remove_owned
from lsmtune.errors import LsmtuneError
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

    Raises what `with_facts` raises, and LsmtuneError when the library lacks a compression that its
    recipe promised. Then nothing is registered, and what the recipe made is removed.
    """
    for entry in Registry().entries():
        known = entry.library
        is_this = (known.path, known.origin) == (fetched.path, fetched.origin)
        if is_this and entry.is_present() and not _missing(fetched, known):
            return known
    build = build_type(fetched.path, fetched.engine_name)
    identity = EngineIdentity(fetched.engine_name, None, str(fetched.path), build)
    library = with_facts(Library(fetched.path, identity, (), fetched.origin), driver)
    missing = _missing(fetched, library)
    if missing:
        remove_owned(fetched.path.parent)
        raise LsmtuneError(
            f"{fetched.path} ({fetched.origin}) was made without {', '.join(missing)} and is "
            f"removed, not registered; next step: read the log in {logs_folder()}"
        )
    return Registry().add(library).library


def _missing(fetched: Fetched, library: Library) -> list[str]:
    """What the recipe of `fetched` promised and `library`, once probed, lacks."""
    return [name for name in fetched.compressions if name not in library.compressions]


def choose_library(
    name: str, explicit: Path | None, driver: Path
) -> tuple[Library, tuple[str, ...]]:
    """The library a command measures, with its facts, and warnings for the user.

    Raises what `find_library` and `with_facts` raise.
    """
    library = with_facts(find_library(name, explicit), driver)
    return library, library_warnings(library)
