"""A `.properties` file for YCSB-cpp, LevelDB and RocksDB.

Facts from YCSB-cpp's `leveldb/leveldb_db.cc` and `rocksdb/rocksdb_db.cc`: a size or count of 0
means the engine's default; compression that is not given means none, unlike in the engines
themselves (snappy), so it is always written; RocksDB's numbers are read as 32-bit integers.
"""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.engines.exporters.spelling import (
    BLOOM,
    COMPACTION_PRIORITY,
    COMPRESSION_IN_YCSB,
    SOURCE,
    ExportFormat,
    ExportRequest,
    Spelling,
    boolean,
    filter_bits,
    filter_policy,
    number,
    word,
)
from lsmtune.engines.option_names import TABLE_OPTION
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue

_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1


def _number(name: str, low: int, high: int, without: int | None = None) -> Spelling:
    return number(name, low, high, " in a .properties file", without=without)


def _bloom_bits(name: str) -> Spelling:
    def say(option: str, text: str) -> str:
        kind, bits = filter_bits(option, text)
        if kind != BLOOM:
            allowed = "nullptr, bloomfilter:BITS in a .properties file"
            raise InputError(SOURCE, option, found=text, allowed=allowed)
        return str(bits)

    def read(text: str) -> OptionValue:
        return filter_policy(BLOOM, int(number(name).read(text)))

    return Spelling(name, say, read)


_ROCKSDB_NUMBERS = (
    "max_background_jobs",
    "target_file_size_base",
    "target_file_size_multiplier",
    "max_bytes_for_level_base",
    "write_buffer_size",
    "max_write_buffer_number",
    "level0_file_num_compaction_trigger",
    "level0_slowdown_writes_trigger",
    "level0_stop_writes_trigger",
)
# By engine: option -> property.
PROPERTIES: Mapping[str, Mapping[str, Spelling]] = {
    "leveldb": {
        "write_buffer_size": _number("write_buffer_size", 1, _LONG_MAX),
        "max_file_size": _number("max_file_size", 1, _LONG_MAX),
        "cache_size": _number("cache_size", 1, _LONG_MAX),
        "max_open_files": _number("max_open_files", 1, _INT_MAX),
        "block_size": _number("block_size", 1, _INT_MAX),
        "block_restart_interval": _number("block_restart_interval", 1, _INT_MAX),
        "filter_bits": _number("filter_bits", 0, _INT_MAX),
        "compression": word("compression", {"none": "no", "no": "no", "snappy": "snappy"}),
    },
    "rocksdb": {
        **{name: _number(name, 1, _INT_MAX) for name in _ROCKSDB_NUMBERS},
        "use_direct_reads": boolean("use_direct_reads"),
        "allow_mmap_writes": boolean("allow_mmap_writes"),
        "allow_mmap_reads": boolean("allow_mmap_reads"),
        "use_direct_io_for_flush_and_compaction": boolean("use_direct_io_for_flush_compaction"),
        # 0 is the engine's default there, as it is not in RocksDB.
        "max_open_files": _number("max_open_files", -1, _INT_MAX, without=0),
        "compaction_pri": word("compaction_pri", COMPACTION_PRIORITY),
        "compression": word("compression", COMPRESSION_IN_YCSB),
        f"{TABLE_OPTION}.block_cache": _number("cache_size", 1, _LONG_MAX),
        f"{TABLE_OPTION}.filter_policy": _bloom_bits("bloom_bits"),
    },
}
_ENGINES_DEFAULT_COMPRESSION = {"leveldb": "snappy", "rocksdb": "kSnappyCompression"}


def write(request: ExportRequest) -> str:
    """The file's text. Raises InputError for an option or a value that has no property."""
    engine, known = request.engine_name, PROPERTIES[request.engine_name]
    values = {"compression": _ENGINES_DEFAULT_COMPRESSION[engine], **request.values()}
    without = [name for name in values if name not in known]
    if without:
        why = f"YCSB-cpp has no property for {', '.join(without)}"
        if engine == "rocksdb":
            why += "; next step: export with --format rocksdb-options and set rocksdb.optionsfile"
            why += " to that file"
        raise InputError(SOURCE, "--format", found="properties", why=why)
    properties = {known[n].name: known[n].say(n, value) for n, value in values.items()}
    lines = [f"# {request.title()}", f"{engine}.dbname=/tmp/ycsb-{engine}"]
    lines += [f"{engine}.format=single", f"{engine}.destroy=false", ""]
    lines += [f"{engine}.{name}={value}" for name, value in sorted(properties.items())]
    return "\n".join(lines) + "\n"


FORMAT = ExportFormat("properties", ("leveldb", "rocksdb"), "lsmtune.properties", write)
