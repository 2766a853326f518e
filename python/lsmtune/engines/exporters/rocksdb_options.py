"""A RocksDB OPTIONS file, as `db_bench --options_file` and `LoadOptionsFromFile` read it.

Only what the Config sets is written: RocksDB takes its own default for the rest, of a structure
given in part too.
"""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.engines.exporters.spelling import SOURCE, ExportFormat, ExportRequest
from lsmtune.engines.option_names import (
    CF_SECTION,
    DB_SECTION,
    TABLE_OPTION,
    TABLE_SECTION,
    Setting,
    catalogue,
    settings,
)
from lsmtune.errors import InputError

_OPTIONS_FILE_VERSION = "1.1"
CACHE, CAPACITY = "block_cache", "capacity"
CACHE_KIND = f"{TABLE_OPTION}.{CACHE}.id"
LRU_CACHE = "lru_cache"


def write(request: ExportRequest) -> str:
    """The file's text. Raises InputError for an option that the catalogue does not know."""
    located = settings(request.options, SOURCE)
    version = request.version or catalogue()[1]
    lines = [f"# {request.title()}", "", "[Version]"]
    lines += [f"  rocksdb_version={version}", f"  options_file_version={_OPTIONS_FILE_VERSION}"]
    # RocksDB refuses a file without each of these sections, even an empty one, in this order.
    lines += ["", f"[{DB_SECTION}]", *_section(located, DB_SECTION)]
    lines += ["", f'[{CF_SECTION} "default"]', *_section(located, CF_SECTION)]
    lines += ["", f'[{TABLE_SECTION} "default"]', *_section(located, TABLE_SECTION)]
    return "\n".join(lines) + "\n"


def _section(located: tuple[Setting, ...], section: str) -> list[str]:
    whole: dict[str, str] = {}
    structures: dict[str, dict[str, str]] = {}
    for setting in located:
        if setting.option.section != section:
            continue
        if setting.field is None:
            whole[setting.option.name] = setting.value
        elif not _goes_without_saying(setting):
            structures.setdefault(setting.option.name, {})[setting.field] = setting.value
    for name in structures.keys() & whole.keys():
        structures[name] = {_principal(name): whole.pop(name), **structures[name]}
    parts = structures.get(CACHE, {CAPACITY: ""})
    if CAPACITY not in parts:
        field = f"{TABLE_OPTION}.{CACHE}.{next(iter(parts))}"
        allowed = f"{TABLE_OPTION}.{CACHE} beside it; RocksDB would make an empty cache"
        raise InputError(SOURCE, field, why="no size of the cache", allowed=allowed)
    joined = {name: _structure(fields) for name, fields in structures.items()}
    return [f"  {name}={value}" for name, value in sorted({**whole, **joined}.items())]


def _structure(fields: Mapping[str, str]) -> str:
    return f"{{{''.join(f'{field}={value};' for field, value in fields.items())}}}"


def _principal(name: str) -> str:
    """The part that a plain value of an object stands for: its size, or its kind."""
    return CAPACITY if name == CACHE else "id"


def _goes_without_saying(setting: Setting) -> bool:
    """RocksDB reads LRU caches only (`cache/cache.cc`), and has no name for their kind."""
    if setting.name != CACHE_KIND:
        return False
    if setting.value != LRU_CACHE:
        why = "an OPTIONS file can only ask for an LRU cache"
        raise InputError(SOURCE, CACHE_KIND, found=setting.value, why=why, allowed=LRU_CACHE)
    return True


FORMAT = ExportFormat("rocksdb-options", ("rocksdb",), "OPTIONS", write)
