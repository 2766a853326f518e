"""A study's report: the verdict, what to deploy, and whether the figures can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lsmtune
from lsmtune import plugins
from lsmtune.errors import by_name, need_package
from lsmtune.experiment.folder import StudyFolder
from lsmtune.machine.files import write_output
from lsmtune.model.config import option_text
from lsmtune.model.metrics import METRICS
from lsmtune.report import study_proof, study_search, study_trust
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.document import Document
from lsmtune.report.importance import Method
from lsmtune.report.render import to_csv, to_html, to_json, to_markdown, to_parquet
from lsmtune.report.source import read_study

FORMAT_VERSION = 1


def study_document(analysis: StudyAnalysis) -> Document:
    """Everything that the page and Markdown say."""
    head = study_proof.headline(analysis)
    engines = [engine.title for engine in analysis.engines[:1]]
    labels = ", ".join(weighted.label for weighted in analysis.workloads)
    goals = "; ".join(
        f"{text.metric_label(o.label)}, {text.direction_words(o.direction)}"
        for o in analysis.objectives
    )
    unfinished = " The study is unfinished." if analysis.status == "unfinished" else ""
    sections = [study_proof.verdict_section(analysis, head)]
    if analysis.verdict is not None:
        sections.append(study_proof.price_section(analysis.verdict, analysis.history))
    sections += [
        study_proof.deploy_section(analysis, head.tone == "good"),
        study_proof.compared_section(analysis),
        study_search.found_section(analysis),
        study_trust.trust_section(analysis),
    ]
    if analysis.failures:
        sections.append(study_trust.failures_section(analysis))
    if analysis.history.trials:
        sections.append(study_search.trials_section(analysis))
    sections.append(study_trust.raw_section(analysis, to_csv(*_runs(analysis))))
    return Document(
        title=analysis.name,
        subtitle=" · ".join([*engines, labels, goals]),
        sections=sections,
        page_title=f"{head.figure} · {analysis.name} · lsmtune",
        footer=f"Written by lsmtune {lsmtune.__version__} from stored measurements alone."
        f"{unfinished}",
    )


# --- The formats, and the file each is kept in

_RUN_COLUMNS = (
    *("measurement", "role", "trial", "pair", "outcome", "value", "seed", "started_unix_s"),
    *("elapsed_s", "engine", "engine_version", "build", "error"),
    *("wall_s", "workload", "rung", "repeat", "paired_by"),
    *("memory_limited_by", "steal_s", "page_cache_cached_share"),
)


def _runs(analysis: StudyAnalysis) -> tuple[list[str], list[list[object]]]:
    """Columns, and one row per stored run, for spreadsheets and data frames.

    `metric.*` columns are those of the objective's phase, `reported.*` what a program of the user's
    own measured, `option.*` what was set.
    """
    options = sorted({name for run in analysis.runs for name in run["options"]})
    reported = sorted({name for run in analysis.runs for name in run["reported"]})
    columns = [
        *_RUN_COLUMNS,
        *(f"metric.{name}" for name in METRICS),
        *(f"reported.{name}" for name in reported),
        *(f"option.{name}" for name in options),
    ]
    rows = [
        [
            *(run[column] for column in _RUN_COLUMNS),
            *(run["metrics"][name] for name in METRICS),
            *(run["reported"].get(name) for name in reported),
            *(option_text(run["options"][n]) if n in run["options"] else "" for n in options),
        ]
        for run in analysis.runs
    ]
    return columns, rows


def study_values(analysis: StudyAnalysis) -> dict[str, Any]:
    """Every table of the analysis with stable keys, for JSON."""
    head = study_proof.headline(analysis)
    return {"format_version": FORMAT_VERSION, "headline": head, **vars(analysis)}


PARQUET = "parquet"


@dataclass(frozen=True)
class ReportFormat:
    """A form that reports have: its name, which ends the name of a file, and how one is made.

    A package adds one by an entry point `lsmtune.reports` (see `lsmtune.plugins`).
    """

    name: str
    render: Callable[[StudyAnalysis], str | bytes]


FORMATS: plugins.Plugins[ReportFormat] = plugins.Plugins(
    plugins.REPORTS,
    {
        format_.name: format_
        for format_ in (
            ReportFormat("html", lambda analysis: to_html(study_document(analysis))),
            ReportFormat("md", lambda analysis: to_markdown(study_document(analysis))),
            ReportFormat("json", lambda analysis: to_json(study_values(analysis))),
            ReportFormat("csv", lambda analysis: to_csv(*_runs(analysis))),
            ReportFormat(PARQUET, lambda analysis: to_parquet(*_runs(analysis))),
        )
    },
)


def write_as(
    folder: StudyFolder,
    format_name: str,
    output: Path | None = None,
    method: Method | None = Method.PED_ANOVA,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[Path, StudyAnalysis]:
    """Write the report of `folder`, by default into its `result/` folder, whole or not at all.

    `method` is that of the parameters' importance, None for none of it; `on_progress` is told how
    many of how many of its resamples are done. Returns where it is, and what it was made from.

    Raises InputError when the study cannot be read, the file cannot be written, or a package that
    the format needs is not installed, and for an unknown format.
    """
    if format_name in (PARQUET, "csv"):
        method = None  # a row for each run has no place for it
    if format_name == PARQUET:
        need_package("pyarrow", "report", "--format", found=PARQUET)
    if method is Method.FANOVA:
        need_package("scikit-learn", "report", "--importance", found=method.value)
    render = by_name(FORMATS, format_name, "report", "--format").render
    analysis = StudyAnalysis(read_study(folder), method, on_progress)
    path = folder.result_path / f"report.{format_name}" if output is None else output
    if path.parent == folder.result_path:
        folder.result_path.mkdir(exist_ok=True)
    return write_output(path, render(analysis)), analysis
