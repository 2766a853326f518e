"""The memory that a configuration may come to use in production, computed before a run.

A model adds up what an engine allocates for its options at the worst moment: every memtable full,
the caches full, every background job at work. It is an upper bound of the parts that it knows. A
small run uses less: compare with `rss_bytes_max` only where memtables and caches were filled.

It does not know the data, and so leaves out: indexes and filters of open tables outside the block
cache, tables being written, LevelDB's mapped files (up to 1000 tables; the kernel can take their
pages back), iterators of the program, and column families besides the default one.

`memory_rocksdb` has the parts of RocksDB. Those of LevelDB, from the source of 1.22 and 1.23:

| part | formula | source |
|---|---|---|
| `memtables` | 2 * (`write_buffer_size` + 4 KiB) | `options.h`: up to two in memory at the same time; `util/arena.cc`: blocks of 4 KiB; `db_impl.cc`, `SanitizeOptions`: 64 KiB to 1 GiB |
| `block_cache` | `cache_size` | `cache.h`; without one 8 MiB (`SanitizeOptions`) |
| `file_writers` | 2 * 64 KiB | `util/env_posix.cc`, `kWritableFileBufferSize`: the log, and the table being written, by the only background thread |

What a process takes whatever the options (code, threads, statistics) is in no part: 18 MB for the
driver with an empty RocksDB 10.2.1, 7 MB with an empty LevelDB 1.22.

Measured with the driver on Linux (glibc, release builds of those versions, 100 to 150 MB of keys of
16 B with values of 1,000 B and 100 B), peak resident memory less that of the empty database, as a
share of the total of the model and of what it leaves out of the tables:

| configuration | share |
|---|---|
| RocksDB, 4 to 8 memtables of 8 to 32 MiB, merged before a flush; cache not read | 0.48 to 0.78 |
| the same with a hash memtable of 1,000,000 buckets; with a vector memtable | 0.84; 0.72 |
| RocksDB, 64 MiB of flushed memtables maintained, cache not read | 0.64 |
| RocksDB, LRU cache of 64 MiB read full; hyper clock cache | 0.97; 1.01 |
| RocksDB, direct reads with 2 MiB of readahead, level 0 never near its stop trigger | 0.34 |
| LevelDB, cache of 64 MiB read full, Snappy; without compression | 0.86; 0.74 |
"""  # noqa: E501 (a table's row is one line)

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lsmtune.engines.library import BUILT_IN_ENGINES, ENGINE_NAMES
from lsmtune.engines.memory_options import ModelOptions, clipped, model_options
from lsmtune.engines.memory_rocksdb import rocksdb_memory
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue

_KIB, _GIB = 2**10, 2**30
_ARENA_BLOCK_BYTES = 4 * _KIB
_FILE_BUFFER_BYTES = 64 * _KIB


def leveldb_memory(options: ModelOptions) -> dict[str, int]:
    """Bytes of each part. Raises `InputError` as `ModelOptions` does."""
    write_buffer = clipped(options.whole("write_buffer_size"), 64 * _KIB, _GIB)
    return {
        "memtables": 2 * (write_buffer + _ARENA_BLOCK_BYTES),
        "block_cache": options.whole("cache_size"),
        "file_writers": 2 * _FILE_BUFFER_BYTES,
    }


# --- the model

_MODELS = {"rocksdb": rocksdb_memory, "leveldb": leveldb_memory}


@dataclass(frozen=True)
class MemoryModel:
    """`parts`: bytes by name."""

    parts: Mapping[str, int]

    @property
    def total_bytes(self) -> int:
        """The sum of the parts."""
        return sum(self.parts.values())


def memory_model(
    engine_name: str,
    options: Mapping[str, OptionValue],
    *,
    version: str = "",
    source: str = "options",
) -> MemoryModel:
    """The model of `options` (by dotted name) for an engine; absent ones have their defaults.

    The defaults are those of `version`, of the newest one known when it is empty. The engines
    within the driver have no options and no parts. Raises `InputError`, naming `source` and the
    option, for a value that cannot be read, and for an unknown engine.
    """
    if engine_name in BUILT_IN_ENGINES:
        return MemoryModel(MappingProxyType({}))
    if engine_name not in _MODELS:
        raise InputError("engine", found=engine_name, known=ENGINE_NAMES)
    read = model_options(engine_name, options, version, source)
    return MemoryModel(MappingProxyType(_MODELS[engine_name](read)))
