"""`lsmtune report`: a study's report from its stored measurements alone."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import typer

from lsmtune.cli.choices import study_folder
from lsmtune.cli.flags import ForceOption, StudyArgument, StudyDirOption, command, option
from lsmtune.cli.live import counted_progress
from lsmtune.cli.output import check_outputs, print_json
from lsmtune.errors import InputError, check_name
from lsmtune.experiment.folder import StudyFolder
from lsmtune.machine.files import STDOUT
from lsmtune.report.importance import Method
from lsmtune.report.study import FORMATS, write_as
from lsmtune.report.study_proof import headline
from lsmtune.study.observer import verdict_document

METHODS: Mapping[str, Method | None] = MappingProxyType(
    {**{method.value: method for method in Method}, "none": None}
)
app = typer.Typer()


@command(app, "report")
def _report(
    study: StudyArgument,
    format_name: str = option("--format", ", ".join(FORMATS), "html"),
    output: Path | None = option("--output FILE", "Default: result/ in the study's folder.", None),
    importance: str = option(
        "--importance METHOD", f"Of the parameters: {', '.join(METHODS)}.", Method.PED_ANOVA.value
    ),
    directory: StudyDirOption = None,
    force: ForceOption = False,
    as_json: bool = option("--json", "Say what was written as JSON on stdout.", False),
) -> None:
    """Write a report of a study, finished or not: HTML, Markdown, JSON, CSV or Parquet."""
    check_name(format_name, FORMATS, "report", "--format")
    check_name(importance, METHODS, "report", "--importance")
    suffix = "" if output is None else output.suffix.removeprefix(".").lower()
    if suffix in FORMATS and suffix != format_name:
        allowed = f"--format {suffix}, or a name that ends in .{format_name}"
        why = f"would be written as {format_name}"
        raise InputError("report", "--output", found=str(output), why=why, allowed=allowed)
    check_outputs([("--output", output)], force=force, as_json=as_json)
    with StudyFolder.open(study_folder(study, "report", directory)) as folder:
        if not folder.measurements.all():
            raise InputError(
                str(folder.path),
                why="the study has no measurements yet; run `lsmtune tune` on it first",
            )
        # On the terminal that takes the report a bar would stand in its first line.
        quiet = output == STDOUT and sys.stdout.isatty()
        with counted_progress("importance, resamples", quiet=quiet) as on_progress:
            method = METHODS[importance]
            path, analysis = write_as(folder, format_name, output, method, on_progress)
    if as_json:
        verdict = None if analysis.verdict is None else verdict_document(analysis.verdict)
        report = {"path": str(path), "format": format_name, "status": analysis.status}
        print_json({"report": report, "verdict": verdict})
    else:
        typer.echo(f"{headline(analysis).detail}\n{path}", err=path == STDOUT)
