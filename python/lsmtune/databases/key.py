"""The key of a golden database: everything that its files depend on, and a digest of that.

Not part of it are the name of the workload, what is measured, and every option that is not of the
layout.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import lsmtune
from lsmtune.engines.library import file_sha256
from lsmtune.records.config import Config
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.request import RunRequest
from lsmtune.records.workload import Workload
from lsmtune.runners.messages import PROTOCOL_VERSION
from lsmtune.storage.codec import encode

# Raised when golden databases of older lsmtunes can no longer be used.
FORMAT_VERSION = 1
_SEED_BITS = 53  # the largest whole number that every JSON reader keeps exactly

Digest = Callable[[Path], str]


@dataclass(frozen=True)
class GoldenKey:
    """`document` says what the golden database was made from, `digest` names it."""

    document: dict[str, object]
    digest: str


class LibraryDigests:
    """The SHA-256 of library files, read again only when size or time of a file changed."""

    def __init__(self, digest: Digest = file_sha256) -> None:
        self._digest = digest
        self._known: dict[tuple[Path, int, int], str] = {}

    def __call__(self, path: Path) -> str:
        """The digest of the file at `path`. Raises OSError when it cannot be read."""
        status = path.stat()
        identity = (path, status.st_size, status.st_mtime_ns)
        if identity not in self._known:
            self._known[identity] = self._digest(path)
        return self._known[identity]


def golden_key(
    request: RunRequest, layout: Config, load: Workload, load_seed: int, library: Digest
) -> GoldenKey:
    """The key of the database that `load` makes with the options of `layout`.

    `library` gives the digest of a library file. `verify_keys` counts, because it decides how many
    written keys are noted for the read-back. Raises OSError when the library cannot be read.
    """
    document: dict[str, object] = {
        "format_version": FORMAT_VERSION,
        "lsmtune_version": lsmtune.__version__,
        "protocol_version": PROTOCOL_VERSION,
        "engine": _engine(request.engine, library),
        "options": layout.engine_options(),
        "load": _contents(load),
        "load_seed": load_seed,
        "verify_keys": request.verify_keys,
    }
    return GoldenKey(document, _sha256(document).hex())


def load_seed_of(request: RunRequest, load: Workload) -> int:
    """The seed to load with: the request's own `load_seed`, else a constant of the workload.

    So the runs of a search, which leave it open, share one database per layout. A proof, whose
    verdict should not hang on one arrangement of keys and values, sets a few of its own.
    """
    if request.load_seed is not None:
        return request.load_seed
    return int.from_bytes(_sha256(_contents(load))) >> (256 - _SEED_BITS)


def _engine(engine: EngineIdentity, library: Digest) -> dict[str, object]:
    """A library is what its bytes are, wherever it lies; one built in, what its version is."""
    if engine.library is None:
        return {"name": engine.name, "version": engine.version}
    return {"name": engine.name, "library_sha256": library(Path(engine.library))}


def _contents(load: Workload) -> dict[str, object]:
    contents: dict[str, object] = encode(load)
    del contents["name"], contents["page_cache"]
    return contents


def _sha256(document: object) -> bytes:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()
