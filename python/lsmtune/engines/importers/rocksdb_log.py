"""The options that RocksDB writes into its `LOG` when it opens a database.

The form is that of `DBOptions::Dump`, `ColumnFamilyOptions::Dump` (options/options.cc,
options/db_options.cc) and `BlockBasedTableFactory::GetPrintableOptions`: `Options.name: value`
lines, and an indented block for the table. Truths and most enumerations are numbers there, and of
objects (filter, rate limiter, prefix extractor) it has no more than a name or an address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lsmtune.engines.exporters.spelling import CHECKSUM
from lsmtune.engines.importers.base import (
    ENGINE_FLAG,
    ImportedConfig,
    ImportFormat,
    ImportRequest,
    Notes,
)
from lsmtune.engines.importers.rocksdb_options import ENGINE, Stated, known_names, options_of
from lsmtune.engines.option_names import TABLE_OPTION, TABLE_SECTION, catalogue
from lsmtune.errors import InputError

NAME = "rocksdb-log"

_OPTION = re.compile(
    r"(?:^|\s)Options\.(?P<name>[A-Za-z_][\w.]*)(?:\[(?P<index>\d+)\])?\s*:(?P<value>.*)"
)
_TABLE_BEGINS = re.compile(r"\stable_factory options:\s*(?P<rest>.*)")
_TABLE_LINE = re.compile(r"(?P<indent>\s+)(?P<name>\w+)\s*:\s?(?P<value>.*)")
_FAMILY = re.compile(r"Options for column family \[(?P<name>.*)\]:")
_VERSION = re.compile(r"RocksDB version: (?P<version>\d+\.\d+(?:\.\d+)?)")
_CHANGED = "SetOptions() on column family"
_SET_DB_OPTIONS = "SetDBOptions()"
_ADDRESS = re.compile(r"0x[0-9a-f]+")

# Printed with another name than the option's.
_LISTS = {
    "max_bytes_for_level_multiplier_addtl": "max_bytes_for_level_multiplier_additional",
    "compression": "compression_per_level",
}
_CACHE = f"{TABLE_OPTION}.block_cache"
_FILTER = f"{TABLE_OPTION}.filter_policy"
# Printed without being an option that a text can set: the process's own objects, and what the
# engine makes of them.
_OBJECTS = frozenset({"env", "fs", "info_log", "statistics", "write_buffer_manager"})
_NOT_OPTIONS = frozenset({"sst_file_manager.rate_bytes_per_sec", "block_cache_compressed"})

# The numbers of the enumerations: include/rocksdb/{options,advanced_options,table}.h and
# compression_type.h.
_COMPRESSION = {
    "NoCompression": "kNoCompression",
    "Snappy": "kSnappyCompression",
    "Zlib": "kZlibCompression",
    "BZip2": "kBZip2Compression",
    "LZ4": "kLZ4Compression",
    "LZ4HC": "kLZ4HCCompression",
    "Xpress": "kXpressCompression",
    "ZSTD": "kZSTD",
    "ZSTDNotFinal": "kZSTDNotFinalCompression",
    "Disabled": "kDisableCompressionOption",
}
_WORDS = {
    "compression": _COMPRESSION,
    "compression_per_level": _COMPRESSION,
    "bottommost_compression": _COMPRESSION,
    "blob_compression_type": _COMPRESSION,
    "wal_compression": {"0": "kNoCompression", "7": "kZSTD"},
    "wal_recovery_mode": {
        "0": "kTolerateCorruptedTailRecords",
        "1": "kAbsoluteConsistency",
        "2": "kPointInTimeRecovery",
        "3": "kSkipAnyCorruptedRecords",
    },
    "access_hint_on_compaction_start": {
        "0": "NONE",
        "1": "NORMAL",
        "2": "SEQUENTIAL",
        "3": "WILLNEED",
    },
    f"{TABLE_OPTION}.checksum": {number: name for name, number in CHECKSUM.items()},
    f"{TABLE_OPTION}.index_type": {
        "0": "kBinarySearch",
        "1": "kHashSearch",
        "2": "kTwoLevelIndexSearch",
        "3": "kBinarySearchWithFirstKey",
    },
    f"{TABLE_OPTION}.data_block_index_type": {
        "0": "kDataBlockBinarySearch",
        "1": "kDataBlockBinaryAndHash",
    },
    f"{TABLE_OPTION}.index_shortening": {
        "0": "kNoShortening",
        "1": "kShortenSeparators",
        "2": "kShortenSeparatorsAndSuccessor",
    },
    f"{TABLE_OPTION}.prepopulate_block_cache": {"0": "kDisable", "1": "kFlushOnly"},
    "prepopulate_blob_cache": {
        "0": "kDisable",
        "1": "kFlushOnly",
        "disable": "kDisable",
        "flush only": "kFlushOnly",
    },
}


@dataclass
class _Dump:
    source: str
    notes: Notes
    version: str | None = None
    # The column family whose options are being read; None among those of the database.
    family: str | None = None
    in_table: bool = False
    cache_name: str = ""
    stated: dict[str, Stated] = field(default_factory=dict)

    def state(self, name: str, text: str, line: int) -> None:
        """The first statement counts: later ones are of another opening or family."""
        self.stated.setdefault(name, Stated(text, line))


def recognises(text: str) -> bool:
    """Whether a line states an option as a LOG does, or says the version."""
    head = text[: 1 << 16]
    return _VERSION.search(head) is not None or re.search(r"\sOptions\.\w+\s*:", head) is not None


def read(request: ImportRequest) -> ImportedConfig:
    """The options of the database and of its default column family when it was opened.

    Raises InputError for a LOG without them: RocksDB begins a new one at every opening, and may
    go on in another when the first is full.
    """
    if request.engine not in (None, ENGINE):
        raise InputError(
            ENGINE_FLAG, found=request.engine, why="a LOG of this form is RocksDB's", allowed=ENGINE
        )
    dump = _Dump(request.source, Notes(request.source))
    for number, line in enumerate(request.text.splitlines(), start=1):
        _take(dump, line, number)
    if not dump.stated:
        allowed = "lines such as `Options.write_buffer_size: 67108864`; the LOG's first file"
        raise InputError(request.source, why="has no dump of options", allowed=allowed)
    _finish(dump)
    options = options_of(dump.stated, dump.notes, whole=True, keep_defaults=request.keep_defaults)
    return ImportedConfig(ENGINE, options, dump.notes.taken(), dump.version)


def _take(dump: _Dump, line: str, number: int) -> None:
    if dump.in_table and (row := _TABLE_LINE.fullmatch(line)):
        _take_table_row(dump, row["name"], row["value"].strip(), number)
        return
    dump.in_table = False
    if match := _OPTION.search(line):
        if dump.family in (None, "default"):
            _take_option(dump, match, number)
    elif match := _TABLE_BEGINS.search(line):
        dump.in_table = dump.family in (None, "default")
        first = _TABLE_LINE.fullmatch(f" {match['rest']}")
        if first is not None and dump.in_table:
            _take_table_row(dump, first["name"], first["value"].strip(), number)
    elif match := _FAMILY.search(line):
        dump.family = match["name"]
        if dump.family != "default":
            text = "left out: a run has the default column family only"
            dump.notes.add(number, f"column family {dump.family}", text)
    elif match := _VERSION.search(line):
        dump.version = dump.version or match["version"]
    elif _CHANGED in line or _SET_DB_OPTIONS in line:
        text = "left out: a change of options while the database was open"
        dump.notes.add(number, "SetOptions", text)


def _take_option(dump: _Dump, match: re.Match[str], number: int) -> None:
    name, value = match["name"], match["value"].strip()
    if match["index"] is None:
        _state(dump, name, value, number)
    elif name in _LISTS:
        whole = _LISTS[name]
        earlier = dump.stated.get(whole)
        words = _WORDS.get(whole, {})
        parts = [] if earlier is None else [earlier.text]
        parts.append(words.get(value, value))
        if int(match["index"]) == (0 if earlier is None else earlier.text.count(":") + 1):
            dump.stated[whole] = Stated(":".join(parts), number)


def _take_table_row(dump: _Dump, name: str, value: str, number: int) -> None:
    if name == "block_cache_name":
        dump.cache_name = value
    elif name == "capacity":
        dump.state(_CACHE, value, number)
    elif f"{TABLE_OPTION}.{name}" in known_names() and name != "block_cache":
        _state(dump, f"{TABLE_OPTION}.{name}", value, number)


def _state(dump: _Dump, name: str, value: str, number: int) -> None:
    """States `name` as an OPTIONS file would, where the LOG says enough for it."""
    if name in _OBJECTS or name in _NOT_OPTIONS or value == "(nil)":
        return
    if _ADDRESS.match(value):
        dump.notes.add(number, name, "left out: the LOG has no more of it than its address")
        return
    if name == _FILTER and value != "nullptr":
        text = f"left out: the LOG says {value}, without its bits per key"
        dump.notes.add(number, name, text)
        return
    dump.state(name, _as_in_options_file(name, value), number)


def _as_in_options_file(name: str, value: str) -> str:
    if name in _WORDS:
        return _WORDS[name].get(value, value)
    if name.endswith(".flush_block_policy_factory"):
        return value.split()[0]
    if value in ("None", "Unknown"):
        return "nullptr"
    if _is_truth(name) and value in ("0", "1"):
        return "true" if value == "1" else "false"
    return value


def _is_truth(name: str) -> bool:
    in_table = name.startswith(f"{TABLE_OPTION}.")
    head, _, inner = name.removeprefix(f"{TABLE_OPTION}.").partition(".")
    option = catalogue()[0].get(head)
    if option is None or in_table != (option.section == TABLE_SECTION):
        return False
    return (
        option.default in ("true", "false")
        or f"{inner}=true;" in (option.default or "")
        or (bool(inner) and f"{inner}=false;" in (option.default or ""))
    )


def _finish(dump: _Dump) -> None:
    """Says what the names of objects leave open."""
    cache = dump.stated.get(_CACHE)
    if cache is not None:
        text = f"of the {dump.cache_name or 'cache'} only the capacity is carried over"
        dump.notes.add(cache.line, _CACHE, text)
    for name in ("prefix_extractor", "memtable_insert_with_hint_prefix_extractor"):
        extractor = dump.stated.get(name)
        if extractor is not None and extractor.text in (
            "rocksdb.FixedPrefix",
            "rocksdb.CappedPrefix",
        ):
            text = f"left out: the LOG says {extractor.text}, without its length"
            dump.notes.add(extractor.line, name, text)
            del dump.stated[name]
    memtable = dump.stated.get("memtable_factory")
    if memtable is not None and memtable.text != "SkipListFactory":
        text = f"{memtable.text} with the engine's own parameters: the LOG has no others"
        dump.notes.add(memtable.line, "memtable_factory", text)


FORMAT = ImportFormat(NAME, "the dump of options in a LOG of RocksDB", recognises, read)
