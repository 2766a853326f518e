"""The options that RocksDB writes into its `LOG` when it opens a database.

The form is that of `DBOptions::Dump`, `ColumnFamilyOptions::Dump` (options/options.cc,
options/db_options.cc) and `BlockBasedTableFactory::GetPrintableOptions`: `Options.name: value`
lines, and an indented block for the table. Truths and most enumerations are numbers there, and of
objects (filter, rate limiter, prefix extractor) it has no more than a name or an address.

What follows it says what the database holds: events of tables that are made and deleted, as JSON
that need not be valid, and statistics now and then (`InternalStats::DumpDBStats`, `DumpCFStats`).
"""

from __future__ import annotations

import re

from lsmtune.engines.formats.base import (
    ImportedConfig,
    ImportFormat,
    ImportRequest,
    Notes,
    default_of,
)
from lsmtune.engines.formats.rocksdb_options import (
    DEFAULT_FAMILY,
    ENGINE,
    Stated,
    check_engine,
    options_of,
)
from lsmtune.engines.formats.spelling import CHECKSUM, known_options
from lsmtune.engines.option_names import BLOCK_CACHE, FILTER_POLICY, TABLE_OPTION
from lsmtune.errors import InputError

_OPTION = re.compile(
    r"(?:^|\s)Options\.(?P<name>[A-Za-z_][\w.]*)(?:\[(?P<index>\d+)\])?\s*:(?P<value>.*)"
)
_TABLE_BEGINS = re.compile(r"\stable_factory options:\s*(?P<rest>.*)")
_TABLE_LINE = re.compile(r"\s+(?P<name>\w+)\s*:\s?(?P<value>.*)")
_FAMILY = re.compile(r"Options for column family \[(?P<name>.*)\]:")
_VERSION = re.compile(r"RocksDB version: (?P<version>\d{1,9}(?:\.\d{1,9}){1,2})", re.ASCII)
# Of an event: numbers of a table. Its keys have 8 bytes more than those of the user.
_TABLE_EVENT = re.compile(r'"event": "table_file_(?P<what>creation|deletion)"')
_TABLE_NUMBER = re.compile(
    r'"(file_number|file_size|raw_key_size|raw_value_size|num_entries)": (\d{1,18})\b', re.ASCII
)
_TABLE_NUMBERS = 5
_INTERNAL_BYTES = 8
# Of statistics: the family that is told of, the size of all its levels, writes to the log ahead.
_STATS_OF = re.compile(r"\*\* Compaction Stats \[(?P<name>.*)\] \*\*")
_ALL_LEVELS = re.compile(
    r"\s*Sum\s+\d+/\d+\s+(?P<size>\d{1,18}\.\d{1,6}) (?P<unit>[KMGT]?B)\s.*", re.ASCII
)
_UNITS = ("B", "KB", "MB", "GB", "TB")
_WAL = re.compile(r"Cumulative WAL: (?P<writes>\w+) writes, (?P<syncs>\w+) syncs,.*")
_CHANGES = ("SetOptions() on column family", "SetDBOptions()")
_ADDRESS = re.compile(r"0x[0-9a-f]+")

# Printed with another name than the option's.
_LISTS = {
    "max_bytes_for_level_multiplier_addtl": "max_bytes_for_level_multiplier_additional",
    "compression": "compression_per_level",
}
# Printed without being an option that a text can set: the process's own objects, and what the
# engine makes of them.
_NOT_OPTIONS = frozenset(
    {
        "env",
        "fs",
        "info_log",
        "statistics",
        "write_buffer_manager",
        "sst_file_manager.rate_bytes_per_sec",
        "block_cache_compressed",
    }
)

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


def _by_number(*words: str) -> dict[str, str]:
    return {str(number): word for number, word in enumerate(words)}


