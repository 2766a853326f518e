"""A `.properties` file for YCSB-cpp, LevelDB and RocksDB.

Facts from YCSB-cpp's `leveldb/leveldb_db.cc` and `rocksdb/rocksdb_db.cc`: a size or count of 0
means the engine's default; compression that is not given means none, unlike in the engines
themselves (snappy), so it is always written; RocksDB's numbers are read as 32-bit integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lsmtune.engines.exporters.base import (
    SOURCE,
    ExportFormat,
    ExportRequest,
    one_of,
    truth,
    whole_number,
)
from lsmtune.engines.exporters.rocksdb_words import (
    COMPACTION_PRIORITY,
    COMPRESSION_IN_YCSB,
    filter_bits,
)
from lsmtune.engines.leveldb_options import check_leveldb_options
from lsmtune.engines.rocksdb_catalogue import TABLE_OPTION, settings
from lsmtune.errors import InputError
from lsmtune.records.config import option_text

_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1

Say = Callable[[str, str], str]


@dataclass(frozen=True)
class Property:
    """A property's name after the engine's prefix, and how (option, value) is said in it."""

    name: str
    say: Say


def _number(low: int, high: int) -> Say:
    def say(name: str, text: str) -> str:
        number = whole_number(name, text)
        if not low <= number <= high:
            raise InputError(
                SOURCE, name, found=text, allowed=f"{low} to {high} in a .properties file"
            )
        return str(number)

    return say


def _bloom(name: str, text: str) -> str:
    kind, bits = filter_bits(name, text)
    if kind != "bloom":
        allowed = "nullptr, bloomfilter:BITS in a .properties file"
        raise InputError(SOURCE, name, found=text, allowed=allowed)
    return str(bits)


def _words(known: Mapping[str, str]) -> Say:
    return lambda name, text: one_of(name, text, known)


_LEVELDB = {
    "write_buffer_size": Property("write_buffer_size", _number(1, _LONG_MAX)),
    "max_file_size": Property("max_file_size", _number(1, _LONG_MAX)),
    "cache_size": Property("cache_size", _number(1, _LONG_MAX)),
    "max_open_files": Property("max_open_files", _number(1, _INT_MAX)),
    "block_size": Property("block_size", _number(1, _INT_MAX)),
    "block_restart_interval": Property("block_restart_interval", _number(1, _INT_MAX)),
    "filter_bits": Property("filter_bits", _number(0, _INT_MAX)),
    "compression": Property("compression", _words({"none": "no", "no": "no", "snappy": "snappy"})),
}
_ROCKSDB = {
    **{
        name: Property(name, _number(1, _INT_MAX))
        for name in (
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
    },
    **{name: Property(name, truth) for name in ("use_direct_reads", "allow_mmap_writes")},
    "allow_mmap_reads": Property("allow_mmap_reads", truth),
    "use_direct_io_for_flush_and_compaction": Property("use_direct_io_for_flush_compaction", truth),
    "max_open_files": Property("max_open_files", _number(-1, _INT_MAX)),
    "compaction_pri": Property("compaction_pri", _words(COMPACTION_PRIORITY)),
    "compression": Property("compression", _words(COMPRESSION_IN_YCSB)),
    f"{TABLE_OPTION}.block_cache": Property("cache_size", _number(1, _LONG_MAX)),
    f"{TABLE_OPTION}.filter_policy": Property("bloom_bits", _bloom),
}
_ENGINES_DEFAULT_COMPRESSION = {"leveldb": "snappy", "rocksdb": "kSnappyCompression"}


def write(request: ExportRequest) -> str:
    """The file's text. Raises InputError for an option or a value that has no property."""
    engine = request.engine_name
    values = {"compression": _ENGINES_DEFAULT_COMPRESSION[engine], **_values(request)}
    known = _LEVELDB if engine == "leveldb" else _ROCKSDB
    without = [name for name in values if name not in known]
    if without:
        raise InputError(
            SOURCE, "--format", found="properties", why=_advice(engine, ", ".join(without))
        )
    said = {known[n].name: known[n].say(n, value) for n, value in values.items()}
    lines = [f"# {request.title()}", f"{engine}.dbname=/tmp/ycsb-{engine}"]
    lines += [f"{engine}.format=single", f"{engine}.destroy=false", ""]
    lines += [f"{engine}.{name}={value}" for name, value in sorted(said.items())]
    return "\n".join(lines) + "\n"


def _values(request: ExportRequest) -> dict[str, str]:
    if request.engine_name == "rocksdb":
        return {s.name: s.value for s in settings(request.options, SOURCE)}
    check_leveldb_options(request.options, SOURCE)
    return {name: option_text(value) for name, value in request.options.items()}


def _advice(engine: str, without: str) -> str:
    if engine == "leveldb":
        return f"YCSB-cpp has no property for {without}"
    step = "export with --format rocksdb-options and set rocksdb.optionsfile to that file"
    return f"YCSB-cpp has no property for {without}; next step: {step}"


FORMAT = ExportFormat("properties", ("leveldb", "rocksdb"), "lsmtune.properties", write)
