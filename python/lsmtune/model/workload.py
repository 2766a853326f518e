"""A Workload: a list of phases on one database, as the driver performs it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


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


Number = int | float
ParameterOf: TypeAlias = "Number | tuple[tuple[Number, Number], ...] | Distribution"


@dataclass(frozen=True)
class Distribution:
    """How keys, sizes or lengths are drawn: a name, and what it needs, in the driver's words.

    `docs/workloads.md` lists the names. A parameter is a number, a list of pairs (`table`), or
    another distribution (`row`).
    """

    name: str
    parameters: tuple[tuple[str, ParameterOf], ...] = ()

    @classmethod
    def of(cls, name: str, **parameters: ParameterOf) -> Distribution:
        """The distribution `name` with `parameters`, in the order given."""
        return cls(name, tuple(parameters.items()))

    def get(self, name: str) -> ParameterOf | None:
        """The parameter `name`; None where it is not given."""
        return dict(self.parameters).get(name)


class KeyOrder(StrEnum):
    """Whether records that are inserted one after another are neighbours in key order."""

    ORDERED = "ordered"
    HASHED = "hashed"


@dataclass(frozen=True)
class YcsbKeys:
    """Keys as YCSB builds them: `prefix`, then the number, hashed or not, in decimal digits."""

    prefix: str = "user"
    zero_padding: int = 1
    order: KeyOrder = KeyOrder.HASHED


@dataclass(frozen=True)
class Mix:
    """What each thread of a phase draws again and again: an operation, a key, a size.

    `operations` are names and weights, in order. Key numbers `first` to `first + records - 1` exist
    when the phase begins; inserts go on from `insert_from` (`first + records` where None). In a
    share `operation_by_key` of the draws the key decides the operation, always the same one.
    """

    operations: tuple[tuple[str, float], ...]
    records: int
    keys: Distribution = Distribution("uniform")
    first: int = 0
    insert_from: int | None = None
    scan_lengths: Distribution | None = None
    value_sizes: Distribution | None = None
    operation_by_key: float | None = None


@dataclass(frozen=True)
class SineRate:
    """Open loop: mean + amplitude * sin(2 pi (t + offset) / period) operations per second."""

    mean_ops_s: float
    amplitude_ops_s: float
    period_s: float
    offset_s: float = 0.0


@dataclass(frozen=True)
class StepRate:
    """Open loop: for each (seconds, operations per second) in turn, and again from the first."""

    steps: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Replay:
    """Operations of a recorded trace, at `speed` times its own pace; None: as fast as it goes."""

    path: str
    speed: float | None = None


@dataclass(frozen=True)
class Companion:
    """Threads that work beside a phase for as long as it lasts; not counted in its operations.

    Exactly one of `operation` and `mix`.
    """

    name: str
    operation: str | None = None
    mix: Mix | None = None
    threads: int = 1
    rate_ops_s: float | None = None


@dataclass(frozen=True)
class Phase:
    """One phase. A `settle` phase does nothing; every other has something to do and a size.

    It does one of `operation` (a db_bench-like loop by name), `mix` and `replay`. The size is
    `operations_per_thread` (db_bench's sense: each thread performs that many), `operations` (YCSB's
    sense: over all threads), `duration_s`, or one of the former and the latter, and then whichever
    comes first; a replay may go without and ends with its trace. `rate_ops_s` or `rate` makes the
    phase open-loop: the target over all threads, latency taken from the intended start.
    """

    name: str
    kind: PhaseKind
    operation: str | None = None
    operations_per_thread: int | None = None
    duration_s: float | None = None
    threads: int = 1
    rate_ops_s: float | None = None
    seek_nexts: int = 0
    mix: Mix | None = None
    replay: Replay | None = None
    operations: int | None = None
    rate: SineRate | StepRate | None = None
    companions: tuple[Companion, ...] = ()

    @property
    def operations_whole(self) -> int | None:
        """Operations of all threads together; None where time or a trace ends the phase."""
        if self.operations is not None:
            return self.operations
        each = self.operations_per_thread
        return None if each is None else each * self.threads

    @property
    def is_open_loop(self) -> bool:
        """Whether operations start at given times."""
        return (
            self.rate_ops_s is not None
            or self.rate is not None
            or (self.replay is not None and self.replay.speed is not None)
        )


@dataclass(frozen=True)
class Workload:
    """Phases over `num` keys of `key_bytes` with values of `value_bytes`.

    `compression_ratio` is the compressed size of a value divided by its size, as in db_bench.
    Keys are db_bench's numbers where `keys` is None, of `key_sizes` where that is given. Each key
    belongs to one of `databases` in one process, and there to one of `column_families`.
    """

    name: str
    phases: tuple[Phase, ...]
    num: int
    key_bytes: int = 16
    value_bytes: int = 100
    compression_ratio: float = 0.5
    durability: Durability = Durability.WAL
    page_cache: PageCache = PageCache.WARM
    keys: YcsbKeys | None = None
    key_sizes: Distribution | None = None
    databases: int = 1
    column_families: int = 1

    @property
    def measured_phases(self) -> list[str]:
        """The names of the measure phases in their order, each once."""
        measured = (phase.name for phase in self.phases if phase.kind is PhaseKind.MEASURE)
        return list(dict.fromkeys(measured))
