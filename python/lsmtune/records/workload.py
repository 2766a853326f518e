"""A Workload: a list of phases on one database, as the driver performs it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Durability(StrEnum):
    """What a crash may cost: part of the workload, never of the tuning."""

    SYNC = "sync"
    WAL = "wal"
    NONE = "none"


class PageCache(StrEnum):
    """What of the database the kernel holds in memory when a measure phase begins.

    `warm`: whatever the phases before left there. `cold`: nothing. `direct`: the engine reads and
    writes past the kernel's cache, by options of its own.
    """

    WARM = "warm"
    COLD = "cold"
    DIRECT = "direct"


class PhaseKind(StrEnum):
    """What a phase is for; only `measure` phases carry objectives."""

    LOAD = "load"
    SETTLE = "settle"
    WARMUP = "warmup"
    MEASURE = "measure"


@dataclass(frozen=True)
class Phase:
    """One phase. A `settle` phase has no operation; every other has an operation and a size.

    The size is `operations_per_thread` (db_bench's sense: each thread performs that many),
    `duration_s`, or both, and then whichever comes first. `rate_ops_s` makes the phase open-loop:
    the target over all threads, latency taken from the intended start.
    """

    name: str
    kind: PhaseKind
    operation: str | None = None
    operations_per_thread: int | None = None
    duration_s: float | None = None
    threads: int = 1
    rate_ops_s: float | None = None
    seek_nexts: int = 0


@dataclass(frozen=True)
class Workload:
    """Phases over `num` keys of `key_bytes` with values of `value_bytes`.

    `compression_ratio` is the compressed size of a value divided by its size, as in db_bench.
    """

    name: str
    phases: tuple[Phase, ...]
    num: int
    key_bytes: int = 16
    value_bytes: int = 100
    compression_ratio: float = 0.5
    durability: Durability = Durability.WAL
    page_cache: PageCache = PageCache.WARM
