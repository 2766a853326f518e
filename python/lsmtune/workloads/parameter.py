"""The parameters of workloads, and the families of workloads that have them.

A parameter says what it means, what it may be, and how what was given is read. A family has a name,
its parameters, and how phases are made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lsmtune.errors import InputError, nearest_name
from lsmtune.model.fields import COUNT_MAX, read_count, read_fraction, read_number, read_size
from lsmtune.model.workload import (
    KEY_BYTES_MAX,
    KEY_BYTES_MIN,
    RATE_MAX,
    THREADS_MAX,
    VALUE_BYTES_MAX,
    Durability,
    PageCache,
    Workload,
)
from lsmtune.units import UnitError, parse_duration

ParameterValue = int | float | str | bool | None
Reader = Callable[[object], ParameterValue]

_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class WorkloadParameter:
    """One parameter of a workload: `default` None means "not set", which `description` explains.

    `names` are those of which a value is one, where it is a name.
    """

    name: str
    description: str
    default: ParameterValue
    unit: str
    allowed: str
    read: Reader
    names: tuple[str, ...] = ()

    def parse(self, value: object, source: str) -> ParameterValue:
        """`value` read and checked. Raises `InputError` naming `source` and this parameter."""
        try:
            return self.read(value)
        except UnitError as error:
            raise InputError(
                source,
                self.name,
                found=value,
                allowed=error.allowed if error.nearest else self.allowed,
                nearest=error.nearest,
            ) from None
        except ValueError:
            nearest = nearest_name(str(value), self.names)
            raise InputError(
                source, self.name, found=value, allowed=self.allowed, nearest=nearest
            ) from None


def read_positive(high: float) -> Callable[[object], float]:
    """A reader of numbers above 0, at most `high`, which raises ValueError."""

    def read(value: object) -> float:
        number = float(read_number(value))
        if not 0 < number <= high:
            raise ValueError(value)
        return number

    return read


def read_positive_duration(value: object) -> float:
    """A duration above 0, in seconds. Raises ValueError."""
    duration_s = parse_duration(value)
    if duration_s <= 0:
        raise ValueError(value)
    return duration_s


def read_one_of(names: tuple[str, ...]) -> Callable[[object], str]:
    """A reader of one of `names`, which raises ValueError."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise ValueError(value)
        return value

    return read


def read_text(value: object) -> str:
    """Text of one line. Raises ValueError."""
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError(value)
    return value


def read_truth(value: object) -> bool:
    """A truth value, also as text. Raises ValueError."""
    text = str(value).lower() if isinstance(value, str | bool) else ""
    if text not in _TRUTHS:
        raise ValueError(value)
    return _TRUTHS[text]


def count_parameter(
    name: str,
    description: str,
    default: int | None,
    low: int,
    high: int = COUNT_MAX,
    unit: str = "",
) -> WorkloadParameter:
    """A whole number from `low` to `high`."""
    allowed = f"a whole number from {low} to {high}"
    return WorkloadParameter(name, description, default, unit, allowed, read_count(low, high))


def size_parameter(
    name: str, description: str, default: int, low: int, high: int
) -> WorkloadParameter:
    """A size from `low` to `high` bytes."""
    allowed = f"{low} to {high} bytes"
    return WorkloadParameter(name, description, default, "bytes", allowed, read_size(low, high))


def choice_parameter(
    name: str, description: str, default: str, names: tuple[str, ...]
) -> WorkloadParameter:
    """One of `names`."""
    allowed = ", ".join(names)
    return WorkloadParameter(name, description, default, "", allowed, read_one_of(names), names)


def fraction_parameter(name: str, description: str, default: float) -> WorkloadParameter:
    """A number from 0 to 1."""
    return WorkloadParameter(name, description, default, "", "a number from 0 to 1", read_fraction)


def positive_parameter(
    name: str, description: str, default: float | None, high: float, unit: str = ""
) -> WorkloadParameter:
    """A number above 0, at most `high`."""
    allowed = f"a number above 0, at most {high:.12g}"
    return WorkloadParameter(name, description, default, unit, allowed, read_positive(high))


# --- The parameters of the db_bench-like workloads, and those that every family has.
#
# Names and meanings are those of RocksDB's db_bench where it has one (`num`, `reads`, `threads`,
# `seek_nexts`); sizes are per thread, as there.

LOAD_OPERATIONS = ("filluniquerandom", "fillseq", "fillrandom")


def compression_parameter(default: float) -> WorkloadParameter:
    """`compression_ratio` with `default`."""
    about = "compressed size of a value divided by its size"
    return positive_parameter("compression_ratio", about, default, 1.0)


DURATION = WorkloadParameter(
    name="duration_s",
    description="length of the measure phase, in place of its number of operations",
    default=None,
    unit="s",
    allowed="a duration above 0 (90s, 5m)",
    read=read_positive_duration,
)
DURABILITY = choice_parameter(
    "durability",
    "sync: each write is synced; wal: each write is logged; none: no write-ahead log",
    Durability.WAL.value,
    tuple(durability.value for durability in Durability),
)
PAGE_CACHE = choice_parameter(
    "page_cache",
    "of the database when measuring begins: warm: as it is; cold: empty; direct: not used",
    PageCache.WARM.value,
    tuple(cache.value for cache in PageCache),
)
RATE = positive_parameter(
    "rate_ops_s",
    "open loop: operations per second over all threads; closed loop when not set",
    None,
    RATE_MAX,
    unit="ops/s",
)
# Every family but the db_bench-like ones has these as well.
DATABASES = count_parameter("databases", "databases in one process, which share the keys", 1, 1, 64)
COLUMN_FAMILIES = count_parameter(
    "column_families", "column families of each database, which share its keys", 1, 1, 256
)
_PARAMETERS = (
    count_parameter(
        "num", "keys in the key space; a write phase does this many per thread", 1_000_000, 1
    ),
    count_parameter("reads", "reads per thread; num when not set", None, 1),
    size_parameter("key_bytes", "bytes of a key", 16, KEY_BYTES_MIN, KEY_BYTES_MAX),
    size_parameter("value_bytes", "bytes of a value", 100, 1, VALUE_BYTES_MAX),
    compression_parameter(0.5),
    count_parameter("threads", "threads of the measure phase", 1, 1, THREADS_MAX),
    DURATION,
    DURABILITY,
    PAGE_CACHE,
    RATE,
    count_parameter("seek_nexts", "entries read after each seek", 0, 0, 1_000_000),
    count_parameter(
        "warmup_operations", "operations per thread before measuring; 0: no warmup phase", 0, 0
    ),
    choice_parameter(
        "load",
        "how the database is filled first; filluniquerandom: each key once, in random order",
        LOAD_OPERATIONS[0],
        LOAD_OPERATIONS,
    ),
)

WORKLOAD_PARAMETERS = {parameter.name: parameter for parameter in _PARAMETERS}


# --- What a family of workloads is: a name, its parameters, and how phases are made of them.

Given = Mapping[str, Any]
Build = Callable[[Given, str], Workload]
Prepare = Callable[[Mapping[str, object], str], dict[str, object]]


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
    build: Build
    no_effect: Mapping[str, str] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)
    also: frozenset[str] = frozenset()
    prepare: Prepare = lambda given, _source: dict(given)
    figures: tuple[Figure, ...] = ()
    sizes: tuple[str, ...] = ("num",)
