"""Flags of the db_bench of RocksDB and of LevelDB, as a command line or a file of flags.

gflags takes `--name=value`, `--name value`, `--name` and `--noname` (https://gflags.github.io,
"Setting Flags on the Command Line"); LevelDB's db_bench takes the first form only.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from lsmtune.engines.exporters.db_bench import BLOOM_FLAG, FILTER_OPTION, RIBBON_FLAG
from lsmtune.engines.exporters.spelling import BLOOM, RIBBON, filter_policy, read_truth
from lsmtune.engines.importers.base import (
    ENGINE_FLAG,
    ImportedConfig,
    ImportFormat,
    ImportRequest,
    Notes,
    like,
)
from lsmtune.engines.importers.names import flags
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue

_FLAG = re.compile(r"--?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:=(?P<value>.*))?", re.S)
# Flags that are no options, and why they are left out.
_DURABILITY = "durability belongs to the workload (durability: sync, wal or none)"
_LEFT_OUT = {
    "disable_wal": _DURABILITY,
    "sync": _DURABILITY,
    "options_file": "import that file itself",
}


def _read_bits(text: str) -> int:
    with suppress(ValueError):
        if int(text) >= -1:
            return int(text)
    raise ValueError("a whole number from -1")


_FILTER_FLAGS: Mapping[str, Callable[[str], OptionValue]] = {
    BLOOM_FLAG: _read_bits,
    RIBBON_FLAG: read_truth,
}


def recognises(text: str) -> bool:
    """Whether the first word that is not a comment is a flag, or db_bench itself."""
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if words:
            return _is_program(words[0]) or _FLAG.fullmatch(words[0]) is not None
    return False


def _is_program(word: str) -> bool:
    return word.rpartition("/")[2].startswith("db_bench")


def read(request: ImportRequest) -> ImportedConfig:
    """The options that the flags set. Raises InputError for what is not a list of flags."""
    engine, notes = request.engine, Notes(request.source)
    if engine is None:
        why = "missing, and flags do not say it"
        raise InputError(request.source, ENGINE_FLAG, why=why, allowed=", ".join(ENGINE_KINDS))
    options: dict[str, OptionValue] = {}
    filters: dict[str, OptionValue] = {}
    known = flags(engine)
    filter_flags = _FILTER_FLAGS if engine == "rocksdb" else {}
    for name, value, line in _flags(request.text, request.source):
        where, place = f"{request.source}:{line}", f"--{name}"
        option = known.get(name) or known.get(name.removeprefix("no"))
        if name in filter_flags:
            text, reader = "true" if value is None else value, filter_flags[name]
        elif option is None or option.spelling is None:
            why = _LEFT_OUT.get(name, f"not the flag of an option of {engine}{like(name, known)}")
            notes.add(line, place, f"left out: {why}")
            continue
        elif option.spelling.is_truth and value is None:
            text, reader = "true" if name in known else "false", option.spelling.read
        elif value is None or name not in known:
            raise InputError(where, place, why="has no value", allowed="--name=value")
        else:
            text, reader = value, option.spelling.read
        try:
            typed = reader(text)
        except ValueError as error:
            raise InputError(where, place, found=text, allowed=str(error)) from None
        if option is None or name in filter_flags:
            filters[name] = typed
        else:
            options[option.name] = typed
    bits = int(filters.get(BLOOM_FLAG, -1))
    if bits >= 0:  # below 0 is db_bench's default, which leaves the engine's
        options[FILTER_OPTION] = filter_policy(RIBBON if filters.get(RIBBON_FLAG) else BLOOM, bits)
    if not options and not notes.lines:
        raise InputError(request.source, why="has no flags", allowed="--name=value")
    return ImportedConfig(engine, options, notes.taken())


def _flags(text: str, source: str) -> Iterator[tuple[str, str | None, int]]:
    """Name, value if any, and line of every flag."""
    words = list(_words(text, source))
    index = 0
    while index < len(words):
        line, word = words[index]
        index += 1
        match = _FLAG.fullmatch(word)
        if match is None:
            if index == 1 and _is_program(word):
                continue
            raise InputError(f"{source}:{line}", found=word, allowed="--name=value")
        value = match["value"]
        # The value may be the next word; a truth is never followed by its value.
        if value is None and index < len(words) and not words[index][1].startswith("-"):
            value = words[index][1]
            index += 1
        yield match["name"], value, line


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
            problem = str(error).lower()
            why = f"not words of a shell: {problem}"
            raise InputError(f"{source}:{number}", why=why) from None


FORMAT = ImportFormat("db_bench", "flags of db_bench", recognises, read)
