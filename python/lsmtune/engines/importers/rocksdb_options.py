r"""What RocksDB wrote down of its options, in an OPTIONS file or a LOG, as options of a Config.

Left out is what a Config of another database cannot have: references to code of the program that
wrote the dump, places on its machine, and how it opened its database. In a whole dump, which states
every option and says little, options are left out that have the default of every version in the
catalogue: with any of them the engine then does the same. `keep_defaults` keeps those.

An OPTIONS file may be of any version from 4.3 on. The form is that of RocksDB's own parser,
`options/options_parser.cc`: sections `[Title "argument"]`, one `name=value` a line, `#` comments
unless escaped, `\n \r \\ \: \#` escaped, the first of two lines for one name counts, the default
column family comes first. Only that family is carried over: a run has no other.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.importers.base import (
    ENGINE_FLAG,
    ImportedConfig,
    ImportFormat,
    ImportRequest,
    Notes,
)
from lsmtune.engines.importers.names import known_options
from lsmtune.engines.option_names import (
    CF_SECTION,
    DB_SECTION,
    TABLE_OPTION,
    TABLE_SECTION,
    catalogue,
    split_structure,
)
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue, option_text
from lsmtune.units import UnitError, option_text_allowed, option_value

ENGINE = "rocksdb"

_CODE = frozenset(
    {
        "comparator",
        "compaction_filter",
        "compaction_filter_factory",
        "file_checksum_gen_factory",
        "listeners",
        "merge_operator",
        "sst_partitioner_factory",
        f"{TABLE_OPTION}.flush_block_policy_factory",
        "table_properties_collectors",
        "wal_filter",
    }
)
_PLACES = frozenset({"cf_paths", "db_host_id", "db_log_dir", "db_paths", "wal_dir"})
_OPENING = frozenset(
    {
        "create_if_missing",
        "create_missing_column_families",
        "error_if_exists",
        "fail_if_options_file_error",
    }
)
_CACHE = f"{TABLE_OPTION}.block_cache"
_MEMTABLE = "memtable_factory"
# The class names that RocksDB writes, and the names that it takes as well (db/memtable.cc and
# memtable/*.cc, `kNickName`).
_MEMTABLES = {
    "SkipListFactory": "skip_list",
    "VectorRepFactory": "vector",
    "HashSkipListRepFactory": "prefix_hash",
    "HashLinkListRepFactory": "hash_linkedlist",
}
_TABLE_KIND = "table_factory"
# A filter with its builder (always the new one since 7.0), prefixes by their class names.
_LONG_FORMS = (
    (re.compile(r"(bloomfilter:[\d.]+):false"), r"\1"),
    (re.compile(r"rocksdb\.FixedPrefix\.(\d+)"), r"fixed:\1"),
    (re.compile(r"rocksdb\.CappedPrefix\.(\d+)"), r"capped:\1"),
)
FILTER = f"{TABLE_OPTION}.filter_policy"
# As versions before 7.0 wrote every filter of their own.
_FILTERS_WITHOUT_BITS = frozenset({"rocksdb.BuiltinBloomFilter", "rocksdb.BuiltinFilter"})
# RocksDB up to 6.14 wrote this 32-bit option together with the four bytes behind it
# (table/block_based/block_based_table_factory.cc).
_WRITTEN_TOO_WIDE = f"{TABLE_OPTION}.read_amp_bytes_per_bit"
# What the engine itself has for these, or nothing.
_NOTHING = frozenset({"", "nullptr", "{}", "None", "leveldb.BytewiseComparator"})


@dataclass(frozen=True)
class Stated:
    """An option's value as text, and the line where it stands."""

    text: str
    line: int


def options_of(
    stated: Mapping[str, Stated], notes: Notes, *, whole: bool, keep_defaults: bool
) -> dict[str, OptionValue]:
    """The options of a dump, by their dotted names; what is left out is said in `notes`.

    `whole` tells a dump of everything from a file that states what somebody chose.
    """
    options: dict[str, OptionValue] = {}
    dropped = 0
    for name, written in _taken_apart(stated).items():
        value = _narrowed(name, written, notes)
        why = _left_out(name, value.text)
        if why:
            notes.add(value.line, name, f"left out: {why}")
        elif (
            why is None and whole and not keep_defaults and is_default_everywhere(name, value.text)
        ):
            dropped += 1
        elif why is None:
            options[name] = option_value(_short(value.text) if whole else value.text)
    if dropped:
        what = "1 option" if dropped == 1 else f"{dropped} options"
        text = f"{what} with the engine's default left out (see --keep-defaults)"
        notes.add(None, "", text)
    return options


def _short(text: str) -> str:
    """An object's text as people write it: what RocksDB adds when it writes one is left off."""
    for long, short in _LONG_FORMS:
        text = long.sub(short, text)
    return text


