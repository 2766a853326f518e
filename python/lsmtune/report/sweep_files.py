"""The files of a sweep's result: one self-contained page, Markdown, CSV, JSON."""

from __future__ import annotations

from pathlib import Path

import lsmtune
from lsmtune.report import pages, text
from lsmtune.report.atomic import write_text
from lsmtune.report.sweep_documents import cells_csv, json_text, markdown, runs_csv
from lsmtune.report.sweep_figures import LINES_MAX, figures_of
from lsmtune.report.sweep_words import columns_of, headline, how_to_read, ratio_columns_of
from lsmtune.sweep.result import SweepResult


def write_sweep(result: SweepResult, folder: Path) -> tuple[Path, ...]:
    """Write `sweep.html`, `.md`, `.csv`, `.json` and `sweep-runs.csv` into `folder`, each whole.

    Raises InputError when one cannot be written.
    """
    contents = {
        "sweep.html": html(result),
        "sweep.md": markdown(result),
        "sweep.csv": cells_csv(result),
        "sweep-runs.csv": runs_csv(result),
        "sweep.json": json_text(result),
    }
    return tuple(write_text(folder / name, content) for name, content in contents.items())


def html(result: SweepResult) -> str:
    """One page that needs no network, and no script for its text."""
    figures = figures_of(result)
    environment = pages.environment()
    environment.filters.update(count=text.count, outcome=text.outcome, seconds=text.seconds)
    environment.globals.update(columns_of=columns_of, ratio_columns_of=ratio_columns_of)
    return environment.get_template("sweep.html").render(
        result=result,
        headline=headline(result),
        how_to_read=how_to_read(result),
        figures=figures,
        lines_max=LINES_MAX,
        version=lsmtune.__version__,
        plotly=pages.plotly() if figures else None,
        style=pages.asset("report.css"),
        script=pages.asset("report.js"),
    )
