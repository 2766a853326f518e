"""A contest's leaderboard for programs: JSON with everything, CSV with one line per run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from lsmtune.contest.leaderboard import Leaderboard
from lsmtune.contest.tables import Standings
from lsmtune.report.leaderboard_words import disqualified_line
from lsmtune.storage.codec import encode

FORMAT_VERSION = 1
_COLUMNS = (
    *("status", "team", "phase", "round", "metric", "value", "outlier"),
    *("mean", "mean_low", "mean_high", "median", "rank_by_mean", "rank_by_median"),
    *("rank_low", "rank_high", "total_rank_low", "total_rank_high", "total_rank_by_mean"),
    *("total_sum_by_mean", "why"),
)


def document(board: Leaderboard) -> dict[str, Any]:
    """The leaderboard in terms of JSON, with stable keys."""
    return {"format_version": FORMAT_VERSION, **encode(board)}


def render_json(board: Leaderboard) -> str:
    """The leaderboard as one JSON document."""
    return json.dumps(document(board), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def render_csv(board: Leaderboard) -> str:
    """One line for each run that is ranked, and one for each team that is not.

    What is not known is an empty cell.
    """
    output = io.StringIO()
    writer = csv.DictWriter(output, _COLUMNS)  # RFC 4180: lines end in CR LF
    writer.writeheader()
    if board.standings is not None:
        writer.writerows(_ranked(board.standings))
    for team in board.disqualified:
        why = disqualified_line(team)
        writer.writerow({"status": "disqualified", "team": team.team, "why": why})
    for failed in board.failed:
        place = {"status": "failed", "team": failed.team, "round": failed.round}
        writer.writerow({**place, "why": failed.why})
    return output.getvalue()


def _ranked(standings: Standings) -> Iterator[dict[str, object]]:
    totals = {row.team: row for row in standings.totals}
    far = {(row.phase, row.team, row.round) for row in standings.outliers}
    for phase in standings.phases:
        for row in phase.rows:
            total = totals[row.team]
            for number, value in zip(standings.rounds, row.values, strict=True):
                yield {
                    "status": "ranked",
                    "team": row.team,
                    "phase": phase.phase,
                    "round": number,
                    "metric": standings.metric,
                    "value": value,
                    "outlier": str((phase.phase, row.team, number) in far).lower(),
                    "mean": row.mean,
                    "mean_low": row.mean_low,
                    "mean_high": row.mean_high,
                    "median": row.median,
                    "rank_by_mean": row.rank_by_mean,
                    "rank_by_median": row.rank_by_median,
                    "rank_low": row.rank_low,
                    "rank_high": row.rank_high,
                    "total_rank_low": total.rank_low,
                    "total_rank_high": total.rank_high,
                    "total_rank_by_mean": total.rank_by_mean,
                    "total_sum_by_mean": total.sum_by_mean,
                }
