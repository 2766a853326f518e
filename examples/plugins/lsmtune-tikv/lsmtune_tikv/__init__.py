"""The format `tikv`: what of a RocksDB configuration TiKV's configuration file says, both ways.

Fields from TiKV's `src/config/mod.rs` (`DbConfig`, the macro `cf_config`) and from its template:
sizes are numbers of bytes or texts with a unit; a compression is one for each of seven levels;
priorities and styles are RocksDB's numbers. The block cache is shared by all column families.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping

from lsmtune.engines.formats.base import (
    Exported,
    ExportFormat,
    ExportRequest,
    ImportedConfig,
    ImportFormat,
    ImportRequest,
    Notes,
    spelled,
)
from lsmtune.engines.formats.spelling import (
    BLOOM,
    COMPACTION_PRIORITY,
    COMPACTION_STYLE,
    COMPRESSION_IN_YCSB,
    SOURCE,
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

DB, FAMILY, CACHE = "rocksdb", "rocksdb.defaultcf", "storage.block-cache"
_LEVELS = 7
_BITS = f"{FAMILY} bloom-filter-bits-per-key"


def _say_bits(option: str, text: str) -> str:
    kind, bits = filter_bits(option, text)
    if kind != BLOOM:
        raise InputError(SOURCE, option, found=text, allowed="nullptr, bloomfilter:BITS in TiKV")
    return str(bits)


def _read_bits(text: str) -> str:
    return filter_policy(BLOOM, int(number(_BITS).read(text)))


def _compression(name: str) -> Spelling:
    """One of TiKV's words, in quotes."""
    return word(name, {ours: f'"{theirs}"' for ours, theirs in COMPRESSION_IN_YCSB.items()})


def _numbers(section: str, *names: str) -> dict[str, Spelling]:
    return {name: number(f"{section} {name.replace('_', '-')}") for name in names}


def _truths(section: str, *names: str) -> dict[str, Spelling]:
    return {name: boolean(f"{section} {name.replace('_', '-')}") for name in names}


# Option -> section and field.
FIELDS: Mapping[str, Spelling] = {
    **_numbers(DB, "max_background_jobs", "max_open_files", "max_manifest_file_size"),
    **_numbers(DB, "max_total_wal_size", "compaction_readahead_size", "max_background_flushes"),
    **_numbers(DB, "writable_file_max_buffer_size", "bytes_per_sync", "wal_bytes_per_sync"),
    "max_subcompactions": number(f"{DB} max-sub-compactions"),
    "rate_limiter_bytes_per_sec": number(f"{DB} rate-bytes-per-sec"),
    **_truths(DB, "use_direct_io_for_flush_and_compaction", "enable_pipelined_write"),
    **_numbers(FAMILY, "write_buffer_size", "max_write_buffer_number"),
    **_numbers(FAMILY, "min_write_buffer_number_to_merge", "max_bytes_for_level_base"),
    **_numbers(FAMILY, "target_file_size_base", "level0_file_num_compaction_trigger"),
    **_numbers(FAMILY, "level0_slowdown_writes_trigger", "level0_stop_writes_trigger"),
    **_numbers(FAMILY, "max_compaction_bytes", "max_bytes_for_level_multiplier"),
    **_numbers(FAMILY, "soft_pending_compaction_bytes_limit"),
    **_numbers(FAMILY, "hard_pending_compaction_bytes_limit"),
    "num_levels": number(f"{FAMILY} num-levels", 1, _LEVELS, " in TiKV"),
    **_truths(FAMILY, "optimize_filters_for_hits", "disable_auto_compactions"),
    **_truths(FAMILY, "force_consistency_checks"),
    "level_compaction_dynamic_level_bytes": boolean(f"{FAMILY} dynamic-level-bytes"),
    "compaction_pri": word(f"{FAMILY} compaction-pri", COMPACTION_PRIORITY),
    "compaction_style": word(f"{FAMILY} compaction-style", COMPACTION_STYLE),
    "compression": _compression(f"{FAMILY} compression-per-level"),
    "bottommost_compression": _compression(f"{FAMILY} bottommost-level-compression"),
    f"{TABLE_OPTION}.block_size": number(f"{FAMILY} block-size", 1, 32 << 20, " in TiKV"),
    f"{TABLE_OPTION}.no_block_cache": boolean(f"{FAMILY} disable-block-cache"),
    f"{TABLE_OPTION}.cache_index_and_filter_blocks": boolean(
        f"{FAMILY} cache-index-and-filter-blocks"
    ),
    f"{TABLE_OPTION}.pin_l0_filter_and_index_blocks_in_cache": boolean(
        f"{FAMILY} pin-l0-filter-and-index-blocks"
    ),
    f"{TABLE_OPTION}.whole_key_filtering": boolean(f"{FAMILY} whole-key-filtering"),
    f"{TABLE_OPTION}.optimize_filters_for_memory": boolean(f"{FAMILY} optimize-filters-for-memory"),
    f"{TABLE_OPTION}.read_amp_bytes_per_bit": number(f"{FAMILY} read-amp-bytes-per-bit"),
    f"{TABLE_OPTION}.format_version": number(f"{FAMILY} format-version", 2, 5, " in TiKV"),
    f"{TABLE_OPTION}.filter_policy": Spelling(_BITS, _say_bits, _read_bits),
    f"{TABLE_OPTION}.block_cache": number(f"{CACHE} capacity"),
}


