"""LevelDB's memory: parts and formulas, from the source of LevelDB 1.22 and 1.23.

| part | formula | source |
|---|---|---|
| `memtables` | 2 * (`write_buffer_size` + 4 KiB) | `options.h`: up to two in memory at the same time; `util/arena.cc`: blocks of 4 KiB; `db_impl.cc`, `SanitizeOptions`: 64 KiB to 1 GiB |
| `block_cache` | `cache_size` | `cache.h`; without one 8 MiB (`SanitizeOptions`) |
| `file_writers` | 2 * 64 KiB | `util/env_posix.cc`, `kWritableFileBufferSize`: the log, and the table being written, by the only background thread |
| `table_readers` | of the open tables: index entry per block + `filter_bits` / 8 per key + 4 bytes per 2 KiB | `table/table.cc`: index and filter stay in memory while a table is open, `max_open_files` - 10 tables at most; `table/filter_block.cc` |
| `mapped_tables` | the data, 1000 * `max_file_size` at most | `util/env_posix.cc`: 1000 tables are read through memory maps; their pages count as resident though the kernel can take them back |

The last two need to know the data.
"""  # noqa: E501 (a table's row is one line)

from __future__ import annotations

import math

from lsmtune.engines.memory_options import ModelOptions
from lsmtune.engines.memory_parts import StoredData, clipped

_KIB, _MIB, _GIB = 2**10, 2**20, 2**30
_ARENA_BLOCK_BYTES = 4 * _KIB
_FILE_BUFFER_BYTES = 64 * _KIB
_FILTER_BASE_BYTES = 2 * _KIB
_MAPPED_TABLES = 1000
_FILES_BESIDE_TABLES = 10
_LEFT_OUT = ("one write batch larger than a memtable has room for", "iterators of the program")
_LEFT_OUT_WITHOUT_DATA = ("indexes and filters of the open tables", "table files that are mapped")


def leveldb_memory(
    options: ModelOptions, data: StoredData | None
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Bytes of each part, and what they leave out. Raises `InputError` as `ModelOptions` does."""
    write_buffer = clipped(options.whole("write_buffer_size"), 64 * _KIB, _GIB)
    parts = {
        "memtables": 2 * (write_buffer + _ARENA_BLOCK_BYTES),
        "block_cache": options.whole("cache_size"),
        "file_writers": 2 * _FILE_BUFFER_BYTES,
    }
    file_bytes = clipped(options.whole("max_file_size"), _MIB, _GIB)
    tables = clipped(options.whole("max_open_files"), 64 + _FILES_BESIDE_TABLES, 50_000)
    block_size = clipped(options.whole("block_size"), _KIB, 4 * _MIB)
    filter_bits = options.whole("filter_bits")
    if data is None:
        return parts, (*_LEFT_OUT_WITHOUT_DATA, *_LEFT_OUT)
    open_bytes = min(data.data_bytes, (tables - _FILES_BESIDE_TABLES) * file_bytes)
    parts["table_readers"] = data.index_bytes(open_bytes, block_size)
    if filter_bits:
        offsets = 4 * math.ceil(open_bytes / _FILTER_BASE_BYTES)
        parts["table_readers"] += data.filter_bytes(open_bytes, filter_bits) + offsets
    parts["mapped_tables"] = min(data.data_bytes, _MAPPED_TABLES * file_bytes)
    return parts, _LEFT_OUT
