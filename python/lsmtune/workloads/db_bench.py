"""The db_bench-like workloads: phases that repeat one operation of db_bench each.

What each does, and which parameters have a meaning in it, is data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from lsmtune.errors import InputError
from lsmtune.model.workload import Durability, PageCache, Phase, PhaseKind, Workload
from lsmtune.workloads.parameter import (
    WORKLOAD_PARAMETERS,
    Given,
    WorkloadFamily,
    not_beside_duration,
)

Passes = tuple[tuple[str, str], ...]

_NO_LOAD = {
    "load": "it starts from an empty database",
    "warmup_operations": "it starts from an empty database",
}
_NO_READS = {"reads": "it does not read; num is its number of operations per thread"}
_NO_SEEKS = {"seek_nexts": "it does not seek"}
_IN_ORDER = {"duration_s": "it ends after the last key"}

_EACH_KEY_ONCE = "each of its phases meets every key once"


def _build(name: str, loaded: bool, passes: Passes, given: Given, source: str) -> Workload:
    if passes and given["num"] % given["threads"]:
        why, allowed = "the threads share the keys evenly", f"a divisor of num, {given['num']}"
        raise InputError(source, "threads", found=given["threads"], why=why, allowed=allowed)
    return Workload(
        name=name,
        phases=_phases(name, loaded, passes, given),
        num=given["num"],
        key_bytes=given["key_bytes"],
        value_bytes=given["value_bytes"],
        compression_ratio=given["compression_ratio"],
        durability=Durability(given["durability"]),
        page_cache=PageCache(given["page_cache"]),
    )


def _phases(name: str, loaded: bool, passes: Passes, given: Given) -> tuple[Phase, ...]:
    phase = Phase(
        name=name,
        kind=PhaseKind.MEASURE,
        operation=name,
        threads=given["threads"],
        seek_nexts=given.get("seek_nexts", 0),
    )
    rated = replace(phase, rate_ops_s=given["rate_ops_s"])
    if passes:
        each = given["num"] // given["threads"]
        rated = replace(rated, operations_per_thread=each)
        return tuple(
            replace(rated, name=of_pass, operation=operation) for of_pass, operation in passes
        )
    duration_s, reads = given.get("duration_s"), given.get("reads")
    operations = given["num"] if reads is None else reads
    measure = replace(
        rated,
        operations_per_thread=None if duration_s is not None else operations,
        duration_s=duration_s,
    )
    if not loaded:
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


def _family(
    name: str,
    description: str,
    no_effect: Mapping[str, str],
    *,
    loaded: bool = True,
    passes: Passes = (),
) -> WorkloadFamily:
    """A workload; those of db_bench's name have its meaning.

    `no_effect` maps the parameters that this workload has no use for to the reason, which the user
    is told. `loaded` workloads work on a database that is loaded and settled first. `passes` are
    its measure phases, name and operation, where it is not one phase of its own name; in each of
    them all keys come up exactly once over all threads.
    """
    parameters = WORKLOAD_PARAMETERS.items()
    return WorkloadFamily(
        name=name,
        description=description,
        parameters={each: parameter for each, parameter in parameters if each not in no_effect},
        build=partial(_build, name, loaded, passes),
        no_effect=no_effect,
        prepare=partial(not_beside_duration, "reads"),
    )


DB_BENCH_FAMILIES = (
    _family(
        "fillseq",
        "write num keys in order into an empty database",
        _NO_LOAD | _NO_READS | _NO_SEEKS | _IN_ORDER,
        loaded=False,
    ),
    _family(
        "fillrandom",
        "write num random keys into an empty database",
        _NO_LOAD | _NO_READS | _NO_SEEKS,
        loaded=False,
    ),
    _family("overwrite", "write num random keys over a loaded database", _NO_READS | _NO_SEEKS),
    _family("readseq", "iterate over the keys in order", _NO_SEEKS | _IN_ORDER),
    _family("readrandom", "get random keys", _NO_SEEKS),
    _family("readmissing", "get keys that are absent", _NO_SEEKS),
    _family("readhot", "get random keys of the first hundredth", _NO_SEEKS),
    _family("seekrandom", "seek to random keys, then read seek_nexts entries", {}),
    _family(
        "deleterandom",
        "delete num random keys of a loaded database",
        _NO_READS
        | _NO_SEEKS
        | {"warmup_operations": "a warmup would delete what the measure phase is to delete"},
    ),
    _family(
        "readwhilewriting",
        "get random keys in the given threads while one more thread writes",
        _NO_SEEKS,
    ),
    _family(
        "put-get-delete",
        "put num keys into an empty database, get each in another order, delete each in a third",
        _NO_LOAD | _NO_SEEKS | dict.fromkeys(("reads", "duration_s"), _EACH_KEY_ONCE),
        loaded=False,
        passes=(
            ("put", "filluniquerandom"),
            ("get", "readuniquerandom"),
            ("delete", "deleteuniquerandom"),
        ),
    ),
)
