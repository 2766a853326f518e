r"""What RocksDB wrote down of its options, in an OPTIONS file or a LOG, as options of a Config.

Left out is what a Config of another database cannot have: references to code of the program that
wrote the dump, places on its machine, and how it opened its database. In a whole dump, which states
every option and says little, options are left out that have the default of every version in the
catalogue: with any of them the engine then does the same. `keep_defaults` keeps those.

An OPTIONS file may be of any version from 4.3 on. The form is that of RocksDB's own parser,
`options/options_parser.cc`: sections `[Title "argument"]`, one `name=value` a line, `#` comments
unless escaped, `\n \r \\ \: \#` escaped, the first of two lines for one name counts, the default
column family comes first. Only that family is carried over: a run has no other. What is written
is only what the Config sets: RocksDB takes its own default for the rest, of a structure given in
part too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from lsmtune.engines.catalogue import option_catalogue
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
)
from lsmtune.engines.formats.spelling import SOURCE, known_options
from lsmtune.engines.option_names import (
    BLOCK_CACHE,
    CACHE_CAPACITY,
    CF_SECTION,
    DB_SECTION,
    FILTER_POLICY,
    MEMTABLES,
    NO_BLOCK_CACHE,
    TABLE_OPTION,
    TABLE_SECTION,
    catalogue,
    find_written,
    split_structure,
)
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue, option_text
from lsmtune.space.parameter import short_form
from lsmtune.units import UnitError, is_digits, option_text_allowed, option_value

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
_CACHE_UNSTATED = (
    "RocksDB writes no size of the block cache into an OPTIONS file, so that it is the engine's "
    "default, 32 MiB (8 MiB before 8.2); the LOG beside the file states it; or add "
    'block_cache=SIZE to a copy\'s [TableOptions/BlockBasedTable "default"]'
)
_MEMTABLE = "memtable_factory"
_TABLE_KIND = "table_factory"
# As versions before 7.0 wrote every filter of their own.
_FILTERS_WITHOUT_BITS = frozenset({"rocksdb.BuiltinBloomFilter", "rocksdb.BuiltinFilter"})
# RocksDB up to 6.14 wrote this 32-bit option together with the four bytes behind it
# (table/block_based/block_based_table_factory.cc).
_WRITTEN_TOO_WIDE = f"{TABLE_OPTION}.read_amp_bytes_per_bit"
# Texts of an object that is not there, or is the engine's own.
_NOTHING = frozenset({"", "nullptr", "{}", "None", "leveldb.BytewiseComparator"})


@dataclass(frozen=True)
class Stated:
    """An option's value as text, and the line where it stands."""

    text: str
    line: int


def check_engine(request: ImportRequest, what: str) -> None:
    """Raises InputError where the user asks for another engine's options of `what`, RocksDB's."""
    if request.engine not in (None, ENGINE):
        why = f"{what} is RocksDB's"
        raise InputError(ENGINE_FLAG, found=request.engine, why=why, allowed=ENGINE)


def options_of(
    stated: Mapping[str, Stated], notes: Notes, *, whole: bool, keep_defaults: bool
) -> dict[str, OptionValue]:
    """The options of a dump, by their dotted names; what is left out is said in `notes`.

    `whole` tells a dump of everything from a file that states what somebody chose.
    """
    options: dict[str, OptionValue] = {}
    dropped = 0
    for name, value in _taken_apart(stated).items():
        text = value.text
        if name == _WRITTEN_TOO_WIDE and is_digits(text):
            text = str(int(text) % (1 << 32))
            if text != value.text:
                note = f"read as {text}: RocksDB wrote the bytes behind it, too"
                notes.add(value.line, name, note)
        why = _left_out(name, text)
        if why is not None:
            if why:
                notes.add(value.line, name, f"left out: {why}")
        elif whole and not keep_defaults and is_default_everywhere(name, text):
            dropped += 1
        else:
            options[name] = option_value(short_form(text) if whole else text)
    if dropped:
        what = "1 option" if dropped == 1 else f"{dropped} options"
        text = f"{what} with the engine's default left out (see --keep-defaults)"
        notes.add(None, "", text)
    return options


