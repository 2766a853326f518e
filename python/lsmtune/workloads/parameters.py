"""The parameters of the db_bench-like workloads, and those that every family has.

Names and meanings are those of RocksDB's db_bench where it has one (`num`, `reads`, `threads`,
`seek_nexts`); sizes are per thread, as there.
"""

from __future__ import annotations

from lsmtune.records.workload import Durability, PageCache
from lsmtune.workloads.parameter import (
    WorkloadParameter,
    choice_parameter,
    count_parameter,
    positive_parameter,
    read_positive_duration,
    size_parameter,
)

# A key starts with the key's number, 8 bytes big-endian, as in db_bench.
KEY_BYTES_MIN = 8
KEY_BYTES_MAX = 65535
VALUE_BYTES_MAX = 2**20
THREADS_MAX = 1024
RATE_MAX = 1e9
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
