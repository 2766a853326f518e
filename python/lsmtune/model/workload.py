"""A Workload: a list of phases on one database, as files state it and the driver performs it.

The types are what workload files are read as, what is written of a workload in a file and in the
driver's request. The words are the driver's (`protocol/request.schema.json`). What only makes sense
across fields, `workloads.file` checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    GetPydanticSchema,
    PlainSerializer,
    PlainValidator,
    SerializerFunctionWrapHandler,
    WrapSerializer,
    WrapValidator,
)

from lsmtune.errors import FieldError
from lsmtune.model.codec import adapter
from lsmtune.model.distribution import (
    KEY_DISTRIBUTIONS,
    SIZE_DISTRIBUTIONS,
    Distribution,
    KeyDistribution,
    SizeDistribution,
)
from lsmtune.model.fields import (
    DURATION_ALLOWED,
    STRICT,
    Duration,
    Size,
    Whole,
    described,
    found_text,
    pairs_of,
    refused,
    refusing,
)
from lsmtune.units import UnitError, parse_duration

# A key starts with the key's number, 8 bytes big-endian, as in db_bench.
KEY_BYTES_MIN = 8
KEY_BYTES_MAX = 65535
VALUE_BYTES_MAX = 2**20
THREADS_MAX = 1024
RATE_MAX = 1e9

# As in `Operation` of driver/src/protocol/workload.rs.
OPERATIONS = (
    "fillseq",
    "fillrandom",
    "filluniquerandom",
    "overwrite",
    "readseq",
    "readrandom",
    "readuniquerandom",
    "readmissing",
    "readhot",
    "seekrandom",
    "deleterandom",
    "deleteuniquerandom",
    "readwhilewriting",
)
# Each of these treats every key of the database once, and then is done.
JOBS = frozenset(
    {
        *("fillseq", "fillrandom", "filluniquerandom", "insert"),
        *("readseq", "readuniquerandom", "deleteuniquerandom"),
    }
)
MIX_OPERATIONS = (
    "get",
    "put",
    "insert",
    "update",
    "read_modify_write",
    "scan",
    "delete",
    "delete_oldest",
    "merge",
)
# What changes the database, as in `writes` of driver/src/protocol/workload.rs.
WRITES = frozenset(
    {
        *("fillseq", "fillrandom", "filluniquerandom", "overwrite", "readwhilewriting"),
        *("deleterandom", "deleteuniquerandom"),
        *("put", "insert", "update", "read_modify_write", "merge", "delete", "delete_oldest"),
    }
)
_STEPS_ALLOWED = "a list of [time, operations per second], as [30s, 5000]"
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$"
NAME_LENGTH_MAX = 100
NAME_ALLOWED = "letters, digits, spaces and . _ -, starting with a letter or digit"


class Durability(StrEnum):
    """What a crash may cost: part of the workload, never of the tuning."""

    # In order: the class that promises most comes first.
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


class KeyOrder(StrEnum):
    """Whether records that are inserted one after another are neighbours in key order."""

    ORDERED = "ordered"
    HASHED = "hashed"


# --- How single values are read and written.


def _rate(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refused("a number above 0")
    return float(value)


def _step(value: object, place: str) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        shown = value if isinstance(value, list) else found_text(value)
        raise FieldError(place, found=shown, allowed=_STEPS_ALLOWED)
    time, rate = value
    try:
        duration_s = parse_duration(time)
    except UnitError as error:
        raise FieldError(place, found=time, allowed=error.allowed) from None
    if duration_s <= 0:
        raise FieldError(place, found=time, allowed="a time above 0")
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= RATE_MAX:
        raise FieldError(place, found=rate, allowed=f"a rate from 0 to {RATE_MAX:.0f}")
    return duration_s, float(rate)


def _steps(value: object) -> tuple[tuple[float, float], ...]:
    if not isinstance(value, list):
        raise FieldError(allowed=_STEPS_ALLOWED)
    if not value:
        raise FieldError(why="missing", allowed=_STEPS_ALLOWED)
    steps = tuple(_step(step, f"[{index}]") for index, step in enumerate(value))
    if all(rate == 0 for _, rate in steps):
        allowed = "one step at least with a rate above 0"
        raise FieldError(why="never does anything", allowed=allowed)
    return steps


def _null_is(default: object) -> WrapValidator:
    """Takes a field that is there and empty as one that is not there."""
    return WrapValidator(lambda value, read: default if value is None else read(value))


def _with(word: str) -> WrapSerializer:
    """Writes the field `word`, which says what a mapping is and is not kept in memory."""

    def write(value: object, write_rest: SerializerFunctionWrapHandler) -> object:
        return value and {word: getattr(value, word), **write_rest(value)}

    return WrapSerializer(write)


Rate = Annotated[float, BeforeValidator(_rate), Field(gt=0, le=RATE_MAX)]
Weights = Annotated[
    tuple[tuple[str, float], ...], pairs_of(Literal[MIX_OPERATIONS], float), Field(min_length=1)
]
Steps = Annotated[
    tuple[tuple[float, float], ...],
    PlainValidator(refusing(_steps)),
    PlainSerializer(lambda steps: [list(step) for step in steps]),
]
Operation: TypeAlias = Annotated[
    str | None,
    GetPydanticSchema(lambda _, handler: handler(Literal[OPERATIONS] | None)),
    described(", ".join(OPERATIONS)),
]
PhaseName = Annotated[str, described("letters, digits, _ and -", pattern=r"^[A-Za-z0-9_-]+$")]
Threads = Annotated[int, described(f"1 to {THREADS_MAX}", ge=1, le=THREADS_MAX, omitted=1)]
RateField = Annotated[Rate | None, described("operations per second, above 0")]


# --- The types, from the smallest part to the whole.


@dataclass(frozen=True)
class YcsbKeys:
    """Keys as YCSB builds them: `prefix`, then the number, hashed or not, in decimal digits."""

    __pydantic_config__ = STRICT

    format: InitVar[Annotated[Literal["ycsb"], described("ycsb")]] = field(
        default="ycsb", kw_only=True
    )
    prefix: Annotated[str, described("what keys begin with", max_length=1000)] = "user"
    zero_padding: Annotated[Whole, described("digits, at least", ge=0, le=1000)] = 1
    order: Annotated[KeyOrder, described("hashed, ordered")] = KeyOrder.HASHED


@dataclass(frozen=True)
class Mix:
    """What each thread of a phase draws again and again: an operation, a key, a size.

    `operations` are names and weights, in order. Key numbers `first` to `first + records - 1` exist
    when the phase begins; inserts go on from `insert_from` (`first + records` where None). In a
    share `operation_by_key` of the draws the key decides the operation, always the same one.
    """

    __pydantic_config__ = STRICT

    operations: Annotated[Weights, described(f"weights above 0 of {', '.join(MIX_OPERATIONS)}")]
    keys: Annotated[KeyDistribution, described(", ".join(KEY_DISTRIBUTIONS))] = field(
        default=Distribution("uniform")
    )
    records: Annotated[
        Whole,
        _null_is(0),
        described(
            "keys that exist when the phase begins; what was inserted before if not given", ge=0
        ),
    ] = 0
    first: Annotated[Whole, described("number of the first key that exists", ge=0, omitted=0)] = 0
    insert_from: Annotated[
        Whole | None, described("number of the first insert; first + records if not given", ge=0)
    ] = None
    scan_lengths: Annotated[
        SizeDistribution | None, described(f"entries of a scan: {', '.join(SIZE_DISTRIBUTIONS)}")
    ] = None
    value_sizes: Annotated[
        SizeDistribution | None, described(f"bytes of a value: {', '.join(SIZE_DISTRIBUTIONS)}")
    ] = None
    operation_by_key: Annotated[
        float | None,
        described(
            "share of the draws in which the key decides the operation, always the same", gt=0, le=1
        ),
    ] = None

    @property
    def names(self) -> frozenset[str]:
        """The operations that are drawn."""
        return frozenset(name for name, _ in self.operations)


@dataclass(frozen=True)
class SineRate:
    """Open loop: mean + amplitude * sin(2 pi (t + offset) / period) operations per second."""

    __pydantic_config__ = STRICT

    shape: InitVar[Annotated[Literal["sine"], described("sine, steps")]] = field(
        default="sine", kw_only=True
    )
    mean_ops_s: Annotated[Rate, described("a number above 0")]
    amplitude_ops_s: Annotated[Rate, described("a number above 0")]
    period_s: Annotated[Duration, described(DURATION_ALLOWED)]
    offset_s: Annotated[
        Duration,
        _null_is(0.0),
        described("how much of the wave is over when the phase begins", omitted=0.0),
    ] = 0.0


@dataclass(frozen=True)
class StepRate:
    """Open loop: for each (seconds, operations per second) in turn, and again from the first."""

    __pydantic_config__ = STRICT

    shape: InitVar[Annotated[Literal["steps"], described("sine, steps")]] = field(
        default="steps", kw_only=True
    )
    steps: Annotated[Steps, described(_STEPS_ALLOWED)]


VaryingRate = Annotated[SineRate | StepRate, Discriminator("shape")]


@dataclass(frozen=True)
class Replay:
    """Operations of a recorded trace, at `speed` times its own pace; None: as fast as it goes."""

    __pydantic_config__ = STRICT

    path: Annotated[str, described("file of the trace, from the workload file", min_length=1)]
    speed: Annotated[
        Rate | None, described("times its own pace; as fast as it goes if not given")
    ] = None


@dataclass(frozen=True)
class Companion:
    """Threads that work beside a phase for as long as it lasts; not counted in its operations.

    Exactly one of `operation` and `mix`.
    """

    __pydantic_config__ = STRICT

    name: PhaseName
    operation: Operation = None
    mix: Annotated[Mix | None, described("a mapping with operations")] = None
    threads: Threads = 1
    rate_ops_s: RateField = None


@dataclass(frozen=True)
class Phase:
    """One phase. A `settle` phase does nothing; every other has something to do and a size.

    It does one of `operation` (a db_bench-like loop by name), `mix` and `replay`. The size is
    `operations_per_thread` (db_bench's sense: each thread performs that many), `operations` (YCSB's
    sense: over all threads), `duration_s`, or one of the former and the latter, and then whichever
    comes first; a replay may go without and ends with its trace. `rate_ops_s` or `rate` makes the
    phase open-loop: the target over all threads, latency taken from the intended start.
    """

    __pydantic_config__ = STRICT

    name: PhaseName
    kind: Annotated[PhaseKind, described(", ".join(PhaseKind))]
    operation: Operation = None
    mix: Annotated[Mix | None, described("a mapping with operations")] = None
    replay: Annotated[Replay | None, described("a mapping with path")] = None
    operations: Annotated[Whole | None, described("over all threads", ge=1)] = None
    operations_per_thread: Annotated[Whole | None, described("of each thread", ge=1)] = None
    duration_s: Annotated[Duration | None, described(DURATION_ALLOWED)] = None
    threads: Threads = 1
    rate_ops_s: RateField = None
    rate: Annotated[VaryingRate | None, _with("shape"), described("a mapping with shape")] = None
    seek_nexts: Annotated[
        Whole, described("entries read after each seek of seekrandom or a replay", ge=0, omitted=0)
    ] = 0
    companions: Annotated[
        tuple[Companion, ...], described("a list of threads beside it", omitted=())
    ] = ()

    @property
    def operations_whole(self) -> int | None:
        """Operations of all threads together; None where time or a trace ends the phase."""
        if self.operations is not None:
            return self.operations
        each = self.operations_per_thread
        return None if each is None else each * self.threads

    def puts_each_of(self, num: int) -> bool:
        """Whether it puts each of `num` keys for certain.

        Every thread of `fillseq` begins with the first key; those of `filluniquerandom` divide the
        keys among themselves as they divide the operations.
        """
        done, threads = self.operations_whole, self.threads
        if done is None or self.duration_s is not None:
            return False
        if self.operation == "fillseq":
            return math.ceil(done / threads) >= num
        return self.operation == "filluniquerandom" and done >= num

    @property
    def is_job(self) -> bool:
        """Whether it treats keys once each: its size is the question, and no rate that lasts."""
        return bool(self.shares) and self.shares.keys() <= JOBS

    @property
    def shares(self) -> dict[str, float]:
        """Operation to its share of what the phase's own threads do; a replay's are not known."""
        if self.mix is None:
            return {} if self.operation is None else {self.operation: 1.0}
        total = math.fsum(weight for _, weight in self.mix.operations)
        return {name: weight / total for name, weight in self.mix.operations}

    @property
    def doing(self) -> frozenset[str]:
        """The operations that it and what works beside it perform; a replay's are not known."""
        doers: tuple[Phase | Companion, ...] = (self, *self.companions)
        loops = frozenset(doer.operation for doer in doers if doer.operation is not None)
        return loops.union(*(doer.mix.names for doer in doers if doer.mix is not None))

    @property
    def writes(self) -> bool:
        """Whether it may change the database, and so pays for a drain."""
        return self.replay is not None or not WRITES.isdisjoint(self.doing)

    @property
    def is_open_loop(self) -> bool:
        """Whether operations start at given times."""
        return (
            self.rate_ops_s is not None
            or self.rate is not None
            or (self.replay is not None and self.replay.speed is not None)
        )


