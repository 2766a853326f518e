"""What a trace holds, as the driver counted it: its `trace_summary` message, typed.

`docs/traces.md` says how each figure is counted. Where the trace has very many keys, the driver
follows a sample of them, and `sampling` says of what share: figures of keys are then estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from lsmtune.driver.collect import Collector
from lsmtune.driver.conversation import converse
from lsmtune.driver.messages import Message, TraceInspected, TraceProgress, inspect_request
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.machine.files import temporary_folder
from lsmtune.model.codec import ProtocolError, read
from lsmtune.model.measurement import Outcome, TraceDamage
from lsmtune.model.request import Limits
from lsmtune.model.text import open_input

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Histogram:
    """Counts of whole numbers; `buckets` are (low, high, count), both ends included."""

    count: int
    mean: float
    min: int
    max: int
    p50: float
    p90: float
    p99: float
    p999: float
    buckets: Rows

    @property
    def values(self) -> list[float]:
        """The middle of each bucket, rounded down."""
        return [float((int(low) + int(high)) // 2) for low, high, _ in self.buckets]

    @property
    def counts(self) -> list[float]:
        """The count of each bucket."""
        return [count for _, _, count in self.buckets]


@dataclass(frozen=True)
class Curve:
    """How hot keys are: `points` are (rank, accesses of that key, share of all up to it)."""

    accesses: int
    keys: float
    points: Rows


@dataclass(frozen=True)
class Reuse:
    """When keys come back; of `share` of the keys.

    `distances` are (low, high, accesses), in distinct keys touched in between; `miss_ratio` pairs
    the keys that a cache holds with the share of accesses that it misses, where it drops the key
    that was used longest ago.
    """

    accesses: int
    share: float
    first_accesses: float
    distances: Rows
    miss_ratio: Rows


@dataclass(frozen=True)
class SeekBounds:
    """Seeks by the bounds of their iterator."""

    none: int
    lower: int
    upper: int
    both: int


@dataclass(frozen=True)
class Windows:
    """Equal windows of time from `started_unix_us` on; None of a trace without records.

    `steps` are (gets, writes, seeks, distinct keys, distinct keys since the beginning).
    """

    window_s: float
    started_unix_us: int | None
    steps: Rows


@dataclass(frozen=True)
class Sampling:
    """The share of the keys that figures of keys are taken of; `text` says how they were chosen."""

    method: str
    keys_kept: int
    share: float
    standard_error: float
    heavy_counters: int
    heavy_error: float
    text: str


@dataclass(frozen=True)
class Keys:
    """Distinct keys."""

    distinct: float
    read: float
    written: float
    sought: float
    read_and_written: float


@dataclass(frozen=True)
class Overwrites:
    """Writes of keys that the trace had written before."""

    writes: int
    repeated: float
    share: float | None


@dataclass(frozen=True)
class GetsOfWritten:
    """Gets of keys that the trace had written before."""

    gets: float
    share: float | None


@dataclass(frozen=True)
class KeySpace:
    """What all keys begin with, and how the number of a key is read; `min` to `max` of them."""

    common_prefix_hex: str
    common_prefix_bytes: int
    number: str
    window_offset_bytes: int
    min: str
    max: str


class _Accesses:
    gets: float
    writes: float
    seeks: float

    @property
    def accesses(self) -> float:
        """Operations on keys of this part."""
        return self.gets + self.writes + self.seeks


@dataclass(frozen=True)
class KeyRange(_Accesses):
    """One part of the key space, from `first_number` up to the next part."""

    first_number: str
    keys_distinct: float
    gets: float
    writes: float
    seeks: float


@dataclass(frozen=True)
class KeyPrefix(_Accesses):
    """Operations on keys that begin with `hex`."""

    hex: str
    gets: float
    writes: float
    seeks: float


@dataclass(frozen=True)
class Prefixes:
    """The hottest prefixes, and the operations (gets, writes, seeks) on keys of `other` ones."""

    prefix_bytes: int
    distinct: float
    top: tuple[KeyPrefix, ...]
    other: tuple[float, ...]
    exact: bool


@dataclass(frozen=True)
class TraceSummary:
    """Everything that was counted in one pass over a trace, up to its damage where it has any.

    Mappings go by groups of operations (`get`, `write`, `seek`, `put`, `merge`, `all`); a group
    without operations is left out. `ascending` are shares of the operations of a group whose key
    is above that of the one before.
    """

    path: str
    bytes: int
    bytes_total: int
    trace_version: str
    rocksdb_version: str
    header_unix_us: int
    footer: bool
    damage: TraceDamage | None
    records: int
    operations: int
    first_unix_us: int | None
    last_unix_us: int | None
    duration_s: float
    out_of_order: int
    elapsed_s: float
    records_per_s: float
    record_counts: Mapping[str, int]
    operation_counts: Mapping[str, int]
    markers: int
    column_families: tuple[tuple[int, ...], ...]
    column_families_other: int
    batch_entries: Histogram | None
    multi_get_keys: Histogram | None
    key_sizes: Mapping[str, Histogram]
    value_sizes: Mapping[str, Histogram]
    seek_bounds: SeekBounds
    inter_arrival_us: Histogram | None
    windows: Windows
    sampling: Sampling
    keys: Keys
    overwrites: Overwrites
    gets_of_written: GetsOfWritten
    get_after_write: Histogram | None
    ascending: Mapping[str, float | None]
    hotness: Mapping[str, Curve]
    key_space: KeySpace
    keys_without_number: int
    ranges_by_number: tuple[KeyRange, ...]
    ranges_by_rank: tuple[KeyRange, ...]
    prefixes: Prefixes
    reuse: Mapping[str, Reuse]


def trace_summary(document: Mapping[str, object]) -> TraceSummary:
    """The fields of a `trace_summary` message. Raises ProtocolError that names a wrong one.

    `scan_lengths` is left out: it is always null, because a trace holds seeks and no steps.
    """
    data = {name: value for name, value in document.items() if name != "scan_lengths"}
    for name in ("ranges_by_number", "ranges_by_rank"):
        data[name] = _named(data.get(name), KeyRange, f"trace_summary.{name}")
    prefixes = data.get("prefixes")
    if isinstance(prefixes, dict):
        top = _named(prefixes.get("top"), KeyPrefix, "trace_summary.prefixes.top")
        data["prefixes"] = {**prefixes, "top": top}
    return read(TraceSummary, data, "trace_summary")


def _named(rows: object, kind: type[KeyRange | KeyPrefix], where: str) -> list[dict[str, object]]:
    """Rows of a table as objects, by the names of the fields of `kind`."""
    names = [field.name for field in fields(kind)]
    if not isinstance(rows, list):
        raise ProtocolError(f"{where}: allowed: an array")
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(names):
            raise ProtocolError(f"{where}[{number}]: allowed: {', '.join(names)}")
    return [dict(zip(names, row, strict=True)) for row in rows]


# --- asking the driver

RANGES_DEFAULT = 1024
RANGES_MAX = 4096

# The driver promises to stay below 256 MiB, whatever the size of the trace. A trace of a terabyte
# takes a week at the slowest; no deadline is to end what the user waits for and can interrupt.
LIMITS = Limits(deadline_s=30 * 24 * 3600.0, memory_bytes=1 << 30, disk_bytes=1 << 30)

# db_bench's keys: the number first, eight bytes, the highest first.
DB_BENCH_NUMBER: dict[str, object] = {"offset_bytes": 0, "bytes": 8, "format": "big_endian"}


def inspect_trace(
    driver: Path,
    trace: Path,
    *,
    ranges: int = RANGES_DEFAULT,
    key_number: dict[str, object] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> TraceSummary:
    """What `trace` holds, up to its damage where it has any.

    `ranges` parts of the key space are told apart, at most 4096; `key_number` says how a key's
    number is read where the driver is not to look for itself. `on_progress` is told how many bytes
    of how many are read. Raises InputError for what is not a trace, LsmtuneError where the driver
    failed.
    """
    open_input(trace, "a query trace of RocksDB").close()
    heard: list[TraceSummary] = []

    def hear(message: Message) -> None:
        if isinstance(message, TraceInspected):
            heard.append(trace_summary(message.document))
        elif isinstance(message, TraceProgress) and on_progress is not None:
            on_progress(message.bytes_read, message.bytes_total)

    document = inspect_request(trace.resolve(), ranges, key_number)
    with temporary_folder("trace") as folder:
        judgement = converse(driver, document, folder, LIMITS, Collector(), on_message=hear)
    if judgement.outcome is Outcome.OK and heard:
        return heard[0]
    why = "the driver said nothing of the trace"
    if judgement.error is not None:
        why = judgement.error.message
        if judgement.outcome is Outcome.INVALID:
            # The driver's reason without the name of the file, with which the error begins.
            raise InputError(str(trace), why=why[max(why.find("offset "), 0) :])
    raise LsmtuneError(f"{trace}: inspecting it failed: {why}")
