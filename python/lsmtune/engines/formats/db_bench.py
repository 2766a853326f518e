"""Flags of the db_bench of RocksDB and of LevelDB, as a command line or a file of flags.

They are written on one line, quoted for a shell, and say only what the Config sets. db_bench has
defaults of its own for the rest, and a few differ from the library's; beside an OPTIONS file only
the size of the block cache (`--cache_size`) does, which outweighs the file. gflags takes
`--name=value`, `--name value`, `--name` and `--noname` (https://gflags.github.io, "Setting Flags on
the Command Line"); LevelDB's db_bench takes the first form only.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial

from lsmtune.engines.formats.base import (
    ENGINE_FLAG,
    Exported,
    ExportFormat,
    ExportRequest,
    ImportedConfig,
    ImportFormat,
    ImportRequest,
    LeftOut,
    Notes,
    like,
    spelled,
)
from lsmtune.engines.formats.spelling import (
    BLOOM,
    CHECKSUM,
    COMPACTION_PRIORITY,
    COMPACTION_STYLE,
    COMPRESSION_IN_DB_BENCH,
    INT_MAX,
    LONG_MAX,
    RIBBON,
    KnownOption,
    Spelling,
    boolean,
    decimal,
    filter_bits,
    filter_policy,
    known_options,
    number,
    word,
)
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.engines.option_names import (
    BLOCK_CACHE,
    FILTER_POLICY,
    NO_BLOCK_CACHE,
    TABLE_OPTION,
    CatalogueOption,
    find_written,
)
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.units import is_digits

BLOOM_FLAG, RIBBON_FLAG = "bloom_bits", "use_ribbon_filter"

_UNIVERSAL_NUMBERS = (
    "size_ratio",
    "min_merge_width",
    "max_merge_width",
    "max_size_amplification_percent",
)
# The bounds of a flag's value, by the type of the flag.
_BOUNDS = {
    "int32": (-INT_MAX - 1, INT_MAX),
    "uint32": (0, 2**32 - 1),
    "int64": (-LONG_MAX - 1, LONG_MAX),
    "uint64": (0, 2**64 - 1),
}
_AS_A_FLAG = " as a flag of db_bench"
_COMPRESSION_NUMBERS = ("max_dict_bytes", "zstd_max_train_bytes", "parallel_threads", "level")


def _read_bits(text: str) -> int:
    if not is_digits(text.removeprefix("-")) or int(text) < -1:
        raise ValueError("a whole number from -1")
    return int(text)


# One option that is two flags: `flags_of` adds the other one, of its kind.
_FILTER = Spelling(BLOOM_FLAG, lambda option, text: str(filter_bits(option, text)[1]), _read_bits)

# Where the flag's name or the value's spelling differs from the option's.
ROCKSDB_FLAGS: Mapping[str, Spelling] = {
    "compression": word("compression_type", COMPRESSION_IN_DB_BENCH),
    "compaction_style": word("compaction_style", COMPACTION_STYLE),
    "compaction_pri": word("compaction_pri", COMPACTION_PRIORITY),
    "max_open_files": number("open_files", *_BOUNDS["int32"], _AS_A_FLAG),
    "max_subcompactions": number("subcompactions", *_BOUNDS["uint32"], _AS_A_FLAG),
    # ValidateTableCacheNumshardbits in tools/db_bench_tool.cc.
    "table_cache_numshardbits": number("table_cache_numshardbits", 1, 19, _AS_A_FLAG),
    "max_file_opening_threads": number("file_opening_threads", *_BOUNDS["int32"], _AS_A_FLAG),
    "memtable_prefix_bloom_size_ratio": decimal("memtable_bloom_size_ratio"),
    "rate_limiter_bytes_per_sec": number("rate_limiter_bytes_per_sec"),
    "allow_mmap_reads": boolean("mmap_read"),
    "allow_mmap_writes": boolean("mmap_write"),
    f"{TABLE_OPTION}.checksum": word("checksum_type", CHECKSUM),
    BLOCK_CACHE: number("cache_size"),
    "compaction_options_universal.allow_trivial_move": boolean("universal_allow_trivial_move"),
    "compaction_options_universal.incremental": boolean("universal_incremental"),
    # To most of these 0 is "unsaid" there, and one of them says so with -1.
    **{
        f"compaction_options_universal.{n}": number(f"universal_{n}", 1, INT_MAX, _AS_A_FLAG)
        for n in _UNIVERSAL_NUMBERS
    },
    "compaction_options_universal.compression_size_percent": number(
        "universal_compression_size_percent", -1, INT_MAX, _AS_A_FLAG
    ),
    **{
        f"compression_opts.{n}": number(f"compression_{n}", *_BOUNDS["int32"], _AS_A_FLAG)
        for n in _COMPRESSION_NUMBERS
    },
    "compression_opts.max_dict_buffer_bytes": number(
        "compression_max_dict_buffer_bytes", *_BOUNDS["uint64"], _AS_A_FLAG
    ),
    "compression_opts.use_zstd_dict_trainer": boolean("compression_use_zstd_dict_trainer"),
}
# Flags of an option's own name of which db_bench makes no use; of the second one only with
# --partition_index.
_IDLE_FLAGS = ("delete_obsolete_files_period_micros", "metadata_block_size")


def _leveldb_number(flag: str) -> Spelling:
    """LevelDB's db_bench reads every number with `%d` and checks nothing."""
    return number(flag, 0, INT_MAX, " as a flag of LevelDB's db_bench")


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


