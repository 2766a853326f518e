"""The files of a sweep's result: one self-contained page, Markdown, CSV, JSON."""

from __future__ import annotations

from pathlib import Path

import jinja2
from markupsafe import Markup

import lsmtune
from lsmtune.report import text
from lsmtune.report.atomic import write_text
from lsmtune.report.sweep_documents import cells_csv, json_text, markdown, runs_csv
from lsmtune.report.sweep_figures import LINES_MAX, figures_of
from lsmtune.report.sweep_words import columns_of, headline, how_to_read, ratio_columns_of
from lsmtune.sweep.result import SweepResult

_TEMPLATES = Path(__file__).parent / "templates"


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
    from plotly.offline import get_plotlyjs

    figures = figures_of(result)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(count=text.count, outcome=text.outcome, seconds=text.seconds)
    environment.globals.update(columns_of=columns_of, ratio_columns_of=ratio_columns_of)
    return environment.get_template("sweep.html").render(
        result=result,
        headline=headline(result),
        how_to_read=how_to_read(result),
        figures=figures,
        lines_max=LINES_MAX,
        version=lsmtune.__version__,
        plotly=Markup(get_plotlyjs()) if figures else None,
        style=_asset("report.css"),
        script=_asset("report.js"),
    )


def _asset(name: str) -> Markup:
    """A style sheet or script of ours, which is not to be escaped."""
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))