Phases = Annotated[tuple[Phase, ...], described("a list of at least one phase", min_length=1)]


@dataclass(frozen=True)
class Workload:
    """Phases over `num` keys of `key_bytes` with values of `value_bytes`.

    `compression_ratio` is the compressed size of a value divided by its size, as in db_bench.
    Keys are db_bench's numbers where `keys` is None, of `key_sizes` where that is given. Each key
    belongs to one of `databases` in one process, and there to one of `column_families`.
    """

    __pydantic_config__ = STRICT

    name: Annotated[str, described(NAME_ALLOWED, pattern=NAME_PATTERN, max_length=NAME_LENGTH_MAX)]
    phases: Phases
    num: Annotated[Whole, described("keys of the database", ge=1)]
    key_bytes: Annotated[
        Size, _null_is(16), described("of a key; 16, or the largest of key_sizes", le=KEY_BYTES_MAX)
    ] = 16
    value_bytes: Annotated[
        Size,
        _null_is(100),
        described("of a value; 100, or the mean of value_sizes", le=VALUE_BYTES_MAX),
    ] = 100
    compression_ratio: Annotated[
        float, described("compressed size of a value divided by its size", gt=0, le=1)
    ] = 0.5
    durability: Annotated[Durability, described(", ".join(Durability), omitted=Durability.WAL)] = (
        Durability.WAL
    )
    page_cache: Annotated[PageCache, described(", ".join(PageCache), omitted=PageCache.WARM)] = (
        PageCache.WARM
    )
    keys: Annotated[YcsbKeys | None, _with("format"), described("a mapping with format: ycsb")] = (
        None
    )
    key_sizes: Annotated[
        SizeDistribution | None, described(f"bytes of a key: {', '.join(SIZE_DISTRIBUTIONS)}")
    ] = None
    databases: Annotated[Whole, described("databases in one process", ge=1, le=64, omitted=1)] = 1
    column_families: Annotated[Whole, described("of each database", ge=1, le=256, omitted=1)] = 1

    @property
    def measured_phases(self) -> list[Phase]:
        """The measure phases in their order."""
        return [phase for phase in self.phases if phase.kind is PhaseKind.MEASURE]

    @property
    def measured_names(self) -> list[str]:
        """The names of the measure phases in their order, each once."""
        return list(dict.fromkeys(phase.name for phase in self.measured_phases))

    def with_traces(self, named: Callable[[Path], str]) -> Workload:
        """The same, with each trace that it replays as `named` says by its path."""
        phases = (
            replace(p, replay=p.replay and replace(p.replay, path=named(Path(p.replay.path))))
            for p in self.phases
        )
        return replace(self, phases=tuple(phases))


def stated_parts(workload: Workload, *, short: bool = True) -> dict[str, Any]:
    """`workload` as a file states it, without what has its default; its phases come last.

    `short`: a distribution without parameters is stated by its name alone, as files may and
    requests may not.
    """
    context = {"short": True} if short else None
    stated = adapter(Workload).dump_python(
        workload, mode="json", exclude_none=True, context=context
    )
    phases = stated.pop("phases")
    return {**stated, "phases": phases}