def write(request: ExportRequest) -> Exported:
    """The flags, one line."""
    said, left_out = flags_of(request)
    return Exported(as_arguments(said) + "\n", left_out)


def as_arguments(said: Mapping[str, str]) -> str:
    """Flags as words of a shell."""
    return " ".join(shlex.quote(f"--{flag}={value}") for flag, value in said.items())


def flags_of(request: ExportRequest) -> tuple[dict[str, str], tuple[LeftOut, ...]]:
    """The flags and their values, and what db_bench has no flag for."""
    engine = request.engine_name
    lacks = f"db_bench of {engine} has no such flag"
    said, left_out = spelled(request, partial(_flag_of, engine), lacks)
    if BLOOM_FLAG in said and request.values().get(FILTER_POLICY, "").startswith(RIBBON):
        said[RIBBON_FLAG] = "true"
    if said.get("unordered_write") == "true":
        # On by db_bench's own default, and beside it RocksDB opens no database.
        said.setdefault("enable_pipelined_write", "false")
    return said, left_out


def _flag_of(engine_name: str, name: str) -> Spelling | None:
    if engine_name != "rocksdb":
        return LEVELDB_FLAGS.get(name)
    if name == FILTER_POLICY:
        return _FILTER
    option, field = find_written(name)
    return ROCKSDB_FLAGS.get(name) or (None if option is None or field else same_name_flag(option))


def same_name_flag(option: CatalogueOption) -> Spelling | None:
    """The flag of the option's own name, where the value is a number or a truth in both."""
    kind, default = option.db_bench_type, option.default or ""
    if option.name in _IDLE_FLAGS:
        return None
    if kind == "bool" and default in ("true", "false"):
        return boolean(option.name)
    if kind == "double":
        return decimal(option.name)
    if kind in _BOUNDS and default.removeprefix("-").isdigit():
        return number(option.name, *_BOUNDS[kind], _AS_A_FLAG)
    return None


# --- reading


@functools.cache
def flags(engine: str) -> Mapping[str, KnownOption]:
    """The flags of the engine's db_bench that stand for an option, by their name."""
    known = [(option, _flag_of(engine, option.name)) for option in known_options(engine).values()]
    # The filter's own spelling is none: it is two flags.
    return {s.name: replace(option, spelling=s) for option, s in known if s and s is not _FILTER}


def find_option(engine: str, name: str) -> KnownOption | None:
    """The option that `name` means: by its own name, a db_bench flag, or the end of its name."""
    known = known_options(engine)
    option = known.get(name) or flags(engine).get(name)
    if option is not None:
        return option
    ends = [option for option in known.values() if option.name.rpartition(".")[2] == name]
    return ends[0] if len(ends) == 1 else None


def engine_of(names: Collection[str]) -> str | None:
    """The first engine that has an option for each of `names`; None without one."""
    return next((e for e in ENGINE_KINDS if all(find_option(e, name) for name in names)), None)


# `shlex` takes time by the square of a word's length: 10 s for one of 900,000 characters.
LINE_CHARACTERS_MAX = 1 << 16
_FLAG = re.compile(r"--?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:=(?P<value>.*))?", re.S)
# Flags that are no options, and why they are left out.
_DURABILITY = "durability belongs to the workload (durability: sync, wal or none)"
_LEFT_OUT = {
    "disable_wal": _DURABILITY,
    "sync": _DURABILITY,
    "options_file": "import that file itself",
}

# Numbers with which db_bench leaves the engine's default.
_UNSAID: Mapping[str, Mapping[str, range]] = {
    "rocksdb": {
        **{f"compaction_options_universal.{n}": range(1) for n in _UNIVERSAL_NUMBERS},
        "rate_limiter_bytes_per_sec": range(_BOUNDS["int64"][0], 1),
    },
    "leveldb": {"cache_size": range(-INT_MAX - 1, 0)},
}


