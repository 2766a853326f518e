"""The loaded database that a request needs: its options, phases and seed, and a key of all these.

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
from collections.abc import Set
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from pathlib import Path

import lsmtune
from lsmtune.driver.messages import PROTOCOL_VERSION
from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.library import ENGINE_KINDS, file_sha256
from lsmtune.machine.host import usable_cores
from lsmtune.model.codec import encode
from lsmtune.model.config import Config
from lsmtune.model.request import BulkLoad, Prepared, RunRequest
from lsmtune.model.workload import Durability, PageCache, Phase, PhaseKind, Workload
from lsmtune.space.expression import make_expression

LEDGER = "ledger"  # what a load noted of the keys it wrote, beside the database


def layout_of(config: Config, engine: str) -> Config:
    """The options of `config` that its database is loaded with.

    Some runtime options go with the layout, because the engine would refuse or change the layout
    without them: those that a constraint of the catalogue ties to layout options, directly or
    through others. For example, RocksDB's vector memtable needs `allow_concurrent_memtable_write`
    off. Raises InputError for an engine without a catalogue.
    """
    catalogue = option_catalogue(engine)
    given = config.options.keys()
    layout = {n for n in given if n not in catalogue or catalogue[n].effect == "layout"}
    while tied := (_tied(layout, engine) & given) - layout:
        layout |= tied
    return Config({name: config.options[name] for name in layout}, "layout")


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


# How often the driver looks which compactions have to run.
_LOOK_MS = 50
# More threads wait for each other in RocksDB, and LevelDB lets one write at a time.
_THREADS_MAX = 4
# The last third of a load is written as in any load (`driver/src/workload/bulk.rs`). That is
# several times what the levels above the last one hold, if each is so many times the one above it.
_MULTIPLIER_MIN = 8.0
_LEVELED = ("kCompactionStyleLevel", "level", 0)


def _bulk_load(layout: Config, engine: str) -> BulkLoad:
    """How a load with `layout` is made fast.

    Compactions may wait only where the tree becomes the same: levels that grow by a large factor.
    """
    options = layout.options
    multiplier = options.get("max_bytes_for_level_multiplier", 10)
    leveled = options.get("compaction_style", _LEVELED[0]) in _LEVELED
    steep = isinstance(multiplier, int | float) and multiplier >= _MULTIPLIER_MIN
    other = {"max_bytes_for_level_multiplier_additional", "enable_blob_files"} & options.keys()
    hold = engine == "rocksdb" and leveled and steep and not other
    threads = min(len(usable_cores()), _THREADS_MAX) if engine == "rocksdb" else 1
    return BulkLoad(threads, hold)


# --- Which phases of a workload a golden database stands for.

_PREPARING = (PhaseKind.LOAD, PhaseKind.SETTLE)
_SETTLE = Phase("settle", PhaseKind.SETTLE)


def load_and_run(workload: Workload, engine: str) -> tuple[Workload, Workload] | None:
    """`workload` cut in two; None if it does not begin with a load, or consists of nothing else.

    The first workload makes the golden database. It has the leading load and settle phases, and
    ends with a settle phase. The second is the workload of a run on a copy. It begins with the
    phases of the first, so that phases keep their positions, and continues with the rest.

    Also None if a trace loads the database: the driver then leaves no ledger for the copies.

    A load that does not end with a settle phase gets one. Otherwise compactions would still be
    pending, and each copy would perform different ones.

    The load is not measured, and a load that does not end well leaves nothing. So it is as durable
    as is cheapest (`_durability`), and its files are synced as a whole before the first copy.
    """
    leading = tuple(takewhile(lambda phase: phase.kind in _PREPARING, workload.phases))
    rest = workload.phases[len(leading) :]
    if not rest or all(phase.kind is not PhaseKind.LOAD for phase in leading):
        return None
    if any(phase.replay is not None for phase in leading):
        return None
    if leading[-1].kind is not PhaseKind.SETTLE:
        leading = (*leading, _SETTLE)
    load = replace(
        workload,
        phases=leading,
        durability=_durability(workload, engine),
        page_cache=PageCache.WARM,
    )
    return load, replace(workload, phases=(*leading, *rest))


def _durability(workload: Workload, engine: str) -> Durability:
    """The least durable way to load that leaves the tree of the others.

    LevelDB always writes its log. In RocksDB the size of the log decides when memtables are written
    out as soon as there are several column families (`max_total_wal_size`, rocksdb/options.h).
    """
    if engine == "rocksdb" and workload.column_families == 1:
        return Durability.NONE
    return Durability.WAL if workload.durability is Durability.SYNC else workload.durability


# --- The key of a golden database: everything that its files depend on, and a digest of that.
#
# The name of the workload, what is measured, and runtime options are not part of it.

# Increase it when golden databases of older versions of lsmtune can no longer be used.
FORMAT_VERSION = 6
_SEED_BITS = 53  # the largest whole number that every JSON reader keeps exactly


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, read again only if its size or time changed. Raises OSError."""
    status = path.stat()
    return _sha256_of(path, status.st_size, status.st_mtime_ns)


@functools.cache
def _sha256_of(path: Path, _size: int, _time_ns: int) -> str:
    return file_sha256(path)


def by_bytes(path: Path) -> str:
    """What stands for a file where runs are compared: its bytes, wherever it lies.

    The path of one that cannot be read: the run itself says so.
    """
    try:
        return digest_of(path)
    except OSError:
        return str(path)


@dataclass(frozen=True)
class GoldenPlan:
    """A request that can start from a copy of a golden database.

    `load` is the workload that makes the golden database, with the options of `layout`. `run` is
    the workload of a run on a copy. `key` says everything that the golden database is made from,
    and `digest` is its name.
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
            bulk_load=_bulk_load(self.layout, self.request.engine.name),
            interval_ms=_LOOK_MS,
        )

    def run_request(self, *, own_pages: bool) -> RunRequest:
        """The run on a copy, which lies in the folder of the request with the ledger beside it."""
        return replace(
            self.request,
            workload=self.run,
            load_seed=self.load_seed,
            prepared=Prepared(self.request.directory / LEDGER, len(self.load.phases), own_pages),
        )


def golden_plan(request: RunRequest) -> GoldenPlan | None:
    """What `request` needs of a golden database; None when there can be none for it.

    There can be none if the workload does not begin with a load, consists of nothing else, or has
    several databases; if the engine keeps no files, or cannot be told from another build; and if
    the request has a database or leaves a ledger itself.

    The load seed is the request's own `load_seed`, else a constant of the workload. The runs of a
    search set none, so they share one database per layout. A proof sets a few of its own, so that
    its verdict does not depend on one arrangement of keys and values. `verify_keys` is part of the
    key, because it decides how many written keys are noted for the read-back.
    """
    engine, workloads = request.engine, load_and_run(request.workload, request.engine.name)
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
    # The bytes of a library identify it, wherever it lies; a built-in engine has its version.
    build = {"name": engine.name, "version": engine.version}
    if engine.library is not None:
        try:
            build = {"name": engine.name, "library_sha256": digest_of(Path(engine.library))}
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
    return GoldenPlan(request, load, run, layout, load_seed, key, _sha256(key).hex())


def _sha256(document: object) -> bytes:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()


def same_database(first: RunRequest, second: RunRequest) -> bool:
    """Whether both can start from copies of one golden database, or neither can from any."""
    plans = (golden_plan(request) for request in (first, second))
    one, other = (None if plan is None else plan.digest for plan in plans)
    return one == other
