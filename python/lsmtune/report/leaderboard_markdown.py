"""A contest's leaderboard as Markdown, for a README or a wiki."""

from __future__ import annotations

from lsmtune.contest.leaderboard import Leaderboard
from lsmtune.report import leaderboard_words as words
from lsmtune.report.markdown_text import safe, section, table
from lsmtune.report.text import options_line


def render(board: Leaderboard) -> str:
    """The leaderboard with tables."""
    parts = [f"# {safe(words.headline(board))}\n\n{safe(words.subtitle(board))}\n"]
    standings = board.standings
    if standings is not None:
        parts += [_told(words.total_table(standings)), f"{safe(words.METHOD)}\n"]
        parts += [_told(words.mean_table(standings)), _outliers(board)]
        for phase in standings.phases:
            parts.append(_told(words.phase_table(board, phase, standings.confidence)))
    rows = [(team.team, words.disqualified_line(team)) for team in board.disqualified]
    parts.append(section("Disqualified, not run", ("team", "rules it breaks"), rows))
    failed = [(each.team, str(each.round), each.why) for each in board.failed]
    parts.append(section("Failed, not ranked", ("team", "round", "why"), failed))
    rules = [(rule.name, rule.text, rule.about) for rule in board.rules]
    parts.append(section("Rules", ("rule", "expression", "about"), rules))
    entries = [(team, options_line(dict(options))) for team, options in board.options.items()]
    parts.append(section("Entries", ("team", "options"), entries))
    lines = "".join(f"- {safe(warning)}\n" for warning in board.warnings)
    parts.append(f"## Warnings\n\n{lines}" if lines else "")
    return "\n".join(part for part in parts if part)


def _told(found: words.Table) -> str:
    note = f"{safe(found.note)}\n\n" if found.note else ""
    return f"## {safe(found.title)}\n\n{note}{table(found.columns, found.rows)}"


def _outliers(board: Leaderboard) -> str:
    found = board.standings.outliers if board.standings is not None else ()
    lines = "".join(f"- {safe(words.outlier_line(board, row))}\n" for row in found)
    return f"## Outliers\n\n{lines}" if lines else ""
