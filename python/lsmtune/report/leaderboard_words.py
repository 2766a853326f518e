"""A contest's leaderboard as tables of text and sentences, the same in every form of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsmtune.contest.leaderboard import Disqualified, Leaderboard
from lsmtune.contest.rules import Broken
from lsmtune.contest.tables import OutlierRow, PhaseTable, Standings, TotalRow
from lsmtune.records.objective import Direction
from lsmtune.report import text
from lsmtune.report.words import rank

LEADERBOARD = "Leaderboard"
BY_MEAN = "By mean"
METHOD = (
    "Teams are compared within rounds, by Student's t test of the logarithms of their ratios; "
    "Holm's correction covers all pairs of teams in all phases. A rank is 1 + the number of teams "
    "proved better, to the number of teams less those proved worse."
)


@dataclass(frozen=True)
class Table:
    """Columns, rows, and a line on what they say; the first `left` columns are words."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 2


def headline(board: Leaderboard) -> str:
    """Who is first, in one line."""
    standings = board.standings
    if standings is None:
        return "No team could be ranked"
    first = [row.team for row in standings.totals if row.rank_low == 1]
    if len(first) == 1:
        return f"{first[0]} is first"
    return f"{_listed(first)} share the first rank"


def subtitle(board: Leaderboard) -> str:
    """What was measured, in one line."""
    parts = []
    if board.engine is not None:
        parts.append(" ".join(part for part in (board.engine.name, board.engine.version) if part))
    parts.append(board.workload if board.workload is not None else "logs of YCSB-cpp")
    better = "higher" if board.direction is Direction.MAXIMIZE else "lower"
    parts.append(f"{text.metric_label(board.metric)}, {better} is better")
    if board.standings is not None:
        parts.append(text.count(len(board.standings.rounds), "round"))
    return " · ".join(parts)


def claim(standings: Standings) -> str:
    """What the ranks with ties promise."""
    if len(standings.rounds) < 2:
        return "One round proves nothing: every team may have any rank."
    return (
        f"1 to 3 is first, second or third: {len(standings.rounds)} rounds do not tell. Teams that "
        f"begin with the same rank are not told apart. With {text.percent(standings.confidence)} "
        "confidence no separation here is wrong, in any phase or in total."
    )


def total_table(standings: Standings) -> Table:
    """The leaderboard with ties, the total by mean beside it."""
    phases = [phase.phase for phase in standings.phases]
    by_phase = [{row.team: row for row in phase.rows} for phase in standings.phases]
    rows = [
        (
            rank(row.rank_low, row.rank_high),
            row.team,
            rank(row.sum_low, row.sum_high),
            *(rank(each[row.team].rank_low, each[row.team].rank_high) for each in by_phase),
        )
        for row in standings.totals
    ]
    columns = ("rank", "team", "sum of ranks", *phases)
    return Table(LEADERBOARD, claim(standings), columns, tuple(rows))


def mean_table(standings: Standings) -> Table:
    """The ranking that contests publish: by mean, and by the sum of ranks."""
    phases = [phase.phase for phase in standings.phases]
    by_phase = [{row.team: row for row in phase.rows} for phase in standings.phases]

    def cells(row: TotalRow) -> tuple[str, ...]:
        ranks = [str(each[row.team].rank_by_mean) for each in by_phase]
        median = f"{row.rank_by_median} ({row.sum_by_median})"
        return (str(row.rank_by_mean), row.team, str(row.sum_by_mean), *ranks, median)

    ordered = sorted(standings.totals, key=lambda row: row.rank_by_mean)
    columns = ("rank", "team", "sum of ranks", *phases, "by median (sum)")
    note = "Teams in the order of their mean, ranks added up: what chance adds is not seen."
    return Table(BY_MEAN, note, columns, tuple(cells(row) for row in ordered))


def phase_table(board: Leaderboard, phase: PhaseTable, confidence: float) -> Table:
    """Mean with its interval, median and all rounds of every team in one phase."""
    metric = board.metric
    unit = text.metric_unit(metric)
    values = f"rounds ({unit})" if unit and unit != "µs" else "rounds"
    rows = [
        (
            rank(row.rank_low, row.rank_high),
            row.team,
            str(row.rank_by_mean),
            text.quantity(metric, row.mean),
            _bounds(metric, row.mean_low, row.mean_high),
            text.quantity(metric, row.median),
            ", ".join(_plain(metric, value) for value in row.values),
        )
        for row in phase.rows
    ]
    interval = f"interval of the mean, {text.percent(confidence)}"
    columns = ("rank", "team", "by mean", "mean", interval, "median", values)
    return Table(phase.phase, separations(phase), columns, tuple(rows))


def separations(phase: PhaseTable) -> str:
    """How many pairs of teams are told apart."""
    teams = len(phase.rows)
    pairs = teams * (teams - 1) // 2
    return f"{len(phase.separations)} of {text.count(pairs, 'pair')} of teams told apart."


def outlier_line(board: Leaderboard, row: OutlierRow) -> str:
    """Which run is an outlier, and what the ranking is without it."""
    value = text.quantity(board.metric, row.value)
    said = (
        f"{row.phase}: round {row.round} of {row.team}, {value}, is {text.ratio(row.ratio)} the "
        f"team's other rounds (Grubbs's test, p = {_p_value(row.p_value)} for all teams and phases "
        "together)."
    )
    if row.decides_first:
        said += (
            f" It decides who is first by mean: {_listed(row.first_by_mean)} with it, "
            f"{_listed(row.first_without)} without it, {_listed(row.first_by_median)} by median."
        )
    elif row.order_changes:
        said += f" Without it the team is {row.rank_without} by mean, not {row.rank_by_mean}."
    else:
        said += " The ranks by mean are the same without it."
    if row.decides_total:
        moved = [
            f"{team} {row.total_by_mean[team]} to {row.total_without[team]}"
            for team in row.total_by_mean
            if row.total_by_mean[team] != row.total_without[team]
        ]
        said += f" Total ranks by mean without it: {', '.join(moved)}."
    return said


def broken_line(broken: Broken) -> str:
    """A broken rule with its figures: `memory: a + b <= 1GiB, with a = 2GiB, b = 8MiB`."""
    figures = ", ".join(
        f"{name} = {text.option(value, 'bytes')}" for name, value in broken.figures.items()
    )
    about = f" ({broken.about})" if broken.about else ""
    return f"{broken.rule}{about}: {broken.text}, with {figures}"


def disqualified_line(team: Disqualified) -> str:
    """Why a team was not run."""
    return "; ".join(broken_line(broken) for broken in team.broken)


def _p_value(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.2g}"


def _bounds(metric: str, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return text.quantity(metric, None)
    return f"{text.quantity(metric, low)} to {text.quantity(metric, high)}"


def _plain(metric: str, value: float) -> str:
    """Without the unit, which the column says, where all values have the same one."""
    return text.duration_us(value) if text.metric_unit(metric) == "µs" else text.number(value)


def _listed(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
