"""Flags for the db_bench of RocksDB and of LevelDB, on one line, quoted for a shell.

Flags say only what the Config sets. db_bench has defaults of its own for the rest, and a few
differ from the library's; an OPTIONS file (`rocksdb-options`) has no such gap.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from lsmtune.engines.exporters.base import (
    SOURCE,
    ExportFormat,
    ExportRequest,
    one_of,
    truth,
    whole_number,
)
from lsmtune.engines.exporters.rocksdb_words import (
    CHECKSUM,
    COMPACTION_PRIORITY,
    COMPACTION_STYLE,
    COMPRESSION_IN_DB_BENCH,
    filter_bits,
)
from lsmtune.engines.leveldb_options import check_leveldb_options
from lsmtune.engines.rocksdb_catalogue import TABLE_OPTION, Setting, settings
from lsmtune.errors import InputError
from lsmtune.records.config import option_text

Flags = dict[str, str]
Flag = Callable[[str, str], Flags]


def _number(flag: str) -> Flag:
    return lambda name, text: {flag: str(whole_number(name, text))}


def _truth(flag: str) -> Flag:
    return lambda name, text: {flag: truth(name, text)}


def _word(flag: str, known: dict[str, str]) -> Flag:
    return lambda name, text: {flag: one_of(name, text, known)}


def _filter(name: str, text: str) -> Flags:
    kind, bits = filter_bits(name, text)
    return {"bloom_bits": str(bits), **({"use_ribbon_filter": "true"} if kind == "ribbon" else {})}


_UNIVERSAL_NUMBERS = (
    "size_ratio",
    "min_merge_width",
    "max_merge_width",
    "max_size_amplification_percent",
    "compression_size_percent",
)
_COMPRESSION_NUMBERS = ("max_dict_bytes", "zstd_max_train_bytes", "parallel_threads", "level")

# Where the flag's name or the value's spelling differs from the option's.
_ROCKSDB: dict[str, Flag] = {
    "compression": _word("compression_type", COMPRESSION_IN_DB_BENCH),
    "compaction_style": _word("compaction_style", COMPACTION_STYLE),
    "compaction_pri": _word("compaction_pri", COMPACTION_PRIORITY),
    "max_open_files": _number("open_files"),
    "allow_mmap_reads": _truth("mmap_read"),
    "allow_mmap_writes": _truth("mmap_write"),
    f"{TABLE_OPTION}.checksum": _word("checksum_type", CHECKSUM),
    f"{TABLE_OPTION}.block_cache": _number("cache_size"),
    f"{TABLE_OPTION}.filter_policy": _filter,
    "compaction_options_universal.allow_trivial_move": _truth("universal_allow_trivial_move"),
    "compaction_options_universal.incremental": _truth("universal_incremental"),
    **{f"compaction_options_universal.{n}": _number(f"universal_{n}") for n in _UNIVERSAL_NUMBERS},
    **{f"compression_opts.{n}": _number(f"compression_{n}") for n in _COMPRESSION_NUMBERS},
}
# LevelDB's db_bench reads every number with `%d` and checks nothing. `--compression` came after
# its 1.22.
_INT_MAX = 2**31 - 1


def _leveldb_number(flag: str) -> Flag:
    def say(name: str, text: str) -> Flags:
        number = whole_number(name, text)
        if not 0 <= number <= _INT_MAX:
            allowed = f"0 to {_INT_MAX} as a flag of LevelDB's db_bench"
            raise InputError(SOURCE, name, found=text, allowed=allowed)
        return {flag: str(number)}

    return say


_LEVELDB: dict[str, Flag] = {
    "write_buffer_size": _leveldb_number("write_buffer_size"),
    "max_file_size": _leveldb_number("max_file_size"),
    "max_open_files": _leveldb_number("open_files"),
    "block_size": _leveldb_number("block_size"),
    "cache_size": _leveldb_number("cache_size"),
    "filter_bits": _leveldb_number("bloom_bits"),
    "compression": _word("compression", {"none": "0", "no": "0", "snappy": "1"}),
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
        said = _ROCKSDB.get(setting.name) or _same_name(setting)
        if said is None:
            without.append(setting.name)
        else:
            flags.update(said(setting.name, setting.value))
    return flags, without


def _same_name(setting: Setting) -> Flag | None:
    """The flag of the option's own name, where the value is a number or a truth in both."""
    kind, default = setting.option.db_bench_type, setting.option.default or ""
    if setting.field is not None or kind is None:
        return None
    flag = setting.option.name
    if kind == "bool" and default in ("true", "false"):
        return _truth(flag)
    if kind == "double":
        return lambda _name, text: {flag: text}
    if kind.startswith(("int", "uint")) and default.removeprefix("-").isdigit():
        return _number(flag)
    return None


def _leveldb(request: ExportRequest) -> tuple[Flags, list[str]]:
    check_leveldb_options(request.options, SOURCE)
    flags: Flags = {}
    for name, value in request.options.items():
        if name in _LEVELDB:
            flags.update(_LEVELDB[name](name, option_text(value)))
    return flags, [name for name in request.options if name not in _LEVELDB]


FORMAT = ExportFormat("db_bench", ("rocksdb", "leveldb"), "db_bench.flags", write)
