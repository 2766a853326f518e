"""A `.properties` file of YCSB-cpp, for LevelDB or RocksDB.

Facts from YCSB-cpp's `utils/properties.h`, `leveldb/leveldb_db.cc` and `rocksdb/rocksdb_db.cc`:

- a `#` begins a comment only in the first column, blanks around names and values do not count, the
  last of two lines for one name wins, a line without `=` is passed over;
- a size or count of 0 leaves the engine's default, and so does -1 for compaction_pri;
- without a line for compression there is none, unlike in the engines themselves, so that it is
  always written; to LevelDB every word but `snappy` means none;
- less than a bit per key is no filter;
- RocksDB's numbers are 32-bit integers; every truth but `true` is false, and all but `false` are
  refused here; with rocksdb.optionsfile all other options are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lsmtune.engines.catalogue import catalogue_defaults
from lsmtune.engines.formats.base import (
    ENGINE_FLAG,
    Exported,
    ExportFormat,
    ExportRequest,
    ImportedConfig,
    ImportFormat,
    ImportRequest,
    Notes,
    like,
    spelled,
)
from lsmtune.engines.formats.rocksdb_options import read as read_options_file
from lsmtune.engines.formats.spelling import (
    BLOOM,
    COMPACTION_PRIORITY,
    COMPRESSION_IN_YCSB,
    INT_MAX,
    LONG_MAX,
    Spelling,
    bloom_bits,
    boolean,
    filter_policy,
    number,
    word,
)
from lsmtune.engines.option_names import BLOCK_CACHE, FILTER_POLICY
from lsmtune.engines.properties import SETTING, Properties, Property
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.model.text import read_text


def _number(name: str, low: int, high: int, without: int | None = None) -> Spelling:
    return number(name, low, high, " in a .properties file", without=without)


def _filter_bits(name: str) -> Spelling:
    plain = _number(name, 0, INT_MAX)
    return replace(plain, read=lambda text: max(0, int(plain.read(text))))


def _bloom_bits(name: str) -> Spelling:
    def say(option: str, text: str) -> str:
        return str(bloom_bits(option, text, "a .properties file"))

    def read(text: str) -> OptionValue:
        return filter_policy(BLOOM, int(_filter_bits(name).read(text)))

    return Spelling(name, say, read)


def _truth(name: str) -> Spelling:
    def read(text: str) -> bool:
        if text not in ("true", "false"):
            raise ValueError("true, false")
        return text == "true"

    return replace(boolean(name), read=read)


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
        "write_buffer_size": _number("write_buffer_size", 1, LONG_MAX),
        "max_file_size": _number("max_file_size", 1, LONG_MAX),
        "cache_size": _number("cache_size", 1, LONG_MAX),
        "max_open_files": _number("max_open_files", 1, INT_MAX),
        "block_size": _number("block_size", 1, INT_MAX),
        "block_restart_interval": _number("block_restart_interval", 1, INT_MAX),
        "filter_bits": _filter_bits("filter_bits"),
        "compression": word("compression", {"none": "no", "no": "no", "snappy": "snappy"}),
    },
    "rocksdb": {
        **{name: _number(name, 1, INT_MAX) for name in _ROCKSDB_NUMBERS},
        "use_direct_reads": _truth("use_direct_reads"),
        "allow_mmap_writes": _truth("allow_mmap_writes"),
        "allow_mmap_reads": _truth("allow_mmap_reads"),
        "use_direct_io_for_flush_and_compaction": _truth("use_direct_io_for_flush_compaction"),
        # 0 is the engine's default there, as it is not in RocksDB.
        "max_open_files": _number("max_open_files", -1, INT_MAX, without=0),
        "compaction_pri": word("compaction_pri", COMPACTION_PRIORITY),
        "compression": word("compression", COMPRESSION_IN_YCSB),
        BLOCK_CACHE: _number("cache_size", 1, LONG_MAX),
        FILTER_POLICY: _bloom_bits("bloom_bits"),
    },
}
_LACKS = "YCSB-cpp has no such property"


def write(request: ExportRequest) -> Exported:
    """The file's text."""
    engine = request.engine_name
    default = catalogue_defaults(engine, request.version)["compression"]
    options = {"compression": default, **request.options}
    said, left_out = spelled(replace(request, options=options), PROPERTIES[engine].get, _LACKS)
    lines = [f"{engine}.dbname=/tmp/ycsb-{engine}"]
    lines += [f"{engine}.format=single", f"{engine}.destroy=false", ""]
    lines += [f"{engine}.{name}={value}" for name, value in sorted(said.items())]
    return Exported("\n".join(lines) + "\n", left_out)