def _taken_apart(stated: Mapping[str, Stated]) -> dict[str, Stated]:
    """Structures (`{size_ratio=1;...}`) by their fields, under dotted names."""
    kind_of_memtable = f"{_MEMTABLE}.id"
    flat: dict[str, Stated] = {}
    for name, value in stated.items():
        text, line = value.text, value.line
        if name == kind_of_memtable or (name == _MEMTABLE and not text.startswith("{")):
            kind, _, lookahead = text.partition(":")
            if lookahead and kind == "SkipListFactory":  # the one part that is in the name
                flat[f"{_MEMTABLE}.lookahead"], text = Stated(lookahead, line), kind
            flat[kind_of_memtable] = Stated(MEMTABLES.get(text, text), line)
            continue
        try:
            fields = split_structure(text) if text.startswith("{") else {}
        except ValueError:
            fields = {}  # a list of objects, which stays whole
        inner = {f"{name}.{field}": Stated(part, line) for field, part in fields.items()}
        # A block cache's capacity is what `block_cache` says here.
        inner = {BLOCK_CACHE if n == CACHE_CAPACITY else n: part for n, part in inner.items()}
        if any(part in known_options(ENGINE) for part in inner):
            flat |= _taken_apart(inner)
        else:
            flat[name] = value
    return flat


def _left_out(name: str, text: str) -> str | None:
    """Why an option cannot be carried over, '' when that changes nothing, None when it can."""
    if name in _CODE or name == _TABLE_KIND:
        changes_nothing = text in _NOTHING or is_default_everywhere(name, text)
        return "" if changes_nothing else f"{text} is code of the program that wrote this"
    if name in _PLACES:
        return "" if text in ("", "__hostname__") else f"{text} is a place on another machine"
    if name in _OPENING:
        default = is_default_everywhere(name, text)
        return "" if default else "how a database is opened is for lsmtune to say"
    if text == "":
        return ""
    if name == FILTER_POLICY and text in _FILTERS_WITHOUT_BITS:
        return f"{text} does not say its bits per key"
    if name not in known_options(ENGINE):
        return "" if text in _NOTHING else "no option of RocksDB that lsmtune knows"
    allowed = option_text_allowed(text)
    if allowed:
        return f"its value cannot be written; allowed: {allowed}"
    try:
        option_value(text)
    except UnitError:
        return "a fraction of a byte"
    return None


def is_default_everywhere(name: str, text: str) -> bool:
    """Whether `text` is the default of the option in every version that the catalogues know.

    An option that came or went between the versions counts where it exists.
    """
    option, field = find_written(name)
    defaults = [default or "" for default in option.defaults.values()] if option else []
    if field:
        structures = [split_structure(d) for d in defaults if d.startswith("{")]
        defaults = [structure.get(field, "") for structure in structures]
    info = option_catalogue(ENGINE).get(name)
    if info is not None and info.default is not None:
        of_info = (info.default, *dict(info.older_defaults).values())
        defaults += [option_text(value) for value in of_info]
    known = [default for default in defaults if default]
    return bool(known) and all(_same(text, default) for default in known)


def _same(one: str, other: str) -> bool:
    """Whether two texts are one value: `10` and `10.000000` are."""
    if one == other:
        return True
    try:
        return Decimal(one) == Decimal(other)
    except InvalidOperation:
        return False


# --- an OPTIONS file

DEFAULT_FAMILY = "default"
_VERSION_SECTION = "Version"
_TABLES = "TableOptions/"

_COMMENT = re.compile(r"(?<!\\)#.*")
_SECTION = re.compile(r'\[(?P<title>[^"\]]*?)\s*(?:"(?P<argument>.*)"\s*)?\]')
_ESCAPED = re.compile(r"\\(.)")
_VERSION = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,2}", re.ASCII)
_LINE_ENDS = {"n": "\n", "r": "\r"}
# Every version writes this one, and nobody chooses it: a file that states it states everything.
_SIGN_OF_A_WHOLE_DUMP = "comparator"


def recognises(text: str) -> bool:
    """Whether the first line that is not a comment is a section of an OPTIONS file."""
    for line in text.splitlines():
        bare = _COMMENT.sub("", line).strip()
        if bare:
            title = bare.removeprefix("[").removesuffix("]").split('"')[0].strip()
            return bare.startswith("[") and _is_title(title)
    return False


