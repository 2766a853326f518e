"""Engine libraries that came with the operating system's packages."""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from lsmtune.engines.build import build_type
from lsmtune.engines.library import Library
from lsmtune.engines.names import EngineKind
from lsmtune.records.engine import EngineIdentity

ORIGIN = "distribution package"

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
    found: dict[Path, Library] = {}
    for path in (*_loader_cache(kind), *_known_folders(kind)):
        real = path.resolve()
        if real in found or not real.is_file():
            continue
        build = build_type(real, kind.name)
        identity = EngineIdentity(kind.name, None, str(path), build)
        found[real] = Library(path, identity, (), ORIGIN)
    return list(found.values())


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
