"""Requests as the driver reads them; `protocol/request.schema.json` is their schema."""

from __future__ import annotations

from pathlib import Path

from lsmtune.driver.messages import PROTOCOL_VERSION
from lsmtune.model.config import EngineIdentity
from lsmtune.model.request import Prepared, RunRequest
from lsmtune.model.workload import PageCache, Phase, PhaseKind, Workload
from lsmtune.workloads.distributions import distribution_document
from lsmtune.workloads.file import doing_document, keys_document, where_given

Json = dict[str, object]


def run_request(request: RunRequest, database: Path) -> Json:
    """The request for one run on the database in `database`."""
    return {
        "protocol_version": PROTOCOL_VERSION,
        "command": "run",
        "engine": _engine(request.engine.name, request.engine.library),
        "directory": str(database),
        "options": request.config.engine_options(),
        "workload": _workload(request.workload),
        "seed": request.seed,
        "interval_ms": request.interval_ms,
        "verify_keys": request.verify_keys,
        **where_given(
            load_seed=request.load_seed,
            prepared=None if request.prepared is None else _prepared(request.prepared),
            save_ledger=None if request.save_ledger is None else str(request.save_ledger),
            slices=request.slices or None,
        ),
    }


def check_request(request: RunRequest, database: Path, acknowledged: int) -> Json:
    """The request that asks what `database` holds after the run of `request` was killed.

    `acknowledged` operations of its first phase had been reported done.
    """
    return {
        "protocol_version": PROTOCOL_VERSION,
        "command": "check",
        "engine": _engine(request.engine.name, request.engine.library),
        "directory": str(database),
        "options": request.config.engine_options(),
        "workload": _workload(request.workload),
        "seed": request.seed,
        "acknowledged": acknowledged,
        **where_given(load_seed=request.load_seed),
    }


def probe_request(engine: EngineIdentity, directory: Path) -> Json:
    """The request that asks what a library is; the driver may write in `directory`."""
    return {
        "protocol_version": PROTOCOL_VERSION,
        "command": "probe",
        "engine": _engine(engine.name, engine.library),
        "directory": str(directory),
    }


def inspect_request(path: Path, ranges: int, key_number: Json | None) -> Json:
    """The request that asks what the trace in `path` holds.

    `ranges` parts of the numbers of its keys are told apart; `key_number` says how a key's number
    is read (None: the driver looks).
    """
    return {
        "protocol_version": PROTOCOL_VERSION,
        "command": "inspect_trace",
        "path": str(path),
        "ranges": ranges,
        **where_given(key_number=key_number),
    }


def _engine(name: str, library: str | None) -> Json:
    return {"name": name} if library is None else {"name": name, "library": library}


def _prepared(prepared: Prepared) -> Json:
    return {"ledger": str(prepared.ledger), "phases": prepared.phases}


def _workload(workload: Workload) -> Json:
    # Reads and writes past the page cache are options of the engine: nothing for the driver to do.
    sizes = workload.key_sizes
    cold = "cold" if workload.page_cache is PageCache.COLD else None
    return {
        "key_bytes": workload.key_bytes,
        "value_bytes": workload.value_bytes,
        "compression_ratio": workload.compression_ratio,
        "num": workload.num,
        "durability": workload.durability.value,
        **where_given(
            page_cache=cold,
            keys=keys_document(workload.keys),
            key_sizes=sizes and distribution_document(sizes),
            databases=_where_several(workload.databases),
            column_families=_where_several(workload.column_families),
        ),
        "phases": [_phase(phase) for phase in workload.phases],
    }


def _where_several(count: int) -> int | None:
    return None if count == 1 else count


def _phase(phase: Phase) -> Json:
    named: Json = {"name": phase.name, "kind": phase.kind.value}
    if phase.kind is PhaseKind.SETTLE:
        return named
    # A request says how many threads even where it is one, so that its log needs no defaults.
    return named | {"threads": phase.threads} | doing_document(phase, distribution_document)
