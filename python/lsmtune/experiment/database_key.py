"""Which options of a Config a loaded database depends on.

An option is a *layout* option if the files of a loaded and settled database depend on it; all
others are *runtime* options. The catalogues (`engines/options/*.yaml`) say which, with the reason
where it is not obvious. Two configurations with the same layout can start from copies of one
database.

An option that is in no catalogue counts as layout. To treat a runtime option as layout costs a
load; to treat a layout option as runtime makes the measurement wrong.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from pathlib import Path

import lsmtune
from lsmtune.driver.messages import PROTOCOL_VERSION
from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.library import file_sha256
from lsmtune.model.codec import encode
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.request import RunRequest
from lsmtune.model.workload import Durability, PageCache, Phase, PhaseKind, Workload
from lsmtune.space.expression import make_expression

LAYOUT_LABEL = "layout"
RUNTIME_LABEL = "runtime"


@dataclass(frozen=True)
class Split:
    """The options of a Config: those that its database is loaded with, and the others."""

    layout: Config
    runtime: Config


def split(config: Config, engine: str) -> Split:
    """Split `config` of an engine that has a catalogue. Raises InputError for another engine.

    Some runtime options go with the layout, because the engine would refuse or change the layout
    without them: those that a constraint of the catalogue ties to layout options, directly or
    through others. For example, RocksDB's vector memtable needs `allow_concurrent_memtable_write`
    off.
    """
    catalogue = option_catalogue(engine)
    given = config.options.keys()
    layout = {n for n in given if n not in catalogue or catalogue[n].effect == "layout"}
    wider = layout | _tied(layout, engine) & given
    while wider != layout:
        layout, wider = wider, wider | _tied(wider, engine) & given
    return Split(
        Config({name: config.options[name] for name in layout}, LAYOUT_LABEL),
        Config({name: config.options[name] for name in given - layout}, RUNTIME_LABEL),
    )


def _tied(names: Set[str], engine: str) -> set[str]:
    return set(chain.from_iterable(tie for tie in _ties(engine) if not tie.isdisjoint(names)))


@functools.cache
def _ties(engine: str) -> tuple[frozenset[str], ...]:
    """The option names of each constraint of the catalogue, for all versions of the engine."""
    ties = set()
    for info in option_catalogue(engine).values():
        older = chain.from_iterable(texts for _, texts in info.older_constraint)
        for text in (*info.constraint, *older):
            ties.add(make_expression(text, "option catalogue", info.name).names)
    return tuple(ties)


# --- Which phases of a workload a golden database stands for.

_PREPARING = (PhaseKind.LOAD, PhaseKind.SETTLE)
_SETTLE = Phase("settle", PhaseKind.SETTLE)


@dataclass(frozen=True)
class LoadPlan:
    """A workload cut in two.

    `load` makes the golden database. It has the leading load and settle phases, and ends with a
    settle phase. `run` is the workload of a run on a copy. It begins with the phases of `load`, so
    that phases keep their positions, and continues with the rest.
    """

    load: Workload
    run: Workload

    @property
    def phases(self) -> int:
        """How many phases of `run` the golden database stands for."""
        return len(self.load.phases)


def load_plan(workload: Workload) -> LoadPlan | None:
    """How `workload` is cut; None if it does not begin with a load, or consists of nothing else.

    Also None if a trace loads it: the driver then leaves no ledger for the copies.

    A load that does not end with a settle phase gets one. Otherwise compactions would still be
    pending, and each copy would perform different ones.

    The load is not measured, so it runs with `wal` in place of `sync`. This makes the same files
    without waiting for each write, and they are synced as a whole before the first copy.
    """
    leading = tuple(takewhile(lambda phase: phase.kind in _PREPARING, workload.phases))
    rest = workload.phases[len(leading) :]
    if not rest or all(phase.kind is not PhaseKind.LOAD for phase in leading):
        return None
    if any(phase.replay is not None for phase in leading):
        return None
    if leading[-1].kind is not PhaseKind.SETTLE:
        leading = (*leading, _SETTLE)
    sync = workload.durability is Durability.SYNC
    load = replace(
        workload,
        phases=leading,
        durability=Durability.WAL if sync else workload.durability,
        page_cache=PageCache.WARM,
    )
    return LoadPlan(load, replace(workload, phases=(*leading, *rest)))


# --- The key of a golden database: everything that its files depend on, and a digest of that.
#
# The name of the workload, what is measured, and runtime options are not part of it.

# Increase it when golden databases of older versions of lsmtune can no longer be used.
FORMAT_VERSION = 1
_SEED_BITS = 53  # the largest whole number that every JSON reader keeps exactly

Digest = Callable[[Path], str]


@dataclass(frozen=True)
class GoldenKey:
    """`document` says what the golden database was made from; `digest` is its name."""

    document: dict[str, object]
    digest: str


class LibraryDigests:
    """The SHA-256 of library files; a file is read again only if its size or time changed."""

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

    `library` gives the digest of a library file. `verify_keys` is part of the key, because it
    decides how many written keys are noted for the read-back. Raises OSError when the library
    cannot be read.
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

    The runs of a search set no load seed, so they share one database per layout. A proof sets a few
    of its own, so that its verdict does not depend on one arrangement of keys and values.
    """
    if request.load_seed is not None:
        return request.load_seed
    return int.from_bytes(_sha256(_contents(load))) >> (256 - _SEED_BITS)


def _engine(engine: EngineIdentity, library: Digest) -> dict[str, object]:
    """Identifies a library by its bytes, wherever it lies, and a built-in engine by its version."""
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


# --- An Order: what a request needs of a golden database, and the requests that it becomes.
