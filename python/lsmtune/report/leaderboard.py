"""A contest's leaderboard: who is first, what is proved, and who was not ranked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import lsmtune
from lsmtune.errors import InputError, nearest_name
from lsmtune.experiment.contest import Broken, Disqualified
from lsmtune.experiment.standings import (
    Leaderboard,
    OutlierRow,
    PhaseTable,
    Standings,
    TeamRow,
    TotalRow,
)
from lsmtune.model.codec import encode
from lsmtune.model.goal import Direction
from lsmtune.report import words as text
from lsmtune.report.document import (
    Block,
    Document,
    Mark,
    Notice,
    Notices,
    Paragraph,
    Section,
    Strip,
    Strips,
    Table,
    numbers,
    words,
)
from lsmtune.report.render import check_place, to_csv, to_html, to_json, to_markdown, write_text
from lsmtune.report.sentences import rank

FORMAT_VERSION = 1
_METHOD = (
    "Teams are compared within rounds, by Student's t test of the logarithms of their ratios; "
    "Holm's correction covers all pairs of teams in all phases. A rank is 1 + the number of teams "
    "proved better, to the number of teams less those proved worse."
)


_DOTS = "Dots are rounds, the line is the mean, the bar its interval."


def board_document(board: Leaderboard) -> Document:
    """Everything that the page, Markdown and the terminal say."""
    standings = board.standings
    sections = [] if standings is None else _ranked_sections(board, standings)
    if board.disqualified:
        lines = [
            Notice(f"{team.team}: {disqualified_line(team)}", grade="danger", label="disqualified")
            for team in board.disqualified
        ]
        title = "Disqualified, not run"
        sections.append(Section("disqualified", title, [Notices(lines)], "Disqualified"))
    if board.failed:
        title = "Failed, not ranked"
        lines = [
            Notice(f"{f.team}: round {f.round}: {f.why}", grade="danger", label=title.lower())
            for f in board.failed
        ]
        sections.append(Section("failed", title, [Notices(lines)], "Failed"))
    if board.rules:
        rules = [(rule.name, rule.text, rule.about) for rule in board.rules]
        table = Table(words("rule", "expression", "about"), rules, "Rules")
        sections.append(Section("rules", "Rules", [table], omit=("terminal",)))
    if board.options:
        entries = [(team, text.options_line(dict(o))) for team, o in board.options.items()]
        table = Table(words("team", "options"), entries, "Entries", style="options")
        sections.append(Section("entries", "Entries", [table], omit=("terminal",)))
    if board.warnings:
        lines = [Notice(line) for line in board.warnings]
        sections.append(Section("warnings", "Warnings", [Notices(lines)], omit=("terminal",)))
    return Document(
        title=headline(board),
        subtitle=subtitle(board),
        sections=sections,
        page_title=f"{headline(board)} · lsmtune contest",
        footer=f"lsmtune {lsmtune.__version__}",
        scripts=False,
    )


def _ranked_sections(board: Leaderboard, standings: Standings) -> list[Section]:
    total: list[Block] = [Paragraph(claim(standings), "note"), total_table(standings)]
    by_mean = "Teams in the order of their mean, ranks added up: what chance adds is not seen."
    sections = [
        Section("leaderboard", "Leaderboard", [*total, Paragraph(_METHOD, "detail")]),
        Section("by-mean", "By mean", [Paragraph(by_mean, "note"), mean_table(standings)]),
    ]
    if standings.outliers:
        lines = [Notice(outlier_line(board, row), label="outlier") for row in standings.outliers]
        sections.append(Section("outliers", "Outliers", [Notices(lines)]))
    for number, phase in enumerate(standings.phases, 1):
        far = frozenset((o.team, o.round) for o in standings.outliers if o.phase == phase.phase)
        blocks: list[Block] = [
            Paragraph(separations(phase), "note"),
            Strips(strips(phase, standings.rounds, far), _DOTS),
            phase_table(board, phase, standings.confidence),
        ]
        sections.append(Section(f"phase-{number}", phase.phase, blocks))
    return sections


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
    columns = (*words("rank", "team"), *numbers("sum of ranks", *phases))
    return Table(columns, rows, "Leaderboard", header=False)


def mean_table(standings: Standings) -> Table:
    """The ranking that contests publish: by mean, and by the sum of ranks."""
    phases = [phase.phase for phase in standings.phases]
    by_phase = [{row.team: row for row in phase.rows} for phase in standings.phases]

    def cells(row: TotalRow) -> tuple[str, ...]:
        ranks = [str(each[row.team].rank_by_mean) for each in by_phase]
        median = f"{row.rank_by_median} ({row.sum_by_median})"
        return (str(row.rank_by_mean), row.team, str(row.sum_by_mean), *ranks, median)

    ordered = sorted(standings.totals, key=lambda row: row.rank_by_mean)
    columns = (*words("rank", "team"), *numbers("sum of ranks", *phases, "by median (sum)"))
    return Table(columns, [cells(row) for row in ordered], "By mean", header=False)


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
    columns = (*words("rank", "team"), *numbers("by mean", "mean", interval, "median", values))
    return Table(columns, rows, phase.phase, header=False)


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


# --- The dots of a phase: rounds, mean and interval of every team

_MARGIN = 0.04  # of the span, on either side, so that no mark touches an end


def strips(
    phase: PhaseTable, rounds: tuple[int, ...], outliers: frozenset[tuple[str, int]]
) -> tuple[Strip, ...]:
    """The rows of the plot, on one scale; `outliers` are teams and rounds."""
    known = [x for row in phase.rows for x in (*row.values, row.mean_low, row.mean_high)]
    values = [value for value in known if value is not None]
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    start, whole = low - _MARGIN * span, (high - low) + 2 * _MARGIN * span

    def place(value: float) -> float:
        return round(100 * (value - start) / whole, 2)

    def strip(row: TeamRow) -> Strip:
        marks = (
            Mark(place(value), number, (row.team, number) in outliers)
            for number, value in zip(rounds, row.values, strict=True)
        )
        bounds = (None if each is None else place(each) for each in (row.mean_low, row.mean_high))
        return Strip(row.team, tuple(marks), place(row.mean), *bounds)

    return tuple(strip(row) for row in phase.rows)


# --- JSON with everything, CSV with one line per run

_COLUMNS = (
    *("status", "team", "phase", "round", "metric", "value", "outlier"),
    *("mean", "mean_low", "mean_high", "median", "rank_by_mean", "rank_by_median"),
    *("rank_low", "rank_high", "total_rank_low", "total_rank_high", "total_rank_by_mean"),
    *("total_sum_by_mean", "why"),
)


def document(board: Leaderboard) -> dict[str, Any]:
    """The leaderboard in terms of JSON, with stable keys."""
    return {"format_version": FORMAT_VERSION, **encode(board)}


def _csv(board: Leaderboard) -> str:
    """One line for each run that is ranked, and one for each team that is not."""
    rows: list[Mapping[str, object]] = []
    if board.standings is not None:
        rows += _ranked(board.standings)
    for team in board.disqualified:
        why = disqualified_line(team)
        rows.append({"status": "disqualified", "team": team.team, "why": why})
    for failed in board.failed:
        rows.append(
            {"status": "failed", "team": failed.team, "round": failed.round, "why": failed.why}
        )
    return to_csv(_COLUMNS, ([row.get(name) for name in _COLUMNS] for row in rows))


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


# --- The forms, by the suffix of the file that is written

FORMATS: Mapping[str, Callable[[Leaderboard], str]] = MappingProxyType(
    {
        ".html": lambda board: to_html(board_document(board)),
        ".md": lambda board: to_markdown(board_document(board)),
        ".json": lambda board: to_json(document(board)),
        ".csv": _csv,
    }
)


def check_output(path: Path, flag: str) -> None:
    """Raises InputError, naming `flag` where the suffix is that of no format, for a bad place."""
    if path.suffix not in FORMATS:
        allowed, nearest = ", ".join(FORMATS), nearest_name(path.suffix, FORMATS)
        raise InputError(flag, found=str(path), allowed=f"a file {allowed}", nearest=nearest)
    check_place(path)


def write_leaderboard(board: Leaderboard, path: Path) -> Path:
    """Write `board` to `path`, whole or not at all, in the form that its suffix names.

    Raises InputError when it cannot be written, and KeyError for a suffix that is none.
    """
    return write_text(path, FORMATS[path.suffix](board))