_WORDS = {
    "compression": _COMPRESSION,
    "compression_per_level": _COMPRESSION,
    "bottommost_compression": _COMPRESSION,
    "blob_compression_type": _COMPRESSION,
    "wal_compression": {"0": "kNoCompression", "7": "kZSTD"},
    "wal_recovery_mode": _by_number(
        "kTolerateCorruptedTailRecords",
        "kAbsoluteConsistency",
        "kPointInTimeRecovery",
        "kSkipAnyCorruptedRecords",
    ),
    "access_hint_on_compaction_start": _by_number("NONE", "NORMAL", "SEQUENTIAL", "WILLNEED"),
    f"{TABLE_OPTION}.checksum": _by_number(*CHECKSUM),
    f"{TABLE_OPTION}.index_type": _by_number(
        "kBinarySearch", "kHashSearch", "kTwoLevelIndexSearch", "kBinarySearchWithFirstKey"
    ),
    f"{TABLE_OPTION}.data_block_index_type": _by_number(
        "kDataBlockBinarySearch", "kDataBlockBinaryAndHash"
    ),
    f"{TABLE_OPTION}.index_shortening": _by_number(
        "kNoShortening", "kShortenSeparators", "kShortenSeparatorsAndSuccessor"
    ),
    f"{TABLE_OPTION}.prepopulate_block_cache": _by_number("kDisable", "kFlushOnly"),
    "prepopulate_blob_cache": _by_number("kDisable", "kFlushOnly")
    | {"disable": "kDisable", "flush only": "kFlushOnly"},
}


def recognises(text: str) -> bool:
    """Whether a line states an option as a LOG does, or says the version."""
    head = text[: 1 << 16]
    return _VERSION.search(head) is not None or re.search(r"\sOptions\.\w+\s*:", head) is not None


def read(request: ImportRequest) -> ImportedConfig:
    """The options of the database and of its default column family when it was opened.

    Raises InputError for a LOG without them: RocksDB begins a new one at every opening, and may
    go on in another when the first is full.
    """
    check_engine(request, "a LOG of this form")
    dump = _Dump(request.source)
    for number, line in enumerate(request.text.splitlines(), start=1):
        dump.take(line, number)
    if not dump.stated:
        allowed = "lines such as `Options.write_buffer_size: 67108864`; the LOG's first file"
        raise InputError(request.source, why="has no dump of options", allowed=allowed)
    dump.note_what_is_open()
    dump.note_what_it_held()
    options = options_of(dump.stated, dump.notes, whole=True, keep_defaults=request.keep_defaults)
    return ImportedConfig(ENGINE, options, dump.notes.taken(), dump.version)