def _as_meant(engine: str, options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """`options` without what db_bench passes over; its two flags of a filter are one option.

    To RocksDB's a cache of 0 or less is none.
    """
    meant = {name: v for name, v in options.items() if v not in _UNSAID[engine].get(name, range(0))}
    bits, is_ribbon = int(meant.pop(BLOOM_FLAG, -1)), meant.pop(RIBBON_FLAG, False)
    if bits >= 0:  # below 0 is db_bench's default, which leaves the engine's
        meant[FILTER_POLICY] = filter_policy(RIBBON if is_ribbon else BLOOM, bits)
    if int(meant.get(BLOCK_CACHE, 1)) <= 0:  # `NewCache` in tools/db_bench_tool.cc
        del meant[BLOCK_CACHE]
        meant[NO_BLOCK_CACHE] = True
    return meant


_FILTER_FLAGS: Mapping[str, KnownOption] = {
    BLOOM_FLAG: KnownOption(BLOOM_FLAG, spelling=_FILTER),
    RIBBON_FLAG: KnownOption(RIBBON_FLAG, spelling=boolean(RIBBON_FLAG)),
}


def recognises(text: str) -> bool:
    """Whether the first word that is not a comment is a flag, or db_bench itself."""
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if words:
            return _is_program(words[0]) or _FLAG.fullmatch(words[0]) is not None
    return False


def _is_program(word: str) -> bool:
    return word.rpartition("/")[2].startswith("db_bench")


def read(request: ImportRequest) -> ImportedConfig:
    """The options that the flags set. Raises InputError for what is not a list of flags."""
    engine, notes = request.engine, Notes(request.source)
    if engine is None or engine not in ENGINE_KINDS:
        why = "has no db_bench" if engine else "missing, and flags do not say it"
        allowed = ", ".join(ENGINE_KINDS)
        raise InputError(request.source, ENGINE_FLAG, found=engine, why=why, allowed=allowed)
    options: dict[str, OptionValue] = {}
    known = {**flags(engine), **_FILTER_FLAGS} if engine == "rocksdb" else flags(engine)
    truths = {name for name, each in known.items() if each.spelling and each.spelling.is_truth}
    for name, value, line in _flags(request.text, request.source, truths):
        where, place = f"{request.source}:{line}", f"--{name}"
        option = known.get(name) or known.get(name.removeprefix("no"))
        if option is None or option.spelling is None:
            why = _LEFT_OUT.get(name, f"not the flag of an option of {engine}{like(name, known)}")
            notes.add(line, place, f"left out: {why}")
            continue
        text = value
        if text is None and option.spelling.is_truth:
            text = "true" if name in known else "false"
        elif text is None or name not in known:
            raise InputError(where, place, why="has no value", allowed="--name=value")
        try:
            options[option.name] = option.spelling.read(text)
        except ValueError as error:
            raise InputError(where, place, found=text, allowed=str(error)) from None
    if not options and not notes.lines:
        raise InputError(request.source, why="has no flags", allowed="--name=value")
    return ImportedConfig(engine, _as_meant(engine, options), notes.taken())


def _flags(
    text: str, source: str, truths: Collection[str]
) -> Iterator[tuple[str, str | None, int]]:
    """Name, value if any, and line of every flag; none of `truths` is followed by its value."""
    words = list(_words(text, source))
    index = 0
    while index < len(words):
        line, word = words[index]
        index += 1
        match = _FLAG.fullmatch(word)
        if match is None:
            if index == 1 and _is_program(word):
                continue
            raise InputError(f"{source}:{line}", found=word, allowed="--name=value")
        name, value = match["name"], match["value"]
        has_next = index < len(words) and not _FLAG.fullmatch(words[index][1])
        # The value may be the next word, `-1` too. To gflags `--use_fsync false` is true.
        if value is None and has_next and name.removeprefix("no") not in truths:
            value = words[index][1]
            index += 1
        yield name, value, line


def _words(text: str, source: str) -> Iterator[tuple[int, str]]:
    continued = ""
    # The last line may end in `\`, too.
    for line_number, line in enumerate([*text.splitlines(), ""], start=1):
        whole = continued + line
        if whole.endswith("\\"):
            continued = whole[:-1]
            continue
        continued = ""
        if len(whole) > LINE_CHARACTERS_MAX:
            why = f"a line of {len(whole)} characters"
            allowed = f"at most {LINE_CHARACTERS_MAX}, with the lines that `\\` joins to it"
            raise InputError(f"{source}:{line_number}", why=why, allowed=allowed)
        try:
            for word in shlex.split(whole, comments=True):
                yield line_number, word
        except ValueError as error:
            problem = str(error).lower()
            why = f"not words of a shell: {problem}"
            raise InputError(f"{source}:{line_number}", why=why) from None


EXPORT = ExportFormat("db_bench", ("rocksdb", "leveldb"), "db_bench.flags", write)
FORMAT = ImportFormat("db_bench", "flags of db_bench", recognises, read)
