"""A RocksDB OPTIONS file, as `db_bench --options_file` and `LoadOptionsFromFile` read it.

Only what the Config sets is written: RocksDB takes its own default for the rest, of a structure
given in part too.
"""

from __future__ import annotations

from lsmtune.engines.exporters.base import SOURCE, ExportFormat, ExportRequest
from lsmtune.engines.rocksdb_catalogue import (
    CF_SECTION,
    DB_SECTION,
    TABLE_SECTION,
    Setting,
    catalogue,
    settings,
)

_OPTIONS_FILE_VERSION = "1.1"


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
    structures: dict[str, list[str]] = {}
    for setting in located:
        if setting.option.section != section:
            continue
        if setting.field is None:
            whole[setting.option.name] = setting.value
        else:
            fields = structures.setdefault(setting.option.name, [])
            fields.append(f"{setting.field}={setting.value};")
    joined = {name: f"{{{''.join(fields)}}}" for name, fields in structures.items()}
    return [f"  {name}={value}" for name, value in sorted({**whole, **joined}.items())]


FORMAT = ExportFormat("rocksdb-options", ("rocksdb",), "OPTIONS", write)
