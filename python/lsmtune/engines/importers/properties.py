"""A `.properties` file of YCSB-cpp, for LevelDB or RocksDB.

Facts from YCSB-cpp's `utils/properties.h` (a `#` begins a comment only in the first column, blanks
around names and values do not count, the last of two lines for one name wins, a line without `=` is
passed over), `leveldb/leveldb_db.cc` and `rocksdb/rocksdb_db.cc` (a size or count of 0 leaves the
engine's default, and so does -1 for compaction_pri; without a line for compression there is none,
and to LevelDB every word but `snappy` means none; with rocksdb.optionsfile all other options are
ignored).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lsmtune.engines.exporters.properties import LEVELDB_PROPERTIES, ROCKSDB_PROPERTIES
from lsmtune.engines.exporters.spelling import Spelling
from lsmtune.engines.importers.base import (
    ENGINE_FLAG,
    ImportedConfig,
    ImportFormat,
    ImportRequest,
    Notes,
    read_text,
)
from lsmtune.engines.importers.rocksdb_options import read as read_options_file
from lsmtune.engines.properties import SETTING, Properties, Property
from lsmtune.errors import InputError, nearest_name
from lsmtune.model.config import OptionValue

NAME = "properties"
ENGINES: Mapping[str, Mapping[str, Spelling]] = {
    "leveldb": LEVELDB_PROPERTIES,
    "rocksdb": ROCKSDB_PROPERTIES,
}
OPTIONS_FILE = "optionsfile"
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
        for engine in ENGINES
    )


def read(request: ImportRequest) -> ImportedConfig:
    """The options that YCSB-cpp would use.

    Raises InputError for values that it would refuse, and when the engine is not clear.
    """
    notes = Notes(request.source)
    lines = _lines(request.text, request.source, notes)
    return _config(lines, _engine(lines, request), request, notes)


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
    places = [given.source for given in properties.values() if given.line is not None]
    request = ImportRequest("", Path(places[-1] if places else SETTING), engine)
    return _config(properties, engine, request, Notes(request.source))


def _config(lines: Properties, engine: str, request: ImportRequest, notes: Notes) -> ImportedConfig:
    of_engine = {
        name.removeprefix(f"{engine}."): line
        for name, line in lines.items()
        if name.startswith(f"{engine}.")
    }
    file = of_engine.pop(OPTIONS_FILE, None)
    if file is not None and file.value:
        return _from_options_file(file, of_engine, request, notes)
    for name, line in lines.items():
        if not name.startswith(f"{engine}."):
            text = f"left out: not a property of {engine}"
            notes.add(line.line, name, text, line.where)
    return ImportedConfig(engine, _options(engine, of_engine, notes), notes.taken())


def _lines(text: str, source: str, notes: Notes) -> dict[str, Property]:
    """The last property of each name; `notes` are told what was passed over for it."""
    properties: dict[str, Property] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        name, equals, value = (part.strip() for part in line.partition("="))
        if line.startswith("#") or not line.strip():
            continue
        if not equals:
            notes.add(number, "", f"left out: no property, for want of a =: {name[:80]}")
            continue
        if name in properties and properties[name].value != value:
            notes.add(number, name, f"replaces the value of line {properties[name].line}")
        properties[name] = Property(value, source, number)
    return properties


def _engine(lines: Properties, request: ImportRequest) -> str:
    there = [e for e in ENGINES if any(name.startswith(f"{e}.") for name in lines)]
    if request.engine is not None and request.engine not in there:
        why = f"has no property of {request.engine}"
        raise InputError(request.source, ENGINE_FLAG, why=why, allowed=", ".join(there) or "none")
    if request.engine is None and len(there) != 1:
        why = f"has properties of {' and of '.join(there) or 'no engine'}"
        allowed = ", ".join(ENGINES) if there else "lines such as leveldb.block_size=4096"
        raise InputError(request.source, ENGINE_FLAG if there else "", why=why, allowed=allowed)
    return request.engine or there[0]


def _options(engine: str, given: Properties, notes: Notes) -> dict[str, OptionValue]:
    known = {s.name: (option, s) for option, s in ENGINES[engine].items()}
    options: dict[str, OptionValue] = {}
    for name, line in given.items():
        place, text = f"{engine}.{name}", line.value
        if name in known:
            option, spelling = known[name]
            try:
                value = _value(engine, name, text, spelling)
            except ValueError as error:
                raise InputError(line.where, place, found=text, allowed=str(error)) from None
            if name == "compression" and engine == "leveldb" and text not in _LEVELDB_COMPRESSION:
                told = f"{text} means none to YCSB-cpp; written as such"
                notes.add(line.line, place, told, line.where)
            if value is None:
                notes.add(line.line, place, f"{text} leaves the engine's default", line.where)
            else:
                options[option] = value
        elif name not in _OF_THE_PROGRAM:
            _say_left_out(name, line, place, list(known), notes)
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


def _say_left_out(name: str, line: Property, place: str, known: list[str], notes: Notes) -> None:
    if name not in _NOT_CARRIED:
        nearest = nearest_name(name, known)
        hint = f" (like {nearest})" if nearest else ""
        text = f"left out: YCSB-cpp has no such property{hint}"
        notes.add(line.line, place, text, line.where)
    elif line.value not in _PLAIN.get(name, _OFF):
        notes.add(line.line, place, f"left out: {_NOT_CARRIED[name]}", line.where)


def _from_options_file(
    file: Property, others: Properties, request: ImportRequest, notes: Notes
) -> ImportedConfig:
    """The options of the file that the properties name, as YCSB-cpp does it."""
    for name, line in others.items():
        if name not in _OF_THE_PROGRAM:
            text = f"left out: YCSB-cpp ignores it beside rocksdb.{OPTIONS_FILE}"
            notes.add(line.line, f"rocksdb.{name}", text, line.where)
    name = file.value
    path = (Path() if file.line is None else Path(file.source).parent) / name
    if not path.is_file():
        why = f"no such file: {path}"
        raise InputError(file.where, f"rocksdb.{OPTIONS_FILE}", found=name, why=why)
    config = read_options_file(replace(request, text=read_text(path), path=path))
    return replace(config, notes=notes.taken() + config.notes)


FORMAT = ImportFormat(NAME, "a .properties file of YCSB-cpp", recognises, read)