# --- reading


_OPTIONS_FILE = "optionsfile"
_LEVELDB_COMPRESSION = ("snappy", "no", "none")
# Where YCSB-cpp keeps its database, and whether it begins anew: nothing that is measured.
_OF_THE_PROGRAM = ("dbname", "destroy")
_OFF = ("", "0", "false")
_FILE_SYSTEM = "runs are on this machine's own file system"
_NOT_CARRIED = {
    "sync": "durability belongs to the workload (durability: sync)",
    "increase_parallelism": "not an option; start from the preset rocksdb-increase-parallelism",
    "optimize_level_style_compaction": "not an option; start from the preset "
    "rocksdb-optimize-level-style-compaction",
    "compressed_cache_size": "RocksDB 8.0 removed the compressed block cache",
    "format": "a record is one value, as with format=single",
    "mergeupdate": "an update reads the record and writes it",
    "env_uri": _FILE_SYSTEM,
    "fs_uri": _FILE_SYSTEM,
}
# Values with which a property of _NOT_CARRIED changes nothing.
_PLAIN = {"format": ("single", "")}


def recognises(text: str) -> bool:
    """Whether a line sets a property of LevelDB or RocksDB."""
    return any(
        line.lstrip().startswith(f"{engine}.") and "=" in line
        for line in text.splitlines()
        for engine in PROPERTIES
    )


def read(request: ImportRequest) -> ImportedConfig:
    """The options that YCSB-cpp would use.

    Raises InputError for values that it would refuse, and when the engine is not clear.
    """
    notes = Notes(request.source)
    properties: dict[str, Property] = {}
    for line_number, line in enumerate(request.text.splitlines(), start=1):
        name, equals, value = (part.strip() for part in line.partition("="))
        if line.startswith("#") or not line.strip():
            continue
        if not equals:
            notes.add(line_number, "", f"left out: no property, for want of a =: {name[:80]}")
            continue
        if name in properties and properties[name].value != value:
            notes.add(line_number, name, f"replaces the value of line {properties[name].line}")
        properties[name] = Property(value, request.source, line_number)
    engines = [e for e in PROPERTIES if any(name.startswith(f"{e}.") for name in properties)]
    if request.engine is not None and request.engine not in engines:
        why, allowed = f"has no property of {request.engine}", ", ".join(engines) or "none"
        raise InputError(request.source, ENGINE_FLAG, why=why, allowed=allowed)
    if request.engine is None and len(engines) != 1:
        why = f"has properties of {' and of '.join(engines) or 'no engine'}"
        allowed = ", ".join(PROPERTIES) if engines else "lines such as leveldb.block_size=4096"
        field = ENGINE_FLAG if engines else ""
        raise InputError(request.source, field, why=why, allowed=allowed)
    return _config(properties, request.engine or engines[0], notes, request.keep_defaults)


