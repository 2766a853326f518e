"""A contest's leaderboard as one self-contained HTML file, without scripts."""

from __future__ import annotations

import lsmtune
from lsmtune.contest.leaderboard import Leaderboard
from lsmtune.report import leaderboard_words as words
from lsmtune.report import pages, text
from lsmtune.report.leaderboard_strip import Strip, strips


def render(board: Leaderboard) -> str:
    """The whole page."""
    standings = board.standings
    return (
        pages.environment()
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
            style=pages.asset("report.css") + pages.asset("leaderboard.css"),
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
