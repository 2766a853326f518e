"""The CSV report: one line per stored run, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any

from lsmtune.experiment.folder import StudyFolder
from lsmtune.model.config import option_text
from lsmtune.model.metrics import METRICS
from lsmtune.report import html, markdown
from lsmtune.report.analysis import StudyAnalysis, analyse
from lsmtune.report.importance import Method
from lsmtune.report.pages import write_text
from lsmtune.report.sentences import headline
from lsmtune.report.source import read_study
from lsmtune.report.tables import RunRow

_COLUMNS = (
    *("measurement", "role", "trial", "pair", "outcome", "value", "seed", "started_unix_s"),
    *("elapsed_s", "engine", "engine_version", "build", "error"),
    *("wall_s", "workload", "rung", "repeat", "paired_by"),
    *("memory_limited_by", "steal_s", "page_cache_cached_share"),
)


def render(analysis: StudyAnalysis) -> str:
    """All runs; `metric.*` columns are those of the objective's phase, `option.*` what was set.

    `reported.*` columns are what a program of the user's own measured.

    What is not known is an empty cell.
    """
    names = sorted({name for run in analysis.runs for name in run.options})
    metrics = [name for name in METRICS if name != "elapsed_s"]
    reported = sorted({name for run in analysis.runs for name in run.reported})
    output = io.StringIO()
    writer = csv.writer(output)  # RFC 4180: lines end in CR LF
    writer.writerow(
        [
            *_COLUMNS,
            *(f"metric.{name}" for name in metrics),
            *(f"reported.{name}" for name in reported),
            *(f"option.{name}" for name in names),
        ]
    )
    for run in analysis.runs:
        writer.writerow(_cells(run, metrics, reported, names))
    return output.getvalue()


def _cells(run: RunRow, metrics: list[str], reported: list[str], names: list[str]) -> list[object]:
    options = (run.options.get(name) for name in names)
    return [
        *(getattr(run, column) for column in _COLUMNS),
        *(run.metrics.get(name) for name in metrics),
        *(run.reported.get(name) for name in reported),
        *("" if value is None else option_text(value) for value in options),
    ]


# ----------
# The JSON report: every table of the analysis, with stable keys.

FORMAT_VERSION = 1


def render_json_(analysis: StudyAnalysis) -> str:
    """The whole analysis as one JSON document; numbers that are not finite become null."""
    document = {
        "format_version": FORMAT_VERSION,
        "headline": _plain(headline(analysis)),
        **_plain(analysis),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: object) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, PurePath):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON")


# ----------
# The formats of a report by name, and the file each is kept in.


@dataclass(frozen=True)
class ReportFormat:
    """`render` turns an analysis into text; `file_name` is used unless the user gives a path."""

    render: Callable[[StudyAnalysis], str]
    file_name: str


FORMATS: Mapping[str, ReportFormat] = MappingProxyType(
    {
        "html": ReportFormat(html.render, "report.html"),
        "md": ReportFormat(markdown.render, "report.md"),
        "json": ReportFormat(render_json_, "report.json"),
        "csv": ReportFormat(render, "report.csv"),
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
