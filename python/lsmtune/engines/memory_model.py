"""The memory that a configuration may come to use in production, computed before a run.

A model adds up what an engine allocates for its options at the worst moment: every memtable full,
the caches full, every background job at work. It is an upper bound of the parts that it knows, and
says what it leaves out. A small run uses less: compare with `rss_bytes_max` only where memtables
and caches were filled.

`memory_rocksdb` and `memory_leveldb` give the formula and the source of each part. What a process
takes whatever the options (code, threads, statistics) is in no part: 18 MB for the driver with an
empty RocksDB 10.2.1, 7 MB with an empty LevelDB 1.22. `SLACK` is for what the parts themselves do
not count, the headers and unused ends of allocations.

Measured with the driver on Linux (glibc, release builds of those versions, 100 to 150 MB of keys
of 16 B with values of 1,000 B and 100 B), peak resident memory less that of the empty database, as
a share of the total of the model with the data known:

| configuration | share |
|---|---|
| RocksDB, 4 to 8 memtables of 8 to 32 MiB, merged before a flush; cache not read | 0.48 to 0.78 |
| the same with a hash memtable of 1,000,000 buckets; with a vector memtable | 0.84; 0.72 |
| RocksDB, 64 MiB of flushed memtables maintained, cache not read | 0.64 |
| RocksDB, LRU cache of 64 MiB read full; hyper clock cache | 0.97; 1.01 |
| RocksDB, direct reads with 2 MiB of readahead, level 0 never near its stop trigger | 0.34 |
| LevelDB, cache of 64 MiB read full, Snappy; without compression | 0.86; 0.74 |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lsmtune.engines.memory_leveldb import leveldb_memory
from lsmtune.engines.memory_options import model_options
from lsmtune.engines.memory_parts import StoredData
from lsmtune.engines.memory_rocksdb import rocksdb_memory
from lsmtune.engines.names import BUILT_IN_ENGINES, ENGINE_NAMES
from lsmtune.errors import InputError, nearest_name
from lsmtune.records.config import OptionValue

# The largest share in the table above, and room for other allocators.
SLACK = 0.15

_MODELS = {"rocksdb": rocksdb_memory, "leveldb": leveldb_memory}


@dataclass(frozen=True)
class MemoryModel:
    """`parts`: bytes by name. `left_out`: what the total does not count, a clause each."""

    parts: Mapping[str, int]
    left_out: tuple[str, ...]

    @property
    def total_bytes(self) -> int:
        """The sum of the parts."""
        return sum(self.parts.values())


def memory_model(
    engine_name: str,
    options: Mapping[str, OptionValue],
    *,
    data: StoredData | None = None,
    version: str = "",
    source: str = "options",
) -> MemoryModel:
    """The model of `options` (by dotted name) for an engine; absent ones have their defaults.

    The defaults are those of `version`, of the newest one known when it is empty. `data` adds the
    parts that grow with what is stored; without it `left_out` names them. Options that take no
    memory are not looked at. The engines within the driver have no options and no parts. Raises
    `InputError`, naming `source` and the option, for a value that cannot be read, and for an
    unknown engine.
    """
    if engine_name in BUILT_IN_ENGINES:
        return MemoryModel(MappingProxyType({}), ("all data that the engine stores",))
    if engine_name not in _MODELS:
        nearest = nearest_name(engine_name, ENGINE_NAMES)
        allowed = ", ".join(ENGINE_NAMES)
        raise InputError("engine", found=engine_name, allowed=allowed, nearest=nearest)
    read = model_options(engine_name, options, version, source)
    parts, left_out = _MODELS[engine_name](read, data)
    return MemoryModel(MappingProxyType(parts), left_out)
