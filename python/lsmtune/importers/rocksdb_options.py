"""A RocksDB OPTIONS file, of any version from 4.3 on.

The form is that of RocksDB's own parser, `options/options_parser.cc`: sections
`[Title "argument"]`, one `name=value` a line, `#` comments unless escaped, `\\n \\r \\\\ \\: \\#`
escaped, the first of two lines for one name counts, the default column family comes first. Only
that family is carried over: a run has no other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lsmtune.engines.rocksdb_catalogue import CF_SECTION, DB_SECTION, TABLE_SECTION
from lsmtune.errors import InputError
from lsmtune.importers.base import (
    ENGINE_FLAG,
    ImportedConfig,
    ImportFormat,
    ImportRequest,
    Notes,
)
from lsmtune.importers.rocksdb_dump import ENGINE, Stated, full_name, options_of

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
