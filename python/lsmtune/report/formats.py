"""The formats of a report by name, and the file each is kept in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from lsmtune.analysis import StudyAnalysis, analyse, read_study
from lsmtune.analysis.importance import Method
from lsmtune.report import csv_, html, json_, markdown
from lsmtune.report.atomic import write_text
from lsmtune.storage.folder import StudyFolder


@dataclass(frozen=True)
class ReportFormat:
    """`render` turns an analysis into text; `file_name` is used unless the user gives a path."""

    render: Callable[[StudyAnalysis], str]
    file_name: str


FORMATS: Mapping[str, ReportFormat] = MappingProxyType(
    {
        "html": ReportFormat(html.render, "report.html"),
        "md": ReportFormat(markdown.render, "report.md"),
        "json": ReportFormat(json_.render, "report.json"),
        "csv": ReportFormat(csv_.render, "report.csv"),
    }
)


@dataclass(frozen=True)
class WrittenReport:
    """A report on the disk, and what it was made from."""

    path: Path
    format_name: str
    analysis: StudyAnalysis


def write_as(
    folder: StudyFolder,
    format_name: str,
    output: Path | None = None,
    method: Method | None = Method.PED_ANOVA,
    on_progress: Callable[[int, int], None] | None = None,
) -> WrittenReport:
    """Write the report of `folder`, by default into its `result/` folder, whole or not at all.

    `method` and `on_progress` are those of `analyse`.

    Raises InputError when the study cannot be read or the file cannot be written, and KeyError
    for an unknown format.
    """
    chosen = FORMATS[format_name]
    analysis = analyse(read_study(folder), method, on_progress)
    path = output if output is not None else folder.result_path / chosen.file_name
    return WrittenReport(write_text(path, chosen.render(analysis)), format_name, analysis)
