"""A Workload as the text of a workload file: the inverse of reading one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from lsmtune.records.workload import (
    Distribution,
    Durability,
    PageCache,
    Phase,
    PhaseKind,
    Workload,
)
from lsmtune.workloads.distributions import distribution_document
from lsmtune.workloads.parts_document import doing_document, keys_document, where_given

Json = dict[str, Any]
_WIDTH = 100


def workload_text(workload: Workload, comments: Sequence[str] = ()) -> str:
    """The workload file that reads as `workload`, after `comments`, a line each."""
    head = "".join(f"# {' '.join(comment.split())}\n" for comment in comments)
    body = yaml.dump(workload_document(workload), Dumper=_Dumper, sort_keys=False, width=_WIDTH)
    return head + body


def workload_document(workload: Workload) -> Json:
    """What a workload file says of `workload`; what has its default value is left out."""
    sizes = workload.key_sizes
    several = {"databases": workload.databases, "column_families": workload.column_families}
    return {
        "version": 1,
        "name": workload.name,
        "num": workload.num,
        **({} if workload.keys is not None else {"key_bytes": workload.key_bytes}),
        "value_bytes": workload.value_bytes,
        "compression_ratio": workload.compression_ratio,
        **where_given(
            durability=_unless(workload.durability, Durability.WAL),
            page_cache=_unless(workload.page_cache, PageCache.WARM),
            keys=keys_document(workload.keys),
            key_sizes=sizes and _stated(sizes),
            **{name: count for name, count in several.items() if count != 1},
        ),
        "phases": [_phase(phase) for phase in workload.phases],
    }


def _unless(value: Durability | PageCache, default: object) -> str | None:
    return None if value is default else value.value


def _stated(distribution: Distribution) -> Any:
    return distribution_document(distribution) if distribution.parameters else distribution.name


def _phase(phase: Phase) -> Json:
    named = {"name": phase.name, "kind": phase.kind.value}
    if phase.kind is PhaseKind.SETTLE:
        return named
    return named | doing_document(phase, _stated)


class _Dumper(yaml.SafeDumper):
    """Short mappings and lists on one line each, as people write them."""


def _represent(dumper: _Dumper, value: dict[str, Any] | list[Any], *, mapping: bool) -> yaml.Node:
    flow = len(str(value)) < _WIDTH - 30 and "phases" not in value
    if mapping:
        return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=flow)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=flow)


_Dumper.add_representer(dict, lambda dumper, value: _represent(dumper, value, mapping=True))
_Dumper.add_representer(list, lambda dumper, value: _represent(dumper, value, mapping=False))
