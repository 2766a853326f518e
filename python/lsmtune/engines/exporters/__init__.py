"""Config exporters: a Config in the form that another program reads.

A new format is one file here and one line in `EXPORTERS`.
"""

from __future__ import annotations

from collections.abc import Mapping

from lsmtune.engines.exporters import db_bench, properties, rocksdb_options
from lsmtune.engines.exporters.spelling import ExportFormat, ExportRequest
from lsmtune.errors import InputError, by_name
from lsmtune.model.config import OptionValue

EXPORTERS: dict[str, ExportFormat] = {
    module.FORMAT.name: module.FORMAT for module in (rocksdb_options, properties, db_bench)
}


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