def write(request: ExportRequest) -> Exported:
    """The sections that have a field."""
    said, left_out = spelled(request, FIELDS.get, "TiKV has no such field")
    lines: dict[str, list[str]] = {DB: [], FAMILY: [], CACHE: []}
    for place, said_value in said.items():
        section, field = place.split()
        each_level = field == "compression-per-level"
        value = f"[{', '.join([said_value] * _LEVELS)}]" if each_level else said_value
        if place == _BITS:
            lines[section].append(f"use-bloom-filter = {'false' if value == '0' else 'true'}")
        if (place, value) != (_BITS, "0"):
            lines[section].append(f"{field} = {value}")
    parts = ["\n".join([f"[{section}]", *fields]) for section, fields in lines.items() if fields]
    return Exported("\n\n".join(parts) + "\n", left_out)


# --- from TiKV

_OPTIONS = {spelling.name: (option, spelling) for option, spelling in FIELDS.items()}
_BLOOM_USED = f"{FAMILY} use-bloom-filter"
# `ReadableSize` in TiKV's `components/tikv_util/src/config.rs`: units are binary, `KB` as `KiB`.
_SIZE = re.compile(r"(\d{1,18}) ?([KMGTP]?)(?:i?B)?")
_SHIFT = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50}


def recognises(text: str) -> bool:
    """Whether a line begins a section of RocksDB's options, as TiKV names them."""
    return re.search(r"^\[rocksdb(\.\w+)?\]", text, re.MULTILINE) is not None


def read(request: ImportRequest) -> ImportedConfig:
    """The options of the column family `default`, of the database and of the block cache.

    Raises InputError for what is not TOML, and for values that TiKV would refuse.
    """
    try:
        fields = dict(_fields(tomllib.loads(request.text)))
    except (ValueError, RecursionError) as error:
        raise InputError(request.source, why=f"not TOML: {error}") from None
    notes, options = Notes(request.source), dict[str, OptionValue]()
    if fields.pop(_BLOOM_USED, True) is False:
        fields[_BITS] = 0
    for place, value in fields.items():
        if place not in _OPTIONS:
            notes.add(None, place, "left out: no option of RocksDB that lsmtune knows by this name")
        elif isinstance(value, list) and len({str(each) for each in value}) != 1:
            notes.add(None, place, "left out: levels that differ; RocksDB has one compression here")
        else:
            option, spelling = _OPTIONS[place]
            try:
                options[option] = spelling.read(_text(value))
            except ValueError as error:
                allowed = str(error)
                raise InputError(request.source, place, found=value, allowed=allowed) from None
    return ImportedConfig("rocksdb", options, notes.taken())


def _fields(table: Mapping[str, object], section: str = "") -> Iterator[tuple[str, object]]:
    """Each field of a document as `section field`, and its value."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _fields(value, f"{section}.{name}" if section else name)
        else:
            yield f"{section} {name}".strip(), value


def _text(value: object) -> str:
    """A value as the spellings above have it: sizes in bytes, words in quotes."""
    if isinstance(value, list):
        value = value[0]
    size = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if size is not None:
        return str(int(size[1]) << _SHIFT[size[2]])
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


IMPORT = ImportFormat("tikv", "a configuration file of TiKV", recognises, read)
EXPORT = ExportFormat("tikv", ("rocksdb",), "tikv.toml", write, comment="#")
