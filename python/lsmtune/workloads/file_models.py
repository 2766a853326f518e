"""The shape of a workload file as pydantic models: its fields, their types and their JSON Schema.

The words are the driver's (`protocol/request.schema.json`). What only makes sense across fields is
checked in `workloads.file_build`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from lsmtune.model.fields import DURATION_ALLOWED, Duration, Size, StrictModel, Version, Whole
from lsmtune.model.workload import Durability, KeyOrder, PageCache, PhaseKind
from lsmtune.workloads.distributions import (
    KEY_DISTRIBUTIONS,
    SIZE_DISTRIBUTIONS,
    distributions_schema,
)
from lsmtune.workloads.parameter import KEY_BYTES_MAX, RATE_MAX, THREADS_MAX, VALUE_BYTES_MAX

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
STEPS_ALLOWED = "a list of [time, operations per second], as [30s, 5000]"


def _rate(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PydanticCustomError("refused", "{allowed}", {"allowed": "a number above 0"})
    return float(value)


KeyDistribution = Annotated[Any, WithJsonSchema(distributions_schema(KEY_DISTRIBUTIONS))]
SizeDistribution = Annotated[Any, WithJsonSchema(distributions_schema(SIZE_DISTRIBUTIONS))]
Rate = Annotated[
    float,
    BeforeValidator(_rate),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),
    Field(gt=0, le=RATE_MAX),
]
Threads = Annotated[int, Field(ge=1, le=THREADS_MAX)]
_OPERATIONS_FIELD = Field(default=None, description=", ".join(OPERATIONS))


class MixModel(StrictModel):
    """Operations that are drawn again and again by their weights."""

    operations: dict[Literal[MIX_OPERATIONS], float] = Field(  # type: ignore[valid-type]
        min_length=1, description=f"weights above 0 of {', '.join(MIX_OPERATIONS)}"
    )
    keys: KeyDistribution = Field(default="uniform", description=", ".join(KEY_DISTRIBUTIONS))
    records: Whole | None = Field(
        default=None,
        ge=0,
        description="keys that exist when the phase begins; what was inserted before if not given",
    )
    first: Whole = Field(default=0, ge=0, description="number of the first key that exists")
    insert_from: Whole | None = Field(
        default=None, ge=0, description="number of the first insert; first + records if not given"
    )
    scan_lengths: SizeDistribution = Field(
        default=None, description=f"entries of a scan: {', '.join(SIZE_DISTRIBUTIONS)}"
    )
    value_sizes: SizeDistribution = Field(
        default=None, description=f"bytes of a value: {', '.join(SIZE_DISTRIBUTIONS)}"
    )
    operation_by_key: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="share of the draws in which the key decides the operation, always the same",
    )


class ReplayModel(StrictModel):
    """The operations of a recorded trace."""

    path: str = Field(min_length=1, description="file of the trace, from the workload file")
    speed: Rate | None = Field(
        default=None, description="times its own pace; as fast as it goes if not given"
    )


class RateModel(StrictModel):
    """A rate of operations that changes with time."""

    shape: Literal["sine", "steps"] = Field(description="sine, steps")
    mean_ops_s: Rate | None = Field(default=None, description="of sine: operations per second")
    amplitude_ops_s: Rate | None = Field(default=None, description="of sine: at most the mean")
    period_s: Duration | None = Field(default=None, description=f"of sine: {DURATION_ALLOWED}")
    offset_s: Duration | None = Field(
        default=None, description="of sine: how much of the wave is over when the phase begins"
    )
    steps: list[list[Any]] | None = Field(default=None, description=f"of steps: {STEPS_ALLOWED}")


class CompanionModel(StrictModel):
    """Threads that work beside a phase for as long as it lasts."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$", description="letters, digits, _ and -")
    operation: Literal[OPERATIONS] | None = _OPERATIONS_FIELD  # type: ignore[valid-type]
    mix: MixModel | None = Field(default=None, description="a mapping with operations")
    threads: Threads = Field(default=1, description=f"1 to {THREADS_MAX}")
    rate_ops_s: Rate | None = Field(default=None, description="operations per second, above 0")


class PhaseModel(StrictModel):
    """One phase: what is done, how often, by how many threads, at which rate."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$", description="letters, digits, _ and -")
    kind: Literal[tuple(kind.value for kind in PhaseKind)] = Field(  # type: ignore[valid-type]
        description=", ".join(kind.value for kind in PhaseKind)
    )
    operation: Literal[OPERATIONS] | None = _OPERATIONS_FIELD  # type: ignore[valid-type]
    mix: MixModel | None = Field(default=None, description="a mapping with operations")
    replay: ReplayModel | None = Field(default=None, description="a mapping with path")
    operations: Whole | None = Field(default=None, ge=1, description="over all threads")
    operations_per_thread: Whole | None = Field(default=None, ge=1, description="of each thread")
    duration_s: Duration | None = Field(default=None, description=DURATION_ALLOWED)
    threads: Threads = Field(default=1, description=f"1 to {THREADS_MAX}")
    rate_ops_s: Rate | None = Field(default=None, description="operations per second, above 0")
    rate: RateModel | None = Field(default=None, description="a mapping with shape")
    seek_nexts: Whole = Field(default=0, ge=0, description="entries read after each seekrandom")
    companions: list[CompanionModel] = Field(default=[], description="a list of threads beside it")


class KeysModel(StrictModel):
    """Keys as YCSB builds them, in place of db_bench's numbers."""

    format: Literal["ycsb"] = Field(description="ycsb")
    prefix: str = Field(default="user", max_length=1000, description="what keys begin with")
    zero_padding: Whole = Field(default=1, ge=0, le=1000, description="digits, at least")
    order: Literal[tuple(order.value for order in KeyOrder)] = Field(  # type: ignore[valid-type]
        default=KeyOrder.HASHED.value, description="hashed, ordered"
    )


class WorkloadFileModel(StrictModel):
    """A workload file of lsmtune: a list of phases on one database."""

    version: Version = Field(description="1, the version of this file format")
    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$",
        max_length=100,
        description="letters, digits, spaces and . _ -, starting with a letter or digit",
    )
    about: str | None = Field(default=None, description="what it is, for its readers")
    num: Whole = Field(ge=1, description="keys of the database")
    key_bytes: Size | None = Field(
        default=None, le=KEY_BYTES_MAX, description="of a key; 16, or the largest of key_sizes"
    )
    value_bytes: Size | None = Field(
        default=None, le=VALUE_BYTES_MAX, description="of a value; 100, or the mean of value_sizes"
    )
    compression_ratio: float = Field(
        default=0.5, gt=0, le=1, description="compressed size of a value divided by its size"
    )
    durability: Literal[tuple(d.value for d in Durability)] = Field(  # type: ignore[valid-type]
        default=Durability.WAL.value, description=", ".join(d.value for d in Durability)
    )
    page_cache: Literal[tuple(c.value for c in PageCache)] = Field(  # type: ignore[valid-type]
        default=PageCache.WARM.value, description=", ".join(c.value for c in PageCache)
    )
    keys: KeysModel | None = Field(default=None, description="a mapping with format: ycsb")
    key_sizes: SizeDistribution = Field(
        default=None, description=f"bytes of a key: {', '.join(SIZE_DISTRIBUTIONS)}"
    )
    databases: Whole = Field(default=1, ge=1, le=64, description="databases in one process")
    column_families: Whole = Field(default=1, ge=1, le=256, description="of each database")
    phases: list[PhaseModel] = Field(min_length=1, description="a list of at least one phase")
