"""`lsmtune report`: a study's report from its stored measurements alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from lsmtune.cli.flags import command, option
from lsmtune.cli.live import counted_progress
from lsmtune.cli.output import print_json
from lsmtune.errors import InputError, check_name
from lsmtune.experiment.folder import StudyFolder, default_folder
from lsmtune.report.importance import Method
from lsmtune.report.sentences import headline
from lsmtune.report.study import FORMATS, write_as

METHODS: Mapping[str, Method | None] = MappingProxyType(
    {**{method.value: method for method in Method}, "none": None}
)


VERDICT_KEYS = ("outcome", "metric", "ratio", "ratio_low", "ratio_high", "confidence", "pairs")
app = typer.Typer()


@command(app, "report")
def _report(
    study: Annotated[Path, typer.Argument(help="A study file or a study folder.")],
    format_name: str = option("--format", ", ".join(FORMATS), "html"),
    output: Path | None = option("--output", "Default: result/ in the study's folder.", None),
    importance: str = option(
        "--importance METHOD", f"Of the parameters: {', '.join(METHODS)}.", Method.PED_ANOVA.value
    ),
    directory: Path | None = option(
        "--dir", "The study's folder, where it is not beside STUDY.", None
    ),
    as_json: bool = option("--json", "Say what was written as JSON on stdout.", False),
) -> None:
    """Write a report of a study, finished or not: HTML, Markdown, JSON or CSV."""
    check_name(format_name, FORMATS, "report", "--format")
    check_name(importance, METHODS, "report", "--importance")
    with StudyFolder.open(directory or _folder_of(study)) as folder:
        if not folder.measurements.all():
            raise InputError(
                str(folder.path),
                why="the study has no measurements yet; run `lsmtune tune` on it first",
            )
        with counted_progress("importance, resamples") as on_progress:
            method = METHODS[importance]
            path, analysis = write_as(folder, format_name, output, method, on_progress)
    if as_json:
        verdict, status = analysis.verdict, analysis.status.value
        told = None
        if verdict is not None:
            told = {name: getattr(verdict, name) for name in VERDICT_KEYS}
        report = {"path": str(path), "format": format_name, "status": status}
        print_json({"report": report, "verdict": told})
    else:
        head = headline(analysis)
        typer.echo(f"{head.label}: {head.figure} {head.lead}\n{path}")


def _folder_of(study: Path) -> Path:
    if study.is_dir():
        return study
    if not study.exists():
        raise InputError("report", "STUDY", found=str(study), why="no such file or folder")
    if study.suffix not in (".yaml", ".yml"):
        raise InputError(
            "report",
            "STUDY",
            found=str(study),
            why="not a study",
            allowed="a study file (.yaml) or a study folder",
        )
    folder = default_folder(study)
    if not folder.is_dir():
        raise InputError(
            str(study), why=f"has no study folder {folder} yet; run `lsmtune tune {study}` first"
        )
    return folder
