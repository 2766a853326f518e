"""The memory that a configuration may come to use in production, computed before a run.

A model adds up what an engine allocates for its options at the worst moment: every memtable full,
the caches full, every background job at work. It is an upper bound of the parts that it knows. A
small run uses less: compare with `rss_bytes_max` only where memtables and caches were filled.

It does not know the data, and so leaves out: indexes and filters of open tables outside the block
cache, tables being written, LevelDB's mapped files (up to 1000 tables; the kernel can take their
pages back), iterators of the program, and column families besides the default one.

The parts of LevelDB, from the source of 1.22 and 1.23:

| part | formula | source |
|---|---|---|
| `memtables` | 2 * (`write_buffer_size` + 4 KiB) | `options.h`: up to two in memory at the same time; `util/arena.cc`: blocks of 4 KiB; `db_impl.cc`, `SanitizeOptions`: 64 KiB to 1 GiB |
| `block_cache` | `cache_size` | `cache.h`; without one 8 MiB (`SanitizeOptions`) |
| `file_writers` | 2 * 64 KiB | `util/env_posix.cc`, `kWritableFileBufferSize`: the log, and the table being written, by the only background thread |

The parts of RocksDB, from the source of 7.8.3, 10.2.1 and 11.9, for one column family. W is
`write_buffer_size` (64 KiB to 64 GiB) and N `max_write_buffer_number` (2 at the least;
`SanitizeOptions`, `db/column_family.cc`).

| part | formula | source |
|---|---|---|
| `memtables` | N * M; see below | `options.h`, `max_write_buffer_number`: built up in memory, full or being flushed |
| `memtable_history` | what `max_write_buffer_size_to_maintain` + 2 * M has over `memtables`; -1 stands for N * W | `db/memtable_list.cc`, `TrimHistory`: flushed memtables are dropped while those left without the oldest reach the limit, and the active one may not be counted |
| `block_cache` | the capacity; 32 MiB, 8 MiB before 8.2 | `table.h`, `block_cache`; `HISTORY.md` 8.2.0; metadata is charged (`cache.h`) |
| `row_cache` | the capacity | `options.h` |
| `file_writers` | `writable_file_max_buffer_size` * (1 + flushes + C * S) | `options.h`: the log, and each table being written |
| `compaction_reads` | `compaction_readahead_size` * inputs; see below | `table/block_based/block_prefetcher.cc`: a buffer per file being read |

M, one memtable, is W + 0.6 * A, where A is the block of its arena: `arena_block_size`, else W / 8
and 1 MiB at most, in steps of 4 KiB, `memtable_huge_page_size` at the least
(`db/memtable.cc`, `ShouldFlushNow`). What a memtable allocates when it is made counts towards W:
the array of a hash kind (8 bytes per bucket; without a `prefix_extractor` RocksDB takes a skip
list instead) and its Bloom filter (`memtable_prefix_bloom_size_ratio` * W, a quarter of W at most;
it takes a prefix extractor or `memtable_whole_key_filtering`). Where those alone are larger than
W, M is they + A.

D, `db_write_buffer_size`, ends a memtable at 7/8 of D, or at half of D once all memtables together
reach D (`write_buffer_manager.h`, `ShouldFlush`). It makes no write wait, so while a flush is slow
the memtables hold up to 7/8 * D + (N - 1) * D / 2 (+ A each).

C and the number of flushes are as in `DBImpl::GetBGJobLimits`; S is `max_subcompactions`. A level
compaction out of level 0 reads all of its files, `level0_stop_writes_trigger` at the most (raised
to the other two triggers; `SanitizeCfOptions`), and one of the next level, in each of S parts; each
other compaction reads two levels. A universal one may read all files of level 0 and all levels.
Buffers are used with `use_direct_reads`, and by versions before 8.5 always; later ones leave
buffered reads to the kernel. FIFO compaction and `disable_auto_compactions` read nothing.

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

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.library import BUILT_IN_ENGINES, ENGINE_NAMES, version_key
from lsmtune.engines.option_names import (
    BLOCK_CACHE,
    CACHE_CAPACITY,
    FILTER_POLICY,
    MEMTABLES,
    NO_BLOCK_CACHE,
    TRUTHS,
    parts_of,
    whole_size,
)
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.model.setting import read_number
from lsmtune.units import UnitError, is_digits, option_value

_KIB, _MIB, _GIB = 2**10, 2**20, 2**30


# --- options


@dataclass(frozen=True)
class ModelOptions:
    """`given` by dotted name; the rest are defaults of `engine` in `version`, None for the newest.

    Every reader raises `InputError`, naming `source` and the option, for a value of another kind.
    """

    engine: str
    version: str | None
    given: Mapping[str, OptionValue]
    source: str

    def value(self, name: str) -> OptionValue:
        """The option as given, else its default."""
        if name in self.given:
            return self.given[name]
        default = option_catalogue(self.engine)[name].default_in(self.version)
        if default is None:
            raise LookupError(f"{name} has no default")
        return default

    def whole(self, name: str, low: int = 0) -> int:
        """A whole number of at least `low`."""
        value = self.value(name)
        number: OptionValue | None = whole_size(value.strip()) if isinstance(value, str) else value
        if number is None:
            with suppress(UnitError):  # it then stays none
                number = option_value(value)
        if (
            isinstance(number, int | float)
            and not isinstance(number, bool)
            and math.isfinite(number)
            and low <= number == math.floor(number)
        ):
            return int(number)
        allowed = f"a whole number, with K, M, G or T at most; {low} at the least"
        raise InputError(self.source, name, found=value, allowed=allowed)

    def number(self, name: str) -> float:
        """A finite number."""
        value = self.value(name)
        try:
            return float(read_number(value))
        except ValueError:
            raise InputError(self.source, name, found=value, allowed="a number") from None

    def truth(self, name: str) -> bool:
        """True or false."""
        value = self.value(name)
        if (truth := TRUTHS.get(str(value).lower())) is None:
            raise InputError(self.source, name, found=value, allowed="true, false")
        return truth


def model_options(
    engine: str, options: Mapping[str, OptionValue], version: str | None, source: str
) -> ModelOptions:
    """`options` with nested values (`{capacity=8M;}`) taken apart.

    Raises `InputError` for a nested value with unbalanced braces.
    """
    flat: dict[str, OptionValue] = {}
    for name, value in options.items():
        if not isinstance(value, str) or not value.strip().startswith("{"):
            flat[name] = value
            continue
        parts = parts_of(name, value, source)
        inner = {f"{name}.{part}": text for part, text in parts.items()}
        flat |= model_options(engine, inner, version, source).given
    return ModelOptions(engine, version, flat, source)


# --- LevelDB

_ARENA_BLOCK_BYTES = 4 * _KIB
_FILE_BUFFER_BYTES = 64 * _KIB


def leveldb_memory(options: ModelOptions) -> dict[str, int]:
    """Bytes of each part. Raises `InputError` as `ModelOptions` does."""
    write_buffer = min(max(options.whole("write_buffer_size"), 64 * _KIB), _GIB)
    return {
        "memtables": 2 * (write_buffer + _ARENA_BLOCK_BYTES),
        "block_cache": options.whole("cache_size"),
        "file_writers": 2 * _FILE_BUFFER_BYTES,
    }


# --- RocksDB

_POINTER_BYTES = 8
_DIRECT_READAHEAD_BYTES = 2 * _MIB  # where it is 0 (SanitizeOptions, db/db_impl/db_impl_open.cc)
_KERNEL_READAHEAD_SINCE = "8.5"

# Buckets of the hash kinds where none are given (memtablerep.h).
_HASH_BUCKETS = {"prefix_hash": 1_000_000, "hash_linkedlist": 50_000}
_LEVEL0_TRIGGERS = (
    "level0_file_num_compaction_trigger",
    "level0_slowdown_writes_trigger",
    "level0_stop_writes_trigger",
)
_STYLES = (
    "kCompactionStyleLevel",
    "kCompactionStyleUniversal",
    "kCompactionStyleFIFO",
    "kCompactionStyleNone",
)
_NOTHING = ("nullptr", "null", "")
_FILTERS = ("bloomfilter", "ribbonfilter", "rocksdb.BloomFilter", "rocksdb.RibbonFilter")
_BITS = re.compile(r"\d+(\.\d*)?(:|$)", re.ASCII)


def rocksdb_memory(options: ModelOptions) -> dict[str, int]:
    """Bytes of each part. Raises `InputError` as `ModelOptions` does."""
    memtables, history = _memtable_bytes(options)
    flushes, compactions, subcompactions = _jobs(options)
    writers = 1 + flushes + compactions * subcompactions
    _check_filter(options)
    return {
        "memtables": memtables,
        "memtable_history": history,
        "block_cache": _block_cache_bytes(options),
        "row_cache": options.whole("row_cache") if "row_cache" in options.given else 0,
        "file_writers": options.whole("writable_file_max_buffer_size") * writers,
        "compaction_reads": _compaction_read_bytes(options, compactions, subcompactions),
    }


def _memtable_bytes(options: ModelOptions) -> tuple[int, int]:
    """Bytes of all memtables that are in use, and of those kept beyond that."""
    write_buffer = min(max(options.whole("write_buffer_size"), 64 * _KIB), 64 * _GIB)
    count = max(options.whole("max_write_buffer_number"), 2)
    given = options.whole("arena_block_size") if "arena_block_size" in options.given else 0
    own = math.ceil(min(_MIB, write_buffer // 8) / (4 * _KIB)) * 4 * _KIB
    arena_block = max(given or own, options.whole("memtable_huge_page_size"))
    at_start = _bucket_bytes(options)
    ratio = min(max(options.number("memtable_prefix_bloom_size_ratio"), 0.0), 0.25)
    if _has_prefixes(options) or options.truth("memtable_whole_key_filtering"):
        at_start += math.ceil(ratio * write_buffer)
    least = at_start + arena_block if at_start else 0
    one = max(least, write_buffer + math.ceil(0.6 * arena_block))
    total = count * one
    limit = options.whole("db_write_buffer_size")
    if limit:
        first = min(one, max(least, limit * 7 // 8 + arena_block))
        later = min(one, max(least, limit // 2 + arena_block))
        one, total = first, first + (count - 1) * later
    maintained = options.whole("max_write_buffer_size_to_maintain", -1)
    if maintained < 0:
        maintained = count * write_buffer
    history = max(0, maintained + 2 * one - total) if maintained else 0
    return total, history


def _bucket_bytes(options: ModelOptions) -> int:
    """The array of a hash memtable."""
    names = ("memtable_factory.id", "memtable_factory", "memtable")
    name = next((name for name in names if name in options.given), names[0])
    # `prefix_hash:1000` is another way to write the number of buckets.
    stated, _, buckets = str(options.value(name)).partition(":")
    kind = MEMTABLES.get(stated, stated)
    if kind not in MEMTABLES.values():
        known = (*MEMTABLES.values(), *MEMTABLES)
        raise InputError(options.source, name, found=kind, known=known)
    if kind not in _HASH_BUCKETS or not _has_prefixes(options):
        return 0
    if "memtable_factory.bucket_count" in options.given:
        return _POINTER_BYTES * options.whole("memtable_factory.bucket_count")
    if buckets and not is_digits(buckets):
        raise InputError(options.source, name, found=f"{kind}:{buckets}", allowed=f"{kind}:NUMBER")
    return _POINTER_BYTES * int(buckets or _HASH_BUCKETS[kind])


def _has_prefixes(options: ModelOptions) -> bool:
    return str(options.value("prefix_extractor")) not in _NOTHING


def _block_cache_bytes(options: ModelOptions) -> int:
    if options.truth(NO_BLOCK_CACHE):
        return 0
    if CACHE_CAPACITY in options.given:
        return options.whole(CACHE_CAPACITY)
    if str(options.value(BLOCK_CACHE)) not in _NOTHING:
        return options.whole(BLOCK_CACHE)
    without = {n: v for n, v in options.given.items() if n != BLOCK_CACHE}
    return replace(options, given=without).whole(BLOCK_CACHE)


def _jobs(options: ModelOptions) -> tuple[int, int, int]:
    """How many flushes and compactions may run at once, and parts of a divided compaction."""
    flushes = options.whole("max_background_flushes", -1)
    compactions = options.whole("max_background_compactions", -1)
    if flushes == compactions == -1:
        jobs = options.whole("max_background_jobs")
        flushes = max(1, jobs // 4)
        compactions = jobs - flushes
    return max(1, flushes), max(1, compactions), max(1, options.whole("max_subcompactions"))


def _compaction_read_bytes(options: ModelOptions, compactions: int, subcompactions: int) -> int:
    style = str(options.value("compaction_style"))
    if style not in _STYLES:
        raise InputError(options.source, "compaction_style", found=style, known=_STYLES)
    direct = options.truth("use_direct_reads")
    version, since = options.version, version_key(_KERNEL_READAHEAD_SINCE)
    buffered_too = version is not None and version_key(version) < since
    readahead = options.whole("compaction_readahead_size")
    if direct and readahead == 0:
        readahead = _DIRECT_READAHEAD_BYTES
    level0 = max(options.whole(name, -_GIB) for name in _LEVEL0_TRIGGERS)
    levels = options.whole("num_levels")
    if options.truth("disable_auto_compactions") or not (direct or buffered_too):
        return 0
    if style == "kCompactionStyleLevel":
        return readahead * (subcompactions * (level0 + 1) + 2 * (compactions - 1))
    if style == "kCompactionStyleUniversal":
        return readahead * subcompactions * (level0 + levels)
    return 0


def _check_filter(options: ModelOptions) -> None:
    """Refuse what is no filter. It has no part of its own: its memory depends on the data."""
    name = f"{FILTER_POLICY}.id" if f"{FILTER_POLICY}.id" in options.given else FILTER_POLICY
    policy = str(options.value(name))
    kind, _, rest = policy.partition(":")
    has_bits = f"{FILTER_POLICY}.bits_per_key" in options.given or _BITS.match(rest) is not None
    if kind not in _NOTHING and (kind not in _FILTERS or not has_bits):
        allowed = "nullptr, bloomfilter:BITS, ribbonfilter:BITS"
        raise InputError(options.source, FILTER_POLICY, found=policy, allowed=allowed)


# --- the model

_MODELS = {"rocksdb": rocksdb_memory, "leveldb": leveldb_memory}


def memory_model(
    engine_name: str,
    options: Mapping[str, OptionValue],
    *,
    version: str | None = None,
    source: str = "options",
) -> dict[str, int]:
    """Bytes by part for `options` (by dotted name) of an engine; absent ones have their defaults.

    The defaults are those of `version`, of the newest one known when it is None. The engines
    within the driver have no options and no parts. Raises `InputError`, naming `source` and the
    option, for a value that cannot be read, and for an unknown engine.
    """
    if engine_name in BUILT_IN_ENGINES:
        return {}
    if engine_name not in _MODELS:
        raise InputError("engine", found=engine_name, known=ENGINE_NAMES)
    return _MODELS[engine_name](model_options(engine_name, options, version, source))
