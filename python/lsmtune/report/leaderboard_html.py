"""A contest's leaderboard as one self-contained HTML file, without scripts."""

from __future__ import annotations

from pathlib import Path

import jinja2
from markupsafe import Markup

import lsmtune
from lsmtune.contest.leaderboard import Leaderboard
from lsmtune.report import leaderboard_words as words
from lsmtune.report import text
from lsmtune.report.leaderboard_strip import Strip, strips

_TEMPLATES = Path(__file__).parent / "templates"


def render(board: Leaderboard) -> str:
    """The whole page."""
    standings = board.standings
    return (
        _environment()
        .get_template("leaderboard.html")
        .render(
            board=board,
            headline=words.headline(board),
            subtitle=words.subtitle(board),
            method=words.METHOD,
            totals=None if standings is None else words.total_table(standings),
            by_mean=None if standings is None else words.mean_table(standings),
            phases=_phases(board),
            outliers=[]
            if standings is None
            else [words.outlier_line(board, row) for row in standings.outliers],
            disqualified=[
                (each.team, words.disqualified_line(each)) for each in board.disqualified
            ],
            entries=[(team, text.options_line(dict(o))) for team, o in board.options.items()],
            version=lsmtune.__version__,
            style=_asset("report.css") + _asset("leaderboard.css"),
        )
    )


def _phases(board: Leaderboard) -> list[tuple[words.Table, tuple[Strip, ...]]]:
    standings = board.standings
    if standings is None:
        return []
    return [
        (
            words.phase_table(board, phase, standings.confidence),
            strips(
                phase,
                standings.rounds,
                frozenset((o.team, o.round) for o in standings.outliers if o.phase == phase.phase),
            ),
        )
        for phase in standings.phases
    ]


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _asset(name: str) -> Markup:
    """A style sheet of ours, which is not to be escaped."""
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))
