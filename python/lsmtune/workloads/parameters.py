"""The parameters of a workload: meaning, default, bounds, and reading what the user gave.

Names and meanings are those of RocksDB's db_bench where it has one (`num`, `reads`, `threads`,
`seek_nexts`); sizes are per thread, as there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from lsmtune.errors import InputError
from lsmtune.records.workload import Durability, PageCache
from lsmtune.units import UnitError, option_value, parse_bytes, parse_duration

ParameterValue = int | float | str | None

# A key starts with the key's number, 8 bytes big-endian, as in db_bench.
KEY_BYTES_MIN = 8
LOAD_OPERATIONS = ("filluniquerandom", "fillseq", "fillrandom")
_COUNT_MAX = 2**53  # the largest whole number that every JSON reader keeps exactly


@dataclass(frozen=True)
class WorkloadParameter:
    """One parameter of a workload: `default` None means "not set", which `description` explains."""

    name: str
    description: str
    default: ParameterValue
    unit: str
    allowed: str
    read: Callable[[object], ParameterValue]

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
            raise InputError(source, self.name, found=value, allowed=self.allowed) from None


def _number(value: object) -> int | float:
    typed = option_value(value) if isinstance(value, str) else value
    if isinstance(typed, bool) or not isinstance(typed, int | float) or not math.isfinite(typed):
        raise ValueError(value)
    return typed


def _count(low: int, high: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        number = _number(value)
        if number != int(number) or not low <= number <= high:
            raise ValueError(value)
        return int(number)

    return read


def _size(low: int, high: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        size = parse_bytes(value)
        if not low <= size <= high:
            raise ValueError(value)
        return size

    return read


def _positive(high: float) -> Callable[[object], float]:
    def read(value: object) -> float:
        number = float(_number(value))
        if not 0 < number <= high:
            raise ValueError(value)
        return number

    return read


def _positive_duration(value: object) -> float:
    duration_s = parse_duration(value)
    if duration_s <= 0:
        raise ValueError(value)
    return duration_s


def _one_of(names: tuple[str, ...]) -> Callable[[object], str]:
    def read(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise ValueError(value)
        return value

    return read


def _count_parameter(
    name: str,
    description: str,
    default: int | None,
    low: int,
    high: int = _COUNT_MAX,
    unit: str = "",
) -> WorkloadParameter:
    allowed = f"a whole number from {low} to {high}"
    return WorkloadParameter(name, description, default, unit, allowed, _count(low, high))


def _size_parameter(
    name: str, description: str, default: int, low: int, high: int
) -> WorkloadParameter:
    allowed = f"{low} to {high} bytes"
    return WorkloadParameter(name, description, default, "bytes", allowed, _size(low, high))


def _choice_parameter(
    name: str, description: str, default: str, names: tuple[str, ...]
) -> WorkloadParameter:
    return WorkloadParameter(name, description, default, "", ", ".join(names), _one_of(names))


_PARAMETERS = (
    _count_parameter(
        "num", "keys in the key space; a write phase does this many per thread", 1_000_000, 1
    ),
    _count_parameter("reads", "reads per thread; num when not set", None, 1),
    _size_parameter("key_bytes", "bytes of a key", 16, KEY_BYTES_MIN, 65535),
    _size_parameter("value_bytes", "bytes of a value", 100, 1, 2**20),
    WorkloadParameter(
        name="compression_ratio",
        description="compressed size of a value divided by its size",
        default=0.5,
        unit="",
        allowed="a number above 0, at most 1",
        read=_positive(1.0),
    ),
    _count_parameter("threads", "threads of the measure phase", 1, 1, 1024),
    WorkloadParameter(
        name="duration_s",
        description="length of the measure phase, in place of its number of operations",
        default=None,
        unit="s",
        allowed="a duration above 0 (90s, 5m)",
        read=_positive_duration,
    ),
    _choice_parameter(
        "durability",
        "sync: each write is synced; wal: each write is logged; none: no write-ahead log",
        Durability.WAL.value,
        tuple(durability.value for durability in Durability),
    ),
    _choice_parameter(
        "page_cache",
        "of the database when measuring begins: warm: as it is; cold: empty; direct: not used",
        PageCache.WARM.value,
        tuple(cache.value for cache in PageCache),
    ),
    WorkloadParameter(
        name="rate_ops_s",
        description="open loop: operations per second over all threads; closed loop when not set",
        default=None,
        unit="ops/s",
        allowed="a number above 0, at most 1000000000",
        read=_positive(1e9),
    ),
    _count_parameter("seek_nexts", "entries read after each seek", 0, 0, 1_000_000),
    _count_parameter(
        "warmup_operations", "operations per thread before measuring; 0: no warmup phase", 0, 0
    ),
    _choice_parameter(
        "load",
        "how the database is filled first; filluniquerandom: each key once, in random order",
        LOAD_OPERATIONS[0],
        LOAD_OPERATIONS,
    ),
)

WORKLOAD_PARAMETERS = {parameter.name: parameter for parameter in _PARAMETERS}
