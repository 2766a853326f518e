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
from lsmtune.engines.option_names import (
    TABLE_OPTION,
    CatalogueOption,
    Setting,
    check_leveldb_options,
    settings,
)
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue, option_text

Flags = dict[str, str]

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
# LevelDB's db_bench reads every number with `%d` and checks nothing. `--compression` came after
# its 1.22.
_INT_MAX = 2**31 - 1


def _leveldb_number(flag: str) -> Spelling:
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
    "compression": word("compression", {"none": "0", "no": "0", "snappy": "1"}),
}


def write(request: ExportRequest) -> str:
    """The flags, one line. Raises InputError for options that db_bench has no flag for."""
    flags, without = _rocksdb(request) if request.engine_name == "rocksdb" else _leveldb(request)
    if without:
        why = f"db_bench of {request.engine_name} has no flag for {', '.join(without)}"
        if request.engine_name == "rocksdb":
            why += "; next step: export with --format rocksdb-options for db_bench --options_file"
        raise InputError(SOURCE, "--format", found="db_bench", why=why)
    return " ".join(shlex.quote(f"--{flag}={value}") for flag, value in flags.items()) + "\n"


def _rocksdb(request: ExportRequest) -> tuple[Flags, list[str]]:
    flags: Flags = {}
    without = []
    for setting in settings(request.options, SOURCE):
        spelling = ROCKSDB_FLAGS.get(setting.name) or _own_flag(setting)
        if setting.name == FILTER_OPTION:
            flags.update(_filter(setting))
        elif spelling is None:
            without.append(setting.name)
        else:
            flags[spelling.name] = spelling.say(setting.name, setting.value)
    return flags, without


def _filter(setting: Setting) -> Flags:
    kind, bits = filter_bits(setting.name, setting.value)
    return {BLOOM_FLAG: str(bits), **({RIBBON_FLAG: "true"} if kind == RIBBON else {})}


def _own_flag(setting: Setting) -> Spelling | None:
    return None if setting.field is not None else same_name_flag(setting.option)


def same_name_flag(option: CatalogueOption) -> Spelling | None:
    """The flag of the option's own name, where the value is a number or a truth in both."""
    kind, default = option.db_bench_type, option.default or ""
    if kind is None:
        return None
    if kind == "bool" and default in ("true", "false"):
        return boolean(option.name)
    if kind == "double":
        return decimal(option.name)
    if kind.startswith(("int", "uint")) and default.removeprefix("-").isdigit():
        return number(option.name)
    return None


def _leveldb(request: ExportRequest) -> tuple[Flags, list[str]]:
    check_leveldb_options(request.options, SOURCE)
    flags: Flags = {}
    for name, value in request.options.items():
        if name in LEVELDB_FLAGS:
            spelling = LEVELDB_FLAGS[name]
            flags[spelling.name] = spelling.say(name, option_text(value))
    return flags, [name for name in request.options if name not in LEVELDB_FLAGS]


FORMAT = ExportFormat("db_bench", ("rocksdb", "leveldb"), "db_bench.flags", write)