def _narrowed(name: str, value: Stated, notes: Notes) -> Stated:
    if name != _WRITTEN_TOO_WIDE or not value.text.isdigit() or int(value.text) < 1 << 32:
        return value
    narrow = Stated(str(int(value.text) % (1 << 32)), value.line)
    notes.add(value.line, name, f"read as {narrow.text}: RocksDB wrote the bytes behind it, too")
    return narrow


def _taken_apart(stated: Mapping[str, Stated]) -> dict[str, Stated]:
    """Structures (`{size_ratio=1;...}`) by their fields, under dotted names."""
    flat: dict[str, Stated] = {}
    for name, value in stated.items():
        if name == _MEMTABLE and not value.text.startswith("{"):
            flat[f"{_MEMTABLE}.id"] = Stated(_memtable(value.text), value.line)
            continue
        try:
            fields = split_structure(value.text) if value.text.startswith("{") else {}
        except ValueError:
            fields = {}  # a list of objects, which stays whole
        inner = {_part_name(name, f): Stated(text, value.line) for f, text in fields.items()}
        if any(part in known_names() for part in inner):
            flat |= _named(_taken_apart(inner))
        else:
            flat[name] = value
    return flat


def _named(parts: dict[str, Stated]) -> dict[str, Stated]:
    """`parts` with the kind of memtable by the name that the catalogue has for it."""
    kind = parts.get(f"{_MEMTABLE}.id")
    if kind is None:
        return parts
    return parts | {f"{_MEMTABLE}.id": Stated(_memtable(kind.text), kind.line)}


def _memtable(kind: str) -> str:
    return _MEMTABLES.get(kind, kind)


def _part_name(name: str, field: str) -> str:
    """A field's dotted name; a block cache's capacity is what `block_cache` says here."""
    return name if (name, field) == (_CACHE, "capacity") else f"{name}.{field}"


def _left_out(name: str, text: str) -> str | None:
    """Why an option cannot be carried over, '' when that changes nothing, None when it can."""
    if name in _CODE or name == _TABLE_KIND:
        if text in _NOTHING or is_default_everywhere(name, text):
            return ""
        return f"{text} is code of the program that wrote this"
    if name in _PLACES:
        return "" if text in ("", "__hostname__") else f"{text} is a place on another machine"
    if name in _OPENING:
        default = is_default_everywhere(name, text)
        return "" if default else "how a database is opened is for lsmtune to say"
    if text == "":
        return ""
    if name == FILTER and text in _FILTERS_WITHOUT_BITS:
        return f"{text} does not say its bits per key"
    if name not in known_names():
        return "" if text in _NOTHING else "no option of RocksDB that lsmtune knows"
    allowed = option_text_allowed(text)
    if allowed:
        return f"its value cannot be written; allowed: {allowed}"
    return "a fraction of a byte" if _is_fraction_of_a_byte(text) else None


def _is_fraction_of_a_byte(text: str) -> bool:
    try:
        option_value(text)
    except UnitError:
        return True
    return False


@functools.cache
def known_names() -> frozenset[str]:
    """Every option that an exporter can write."""
    return frozenset(known_options(ENGINE))


def is_default_everywhere(name: str, text: str) -> bool:
    """Whether `text` is the default of the option in every version that the catalogues know.

    An option that came or went between the versions counts where it exists.
    """
    in_table = name.startswith(f"{TABLE_OPTION}.")
    head, _, field = name.removeprefix(f"{TABLE_OPTION}.").partition(".")
    option = catalogue()[0].get(head)
    stated: list[str | None] = []
    if option is not None and in_table == (option.section == TABLE_SECTION):
        stated += [_part(default or "", field) for default in option.defaults.values()]
    info = option_catalogue(ENGINE).get(name)
    if info is not None and info.default is not None:
        stated += [
            option_text(value) for value in (info.default, *dict(info.older_defaults).values())
        ]
    known = [default for default in stated if default]
    return bool(known) and all(_same(text, default) for default in known)


def _part(default: str, field: str) -> str | None:
    """A field's default out of its structure's; None in a version without the field."""
    if not field:
        return default
    return split_structure(default).get(field) if default.startswith("{") else None


def _same(one: str, other: str) -> bool:
    """Whether two texts are one value: `10` and `10.000000` are."""
    if one == other:
        return True
    try:
        return Decimal(one) == Decimal(other)
    except InvalidOperation:
        return False


def full_name(section: str, name: str) -> str:
    """The dotted name of option `name` of a section."""
    return f"{TABLE_OPTION}.{name}" if section.startswith(TABLE_SECTION) else name


# --- an OPTIONS file

NAME = "rocksdb-options"
VERSION_SECTION = "Version"
TABLES = "TableOptions/"
DEFAULT_FAMILY = "default"

_COMMENT = re.compile(r"(?<!\\)#.*")
_SECTION = re.compile(r'\[(?P<title>[^"\]]*?)\s*(?:"(?P<argument>.*)"\s*)?\]')
_ESCAPED = re.compile(r"\\(.)")
_VERSION = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,2}", re.ASCII)
_LINE_ENDS = {"n": "\n", "r": "\r"}
# Every version writes this one, and nobody chooses it: a file that states it states everything.
_SIGN_OF_A_WHOLE_DUMP = "comparator"


