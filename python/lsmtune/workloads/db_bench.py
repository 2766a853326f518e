"""The db_bench-like workloads: phases that repeat one operation of db_bench each.

What each does, and which parameters have a meaning in it, is data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lsmtune.errors import InputError
from lsmtune.model.workload import Durability, PageCache, Phase, PhaseKind, Workload
from lsmtune.workloads.parameter import WORKLOAD_PARAMETERS, Given, WorkloadFamily


@dataclass(frozen=True)
class NamedWorkload:
    """A workload; those of db_bench's name have its meaning.

    `loaded` workloads work on a database that is loaded and settled first. `no_effect` maps the
    parameters that this workload has no use for to the reason, which the user is told. `passes`
    are its measure phases, name and operation, where it is not one phase of its own name; in each
    of them all keys come up exactly once over all threads.
    """

    name: str
    description: str
    loaded: bool
    no_effect: dict[str, str] = field(default_factory=dict)
    passes: tuple[tuple[str, str], ...] = ()


_NO_LOAD = {
    "load": "it starts from an empty database",
    "warmup_operations": "it starts from an empty database",
}
_NO_READS = {"reads": "it does not read; num is its number of operations per thread"}
_NO_SEEKS = {"seek_nexts": "it does not seek"}
_IN_ORDER = {"duration_s": "it ends after the last key"}

_WORKLOADS = (
    NamedWorkload(
        "fillseq",
        "write num keys in order into an empty database",
        loaded=False,
        no_effect=_NO_LOAD | _NO_READS | _NO_SEEKS | _IN_ORDER,
    ),
    NamedWorkload(
        "fillrandom",
        "write num random keys into an empty database",
        loaded=False,
        no_effect=_NO_LOAD | _NO_READS | _NO_SEEKS,
    ),
    NamedWorkload(
        "overwrite",
        "write num random keys over a loaded database",
        loaded=True,
        no_effect=_NO_READS | _NO_SEEKS,
    ),
    NamedWorkload(
        "readseq", "iterate over the keys in order", loaded=True, no_effect=_NO_SEEKS | _IN_ORDER
    ),
    NamedWorkload("readrandom", "get random keys", loaded=True, no_effect=_NO_SEEKS),
    NamedWorkload("readmissing", "get keys that are absent", loaded=True, no_effect=_NO_SEEKS),
    NamedWorkload(
        "readhot", "get random keys of the first hundredth", loaded=True, no_effect=_NO_SEEKS
    ),
    NamedWorkload("seekrandom", "seek to random keys, then read seek_nexts entries", loaded=True),
    NamedWorkload(
        "deleterandom",
        "delete num random keys of a loaded database",
        loaded=True,
        no_effect=_NO_READS
        | _NO_SEEKS
        | {"warmup_operations": "a warmup would delete what the measure phase is to delete"},
    ),
    NamedWorkload(
        "readwhilewriting",
        "get random keys in the given threads while one more thread writes",
        loaded=True,
        no_effect=_NO_SEEKS,
    ),
    NamedWorkload(
        "put-get-delete",
        "put num keys into an empty database, get each in another order, delete each in a third",
        loaded=False,
        no_effect=_NO_LOAD
        | _NO_SEEKS
        | {
            "reads": "each of its phases meets every key once",
            "duration_s": "each of its phases meets every key once",
        },
        passes=(
            ("put", "filluniquerandom"),
            ("get", "readuniquerandom"),
            ("delete", "deleteuniquerandom"),
        ),
    ),
)

NAMED_WORKLOADS = {workload.name: workload for workload in _WORKLOADS}


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
