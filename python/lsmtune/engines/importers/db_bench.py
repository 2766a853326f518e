"""Flags of the db_bench of RocksDB and of LevelDB, as a command line or a file of flags.

gflags takes `--name=value`, `--name value`, `--name` and `--noname` (https://gflags.github.io,
"Setting Flags on the Command Line"); LevelDB's db_bench takes the first form only.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from lsmtune.engines.exporters.db_bench import BLOOM_FLAG, FILTER_OPTION, RIBBON_FLAG
from lsmtune.engines.exporters.spelling import BLOOM, RIBBON, filter_policy, read_truth
from lsmtune.engines.importers.base import (
    ENGINE_FLAG,
    ImportedConfig,
    ImportFormat,
    ImportRequest,
    Notes,
)
from lsmtune.engines.importers.names import flags
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.errors import InputError, nearest_name
from lsmtune.model.config import OptionValue

NAME = "db_bench"
DURABILITY = ("disable_wal", "sync")
_FLAG = re.compile(r"--?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:=(?P<value>.*))?", re.S)
_OPTIONS_FILE = "options_file"


@dataclass(frozen=True)
class _Flag:
    name: str
    value: str | None
    line: int


def recognises(text: str) -> bool:
    """Whether the first word that is not a comment is a flag, or db_bench itself."""
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if words:
            program = words[0].rpartition("/")[2].startswith("db_bench")
            return program or _FLAG.fullmatch(words[0]) is not None
    return False


def read(request: ImportRequest) -> ImportedConfig:
    """The options that the flags set. Raises InputError for what is not a list of flags."""
    engine = _engine(request)
    notes = Notes(request.source)
    options: dict[str, OptionValue] = {}
    filters: dict[str, str] = {}
    known = flags(engine)
    for flag in _flags(request.text, request.source):
        place = f"--{flag.name}"
        if engine == "rocksdb" and flag.name in (BLOOM_FLAG, RIBBON_FLAG):
            filters[flag.name] = "true" if flag.value is None else flag.value
            _check_filter(flag, filters[flag.name], request.source)
            continue
        meaning = known.get(flag.name) or known.get(flag.name.removeprefix("no"))
        if meaning is None or meaning.spelling is None:
            notes.add(flag.line, place, _not_an_option(flag.name, engine))
            continue
        value = _value(flag, meaning.spelling.is_truth, flag.name in known, request.source)
        try:
            options[meaning.option.name] = meaning.spelling.read(value)
        except ValueError as error:
            where = f"{request.source}:{flag.line}"
            raise InputError(where, place, found=value, allowed=str(error)) from None
    options |= _filter(filters)
    if not options and not notes.lines:
        raise InputError(request.source, why="has no flags", allowed="--name=value")
    return ImportedConfig(engine, options, notes.taken())


def _engine(request: ImportRequest) -> str:
    if request.engine is None:
        why = "missing, and flags do not say it"
        raise InputError(request.source, ENGINE_FLAG, why=why, allowed=", ".join(ENGINE_KINDS))
    return request.engine


def _flags(text: str, source: str) -> Iterator[_Flag]:
    words = list(_words(text, source))
    index = 0
    while index < len(words):
        line, word = words[index]
        index += 1
        match = _FLAG.fullmatch(word)
        if match is None:
            if index == 1 and word.rpartition("/")[2].startswith("db_bench"):
                continue
            raise InputError(f"{source}:{line}", found=word, allowed="--name=value")
        value = match["value"]
        # The value may be the next word; a truth is never followed by its value.
        if value is None and index < len(words) and not words[index][1].startswith("-"):
            value = words[index][1]
            index += 1
        yield _Flag(match["name"], value, line)


def _words(text: str, source: str) -> Iterator[tuple[int, str]]:
    continued = ""
    for number, line in enumerate(text.splitlines(), start=1):
        whole = continued + line
        if whole.endswith("\\"):
            continued = whole[:-1]
            continue
        continued = ""
        try:
            for word in shlex.split(whole, comments=True):
                yield number, word
        except ValueError as error:
            said = str(error).lower()
            raise InputError(f"{source}:{number}", why=f"not words of a shell: {said}") from None


def _value(flag: _Flag, is_truth: bool, by_own_name: bool, source: str) -> str:
    if is_truth and flag.value is None:
        return "true" if by_own_name else "false"
    if flag.value is None or not by_own_name:
        place = f"{source}:{flag.line}"
        raise InputError(place, f"--{flag.name}", why="has no value", allowed="--name=value")
    return flag.value


def _check_filter(flag: _Flag, value: str, source: str) -> None:
    try:
        if flag.name == RIBBON_FLAG:
            read_truth(value)
        elif int(value) < -1:
            raise ValueError
    except ValueError:
        allowed = "true, false" if flag.name == RIBBON_FLAG else "a whole number from -1"
        place = f"{source}:{flag.line}"
        raise InputError(place, f"--{flag.name}", found=value, allowed=allowed) from None


def _filter(filters: dict[str, str]) -> dict[str, OptionValue]:
    """The filter policy; bits below 0 are db_bench's default, which leaves the engine's."""
    bits = int(filters.get(BLOOM_FLAG, -1))
    if bits < 0:
        return {}
    ribbon = read_truth(filters.get(RIBBON_FLAG, "false"))
    return {FILTER_OPTION: filter_policy(RIBBON if ribbon else BLOOM, bits)}


def _not_an_option(name: str, engine: str) -> str:
    if name in DURABILITY:
        return "left out: durability belongs to the workload (durability: sync, wal or none)"
    if name == _OPTIONS_FILE:
        return "left out: import that file itself"
    nearest = nearest_name(name, flags(engine))
    hint = f" (like {nearest})" if nearest else ""
    return f"left out: not the flag of an option of {engine}{hint}"


FORMAT = ImportFormat(NAME, "flags of db_bench", recognises, read)
