"""The page of a trace: one self-contained HTML file, with the workload fitted to it if there is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jinja2

import lsmtune
from lsmtune.report import pages, text
from lsmtune.report.atomic import write_text
from lsmtune.report.trace_figures import trace_figures
from lsmtune.traces.fit import TraceFit
from lsmtune.traces.part import FittedPart
from lsmtune.traces.summary import TraceSummary

_TITLES = {
    "rate": "Operations over time",
    "rate-fit": "The rate, and its model",
    "working-set": "Keys asked for over time",
    "hotness": "Which share the hottest keys draw",
    "ranges": "Operations over the key space",
    "ranges-fit": "Ranges of keys, and their model",
    "prefixes": "The hottest prefixes",
    "miss-ratio": "What a cache of keys would miss",
    "value-sizes": "Sizes of values",
    "key-sizes": "Sizes of keys",
    "inter-arrival": "Time between records",
}


def write_trace_page(summary: TraceSummary, output: Path, fit: TraceFit | None = None) -> Path:
    """Write the page of `summary` to `output`, whole or not at all; returns `output`.

    Raises InputError when it cannot be written.
    """
    return write_text(output, trace_page(summary, fit))


def trace_page(summary: TraceSummary, fit: TraceFit | None = None) -> str:
    """The whole page."""
    parts: Sequence[FittedPart] = () if fit is None else fit.parts
    figures = trace_figures(summary, parts)
    counts = summary.operation_counts.items()
    return (
        _environment()
        .get_template("trace.html")
        .render(
            s=summary,
            file=Path(summary.path).name,
            mix=[(name, count, count / summary.operations) for name, count in counts if count],
            sizes=[
                *((f"key, {name}", found) for name, found in summary.key_sizes.items()),
                *((f"value, {name}", found) for name, found in summary.value_sizes.items()),
            ],
            fit=fit,
            titles={name: title for name, title in _TITLES.items() if name in figures},
            figures=figures,
            plotly=pages.plotly() if figures else None,
            style=pages.asset("report.css"),
            script=pages.asset("report.js"),
            version=lsmtune.__version__,
        )
    )


def _environment() -> jinja2.Environment:
    environment = pages.environment()
    environment.filters.update(count=text.count, seconds=text.seconds)
    return environment
