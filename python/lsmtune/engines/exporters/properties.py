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
from lsmtune.engines.option_names import TABLE_OPTION, check_leveldb_options, settings
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue, option_text

_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1

_WHERE = " in a .properties file"


def _bits(name: str) -> Spelling:
    def say(option: str, text: str) -> str:
        kind, bits = filter_bits(option, text)
        if kind != BLOOM:
            allowed = "nullptr, bloomfilter:BITS in a .properties file"
            raise InputError(SOURCE, option, found=text, allowed=allowed)
        return str(bits)

    def read(text: str) -> OptionValue:
        return filter_policy(BLOOM, int(number(name).read(text)))

    return Spelling(name, say, read)


LEVELDB_PROPERTIES: Mapping[str, Spelling] = {
    **{
        name: number(name, 1, _LONG_MAX, _WHERE)
        for name in ("write_buffer_size", "max_file_size", "cache_size")
    },
    **{
        name: number(name, 1, _INT_MAX, _WHERE)
        for name in ("max_open_files", "block_size", "block_restart_interval")
    },
    "filter_bits": number("filter_bits", 0, _INT_MAX, _WHERE),
    "compression": word("compression", {"none": "no", "no": "no", "snappy": "snappy"}),
}
ROCKSDB_PROPERTIES: Mapping[str, Spelling] = {
    **{
        name: number(name, 1, _INT_MAX, _WHERE)
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
    **{
        name: boolean(name)
        for name in ("use_direct_reads", "allow_mmap_writes", "allow_mmap_reads")
    },
    "use_direct_io_for_flush_and_compaction": boolean("use_direct_io_for_flush_compaction"),
    # 0 is the engine's default there, as it is not in RocksDB.
    "max_open_files": number("max_open_files", -1, _INT_MAX, _WHERE, without=0),
    "compaction_pri": word("compaction_pri", COMPACTION_PRIORITY),
    "compression": word("compression", COMPRESSION_IN_YCSB),
    f"{TABLE_OPTION}.block_cache": number("cache_size", 1, _LONG_MAX, _WHERE),
    f"{TABLE_OPTION}.filter_policy": _bits("bloom_bits"),
}
_ENGINES_DEFAULT_COMPRESSION = {"leveldb": "snappy", "rocksdb": "kSnappyCompression"}


def write(request: ExportRequest) -> str:
    """The file's text. Raises InputError for an option or a value that has no property."""
    engine = request.engine_name
    values = {"compression": _ENGINES_DEFAULT_COMPRESSION[engine], **_values(request)}
    known = LEVELDB_PROPERTIES if engine == "leveldb" else ROCKSDB_PROPERTIES
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
