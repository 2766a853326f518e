"""Files of other programs: read as a Config or as fields of a study file, written from a Config.

A new format is one file here and one line in `IMPORTERS`, and in `EXPORTERS` where it is written;
of another package, an entry point `lsmtune.importers` or `lsmtune.exporters` (`lsmtune.plugins`).
What a format says and lsmtune cannot is in the `notes` of what is imported, one line each; what is
wrong in a file is an InputError.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lsmtune import plugins
from lsmtune.engines.formats import (
    benchmark_sh,
    db_bench,
    ekvsb,
    mlos,
    nni_config,
    nni_space,
    properties,
    rocksdb_log,
    rocksdb_options,
    snippets,
)
from lsmtune.engines.formats.base import (
    TO_IMPORT,
    Exported,
    ExportFormat,
    ExportRequest,
    ImportedConfig,
    ImportFormat,
    ImportRequest,
)
from lsmtune.engines.formats.spelling import SOURCE
from lsmtune.errors import InputError, by_name
from lsmtune.model.config import OptionValue
from lsmtune.model.text import read_text

# In the order in which a file is offered to them: what is told apart with certainty comes first.
_MODULES = (nni_space, mlos, rocksdb_options, rocksdb_log, properties, nni_config, db_bench)
IMPORTERS: plugins.Plugins[ImportFormat] = plugins.Plugins(
    plugins.IMPORTERS, {module.FORMAT.name: module.FORMAT for module in _MODULES}
)
EXPORTERS: plugins.Plugins[ExportFormat] = plugins.Plugins(
    plugins.EXPORTERS,
    {
        export.name: export
        for export in (
            *(each.EXPORT for each in (rocksdb_options, properties, db_bench, benchmark_sh, ekvsb)),
            *snippets.EXPORTS,
        )
    },
)


def read_config(path: Path, engine: str | None = None) -> ImportedConfig:
    """The configuration that the option file at `path` holds; its format is found out.

    Raises InputError for a file that is none, or of another engine than `engine`.
    """
    text = read_text(path, TO_IMPORT)
    imported = chosen_format(text, path).read(ImportRequest(text, path, engine))
    if not isinstance(imported, ImportedConfig):
        allowed = "an option file: OPTIONS, LOG, .properties or flags of db_bench"
        raise InputError(str(path), why="holds a space and no configuration", allowed=allowed)
    return imported


def chosen_format(text: str, path: Path, format_name: str | None = None) -> ImportFormat:
    """The format `format_name`, or the one that recognises `text`. Raises InputError for none."""
    if format_name is not None:
        return by_name(IMPORTERS, format_name, "--format")
    formats = IMPORTERS.usable().values()
    for format_ in formats:
        if format_.recognises(text):
            return format_
    allowed = "; ".join(format_.summary for format_ in formats)
    raise InputError(str(path), why="is in no format that can be imported", allowed=allowed)


def own_format(engine_name: str) -> ExportFormat | None:
    """The form that the engine itself reads; its own comes before the shared ones."""
    formats = EXPORTERS.usable().values()
    return next((each for each in formats if engine_name in each.engines), None)


def exported(format_name: str, request: ExportRequest) -> Exported:
    """What `request` asks for in the format `format_name`, and what the format cannot say of it.

    Comments at the top of the text repeat what is left out, where the format has comments. Raises
    InputError for an unknown format, an engine that the format does not serve, and unknown options.
    """
    exporter = by_name(EXPORTERS, format_name, "--format")
    engine = request.engine_name
    if exporter.engines and engine not in exporter.engines:
        formats = EXPORTERS.usable().values()
        serving = [each.name for each in formats if not each.engines or engine in each.engines]
        why = f"cannot be written for {engine}"
        raise InputError("--format", found=format_name, why=why, allowed=", ".join(serving))
    written = exporter.write(request)
    if not exporter.comment:
        return written
    # No backslash: at the end of a line C++ takes the next one for a comment, too, and Java reads
    # `\u` as a letter's number.
    lines = [request.title(), *(f"left out: {each}" for each in written.left_out)]
    comments = [" ".join(f"{exporter.comment} {line}".split()) for line in lines]
    head = "\n".join(comments).replace("\\", "/")
    return Exported(f"{head}\n{written.text}", written.left_out)


def export(
    format_name: str,
    engine_name: str,
    options: Mapping[str, OptionValue],
    *,
    version: str | None = None,
    label: str = "default",
) -> str:
    """`options` of `engine_name` in the format `format_name`, whole, as the text of a file.

    `version` is the engine's, `label` names the Config; both end up in comments or headers.
    Raises InputError as `exported` does, and for an option or value that the format cannot say.
    """
    made = exported(format_name, ExportRequest(engine_name, options, version, label))
    by_why: dict[str, list[str]] = {}
    for each in made.left_out:
        if each.refused is not None:
            raise each.refused
        by_why.setdefault(each.why, []).append(each.option)
    if by_why:
        why = "; ".join(f"{reason}: {', '.join(names)}" for reason, names in by_why.items())
        raise InputError(SOURCE, "--format", found=format_name, why=why)
    return made.text
