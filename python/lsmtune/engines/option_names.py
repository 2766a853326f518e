"""The options of RocksDB by name, with their section of an OPTIONS file.

The data, `catalogues/rocksdb.json`, is made by `scripts/rocksdb_catalogue.py` from the OPTIONS
files that RocksDB 7.8.3, 10.2.1 and 10.10.1 themselves wrote, and from `db_bench --help` of 7.8.3.
Options of other versions, those that RocksDB reads and never writes, and the parts of objects such
as `memtable_factory` come from `options/rocksdb.yaml`.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import NamedTuple

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.errors import InputError, nearest_name
from lsmtune.model.config import OptionValue, option_text
from lsmtune.space.parameter import same_value
from lsmtune.units import DIGITS_MAX

DB_SECTION = "DBOptions"
CF_SECTION = "CFOptions"
TABLE_SECTION = "TableOptions/BlockBasedTable"
TABLE_OPTION = "block_based_table_factory"
BLOCK_CACHE = f"{TABLE_OPTION}.block_cache"
NO_BLOCK_CACHE = f"{TABLE_OPTION}.no_block_cache"
FILTER_POLICY = f"{TABLE_OPTION}.filter_policy"
# The size of a block cache, which is what `block_cache` alone says.
CACHE_CAPACITY = f"{BLOCK_CACHE}.capacity"

# The kinds of memtables: the class names that RocksDB writes, and the names that it takes as well
# (db/memtable.cc and memtable/*.cc, `kNickName`).
MEMTABLES = {
    "SkipListFactory": "skip_list",
    "VectorRepFactory": "vector",
    "HashSkipListRepFactory": "prefix_hash",
    "HashLinkListRepFactory": "hash_linkedlist",
}
# What RocksDB reads as a truth (ParseBoolean, util/string_util.cc).
TRUTHS = {"true": True, "1": True, "false": False, "0": False}

_SECTIONS = {"db": DB_SECTION, "column_family": CF_SECTION, "table": TABLE_SECTION}


@dataclass(frozen=True)
class CatalogueOption:
    """One option: its section, and its default as text by RocksDB version.

    A default is None for an option that RocksDB reads but never writes (`block_cache`). `parts`
    are the options of an object (`memtable_factory`) that its default does not show.
    `db_bench_type` is the type of the db_bench flag of the same name, if there is one.
    """

    name: str
    section: str
    defaults: Mapping[str, str | None]
    db_bench_type: str | None = None
    parts: tuple[str, ...] = ()

    @property
    def dotted(self) -> str:
        """As lsmtune spells it: `block_based_table_factory.block_size`."""
        return f"{TABLE_OPTION}.{self.name}" if self.section == TABLE_SECTION else self.name

    @property
    def default(self) -> str | None:
        """The default in the newest version that has the option."""
        return next(reversed(list(self.defaults.values())), None)

    @functools.cached_property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields when the option is a structure (`{size_ratio=1;...}`)."""
        if self.default is None or not self.default.startswith("{"):
            return self.parts
        return tuple(dict.fromkeys([*split_structure(self.default), *self.parts]))


class Catalogue(NamedTuple):
    """Option name -> option, and the newest version in the catalogue."""

    options: Mapping[str, CatalogueOption]
    newest: str


@functools.cache
def catalogue() -> Catalogue:
    """The options that RocksDB itself wrote."""
    data = resources.files("lsmtune.engines") / "catalogues" / "rocksdb.json"
    document = json.loads(data.read_text(encoding="utf-8"))
    options = {name: CatalogueOption(name, **entry) for name, entry in document["options"].items()}
    return Catalogue(options, document["versions"][-1])


@functools.cache
def written_options() -> Mapping[str, CatalogueOption]:
    """Every option that can be written: those of `catalogue`, and those of the option catalogue."""
    options = dict(catalogue().options)
    for name, info in option_catalogue("rocksdb").items():
        head, _, part = name.removeprefix(f"{TABLE_OPTION}.").partition(".")
        known = options.get(head) or CatalogueOption(head, _SECTIONS[info.scope], {})
        if part and part not in known.fields:
            known = dataclasses.replace(known, parts=(*known.parts, part))
        options[head] = known
    return MappingProxyType(options)


_SIGNS = re.compile("[{};]")


def split_parts(inner: str) -> tuple[list[str], int]:
    """What stands between the semicolons outside of braces, and how many braces are left open."""
    parts, depth, start = [], 0, 0
    for sign in _SIGNS.finditer(inner):
        depth += {"{": 1, "}": -1}.get(sign[0], 0)
        if sign[0] == ";" and depth <= 0:
            parts.append(inner[start : sign.start()])
            start = sign.end()
    return [*parts, inner[start:]], depth