def _is_title(title: str) -> bool:
    return title in (_VERSION_SECTION, DB_SECTION, CF_SECTION) or title.startswith(_TABLES)


def read(request: ImportRequest) -> ImportedConfig:
    """The options of the default column family and of the database.

    Raises InputError, with the line, for what RocksDB's parser refuses.
    """
    check_engine(request, "an OPTIONS file")
    file = _OptionsFile(request.source)
    for number, line in enumerate(request.text.splitlines(), start=1):
        bare = _COMMENT.sub("", line).strip()
        if bare.startswith("[") and bare.endswith("]"):
            file.begin_section(bare, number)
        elif bare:
            file.take_statement(bare, number)
    for section in ((DB_SECTION, ""), (CF_SECTION, DEFAULT_FAMILY)):
        if section not in file.sections:
            raise InputError(request.source, why=f"has no section {_shown(*section)}")
    whole = _SIGN_OF_A_WHOLE_DUMP in file.stated
    options = options_of(file.stated, file.notes, whole=whole, keep_defaults=request.keep_defaults)
    if whole and BLOCK_CACHE not in options and options.get(NO_BLOCK_CACHE) is not True:
        # Unsaid, an operator's cache of 16 GiB becomes 32 MiB, and the larger one a gain.
        file.notes.add(None, BLOCK_CACHE, _CACHE_UNSTATED)
    return ImportedConfig(ENGINE, options, file.notes.taken(), file.version)


def _shown(title: str, argument: str) -> str:
    return f'[{title} "{argument}"]' if argument else f"[{title}]"


class _OptionsFile:
    """What the lines of an OPTIONS file have said so far."""

    def __init__(self, source: str) -> None:
        self.notes = Notes(source)
        self.version: str | None = None
        self.sections: list[tuple[str, str]] = []
        self.stated: dict[str, Stated] = {}

    def begin_section(self, line: str, number: int) -> None:
        match = _SECTION.fullmatch(line)
        title = match["title"].strip() if match else ""
        argument = _unescaped(match["argument"] or "") if match else ""
        is_family, is_table = title == CF_SECTION, title.startswith(_TABLES)
        is_default = argument == DEFAULT_FAMILY
        families = [section for section in self.sections if section[0] == CF_SECTION]
        titles = f"{_VERSION_SECTION}, {DB_SECTION}, {CF_SECTION}, {_TABLES}..."
        no_family = "a table of a column family that has no section above"
        for is_wrong, why, allowed in (
            (not _is_title(title), "unknown section", titles),
            ((title, argument) in self.sections, "the same section twice", ""),
            (is_family and is_default == bool(families), "", f'[{CF_SECTION} "default"] first'),
            (is_table and (CF_SECTION, argument) not in families, no_family, ""),
            (argument and not is_family and not is_table, "", f"[{title}]"),
        ):
            if is_wrong:
                where = f"{self.notes.source}:{number}"
                raise InputError(where, found=line, why=why, allowed=allowed)
        if is_family and not is_default:
            text = "left out: a run has the default column family only"
            self.notes.add(number, _shown(title, argument), text)
        if is_table and is_default and title != TABLE_SECTION:
            text = "left out: only block-based tables are"
            self.notes.add(number, _shown(title, argument), text)
        self.sections.append((title, argument))

    def take_statement(self, line: str, number: int) -> None:
        name, equals, value = (part.strip() for part in line.partition("="))
        where = f"{self.notes.source}:{number}"
        if not equals or not name:
            raise InputError(where, found=line, allowed="name=value, or a section in brackets")
        if not self.sections:
            raise InputError(where, why="before the first section", found=line)
        title, argument = self.sections[-1]
        value = _unescaped(value)
        if title == _VERSION_SECTION:
            if _VERSION.fullmatch(value) is None:
                raise InputError(where, name, found=value, allowed="a version such as 10.2.1")
            if name == "rocksdb_version":
                self.version = value
            return
        is_ours = title == DB_SECTION or argument == DEFAULT_FAMILY
        if not is_ours or (title.startswith(_TABLES) and title != TABLE_SECTION):
            return
        dotted = f"{TABLE_OPTION}.{name}" if title == TABLE_SECTION else name
        if dotted in self.stated:
            text = f"given twice; the first counts, on line {self.stated[dotted].line}"
            self.notes.add(number, dotted, text)
        else:
            self.stated[dotted] = Stated(value, number)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _LINE_ENDS.get(match[1], match[1]), text)


