"""The db_bench-like workloads: phases that repeat one operation of db_bench each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from lsmtune.errors import InputError
from lsmtune.records.workload import Durability, PageCache, Phase, PhaseKind, Workload
from lsmtune.workloads.family import Given, WorkloadFamily
from lsmtune.workloads.named import NAMED_WORKLOADS, NamedWorkload
from lsmtune.workloads.parameters import WORKLOAD_PARAMETERS


def _family(named: NamedWorkload) -> WorkloadFamily:
    return WorkloadFamily(
        name=named.name,
        description=named.description,
        parameters={
            name: parameter
            for name, parameter in WORKLOAD_PARAMETERS.items()
            if name not in named.no_effect
        },
        build=partial(_build, named),
        no_effect=named.no_effect,
        prepare=_prepare,
    )


def _prepare(given: Mapping[str, object], source: str) -> dict[str, object]:
    if given.get("reads") is not None and given.get("duration_s") is not None:
        raise InputError(
            source, "reads", why="has no effect together with duration_s", allowed="one of the two"
        )
    return dict(given)


def _build(named: NamedWorkload, given: Given, source: str) -> Workload:
    _check_shares(named, given, source)
    return Workload(
        name=named.name,
        phases=_phases(named, given),
        num=given["num"],
        key_bytes=given["key_bytes"],
        value_bytes=given["value_bytes"],
        compression_ratio=given["compression_ratio"],
        durability=Durability(given["durability"]),
        page_cache=PageCache(given["page_cache"]),
    )


def _check_shares(named: NamedWorkload, given: Mapping[str, Any], source: str) -> None:
    if named.passes and given["num"] % given["threads"]:
        raise InputError(
            source,
            "threads",
            found=given["threads"],
            allowed=f"a divisor of num, {given['num']}",
            why="the threads share the keys evenly",
        )


def _phases(named: NamedWorkload, given: Mapping[str, Any]) -> tuple[Phase, ...]:
    if named.passes:
        return _passes(named, given)
    measure = Phase(
        name=named.name,
        kind=PhaseKind.MEASURE,
        operation=named.name,
        operations_per_thread=_operations_per_thread(given),
        duration_s=given.get("duration_s"),
        threads=given["threads"],
        rate_ops_s=given["rate_ops_s"],
        seek_nexts=given.get("seek_nexts", 0),
    )
    if not named.loaded:
        return (measure,)
    load = Phase("load", PhaseKind.LOAD, given["load"], operations_per_thread=given["num"])
    phases = [load, Phase("settle", PhaseKind.SETTLE)]
    if given.get("warmup_operations"):
        phases.append(
            Phase(
                name="warmup",
                kind=PhaseKind.WARMUP,
                operation=named.name,
                operations_per_thread=given["warmup_operations"],
                threads=given["threads"],
                seek_nexts=given.get("seek_nexts", 0),
            )
        )
    return (*phases, measure)


def _passes(named: NamedWorkload, given: Mapping[str, Any]) -> tuple[Phase, ...]:
    return tuple(
        Phase(
            name=name,
            kind=PhaseKind.MEASURE,
            operation=operation,
            operations_per_thread=given["num"] // given["threads"],
            threads=given["threads"],
            rate_ops_s=given["rate_ops_s"],
        )
        for name, operation in named.passes
    )


def _operations_per_thread(given: Mapping[str, Any]) -> int | None:
    if given.get("duration_s") is not None:
        return None
    reads: int | None = given.get("reads")
    num: int = given["num"]
    return num if reads is None else reads


DB_BENCH_FAMILIES = tuple(_family(named) for named in NAMED_WORKLOADS.values())