def split_structure(text: str) -> dict[str, str]:
    """`{a=1;b={c=2;};}` -> {"a": "1", "b": "{c=2;}"}. Raises ValueError when it is not that."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1]
    parts, depth = split_parts(inner)
    if depth != 0:
        raise ValueError("unbalanced braces")
    fields: dict[str, str] = {}
    for part in parts:
        if not part.strip():
            continue
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"{part.strip()!r} is not name=value")
        fields[name.strip()] = value.strip()
    return fields


def parts_of(name: str, text: str, source: str) -> dict[str, str]:
    """The parts of the structure that option `name` has. InputError where it is malformed."""
    try:
        return split_structure(text)
    except ValueError as error:
        allowed = "{name=value;...}"
        raise InputError(source, name, found=text, why=str(error), allowed=allowed) from error


# A whole number and the suffixes that RocksDB's option parser takes, all binary (ParseSizeT,
# util/string_util.cc).
_SIZE = re.compile(rf"(-?\d{{1,{DIGITS_MAX}}})([kmgt]?)", re.ASCII | re.IGNORECASE)
_SUFFIX_SHIFT = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def whole_size(text: str) -> int | None:
    """The whole number that `text` is to RocksDB (`8M`); None for anything else."""
    match = _SIZE.fullmatch(text)
    return None if match is None else int(match[1]) << _SUFFIX_SHIFT[match[2].lower()]


def number_to(engine: str, value: OptionValue | None) -> int | float | None:
    """`value` where it is a number to `engine`: RocksDB's own `64M` is one, too; None elsewhere."""
    if isinstance(value, str):
        return whole_size(value.strip()) if engine == "rocksdb" else None
    return value


def same_to(engine: str, one: OptionValue, other: OptionValue) -> bool:
    """Whether `engine` reads both as the same value: `64M` and 67108864 are to RocksDB."""
    number = number_to(engine, one)
    same_number = number is not None and number == number_to(engine, other)
    return same_number or same_value(one, other)


def taken_apart(options: Mapping[str, OptionValue], source: str) -> dict[str, str]:
    """Every option of a Config as text, by its dotted name; of a structure, all of its fields.

    Raises InputError, naming `source` and the option, for an unknown option, a malformed value,
    and one that is given twice.
    """
    apart: dict[str, str] = {}
    for name, value in options.items():
        text = option_text(value)
        if re.search(r"[#\\\n\r]", text):
            allowed = "text without #, \\ and line ends"
            raise InputError(source, name, found=text, allowed=allowed)
        for place, part in _parts(name, text, source):
            if place in apart:
                raise InputError(source, place, why="given twice, whole and by its fields")
            apart[place] = part
    return apart


def _parts(name: str, text: str, source: str) -> Iterator[tuple[str, str]]:
    """The option `name`, or its fields, by dotted name."""
    name = BLOCK_CACHE if name == CACHE_CAPACITY else name
    if name != TABLE_OPTION and not (_has_fields(name, source) and text.startswith("{")):
        yield name, text
        return
    for part, inner in parts_of(name, text, source).items():
        yield from _parts(f"{name}.{part}", inner, source)


def find_written(name: str) -> tuple[CatalogueOption | None, str]:
    """The option of `written_options` that the dotted `name` begins with, and the field after."""
    head, _, field = name.removeprefix(f"{TABLE_OPTION}.").partition(".")
    option = written_options().get(head)
    in_table = name.startswith(f"{TABLE_OPTION}.")
    if option is not None and in_table != (option.section == TABLE_SECTION):
        option = None
    return option, field


def _has_fields(name: str, source: str) -> bool:
    """Whether `name` is an option that is a structure. Raises InputError for none."""
    option, field = find_written(name)
    if option is None:
        names = {option.name: option.dotted for option in written_options().values()}
        # The table's prefix forgotten, or put where it does not belong, is the commonest slip.
        exact = names.get(name.removeprefix(f"{TABLE_OPTION}."))
        nearest = exact or nearest_name(name, names.values())
        raise InputError(source, name, why="no such RocksDB option", nearest=nearest)
    if field and field not in option.fields:
        allowed = "" if option.fields else f"{option.name} has no fields"
        raise InputError(source, name, found=field, allowed=allowed, known=option.fields)
    return not field and bool(option.fields)