def read_given(properties: Properties, engine: str) -> ImportedConfig:
    """The options of `engine` in `properties`, from wherever they were given; maybe none at all.

    Raises InputError, at its own place, for a value that YCSB-cpp would refuse.
    """
    if not any(name.startswith(f"{engine}.") for name in properties):
        notes = tuple(
            f"{given.where}: {name}: left out: not a property of {engine}"
            for name, given in properties.items()
        )
        return ImportedConfig(engine, {}, notes)
    sources = [given.source for given in properties.values() if given.line is not None]
    return _config(properties, engine, Notes(sources[-1] if sources else SETTING))


def _config(
    properties: Properties, engine: str, notes: Notes, keep_defaults: bool = False
) -> ImportedConfig:
    prefix = f"{engine}."
    of_engine = {n.removeprefix(prefix): p for n, p in properties.items() if n.startswith(prefix)}
    file = of_engine.pop(_OPTIONS_FILE, None) if engine == "rocksdb" else None
    if file is not None and file.value:
        # YCSB-cpp takes all options from the file, and so is it here.
        for name, given in of_engine.items():
            if name not in _OF_THE_PROGRAM:
                text = f"left out: YCSB-cpp ignores it beside rocksdb.{_OPTIONS_FILE}"
                notes.add(given.line, f"rocksdb.{name}", text, given.where)
        path = (Path() if file.line is None else Path(file.source).parent) / file.value
        try:
            text = read_text(path, "an option file")
        except InputError as error:
            field, why = f"rocksdb.{_OPTIONS_FILE}", f"{error.why}: {path}"
            raise InputError(file.where, field, found=file.value, why=why) from None
        config = read_options_file(ImportRequest(text, path, engine, keep_defaults))
        return replace(config, notes=notes.taken() + config.notes)
    for name, given in properties.items():
        if not name.startswith(prefix):
            notes.add(given.line, name, f"left out: not a property of {engine}", given.where)
    return ImportedConfig(engine, _options(engine, of_engine, notes), notes.taken())


def _options(engine: str, properties: Properties, notes: Notes) -> dict[str, OptionValue]:
    known = {spelling.name: (option, spelling) for option, spelling in PROPERTIES[engine].items()}
    options: dict[str, OptionValue] = {}
    for name, given in properties.items():
        place, text, note = f"{engine}.{name}", given.value, ""
        if name in known:
            option, spelling = known[name]
            try:
                value = _value(engine, name, text, spelling)
            except ValueError as error:
                raise InputError(given.where, place, found=text, allowed=str(error)) from None
            if name == "compression" and engine == "leveldb" and text not in _LEVELDB_COMPRESSION:
                note = f"{text} means none to YCSB-cpp; written as such"
            if value is None:
                note = f"{text} leaves the engine's default"
            else:
                options[option] = value
        elif name in _NOT_CARRIED:
            if text not in _PLAIN.get(name, _OFF):
                note = f"left out: {_NOT_CARRIED[name]}"
        elif name not in _OF_THE_PROGRAM:
            note = f"left out: {_LACKS}{like(name, known)}"
        if note:
            notes.add(given.line, place, note, given.where)
    if "compression" not in options:
        options["compression"] = known["compression"][1].read("no")
        text = "not given, which to YCSB-cpp means none; written as such"
        notes.add(None, f"{engine}.compression", text)
    return options


def _value(engine: str, name: str, text: str, spelling: Spelling) -> OptionValue | None:
    """The option's value, None where YCSB-cpp leaves the engine's default.

    Raises ValueError that says what is allowed.
    """
    if name == "compression" and (engine == "leveldb" or text == "none"):
        return spelling.read("snappy" if text == "snappy" else "no")
    if name == "compaction_pri" and text == "-1":
        return None
    value = spelling.read(text)
    # 0 bits are no filter, which is a value of the option here.
    return None if value == 0 and not isinstance(value, bool) and name != "filter_bits" else value


EXPORT = ExportFormat(
    "properties", ("leveldb", "rocksdb"), "lsmtune.properties", write, comment="#"
)
FORMAT = ImportFormat("properties", "a .properties file of YCSB-cpp", recognises, read)
