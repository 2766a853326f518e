"""Requests as the driver reads them; `protocol/request.schema.json` is their schema."""

from __future__ import annotations

from pathlib import Path

from lsmtune.records.engine import EngineIdentity
from lsmtune.records.request import Prepared, RunRequest
from lsmtune.records.workload import (
    Companion,
    Distribution,
    Mix,
    PageCache,
    Phase,
    PhaseKind,
    Replay,
    SineRate,
    StepRate,
    Workload,
    YcsbKeys,
)
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
        **_where_given(
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
        **_where_given(load_seed=request.load_seed),
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
        **_where_given(key_number=key_number),
    }


def _engine(name: str, library: str | None) -> Json:
    return {"name": name} if library is None else {"name": name, "library": library}


def _where_given(**fields: object) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _prepared(prepared: Prepared) -> Json:
    return {"ledger": str(prepared.ledger), "phases": prepared.phases}


def _workload(workload: Workload) -> Json:
    # Reads and writes past the page cache are options of the engine: nothing for the driver to do.
    cold = "cold" if workload.page_cache is PageCache.COLD else None
    return {
        "key_bytes": workload.key_bytes,
        "value_bytes": workload.value_bytes,
        "compression_ratio": workload.compression_ratio,
        "num": workload.num,
        "durability": workload.durability.value,
        **_where_given(
            page_cache=cold,
            keys=None if workload.keys is None else _keys(workload.keys),
            key_sizes=_distribution(workload.key_sizes),
            databases=_where_several(workload.databases),
            column_families=_where_several(workload.column_families),
        ),
        "phases": [_phase(phase) for phase in workload.phases],
    }


def _where_several(count: int) -> int | None:
    return None if count == 1 else count


def _keys(keys: YcsbKeys) -> Json:
    return {
        "format": "ycsb",
        "prefix": keys.prefix,
        "zero_padding": keys.zero_padding,
        "order": keys.order.value,
    }


def _distribution(distribution: Distribution | None) -> Json | None:
    if distribution is None:
        return None
    return {
        "distribution": distribution.name,
        **{
            name: _distribution(value) if isinstance(value, Distribution) else value
            for name, value in distribution.parameters
        },
    }


def _phase(phase: Phase) -> Json:
    named: Json = {"name": phase.name, "kind": phase.kind.value}
    if phase.kind is PhaseKind.SETTLE:
        return named
    replay = phase.replay
    return named | _where_given(
        operation=phase.operation,
        mix=_mix(phase.mix),
        replay=None if replay is None else _replay(replay),
        operations_per_thread=phase.operations_per_thread,
        operations=phase.operations,
        duration_s=phase.duration_s,
        threads=phase.threads,
        rate_ops_s=phase.rate_ops_s,
        rate=_rate(phase.rate),
        seek_nexts=phase.seek_nexts or None,
        companions=[_companion(companion) for companion in phase.companions] or None,
    )


def _replay(replay: Replay) -> Json:
    return {"path": replay.path, **_where_given(speed=replay.speed)}


def _mix(mix: Mix | None) -> Json | None:
    if mix is None:
        return None
    return {
        "operations": dict(mix.operations),
        "keys": _distribution(mix.keys),
        "records": mix.records,
        **_where_given(
            first=mix.first or None,
            insert_from=mix.insert_from,
            scan_lengths=_distribution(mix.scan_lengths),
            value_sizes=_distribution(mix.value_sizes),
        ),
    }


def _rate(rate: SineRate | StepRate | None) -> Json | None:
    match rate:
        case None:
            return None
        case StepRate():
            return {"shape": "steps", "steps": rate.steps}
        case SineRate():
            return {
                "shape": "sine",
                "mean_ops_s": rate.mean_ops_s,
                "amplitude_ops_s": rate.amplitude_ops_s,
                "period_s": rate.period_s,
                "offset_s": rate.offset_s,
            }


def _companion(companion: Companion) -> Json:
    return {
        "name": companion.name,
        "threads": companion.threads,
        **_where_given(
            operation=companion.operation,
            mix=_mix(companion.mix),
            rate_ops_s=companion.rate_ops_s,
        ),
    }
