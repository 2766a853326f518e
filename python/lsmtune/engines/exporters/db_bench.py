"""Flags for the db_bench of RocksDB and of LevelDB, on one line, quoted for a shell.

Flags say only what the Config sets. db_bench has defaults of its own for the rest, and a few
differ from the library's; an OPTIONS file (`rocksdb-options`) has no such gap.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from lsmtune.engines.exporters.spelling import (
    CHECKSUM,
    COMPACTION_PRIORITY,
    COMPACTION_STYLE,
    COMPRESSION_IN_DB_BENCH,
    RIBBON,
    SOURCE,
    ExportFormat,
    ExportRequest,
    Spelling,
    boolean,
    decimal,
    filter_bits,
    number,
    word,
)
from lsmtune.engines.option_names import TABLE_OPTION, CatalogueOption, find_written
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue

FILTER_OPTION = f"{TABLE_OPTION}.filter_policy"
BLOOM_FLAG, RIBBON_FLAG = "bloom_bits", "use_ribbon_filter"

_UNIVERSAL_NUMBERS = (
    "size_ratio",
    "min_merge_width",
    "max_merge_width",
    "max_size_amplification_percent",
    "compression_size_percent",
)
_COMPRESSION_NUMBERS = ("max_dict_bytes", "zstd_max_train_bytes", "parallel_threads", "level")

# Where the flag's name or the value's spelling differs from the option's.
ROCKSDB_FLAGS: Mapping[str, Spelling] = {
    "compression": word("compression_type", COMPRESSION_IN_DB_BENCH),
    "compaction_style": word("compaction_style", COMPACTION_STYLE),
    "compaction_pri": word("compaction_pri", COMPACTION_PRIORITY),
    "max_open_files": number("open_files"),
    "max_subcompactions": number("subcompactions"),
    "rate_limiter_bytes_per_sec": number("rate_limiter_bytes_per_sec"),
    "allow_mmap_reads": boolean("mmap_read"),
    "allow_mmap_writes": boolean("mmap_write"),
    f"{TABLE_OPTION}.checksum": word("checksum_type", CHECKSUM),
    f"{TABLE_OPTION}.block_cache": number("cache_size"),
    "compaction_options_universal.allow_trivial_move": boolean("universal_allow_trivial_move"),
    "compaction_options_universal.incremental": boolean("universal_incremental"),
    **{f"compaction_options_universal.{n}": number(f"universal_{n}") for n in _UNIVERSAL_NUMBERS},
    **{f"compression_opts.{n}": number(f"compression_{n}") for n in _COMPRESSION_NUMBERS},
}
_INT_MAX = 2**31 - 1


def _leveldb_number(flag: str) -> Spelling:
    """LevelDB's db_bench reads every number with `%d` and checks nothing."""
    return number(flag, 0, _INT_MAX, " as a flag of LevelDB's db_bench")


def _leveldb_filter(flag: str) -> Spelling:
    """Bits of the filter; none is -1 there, while 0 makes a filter that is of no use."""
    plain = _leveldb_number(flag)

    def say(option: str, text: str) -> str:
        bits = plain.say(option, text)
        return "-1" if bits == "0" else bits

    def read(text: str) -> OptionValue:
        bits = plain.read(text)
        if not isinstance(bits, int) or bits == 0:
            raise ValueError("-1 for no filter, or a whole number from 1")
        return max(bits, 0)

    return Spelling(flag, say, read)


LEVELDB_FLAGS: Mapping[str, Spelling] = {
    "write_buffer_size": _leveldb_number("write_buffer_size"),
    "max_file_size": _leveldb_number("max_file_size"),
    "max_open_files": _leveldb_number("open_files"),
    "block_size": _leveldb_number("block_size"),
    "cache_size": _leveldb_number("cache_size"),
    "filter_bits": _leveldb_filter("bloom_bits"),
    # Came after LevelDB 1.22.
    "compression": word("compression", {"none": "0", "no": "0", "snappy": "1"}),
}


def write(request: ExportRequest) -> str:
    """The flags, one line. Raises InputError for options that db_bench has no flag for."""
    flags: dict[str, str] = {}
    without = []
    is_rocksdb = request.engine_name == "rocksdb"
    for name, value in request.values().items():
        spelling = ROCKSDB_FLAGS.get(name) if is_rocksdb else LEVELDB_FLAGS.get(name)
        option, field = find_written(name) if is_rocksdb else (None, "")
        if spelling is None and option is not None and not field:
            spelling = same_name_flag(option)
        if is_rocksdb and name == FILTER_OPTION:
            kind, bits = filter_bits(name, value)
            flags |= {BLOOM_FLAG: str(bits)} | ({RIBBON_FLAG: "true"} if kind == RIBBON else {})
        elif spelling is None:
            without.append(name)
        else:
            flags[spelling.name] = spelling.say(name, value)
    if without:
        why = f"db_bench of {request.engine_name} has no flag for {', '.join(without)}"
        if is_rocksdb:
            why += "; next step: export with --format rocksdb-options for db_bench --options_file"
        raise InputError(SOURCE, "--format", found="db_bench", why=why)
    return " ".join(shlex.quote(f"--{flag}={value}") for flag, value in flags.items()) + "\n"


def same_name_flag(option: CatalogueOption) -> Spelling | None:
    """The flag of the option's own name, where the value is a number or a truth in both."""
    kind, default = option.db_bench_type, option.default or ""
    if kind == "bool" and default in ("true", "false"):
        return boolean(option.name)
    if kind == "double":
        return decimal(option.name)
    if kind and kind.startswith(("int", "uint")) and default.removeprefix("-").isdigit():
        return number(option.name)
    return None


FORMAT = ExportFormat("db_bench", ("rocksdb", "leveldb"), "db_bench.flags", write)