@dataclass
class _File:
    source: str
    notes: Notes
    version: str | None = None
    title: str = ""
    argument: str = ""
    seen: set[tuple[str, str]] = field(default_factory=set)
    stated: dict[str, Stated] = field(default_factory=dict)


def recognises(text: str) -> bool:
    """Whether the first line that is not a comment is a section of an OPTIONS file."""
    for line in text.splitlines():
        bare = _COMMENT.sub("", line).strip()
        if bare:
            title = bare.removeprefix("[").removesuffix("]").split('"')[0].strip()
            return bare.startswith("[") and _is_title(title)
    return False


def _is_title(title: str) -> bool:
    return title in (VERSION_SECTION, DB_SECTION, CF_SECTION) or title.startswith(TABLES)


def read(request: ImportRequest) -> ImportedConfig:
    """The options of the default column family and of the database.

    Raises InputError, with the line, for what RocksDB's parser refuses.
    """
    if request.engine not in (None, ENGINE):
        raise InputError(
            ENGINE_FLAG, found=request.engine, why="an OPTIONS file is RocksDB's", allowed=ENGINE
        )
    file = _File(request.source, Notes(request.source))
    for number, line in enumerate(request.text.splitlines(), start=1):
        bare = _COMMENT.sub("", line).strip()
        if bare.startswith("[") and bare.endswith("]"):
            _begin_section(file, bare, number)
        elif bare:
            _take_statement(file, bare, number)
    for title in (f"[{DB_SECTION}]", f'[{CF_SECTION} "{DEFAULT_FAMILY}"]'):
        if title not in {_shown(*seen) for seen in file.seen}:
            raise InputError(request.source, why=f"has no section {title}")
    whole = _SIGN_OF_A_WHOLE_DUMP in file.stated
    options = options_of(file.stated, file.notes, whole=whole, keep_defaults=request.keep_defaults)
    return ImportedConfig(ENGINE, options, file.notes.taken(), file.version)


def _shown(title: str, argument: str) -> str:
    return f'[{title} "{argument}"]' if argument else f"[{title}]"


def _begin_section(file: _File, line: str, number: int) -> None:
    match = _SECTION.fullmatch(line)
    title = match["title"].strip() if match else ""
    argument = _unescaped(match["argument"] or "") if match else ""
    where = f"{file.source}:{number}"
    if not _is_title(title):
        allowed = f"{VERSION_SECTION}, {DB_SECTION}, {CF_SECTION}, {TABLES}..."
        raise InputError(where, why="unknown section", found=line, allowed=allowed)
    families = [seen for seen in file.seen if seen[0] == CF_SECTION]
    if (title, argument) in file.seen:
        raise InputError(where, why="the same section twice", found=line)
    if title == CF_SECTION and (argument == DEFAULT_FAMILY) != (not families):
        raise InputError(where, found=line, allowed=f'[{CF_SECTION} "{DEFAULT_FAMILY}"] first')
    if title.startswith(TABLES) and (CF_SECTION, argument) not in families:
        why = "a table of a column family that has no section above"
        raise InputError(where, why=why, found=line)
    if title in (VERSION_SECTION, DB_SECTION) and argument:
        raise InputError(where, found=line, allowed=f"[{title}]")
    if title == CF_SECTION and argument != DEFAULT_FAMILY:
        text = "left out: a run has the default column family only"
        file.notes.add(number, _shown(title, argument), text)
    if title.startswith(TABLES) and argument == DEFAULT_FAMILY and title != TABLE_SECTION:
        file.notes.add(number, _shown(title, argument), "left out: only block-based tables are")
    file.title, file.argument = title, argument
    file.seen.add((title, argument))


def _take_statement(file: _File, line: str, number: int) -> None:
    name, equals, value = (part.strip() for part in line.partition("="))
    where = f"{file.source}:{number}"
    if not equals or not name:
        raise InputError(where, found=line, allowed="name=value, or a section in brackets")
    if not file.title:
        raise InputError(where, why="before the first section", found=line)
    value = _unescaped(value)
    if file.title == VERSION_SECTION:
        if _VERSION.fullmatch(value) is None:
            raise InputError(where, name, found=value, allowed="a version such as 10.2.1")
        if name == "rocksdb_version":
            file.version = value
        return
    ours = file.title == DB_SECTION or file.argument == DEFAULT_FAMILY
    if not ours or (file.title.startswith(TABLES) and file.title != TABLE_SECTION):
        return
    full = full_name(file.title, name)
    if full in file.stated:
        text = f"given twice; the first counts, on line {file.stated[full].line}"
        file.notes.add(number, full, text)
    else:
        file.stated[full] = Stated(value, number)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _LINE_ENDS.get(match[1], match[1]), text)


FORMAT = ImportFormat(NAME, "an OPTIONS file of RocksDB", recognises, read)
