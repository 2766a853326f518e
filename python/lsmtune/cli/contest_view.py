"""A contest's leaderboard on a terminal. Pure; nothing here is printed."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lsmtune.contest.leaderboard import Leaderboard
from lsmtune.report import leaderboard_words as words


def leaderboard_view(board: Leaderboard) -> RenderableType:
    """Both rankings, each phase, outliers, and the teams that are not ranked."""
    parts: list[RenderableType] = [
        Text(words.headline(board), style="bold"),
        Text(words.subtitle(board), style="dim"),
    ]
    standings = board.standings
    if standings is not None:
        parts += _told(words.total_table(standings)) + _told(words.mean_table(standings))
        for phase in standings.phases:
            parts += _told(words.phase_table(board, phase, standings.confidence))
        for row in standings.outliers:
            parts += [Text(), Text(f"outlier: {words.outlier_line(board, row)}", style="yellow")]
    if board.disqualified or board.failed:
        parts.append(Text())
    for team in board.disqualified:
        parts.append(Text(f"disqualified: {team.team}: {words.disqualified_line(team)}", "red"))
    for failed in board.failed:
        line = f"failed, not ranked: {failed.team}: round {failed.round}: {failed.why}"
        parts.append(Text(line, style="red"))
    return Group(*parts)


def _told(found: words.Table) -> list[RenderableType]:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left")
    for number, column in enumerate(found.columns):
        right = number >= found.left
        table.add_column(column, justify="right" if right else "left", no_wrap=number < found.left)
    for row in found.rows:
        table.add_row(*(Text(cell) for cell in row))
    return [Text(), Text(found.title, style="bold"), Text(found.note, style="dim"), table]