# --- writing

_CACHE_KIND = f"{BLOCK_CACHE}.id"
_LRU_CACHE = "lru_cache"


def write(request: ExportRequest) -> Exported:
    """The file's text. Raises InputError for an option that the catalogue does not know."""
    options, left_out = sayable(request)
    return Exported(options_text(options, request.version), left_out)


def options_text(options: Mapping[str, str], version: str | None) -> str:
    """An OPTIONS file of `options`, by dotted name, for the engine's `version`."""
    lines = ["", "[Version]", f"  rocksdb_version={version or catalogue().newest}"]
    lines += ["  options_file_version=1.1"]
    # RocksDB refuses a file without each of these sections, even an empty one, in this order.
    for section, title in (
        (DB_SECTION, f"[{DB_SECTION}]"),
        (CF_SECTION, f'[{CF_SECTION} "default"]'),
        (TABLE_SECTION, f'[{TABLE_SECTION} "default"]'),
    ):
        stated = stated_in(options, section)
        lines += ["", title, *(f"  {name}={value}" for name, value in stated.items())]
    return "\n".join(lines) + "\n"


def sayable(request: ExportRequest) -> tuple[dict[str, str], tuple[LeftOut, ...]]:
    """What RocksDB can read as text of the options that are asked for, and the rest.

    Raises InputError for an option that the catalogue does not know.
    """
    said, left_out = request.values(), []
    for name, value in list(said.items()):
        if name == _CACHE_KIND:
            # RocksDB reads LRU caches only (`cache/cache.cc`), and has no name for their kind.
            del said[name]
            if value != _LRU_CACHE:
                why = "an OPTIONS file can only ask for an LRU cache"
                refused = InputError(SOURCE, name, found=value, why=why, allowed=_LRU_CACHE)
                left_out.append(LeftOut.of(value, refused))
        elif name.startswith(f"{BLOCK_CACHE}.") and BLOCK_CACHE not in said:
            del said[name]
            allowed = f"{BLOCK_CACHE} beside it; RocksDB would make an empty cache"
            refused = InputError(SOURCE, name, why="no size of the cache", allowed=allowed)
            left_out.append(LeftOut.of(value, refused))
    return said, tuple(left_out)


def stated_in(options: Mapping[str, str], section: str) -> dict[str, str]:
    """The options of a section with their values, structures put together, in order of names."""
    whole: dict[str, str] = {}
    structures: dict[str, dict[str, str]] = {}
    for name, value in options.items():
        option, field = find_written(name)
        if option is None or option.section != section:
            continue
        if field:
            structures.setdefault(option.name, {})[field] = value
        else:
            whole[option.name] = value
    for name in structures.keys() & whole.keys():
        # The part that a plain value of an object stands for: its size, or its kind.
        principal = "capacity" if name == "block_cache" else "id"
        structures[name] = {principal: whole.pop(name), **structures[name]}
    for name, fields in structures.items():
        whole[name] = structure(fields)
    return dict(sorted(whole.items()))


def structure(fields: Mapping[str, str]) -> str:
    """`{name=value;...}`; a dotted name leads into a structure in it."""
    inner: dict[str, dict[str, str]] = {}
    text = ""
    for name, value in fields.items():
        head, _, rest = name.partition(".")
        if rest:
            inner.setdefault(head, {})[rest] = value
        else:
            text += f"{name}={value};"
    return f"{{{text}{''.join(f'{name}={structure(part)};' for name, part in inner.items())}}}"


EXPORT = ExportFormat("rocksdb-options", ("rocksdb",), "OPTIONS", write, comment="#")
FORMAT = ImportFormat("rocksdb-options", "an OPTIONS file of RocksDB", recognises, read)
