"""Files of other programs: read as a Config or as fields of a study file, written from a Config.

A new format is one file here and one line in `IMPORTERS`, and in `EXPORTERS` where it is written.
What a format says and lsmtune cannot is in the `notes` of what is imported, one line each; what is
wrong in a file is an InputError.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from lsmtune.engines.formats import (
    db_bench,
    mlos,
    nni_config,
    nni_space,
    properties,
    rocksdb_log,
    rocksdb_options,
)
from lsmtune.engines.formats.base import (
    TO_IMPORT,
    ExportFormat,
    ExportRequest,
    Imported,
    ImportedConfig,
    ImportFormat,
    ImportRequest,
)
from lsmtune.errors import InputError, by_name
from lsmtune.model.config import OptionValue
from lsmtune.model.text import read_text

# In the order in which a file is offered to them: what is told apart with certainty comes first.
_MODULES = (nni_space, mlos, rocksdb_options, rocksdb_log, properties, nni_config, db_bench)
IMPORTERS: Mapping[str, ImportFormat] = MappingProxyType(
    {module.FORMAT.name: module.FORMAT for module in _MODULES}
)
EXPORTERS: Mapping[str, ExportFormat] = MappingProxyType(
    {module.EXPORT.name: module.EXPORT for module in (rocksdb_options, properties, db_bench)}
)


def import_text(request: ImportRequest, format_name: str | None = None) -> Imported:
    """What the file of `request` says; its format is found out unless `format_name` gives it.

    Raises InputError for an unknown format, a file that is in none, and what is wrong in it.
    """
    return chosen_format(request.text, request.path, format_name).read(request)


def import_file(
    path: Path, format_name: str | None = None, *, engine: str | None = None
) -> Imported:
    """As `import_text`, of the file at `path`; raises InputError when it cannot be read."""
    request = ImportRequest(read_text(path, TO_IMPORT), path, engine)
    return import_text(request, format_name)


def read_config(path: Path, engine: str | None = None) -> ImportedConfig:
    """The configuration that the option file at `path` holds.

    Raises InputError for a file that is none, or of another engine than `engine`.
    """
    imported = import_file(path, engine=engine)
    if not isinstance(imported, ImportedConfig):
        allowed = "an option file: OPTIONS, LOG, .properties or flags of db_bench"
        raise InputError(str(path), why="holds a space and no configuration", allowed=allowed)
    return imported


def chosen_format(text: str, path: Path, format_name: str | None = None) -> ImportFormat:
    """The format `format_name`, or the one that recognises `text`. Raises InputError for none."""
    if format_name is not None:
        return by_name(IMPORTERS, format_name, "--format")
    for format_ in IMPORTERS.values():
        if format_.recognises(text):
            return format_
    allowed = "; ".join(format_.summary for format_ in IMPORTERS.values())
    raise InputError(str(path), why="is in no format that can be imported", allowed=allowed)


def own_format(engine_name: str) -> ExportFormat | None:
    """The form that the engine itself reads; its own comes before the shared ones."""
    return next((each for each in EXPORTERS.values() if engine_name in each.engines), None)


def export(
    format_name: str,
    engine_name: str,
    options: Mapping[str, OptionValue],
    *,
    version: str | None = None,
    label: str = "default",
) -> str:
    """`options` of `engine_name` in the format `format_name`, as the text of a file.

    `version` is the engine's, `label` names the Config; both end up in comments or headers.
    Nothing is left out in silence: raises InputError for an unknown format, an engine that the
    format does not serve, an unknown option, and an option or value that the format cannot say.
    """
    exporter = by_name(EXPORTERS, format_name, "--format")
    if engine_name not in exporter.engines:
        allowed = ", ".join(f"{f.name} ({' and '.join(f.engines)})" for f in EXPORTERS.values())
        why = f"cannot be written for {engine_name}"
        raise InputError("--format", found=format_name, why=why, allowed=allowed)
    return exporter.write(ExportRequest(engine_name, options, version, label))
