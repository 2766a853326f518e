"""The parameters of workloads, and the families of workloads that have them.

A family has a name, its parameters, which are settings, and how phases are made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lsmtune.errors import InputError
from lsmtune.model.setting import Setting, above, duration, one_of, size, whole
from lsmtune.model.workload import (
    KEY_BYTES_MAX,
    KEY_BYTES_MIN,
    RATE_MAX,
    THREADS_MAX,
    VALUE_BYTES_MAX,
    Durability,
    PageCache,
    Phase,
    PhaseKind,
    Workload,
)


def settings_by_name(parameters: Sequence[Setting]) -> Mapping[str, Setting]:
    """`parameters` by their names, in this order."""
    return {parameter.name: parameter for parameter in parameters}


# --- The parameters of the db_bench-like workloads, and those that every family has.
#
# Names and meanings are those of RocksDB's db_bench where it has one (`num`, `reads`, `threads`,
# `seek_nexts`); sizes are per thread, as there.


def compression_parameter(default: float) -> Setting:
    """`compression_ratio` with `default`."""
    about = "compressed size of a value divided by its size"
    return Setting("compression_ratio", about, default, above(0, 1))


DURATION = Setting(
    "duration_s",
    "length of the measure phase, in place of its number of operations",
    None,
    duration("a duration above 0 (90s, 5m)"),
)
DURABILITY = Setting(
    "durability",
    "sync: each write is synced; wal: each write is logged; none: no write-ahead log",
    Durability.WAL.value,
    one_of(*(durability.value for durability in Durability)),
)
PAGE_CACHE = Setting(
    "page_cache",
    "of the database when measuring begins: warm: as it is; cold: empty; direct: not used",
    PageCache.WARM.value,
    one_of(*(cache.value for cache in PageCache)),
)
RATE = Setting(
    "rate_ops_s",
    "open loop: operations per second over all threads; closed loop when not set",
    None,
    above(0, RATE_MAX, unit="ops/s"),
)
# Every family but the db_bench-like ones has these as well.
DATABASES = Setting("databases", "databases in one process, which share the keys", 1, whole(1, 64))
COLUMN_FAMILIES = Setting(
    "column_families", "column families of each database, which share its keys", 1, whole(1, 256)
)

# Families of one load and one measured mix have this.
AGING = Setting(
    "aging",
    "overwrites of each record, on average, before measuring; 0: the tree is as it was loaded",
    0,
    whole(0, 100),
)


def aged(workload: Workload, writes_each: int) -> Workload:
    """`workload` whose records are overwritten so often, at random, before its measure phase.

    A tree that was loaded and has settled has all data in its last level, and reads are faster than
    they will ever be again: YCSB B began at 2 to 3 times the rate that it came down to. What reads
    then look for is read before, as often as there are records: what compactions wrote is cold, and
    the first second had a tenth of the rate. `workload` begins with a load of records, which are
    those of the mix that is measured.
    """
    if not writes_each:
        return workload
    phases = workload.phases
    place = next(n for n, phase in enumerate(phases) if phase.kind is PhaseKind.MEASURE)
    load, run = phases[0].mix, phases[place].mix
    if load is None or run is None:
        raise ValueError(f"{workload.name} has no mix to age for")
    plain = Phase("age", PhaseKind.WARMUP, threads=phases[place].threads)
    writes = replace(load, operations=(("put", 1.0),), records=run.records)
    warmups = [replace(plain, mix=writes, operations=writes_each * run.records)]
    reads = tuple((name, share) for name, share in run.operations if name in ("get", "scan"))
    if reads:
        mix = replace(run, operations=reads, insert_from=None, value_sizes=None)
        warmups.append(replace(plain, name="warm", mix=mix, operations=run.records))
    return replace(workload, phases=(*phases[:place], *warmups, *phases[place:]))


WORKLOAD_PARAMETERS = settings_by_name(
    (
        Setting(
            "num",
            "keys in the key space; a write phase does this many per thread",
            1_000_000,
            whole(1),
        ),
        Setting("reads", "reads per thread; num when not set", None, whole(1)),
        Setting("key_bytes", "bytes of a key", 16, size(KEY_BYTES_MIN, KEY_BYTES_MAX)),
        Setting("value_bytes", "bytes of a value", 100, size(1, VALUE_BYTES_MAX)),
        compression_parameter(0.5),
        Setting("threads", "threads of the measure phase", 1, whole(1, THREADS_MAX)),
        DURATION,
        DURABILITY,
        PAGE_CACHE,
        RATE,
        Setting("seek_nexts", "entries read after each seek", 0, whole(0, 1_000_000)),
        Setting(
            "warmup_operations",
            "operations per thread before measuring; 0: no warmup phase",
            0,
            whole(0),
        ),
        Setting(
            "load",
            "how the database is filled first; filluniquerandom: each key once, in random order",
            "filluniquerandom",
            one_of("filluniquerandom", "fillseq", "fillrandom"),
        ),
    )
)


# --- What a family of workloads is: a name, its parameters, and how phases are made of them.

Given = Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """A figure that a family stands on: what it is, its value, and who says so.

    `source` is empty for what nobody has published: `value` is then what stands in for it.
    """

    name: str
    value: str
    source: str = ""


@dataclass(frozen=True)
class WorkloadFamily:
    """Workloads of one name that differ in parameters.

    Args:
        build: Takes every parameter, typed, and the source that errors name.
        no_effect: The parameters that the family refuses, and why.
        ignored: Those that it accepts and has no use for, and why, which the user is told.
        also: Other names, which `prepare` turns into those of `parameters`.
        prepare: Takes what was given. Raises InputError for what cannot stand together.
        sizes: What grows with the workload; first the parameter that says how many keys there are.
    """

    name: str
    description: str
    parameters: Mapping[str, Setting]
    build: Callable[[Given, str], Workload]
    no_effect: Mapping[str, str] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)
    also: frozenset[str] = frozenset()
    prepare: Callable[[Mapping[str, object], str], dict[str, object]] = lambda given, _: dict(given)
    figures: tuple[Figure, ...] = ()
    sizes: tuple[str, ...] = ("num",)


def not_beside_duration(name: str, given: Mapping[str, object], source: str) -> dict[str, object]:
    """`given`. Raises InputError where it states `name` and `duration_s`, of which one counts."""
    if given.get(name) is not None and given.get("duration_s") is not None:
        why = "has no effect together with duration_s"
        raise InputError(source, name, why=why, allowed="one of the two")
    return dict(given)
