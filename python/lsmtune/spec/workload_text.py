"""A Workload as the text of a workload file: the inverse of reading one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from lsmtune.records.workload import (
    Companion,
    Distribution,
    Durability,
    Mix,
    PageCache,
    Phase,
    PhaseKind,
    SineRate,
    StepRate,
    Workload,
)
from lsmtune.workloads.distributions import distribution_document

Json = dict[str, Any]
_WIDTH = 100


def workload_text(workload: Workload, comments: Sequence[str] = ()) -> str:
    """The workload file that reads as `workload`, after `comments`, a line each."""
    head = "".join(f"# {' '.join(comment.split())}\n" for comment in comments)
    body = yaml.dump(workload_document(workload), Dumper=_Dumper, sort_keys=False, width=_WIDTH)
    return head + body


def workload_document(workload: Workload) -> Json:
    """What a workload file says of `workload`; what has its default value is left out."""
    keys = workload.keys
    ycsb_keys = keys and {
        "format": "ycsb",
        "prefix": keys.prefix,
        "zero_padding": keys.zero_padding,
        "order": keys.order.value,
    }
    several = {"databases": workload.databases, "column_families": workload.column_families}
    return {
        "version": 1,
        "name": workload.name,
        "num": workload.num,
        **({} if keys is not None else {"key_bytes": workload.key_bytes}),
        "value_bytes": workload.value_bytes,
        "compression_ratio": workload.compression_ratio,
        **_where(
            durability=_unless(workload.durability, Durability.WAL),
            page_cache=_unless(workload.page_cache, PageCache.WARM),
            keys=ycsb_keys,
            key_sizes=_distribution(workload.key_sizes),
            **{name: count for name, count in several.items() if count != 1},
        ),
        "phases": [_phase(phase) for phase in workload.phases],
    }


def _where(**fields: object) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _unless(value: Durability | PageCache, default: object) -> str | None:
    return None if value is default else value.value


def _distribution(distribution: Distribution | None) -> Any:
    if distribution is None:
        return None
    return distribution_document(distribution) if distribution.parameters else distribution.name


def _phase(phase: Phase) -> Json:
    named = {"name": phase.name, "kind": phase.kind.value}
    if phase.kind is PhaseKind.SETTLE:
        return named
    replay = phase.replay
    return named | _where(
        operation=phase.operation,
        mix=_mix(phase.mix),
        replay=None if replay is None else {"path": replay.path, **_where(speed=replay.speed)},
        operations=phase.operations,
        operations_per_thread=phase.operations_per_thread,
        duration_s=phase.duration_s,
        threads=None if phase.threads == 1 else phase.threads,
        rate_ops_s=phase.rate_ops_s,
        rate=_rate(phase.rate),
        seek_nexts=phase.seek_nexts or None,
        companions=[_companion(companion) for companion in phase.companions] or None,
    )


def _mix(mix: Mix | None) -> Json | None:
    if mix is None:
        return None
    return {
        "operations": dict(mix.operations),
        "keys": _distribution(mix.keys),
        "records": mix.records,
        **_where(
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
            return {"shape": "steps", "steps": [list(step) for step in rate.steps]}
        case SineRate():
            wave = {
                "mean_ops_s": rate.mean_ops_s,
                "amplitude_ops_s": rate.amplitude_ops_s,
                "period_s": rate.period_s,
            }
            return {"shape": "sine", **wave, **_where(offset_s=rate.offset_s or None)}


def _companion(companion: Companion) -> Json:
    return {
        "name": companion.name,
        **_where(
            operation=companion.operation,
            mix=_mix(companion.mix),
            threads=None if companion.threads == 1 else companion.threads,
            rate_ops_s=companion.rate_ops_s,
        ),
    }


class _Dumper(yaml.SafeDumper):
    """Short mappings and lists on one line each, as people write them."""


def _represent(dumper: _Dumper, value: dict[str, Any] | list[Any], *, mapping: bool) -> yaml.Node:
    flow = len(str(value)) < _WIDTH - 30 and "phases" not in value
    if mapping:
        return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=flow)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=flow)


_Dumper.add_representer(dict, lambda dumper, value: _represent(dumper, value, mapping=True))
_Dumper.add_representer(list, lambda dumper, value: _represent(dumper, value, mapping=False))
