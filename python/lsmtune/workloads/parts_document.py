"""The parts of a workload as JSON: what workload files and the driver's requests state alike.

What has its default value is left out. `stated` gives a distribution, which a file may shorten and
a request may not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsmtune.records.workload import (
    Companion,
    Distribution,
    Mix,
    Phase,
    Replay,
    SineRate,
    StepRate,
    YcsbKeys,
)

Json = dict[str, Any]
Stated = Callable[[Distribution], Any]


def where_given(**fields: object) -> Json:
    """The `fields` that are not None, in the order given."""
    return {name: value for name, value in fields.items() if value is not None}


def keys_document(keys: YcsbKeys | None) -> Json | None:
    """How keys are built; None for db_bench's numbers."""
    if keys is None:
        return None
    return {
        "format": "ycsb",
        "prefix": keys.prefix,
        "zero_padding": keys.zero_padding,
        "order": keys.order.value,
    }


def doing_document(phase: Phase, stated: Stated) -> Json:
    """What `phase` does, how much of it, at which rate and beside whom; not who it is."""
    return where_given(
        operation=phase.operation,
        mix=_mix(phase.mix, stated),
        replay=None if phase.replay is None else _replay(phase.replay),
        operations=phase.operations,
        operations_per_thread=phase.operations_per_thread,
        duration_s=phase.duration_s,
        threads=_several(phase.threads),
        rate_ops_s=phase.rate_ops_s,
        rate=_rate(phase.rate),
        seek_nexts=phase.seek_nexts or None,
        companions=[_companion(companion, stated) for companion in phase.companions] or None,
    )


def _several(count: int) -> int | None:
    return None if count == 1 else count


def _replay(replay: Replay) -> Json:
    return {"path": replay.path, **where_given(speed=replay.speed)}


def _mix(mix: Mix | None, stated: Stated) -> Json | None:
    if mix is None:
        return None
    lengths, sizes = mix.scan_lengths, mix.value_sizes
    return {
        "operations": dict(mix.operations),
        "keys": stated(mix.keys),
        "records": mix.records,
        **where_given(
            first=mix.first or None,
            insert_from=mix.insert_from,
            scan_lengths=lengths and stated(lengths),
            value_sizes=sizes and stated(sizes),
            operation_by_key=mix.operation_by_key,
        ),
    }


def _rate(rate: SineRate | StepRate | None) -> Json | None:
    match rate:
        case None:
            return None
        case StepRate():
            return {"shape": "steps", "steps": [list(step) for step in rate.steps]}
        case SineRate():
            return {
                "shape": "sine",
                "mean_ops_s": rate.mean_ops_s,
                "amplitude_ops_s": rate.amplitude_ops_s,
                "period_s": rate.period_s,
                **where_given(offset_s=rate.offset_s or None),
            }


def _companion(companion: Companion, stated: Stated) -> Json:
    return {
        "name": companion.name,
        **where_given(
            operation=companion.operation,
            mix=_mix(companion.mix, stated),
            threads=_several(companion.threads),
            rate_ops_s=companion.rate_ops_s,
        ),
    }
