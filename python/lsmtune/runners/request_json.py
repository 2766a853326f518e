"""Requests as the driver reads them; `protocol/request.schema.json` is their schema."""

from __future__ import annotations

from pathlib import Path

from lsmtune.records.engine import EngineIdentity
from lsmtune.records.request import RunRequest
from lsmtune.records.workload import Phase, PhaseKind, Workload
from lsmtune.runners.messages import PROTOCOL_VERSION

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
    }


def probe_request(engine: EngineIdentity, directory: Path) -> Json:
    """The request that asks what a library is; the driver may write in `directory`."""
    return {
        "protocol_version": PROTOCOL_VERSION,
        "command": "probe",
        "engine": _engine(engine.name, engine.library),
        "directory": str(directory),
    }


def _engine(name: str, library: str | None) -> Json:
    return {"name": name} if library is None else {"name": name, "library": library}


def _workload(workload: Workload) -> Json:
    return {
        "key_bytes": workload.key_bytes,
        "value_bytes": workload.value_bytes,
        "compression_ratio": workload.compression_ratio,
        "num": workload.num,
        "durability": workload.durability.value,
        "phases": [_phase(phase) for phase in workload.phases],
    }


def _phase(phase: Phase) -> Json:
    named: Json = {"name": phase.name, "kind": phase.kind.value}
    if phase.kind is PhaseKind.SETTLE:
        return named
    sized: Json = {
        "operation": phase.operation,
        "operations_per_thread": phase.operations_per_thread,
        "duration_s": phase.duration_s,
        "threads": phase.threads,
        "rate_ops_s": phase.rate_ops_s,
        "seek_nexts": phase.seek_nexts or None,
    }
    return named | {key: value for key, value in sized.items() if value is not None}
