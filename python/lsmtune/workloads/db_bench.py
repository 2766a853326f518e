"""The db_bench-like workloads: phases that repeat one operation of db_bench each.

What each does, and which parameters have a meaning in it, is data.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from lsmtune.errors import InputError
from lsmtune.model.workload import Durability, PageCache, Phase, PhaseKind, Workload
from lsmtune.workloads.parameter import (
    WORKLOAD_PARAMETERS,
    Given,
    WorkloadFamily,
    not_beside_duration,
)


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
    loaded: bool = True
    no_effect: dict[str, str] = field(default_factory=dict)
    passes: tuple[tuple[str, str], ...] = ()


_NO_LOAD = {
    "load": "it starts from an empty database",
    "warmup_operations": "it starts from an empty database",
}
_NO_READS = {"reads": "it does not read; num is its number of operations per thread"}
_NO_SEEKS = {"seek_nexts": "it does not seek"}
_IN_ORDER = {"duration_s": "it ends after the last key"}

_EACH_KEY_ONCE = "each of its phases meets every key once"
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
        "overwrite", "write num random keys over a loaded database", no_effect=_NO_READS | _NO_SEEKS
    ),
    NamedWorkload("readseq", "iterate over the keys in order", no_effect=_NO_SEEKS | _IN_ORDER),
    NamedWorkload("readrandom", "get random keys", no_effect=_NO_SEEKS),
    NamedWorkload("readmissing", "get keys that are absent", no_effect=_NO_SEEKS),
    NamedWorkload("readhot", "get random keys of the first hundredth", no_effect=_NO_SEEKS),
    NamedWorkload("seekrandom", "seek to random keys, then read seek_nexts entries"),
    NamedWorkload(
        "deleterandom",
        "delete num random keys of a loaded database",
        no_effect=_NO_READS
        | _NO_SEEKS
        | {"warmup_operations": "a warmup would delete what the measure phase is to delete"},
    ),
    NamedWorkload(
        "readwhilewriting",
        "get random keys in the given threads while one more thread writes",
        no_effect=_NO_SEEKS,
    ),
    NamedWorkload(
        "put-get-delete",
        "put num keys into an empty database, get each in another order, delete each in a third",
        loaded=False,
        no_effect=_NO_LOAD | _NO_SEEKS | dict.fromkeys(("reads", "duration_s"), _EACH_KEY_ONCE),
        passes=(
            ("put", "filluniquerandom"),
            ("get", "readuniquerandom"),
            ("delete", "deleteuniquerandom"),
        ),
    ),
)


def _build(named: NamedWorkload, given: Given, source: str) -> Workload:
    if named.passes and given["num"] % given["threads"]:
        raise InputError(
            source,
            "threads",
            found=given["threads"],
            allowed=f"a divisor of num, {given['num']}",
            why="the threads share the keys evenly",
        )
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


def _phases(named: NamedWorkload, given: Given) -> tuple[Phase, ...]:
    phase = Phase(
        name=named.name,
        kind=PhaseKind.MEASURE,
        operation=named.name,
        threads=given["threads"],
        seek_nexts=given.get("seek_nexts", 0),
    )
    rated = replace(phase, rate_ops_s=given["rate_ops_s"])
    if named.passes:
        each = given["num"] // given["threads"]
        rated = replace(rated, operations_per_thread=each)
        return tuple(
            replace(rated, name=name, operation=operation) for name, operation in named.passes
        )
    duration_s, reads = given.get("duration_s"), given.get("reads")
    operations = given["num"] if reads is None else reads
    measure = replace(
        rated,
        operations_per_thread=None if duration_s is not None else operations,
        duration_s=duration_s,
    )
    if not named.loaded:
        return (measure,)
    load = Phase("load", PhaseKind.LOAD, given["load"], operations_per_thread=given["num"])
    warmup = replace(
        phase,
        name="warmup",
        kind=PhaseKind.WARMUP,
        operations_per_thread=given.get("warmup_operations"),
    )
    warmups = (warmup,) if given.get("warmup_operations") else ()
    return (load, Phase("settle", PhaseKind.SETTLE), *warmups, measure)


DB_BENCH_FAMILIES = tuple(
    WorkloadFamily(
        name=named.name,
        description=named.description,
        parameters={
            name: parameter
            for name, parameter in WORKLOAD_PARAMETERS.items()
            if name not in named.no_effect
        },
        build=partial(_build, named),
        no_effect=named.no_effect,
        prepare=partial(not_beside_duration, "reads"),
    )
    for named in _WORKLOADS
)
