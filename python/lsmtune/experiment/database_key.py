"""What a request needs of a loaded database: its options, its phases, its seed, and the key of all.

An option is of the *layout* when the files of a loaded and settled database depend on it, and of
the *runtime* otherwise; the catalogues (`engines/options/*.yaml`) say which, with the reason where
it is not plain. Two configurations with the same layout can start from copies of one database.

An option that no catalogue knows counts as layout: taking a runtime option for a layout one costs
a load, the other way round it makes the measurement wrong.
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
from lsmtune.engines.library import ENGINE_KINDS, file_sha256
from lsmtune.model.codec import encode
from lsmtune.model.config import Config
from lsmtune.model.request import Prepared, RunRequest
from lsmtune.model.workload import Durability, PageCache, Phase, PhaseKind, Workload
from lsmtune.space.expression import make_expression

LAYOUT_LABEL = "layout"
LEDGER = "ledger"  # what a load noted of the keys it wrote, beside the database


def layout_of(config: Config, engine: str) -> Config:
    """The options of `config` that its database is loaded with.

    Raises InputError for an engine without a catalogue. With the layout go those runtime options
    without which the engine would refuse or change it: the ones that a constraint of the catalogue
    ties to options of the layout, directly or through others (RocksDB's vector memtable needs
    `allow_concurrent_memtable_write` off).
    """
    catalogue = option_catalogue(engine)
    given = config.options.keys()
    layout = {n for n in given if n not in catalogue or catalogue[n].effect == "layout"}
    wider = layout | _tied(layout, engine) & given
    while wider != layout:
        layout, wider = wider, wider | _tied(wider, engine) & given
    return Config({name: config.options[name] for name in layout}, LAYOUT_LABEL)


def _tied(names: Set[str], engine: str) -> set[str]:
    return set(chain.from_iterable(tie for tie in _ties(engine) if not tie.isdisjoint(names)))


@functools.cache
def _ties(engine: str) -> tuple[frozenset[str], ...]:
    """The option names of each constraint of the catalogue, of whatever version of the engine."""
    ties = set()
    for info in option_catalogue(engine).values():
        older = chain.from_iterable(texts for _, texts in info.older_constraint)
        for text in (*info.constraint, *older):
            ties.add(make_expression(text, "option catalogue", info.name).names)
    return tuple(ties)


# --- Which phases of a workload a golden database stands for.

_PREPARING = (PhaseKind.LOAD, PhaseKind.SETTLE)
_SETTLE = Phase("settle", PhaseKind.SETTLE)


def load_and_run(workload: Workload) -> tuple[Workload, Workload] | None:
    """`workload` cut in two; None when it does not begin with a load, or is nothing else.

    The first makes the golden database: the leading load and settle phases, of which the last is a
    settle phase. The second is the workload of a run on a copy of it: it begins with the phases of
    the first, so that phases keep their places, and has the rest behind them.

    None as well where a trace loads it: the driver then has no ledger to leave for the copies. A
    load that is not settled at its end gets a settle phase there, because each copy of a database
    with compactions to do would do other ones. Nothing of the load is measured, so `sync` is left
    out of it: the files are synced as a whole before the first copy, and `wal` makes the same ones
    without waiting for each write.
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
    return load, replace(workload, phases=(*leading, *rest))


# --- The key of a golden database: everything that its files depend on, and a digest of that.
#
# Not part of it are the name of the workload, what is measured, and every option that is not of the
# layout.

# Raised when golden databases of older lsmtunes can no longer be used.
FORMAT_VERSION = 1
_SEED_BITS = 53  # the largest whole number that every JSON reader keeps exactly

Digest = Callable[[Path], str]


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


@dataclass(frozen=True)
class Order:
    """A request that can start from a copy of a golden database.

    `load` is the workload that makes this, with the options of `layout`, and `run` that of a run on
    a copy. `key` says all that the golden database is made from, and `digest` names it.
    """

    request: RunRequest
    load: Workload
    run: Workload
    layout: Config
    load_seed: int
    key: dict[str, object]
    digest: str

    def load_request(self, directory: Path) -> RunRequest:
        """The run that loads the golden database, in the folder `directory`."""
        return replace(
            self.request,
            config=self.layout,
            workload=self.load,
            seed=self.load_seed,
            directory=directory,
            trial=None,
            cpus=(),
            slices=0,
            load_seed=self.load_seed,
            prepared=None,
            save_ledger=directory / LEDGER,
        )

    def run_request(self) -> RunRequest:
        """The run on a copy, which lies in the folder of the request with the ledger beside it."""
        return replace(
            self.request,
            workload=self.run,
            load_seed=self.load_seed,
            prepared=Prepared(self.request.directory / LEDGER, len(self.load.phases)),
        )


def order_of(request: RunRequest, library: Digest) -> Order | None:
    """What `request` needs of a golden database; None when there can be none for it.

    That is so when the workload does not begin with a load, or is nothing else, or has several
    databases; when the engine keeps no files, or cannot be told from another build; and when the
    request has a database or leaves a ledger itself. `library` gives the digest of a library file.

    The request's own `load_seed` counts, else a constant of the workload: so the runs of a search,
    which leave it open, share one database per layout. A proof, whose verdict should not hang on
    one arrangement of keys and values, sets a few of its own. `verify_keys` is of the key, because
    it decides how many written keys are noted for the read-back.
    """
    engine, workloads = request.engine, load_and_run(request.workload)
    if workloads is None or request.prepared is not None or request.save_ledger is not None:
        return None
    if request.workload.databases > 1:
        return None  # each has a folder of its own; a copy is of one database
    if engine.name not in ENGINE_KINDS or (engine.library is None and engine.version is None):
        return None
    load, run = workloads
    layout = layout_of(request.config, engine.name)
    contents: dict[str, object] = encode(load)
    del contents["name"], contents["page_cache"]
    load_seed = request.load_seed
    if load_seed is None:
        load_seed = int.from_bytes(_sha256(contents)) >> (256 - _SEED_BITS)
    # A library is what its bytes are, wherever it lies; one built in, what its version is.
    build = {"name": engine.name, "version": engine.version}
    if engine.library is not None:
        try:
            build = {"name": engine.name, "library_sha256": library(Path(engine.library))}
        except OSError:
            return None  # no such library: the run itself says so
    key: dict[str, object] = {
        "format_version": FORMAT_VERSION,
        "lsmtune_version": lsmtune.__version__,
        "protocol_version": PROTOCOL_VERSION,
        "engine": build,
        "options": layout.engine_options(),
        "load": contents,
        "load_seed": load_seed,
        "verify_keys": request.verify_keys,
    }
    return Order(request, load, run, layout, load_seed, key, _sha256(key).hex())


def _sha256(document: object) -> bytes:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()
