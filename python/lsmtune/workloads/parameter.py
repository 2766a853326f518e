"""The parameters of workloads, and the families of workloads that have them.

A parameter says what it means, what it may be, and how what was given is read. A family has a name,
its parameters, and how phases are made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lsmtune.errors import InputError, nearest_name
from lsmtune.model.fields import COUNT_MAX, read_count, read_fraction, read_real, read_size
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
from lsmtune.units import UnitError, parse_duration

ParameterValue = int | float | str | bool | None


@dataclass(frozen=True)
class WorkloadParameter:
    """One parameter of a workload: `default` None means "not set", which `description` explains.

    `names` are those of which a value is one, where it is a name. `read` raises ValueError.
    """

    name: str
    description: str
    default: ParameterValue
    unit: str
    allowed: str
    read: Callable[[object], ParameterValue]
    names: tuple[str, ...] = ()

    def parse(self, value: object, source: str) -> ParameterValue:
        """`value` read and checked. Raises `InputError` naming `source` and this parameter."""
        try:
            return self.read(value)
        except UnitError as error:
            allowed = error.allowed if error.nearest else self.allowed
            nearest = error.nearest
        except ValueError:
            allowed, nearest = self.allowed, nearest_name(str(value), self.names)
        raise InputError(source, self.name, found=value, allowed=allowed, nearest=nearest)


def whole(
    name: str, about: str, default: int | None, low: int, high: int = COUNT_MAX, unit: str = ""
) -> WorkloadParameter:
    """A whole number from `low` to `high`."""
    allowed = f"a whole number from {low} to {high}"
    return WorkloadParameter(name, about, default, unit, allowed, read_count(low, high))


def size(name: str, about: str, default: int, low: int, high: int) -> WorkloadParameter:
    """A size from `low` to `high` bytes."""
    allowed = f"{low} to {high} bytes"
    return WorkloadParameter(name, about, default, "bytes", allowed, read_size(low, high))


def one_of(name: str, about: str, names: Sequence[str], default: str = "") -> WorkloadParameter:
    """One of `names`; the first is the default unless `default` names another."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise ValueError(value)
        return value

    default = default or names[0]
    return WorkloadParameter(name, about, default, "", ", ".join(names), read, tuple(names))


def share(name: str, about: str, default: float) -> WorkloadParameter:
    """A number from 0 to 1."""
    return WorkloadParameter(name, about, default, "", "a number from 0 to 1", read_fraction)


def above_zero(
    name: str, about: str, default: float | None, high: float, unit: str = ""
) -> WorkloadParameter:
    """A number above 0, at most `high`."""
    allowed = f"a number above 0, at most {high:.12g}"
    read = read_real(lambda number: 0 < number <= high)
    return WorkloadParameter(name, about, default, unit, allowed, read)


def duration(name: str, about: str, allowed: str) -> WorkloadParameter:
    """A time above 0, in seconds, that need not be set."""

    def read(value: object) -> float:
        duration_s = parse_duration(value)
        if duration_s <= 0:
            raise ValueError(value)
        return duration_s

    return WorkloadParameter(name, about, None, "s", allowed, read)


def text(name: str, about: str, default: str) -> WorkloadParameter:
    """Text of one line."""

    def read(value: object) -> str:
        if not isinstance(value, str) or not value.isprintable():
            raise ValueError(value)
        return value

    return WorkloadParameter(name, about, default, "", "text of one line", read)


def by_name(parameters: Sequence[WorkloadParameter]) -> Mapping[str, WorkloadParameter]:
    """`parameters` by their names, in this order."""
    return {parameter.name: parameter for parameter in parameters}


# --- The parameters of the db_bench-like workloads, and those that every family has.
#
# Names and meanings are those of RocksDB's db_bench where it has one (`num`, `reads`, `threads`,
# `seek_nexts`); sizes are per thread, as there.


def compression_parameter(default: float) -> WorkloadParameter:
    """`compression_ratio` with `default`."""
    about = "compressed size of a value divided by its size"
    return above_zero("compression_ratio", about, default, 1.0)


DURATION = duration(
    "duration_s",
    "length of the measure phase, in place of its number of operations",
    "a duration above 0 (90s, 5m)",
)
DURABILITY = one_of(
    "durability",
    "sync: each write is synced; wal: each write is logged; none: no write-ahead log",
    tuple(durability.value for durability in Durability),
    Durability.WAL.value,
)
PAGE_CACHE = one_of(
    "page_cache",
    "of the database when measuring begins: warm: as it is; cold: empty; direct: not used",
    tuple(cache.value for cache in PageCache),
)
RATE = above_zero(
    "rate_ops_s",
    "open loop: operations per second over all threads; closed loop when not set",
    None,
    RATE_MAX,
    unit="ops/s",
)
# Every family but the db_bench-like ones has these as well.
DATABASES = whole("databases", "databases in one process, which share the keys", 1, 1, 64)
COLUMN_FAMILIES = whole(
    "column_families", "column families of each database, which share its keys", 1, 1, 256
)

# Families of one load and one measured mix have this.
AGING = whole(
    "aging",
    "overwrites of each record, on average, before measuring; 0: the tree is as it was loaded",
    *(0, 0, 100),
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
    load, *others = workload.phases
    place = next(n for n, phase in enumerate(others) if phase.kind is PhaseKind.MEASURE)
    run = others[place].mix
    if load.mix is None or run is None:
        raise ValueError(f"{workload.name} has no mix to age for")
    reads = tuple((name, share) for name, share in run.operations if name in ("get", "scan"))
    mixes = [
        ("age", replace(load.mix, operations=(("put", 1.0),), records=run.records), writes_each),
        ("warm", replace(run, operations=reads, insert_from=None, value_sizes=None), 1),
    ]
    phases = (
        Phase(
            name,
            PhaseKind.WARMUP,
            mix=mix,
            operations=each * run.records,
            threads=others[place].threads,
        )
        for name, mix, each in mixes
        if mix.operations
    )
    return replace(workload, phases=(load, *others[:place], *phases, *others[place:]))


WORKLOAD_PARAMETERS = by_name(
    (
        whole(
            "num", "keys in the key space; a write phase does this many per thread", 1_000_000, 1
        ),
        whole("reads", "reads per thread; num when not set", None, 1),
        size("key_bytes", "bytes of a key", 16, KEY_BYTES_MIN, KEY_BYTES_MAX),
        size("value_bytes", "bytes of a value", 100, 1, VALUE_BYTES_MAX),
        compression_parameter(0.5),
        whole("threads", "threads of the measure phase", 1, 1, THREADS_MAX),
        DURATION,
        DURABILITY,
        PAGE_CACHE,
        RATE,
        whole("seek_nexts", "entries read after each seek", 0, 0, 1_000_000),
        whole(
            "warmup_operations", "operations per thread before measuring; 0: no warmup phase", 0, 0
        ),
        one_of(
            "load",
            "how the database is filled first; filluniquerandom: each key once, in random order",
            ("filluniquerandom", "fillseq", "fillrandom"),
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

    `build` takes every parameter, typed, and the source that errors name. `no_effect` maps the
    parameters that the family refuses to the reason; `ignored` those that it accepts and has no
    use for, which the user is told. `prepare` turns what was given, names of `also` included, into
    the names of `parameters`, and raises InputError for what cannot stand together. `sizes` are the
    parameters that grow with the workload: first the one that says how many keys there are.
    """

    name: str
    description: str
    parameters: Mapping[str, WorkloadParameter]
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