class _Dump:
    """What the lines of a LOG have said so far.

    Of two statements of an option the first counts: later ones are of another opening or family.
    """

    def __init__(self, source: str) -> None:
        self.notes = Notes(source)
        self.version: str | None = None
        self.stated: dict[str, Stated] = {}
        # The column family whose options are being read; the default one's follow the database's.
        self._family = DEFAULT_FAMILY
        self._in_table = False
        self._cache_name = "cache"
        self._tables: dict[int, dict[str, int]] = {}
        self._stats_of, self._held_bytes, self._logged = "", 0.0, ""

    def take(self, line: str, number: int) -> None:
        is_default = self._family == DEFAULT_FAMILY
        if self._in_table and (row := _TABLE_LINE.fullmatch(line)):
            self._take_table_row(row, number)
            return
        self._in_table = False
        if match := _OPTION.search(line):
            if is_default:
                self._take_option(match, number)
        elif match := _TABLE_BEGINS.search(line):
            self._in_table = is_default
            if is_default and (row := _TABLE_LINE.fullmatch(f" {match['rest']}")):
                self._take_table_row(row, number)
        elif match := _FAMILY.search(line):
            self._family = match["name"]
            if self._family != DEFAULT_FAMILY:
                text = "left out: a run has the default column family only"
                self.notes.add(number, f"column family {self._family}", text)
        elif match := _VERSION.search(line):
            self.version = self.version or match["version"]
        elif any(change in line for change in _CHANGES):
            text = "left out: a change of options while the database was open"
            self.notes.add(number, "SetOptions", text)
        elif match := _TABLE_EVENT.search(line):
            self._take_event(match["what"], line)
        elif match := _STATS_OF.search(line):
            self._stats_of = match["name"]
        elif self._stats_of == DEFAULT_FAMILY and (match := _ALL_LEVELS.fullmatch(line)):
            self._held_bytes = float(match["size"]) * 1024 ** _UNITS.index(match["unit"])
        elif match := _WAL.fullmatch(line):
            self._logged = f"{match['writes']} writes were logged, with {match['syncs']} syncs"

    def _take_event(self, what: str, line: str) -> None:
        """A table of the default family was made, or any deleted."""
        numbers = {name: int(digits) for name, digits in _TABLE_NUMBER.findall(line)}
        file = numbers.get("file_number", -1)
        if what == "deletion":
            self._tables.pop(file, None)
        elif len(numbers) == _TABLE_NUMBERS and f'"cf_name": "{DEFAULT_FAMILY}"' in line:
            self._tables[file] = numbers

    def _take_option(self, match: re.Match[str], number: int) -> None:
        name, value = match["name"], match["value"].strip()
        if match["index"] is None:
            self._state(name, value, number)
        elif name in _LISTS:
            whole = _LISTS[name]
            word = _WORDS.get(whole, {}).get(value, value)
            parts = self.stated[whole].text.split(":") if whole in self.stated else []
            if match["index"] == str(len(parts)):
                self.stated[whole] = Stated(":".join([*parts, word]), number)

    def _take_table_row(self, row: re.Match[str], number: int) -> None:
        name, value = row["name"], row["value"].strip()
        if name == "block_cache_name":
            self._cache_name = value or self._cache_name
        elif name == "capacity":
            self.stated.setdefault(BLOCK_CACHE, Stated(value, number))
        elif f"{TABLE_OPTION}.{name}" in known_options(ENGINE) and name != "block_cache":
            self._state(f"{TABLE_OPTION}.{name}", value, number)

    def _state(self, name: str, value: str, number: int) -> None:
        """States `name` as an OPTIONS file would, where the LOG says enough for it."""
        if name in _NOT_OPTIONS or value == "(nil)":
            return
        if _ADDRESS.match(value):
            self.notes.add(number, name, "left out: the LOG has no more of it than its address")
            return
        if name == FILTER_POLICY and value != "nullptr":
            text = f"left out: the LOG says {value}, without its bits per key"
            self.notes.add(number, name, text)
            return
        text = value
        if name in _WORDS:
            text = _WORDS[name].get(value, value)
        elif name.endswith(".flush_block_policy_factory"):
            text = value.partition(" ")[0]
        elif value in ("None", "Unknown"):
            text = "nullptr"
        elif value in ("0", "1") and isinstance(default_of(ENGINE, None, name), bool):
            text = "true" if value == "1" else "false"
        self.stated.setdefault(name, Stated(text, number))

    def note_what_is_open(self) -> None:
        """Says what the names of objects leave open."""
        cache = self.stated.get(BLOCK_CACHE)
        if cache is not None:
            text = f"of the {self._cache_name} only the capacity is carried over"
            self.notes.add(cache.line, BLOCK_CACHE, text)
        for name in ("prefix_extractor", "memtable_insert_with_hint_prefix_extractor"):
            extractor = self.stated.get(name)
            if extractor and extractor.text in ("rocksdb.FixedPrefix", "rocksdb.CappedPrefix"):
                text = f"left out: the LOG says {extractor.text}, without its length"
                self.notes.add(extractor.line, name, text)
                del self.stated[name]
        memtable = self.stated.get("memtable_factory")
        if memtable is not None and memtable.text != "SkipListFactory":
            text = f"{memtable.text} with the engine's own parameters: the LOG has no others"
            self.notes.add(memtable.line, "memtable_factory", text)

    def note_what_it_held(self) -> None:
        """Says what the target of a study of this database is, as far as the LOG tells.

        Its tables tell how large records are. How many there are follows from the statistics, as
        tables of earlier openings are in them, too; from the tables where these hold more, as
        statistics are up to ten minutes old.
        """

        def all_of(name: str) -> int:
            return sum(table[name] for table in self._tables.values())

        entries, file_bytes = all_of("num_entries"), all_of("file_size")
        if entries and file_bytes:
            num = round(max(self._held_bytes, file_bytes) * entries / file_bytes)
            key = max(1, round(all_of("raw_key_size") / entries) - _INTERNAL_BYTES)
            value = round(all_of("raw_value_size") / entries)
            text = f"about {num:,} records: -w num={num} -w key_bytes={key} -w value_bytes={value}"
            self.notes.add(None, "it held", text)
        if self._logged:
            text = f"{self._logged}: -w durability=none, wal or sync says what a crash may cost"
            self.notes.add(None, "by its statistics", text)


FORMAT = ImportFormat("rocksdb-log", "the dump of options in a LOG of RocksDB", recognises, read)
