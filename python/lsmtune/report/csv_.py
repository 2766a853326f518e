"""The CSV report: one line per stored run, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io

from lsmtune.analysis import StudyAnalysis
from lsmtune.analysis.tables import RunRow
from lsmtune.records.config import option_text
from lsmtune.records.objective import METRICS

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
