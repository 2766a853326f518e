"""A Config in a program's own spelling: the exporters, with errors in the words of a run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from lsmtune.engines.exporters import export
from lsmtune.errors import InputError
from lsmtune.records.config import Config, OptionValue


def exported(
    program: str, format_name: str, engine_name: str, config: Config, version: str | None = None
) -> str:
    """`config` in the exporter's format. Raises InputError, naming `program` and the option."""
    return exported_options(program, format_name, engine_name, config.options, version)


def exported_options(
    program: str,
    format_name: str,
    engine_name: str,
    options: Mapping[str, OptionValue],
    version: str | None = None,
) -> str:
    """The same of bare options."""
    try:
        return export(format_name, engine_name, options, version=version, label="of a run")
    except InputError as error:
        field = "options" if error.field == "--format" else f"options.{error.field}"
        found = None if error.field == "--format" else error.found
        why = error.why.partition("; next step")[0]
        raise InputError(
            f"--runner {program}",
            field,
            found=found,
            why=why,
            allowed=error.allowed,
            nearest=error.nearest,
        ) from None


def exported_flags(program: str, engine_name: str, config: Config) -> tuple[str, ...]:
    """`config` as flags of db_bench."""
    return tuple(shlex.split(exported(program, "db_bench", engine_name, config)))
