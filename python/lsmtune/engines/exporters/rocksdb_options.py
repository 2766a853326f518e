"""A RocksDB OPTIONS file, as `db_bench --options_file` and `LoadOptionsFromFile` read it.

Only what the Config sets is written: RocksDB takes its own default for the rest, of a structure
given in part too.
"""

from __future__ import annotations

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

_CACHE, _CAPACITY = "block_cache", "capacity"
_CACHE_OPTION = f"{TABLE_OPTION}.{_CACHE}"
_LRU_CACHE = "lru_cache"


def write(request: ExportRequest) -> str:
    """The file's text. Raises InputError for an option that the catalogue does not know."""
    located = settings(request.options, SOURCE)
    version = request.version or catalogue()[1]
    lines = [f"# {request.title()}", "", "[Version]"]
    lines += [f"  rocksdb_version={version}", "  options_file_version=1.1"]
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
        elif setting.name == f"{_CACHE_OPTION}.id":
            # RocksDB reads LRU caches only (`cache/cache.cc`), and has no name for their kind.
            if setting.value != _LRU_CACHE:
                why, kind = "an OPTIONS file can only ask for an LRU cache", setting.value
                raise InputError(SOURCE, setting.name, found=kind, why=why, allowed=_LRU_CACHE)
        else:
            structures.setdefault(setting.option.name, {})[setting.field] = setting.value
    for name in structures.keys() & whole.keys():
        # The part that a plain value of an object stands for: its size, or its kind.
        principal = _CAPACITY if name == _CACHE else "id"
        structures[name] = {principal: whole.pop(name), **structures[name]}
    parts = structures.get(_CACHE, {_CAPACITY: ""})
    if _CAPACITY not in parts:
        field = f"{_CACHE_OPTION}.{next(iter(parts))}"
        allowed = f"{_CACHE_OPTION} beside it; RocksDB would make an empty cache"
        raise InputError(SOURCE, field, why="no size of the cache", allowed=allowed)
    for name, fields in structures.items():
        whole[name] = f"{{{''.join(f'{field}={value};' for field, value in fields.items())}}}"
    return [f"  {name}={value}" for name, value in sorted(whole.items())]


FORMAT = ExportFormat("rocksdb-options", ("rocksdb",), "OPTIONS", write)
