"""A contest's leaderboard: who is first, what is proved, and who was not ranked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lsmtune.engines.differences import option_unit
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
from lsmtune.machine.files import check_output
from lsmtune.model.codec import encode
from lsmtune.report import words as text
from lsmtune.report.chart import Axis, Chart, Form, Point, Series
from lsmtune.report.document import (
    NOT_KNOWN,
    Block,
    Column,
    Document,
    Notice,
    Notices,
    Paragraph,
    Section,
    Severity,
    Table,
    chart_of,
    numbers,
    words,
)
from lsmtune.report.figures import value_axis
from lsmtune.report.render import to_html, to_markdown

FORMAT_VERSION = 1
_METHOD = (
    "Teams are compared within rounds, by Student's t test of the logarithms of their ratios; "
    "Holm's correction covers all pairs of teams in all phases. A rank is 1 + the number of teams "
    "proved better, to the number of teams less those proved worse."
)


def board_document(board: Leaderboard) -> Document:
    """Everything that the page, Markdown and the terminal say."""
    sections = [] if board.standings is None else _ranked_sections(board, board.standings)

    def add(name: str, title: str, block: Block, short: str = "", *, terminal: bool = True) -> None:
        sections.append(Section(name, title, [block], short, terminal=terminal))

    if board.disqualified:
        engine = "" if board.engine is None else board.engine.name
        lines = []
        for each in board.disqualified:
            line = f"{each.team}: {disqualified_line(each, engine)}"
            lines.append(Notice(line, "", Severity.DANGER, "disqualified"))
        add("disqualified", "Disqualified, not run", Notices(lines), "Disqualified")
    if board.failed:
        title = "Failed, not ranked"
        lines = [
            Notice(f"{f.team}: round {f.round}: {f.why}", "", Severity.DANGER, title.lower())
            for f in board.failed
        ]
        add("failed", title, Notices(lines), "Failed")
    if board.rules:
        rules = [(rule.name, rule.text, rule.about) for rule in board.rules]
        table = Table(words("rule", "expression", "about"), rules, "Rules")
        add("rules", "Rules", table, terminal=False)
    if board.options:
        entries = [(team, text.options_line(o)) for team, o in board.options.items()]
        table = Table(words("team", "options"), entries, "Entries", style="options")
        add("entries", "Entries", table, terminal=False)
    if board.warnings:
        warnings = Notices([Notice(line) for line in board.warnings])
        add("warnings", "Warnings", warnings, terminal=False)
    return Document(
        title=headline(board),
        subtitle=subtitle(board),
        sections=sections,
        page_title=f"{headline(board)} · lsmtune contest",
    )


def _ranked_sections(board: Leaderboard, standings: Standings) -> list[Section]:
    several, level = len(standings.rounds) > 1, text.percent(standings.confidence)
    claim = "One round proves nothing: every team may have any rank."
    if several:
        claim = (
            f"1 to 3 is first, second or third: {len(standings.rounds)} rounds do not tell. Teams "
            f"that begin with the same rank are not told apart. With {level} confidence no "
            "separation here is wrong, in any phase or in total."
        )
    total, by_mean = _total_tables(standings)
    about = "Teams in the order of their mean, ranks added up: what chance adds is not seen."
    ranked: list[Block] = [Paragraph(claim, "note"), total, Paragraph(_METHOD, "detail")]
    sections = [
        Section("leaderboard", "Leaderboard", ranked),
        Section("by-mean", "By mean", [Paragraph(about, "note"), by_mean]),
    ]
    if standings.outliers:
        lines = [Notice(outlier_line(board, row), kind="outlier") for row in standings.outliers]
        sections.append(Section("outliers", "Outliers", [Notices(lines)]))
    for number, phase in enumerate(standings.phases, 1):
        outliers = {(o.team, o.round) for o in standings.outliers if o.phase == phase.phase}
        pairs = text.count(len(phase.rows) * (len(phase.rows) - 1) // 2, "pair")
        told_apart = f"{len(phase.separations)} of {pairs} of teams told apart."
        blocks: list[Block] = [
            Paragraph(told_apart, "note"),
            *_dots(board.metric, phase, standings.rounds, outliers),
            _phase_table(board.metric, phase, level),
        ]
        sections.append(Section(f"phase-{number}", phase.phase, blocks))
    return sections


def headline(board: Leaderboard) -> str:
    """Who is first, in one line."""
    standings = board.standings
    if standings is None:
        return "No team could be ranked"
    first = [row.team for row in standings.totals if row.rank_low == 1]
    return f"{_listed(first)} {'is first' if len(first) == 1 else 'share the first rank'}"


def subtitle(board: Leaderboard) -> str:
    """What was measured, in one line."""
    parts = [] if board.engine is None else [board.engine.title]
    parts.append(board.workload if board.workload is not None else "logs of YCSB-cpp")
    parts.append(f"{text.metric_label(board.metric)}, {text.direction_words(board.direction)}")
    if board.standings is not None:
        parts.append(text.count(len(board.standings.rounds), "round"))
    return " · ".join(parts)


def _total_tables(standings: Standings) -> tuple[Table, Table]:
    """The leaderboard with ties; and the ranking that contests publish: by mean."""
    phases = [phase.phase for phase in standings.phases]
    of_phases = [{row.team: row for row in phase.rows} for phase in standings.phases]
    with_ties, by_mean = [], []
    for row in standings.totals:
        rows = [by_team[row.team] for by_team in of_phases]
        total = (_rank(row), row.team, text.rank(row.sum_low, row.sum_high))
        with_ties.append((*total, *map(_rank, rows)))
    for row in sorted(standings.totals, key=lambda row: row.rank_by_mean):
        ranks = [str(by_team[row.team].rank_by_mean) for by_team in of_phases]
        median = f"{row.rank_by_median} ({row.sum_by_median})"
        by_mean.append((str(row.rank_by_mean), row.team, str(row.sum_by_mean), *ranks, median))
    columns = (*words("rank", "team"), *numbers("sum of ranks", *phases))
    return (
        Table(columns, with_ties, "Leaderboard", header=False),
        Table((*columns, *numbers("by median (sum)")), by_mean, "By mean", header=False),
    )


def _rank(row: TeamRow | TotalRow) -> str:
    return text.rank(row.rank_low, row.rank_high)


def _phase_table(metric: str, phase: PhaseTable, level: str) -> Table:
    """Mean with its interval, median and all rounds of every team in one phase."""
    unit, quantity = text.metric_unit(metric), partial(text.quantity, metric)
    # Without the unit, which the column says, where all values have the same one.
    plain = text.duration_us if unit == "µs" else text.number

    def bounds(row: TeamRow) -> str:
        if row.mean_low is None or row.mean_high is None:
            return NOT_KNOWN
        return f"{quantity(row.mean_low)} to {quantity(row.mean_high)}"

    rounds = f"rounds ({unit})" if unit and unit != "µs" else "rounds"
    columns = (
        Column("rank", _rank, number=False),
        Column("team", key="team", number=False),
        Column("by mean", key="rank_by_mean"),
        Column("mean", quantity, "mean"),
        Column(f"interval of the mean, {level}", bounds),
        Column("median", quantity, "median"),
        Column(rounds, lambda values: ", ".join(map(plain, values)), "values"),
    )
    return Table.of(columns, phase.rows, phase.phase, header=False)


def outlier_line(board: Leaderboard, row: OutlierRow) -> str:
    """Which run is an outlier, and what the ranking is without it."""
    value = text.quantity(board.metric, row.value)
    p_value = "< 0.0001" if row.p_value < 1e-4 else f"{row.p_value:.2g}"
    line = (
        f"{row.phase}: round {row.round} of {row.team}, {value}, is {text.ratio(row.ratio)} the "
        f"team's other rounds (Grubbs's test, p = {p_value} for all teams and phases together)."
    )
    if row.decides_first:
        line += (
            f" It decides who is first by mean: {_listed(row.first_by_mean)} with it, "
            f"{_listed(row.first_without)} without it, {_listed(row.first_by_median)} by median."
        )
    elif row.order_changes:
        line += f" Without it the team is {row.rank_without} by mean, not {row.rank_by_mean}."
    else:
        line += " The ranks by mean are the same without it."
    if row.decides_total:
        moved = [
            f"{team} {row.total_by_mean[team]} to {row.total_without[team]}"
            for team in row.total_by_mean
            if row.total_by_mean[team] != row.total_without[team]
        ]
        line += f" Total ranks by mean without it: {', '.join(moved)}."
    return line


def broken_line(broken: Broken, engine: str) -> str:
    """A broken rule with its figures: `memory: a + b <= 1GiB, with a = 2GiB, b = 8MiB`."""
    figures = ", ".join(
        f"{name} = {text.option(value, _unit(engine, name))}"
        for name, value in broken.figures.items()
    )
    about = f" ({broken.about})" if broken.about else ""
    return f"{broken.rule}{about}: {broken.text}, with {figures}"


def _unit(engine: str, name: str) -> str:
    """The unit of what a rule names: an option of `engine`, or its memory by the model."""
    return "bytes" if name.endswith("_bytes") else option_unit(engine, name)


def disqualified_line(team: Disqualified, engine: str) -> str:
    """Why a team was not run."""
    return "; ".join(broken_line(broken, engine) for broken in team.broken)


def _listed(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


# --- The dots of a phase: rounds, mean and interval of every team


def _dots(
    metric: str, phase: PhaseTable, rounds: tuple[int, ...], outliers: set[tuple[str, int]]
) -> Sequence[Chart]:
    """Every team on one scale; `outliers` are pairs of team and round."""
    teams = [row.team for row in phase.rows]
    spans: list[Point] = []
    means: list[Point] = []
    dots: list[Point] = []
    rings: list[Point] = []
    for row in phase.rows:
        if row.mean_low is not None and row.mean_high is not None:
            spans.append(Point(row.mean, row.team, low=row.mean_low, high=row.mean_high))
        means.append(Point(row.mean, row.team, f"mean {text.quantity(metric, row.mean)}"))
        for number, value in zip(rounds, row.values, strict=True):
            point = Point(value, row.team, f"round {number}: {text.quantity(metric, value)}")
            (rings if (row.team, number) in outliers else dots).append(point)
    series = [
        Series(Form.WHISKER, "info", spans, "interval of the mean"),
        Series(Form.TICK, "info", means, "mean"),
        Series(Form.DOT, "ink", dots, "round", "faint"),
        Series(Form.RING, "warn", rings, "outlier"),
    ]
    label, rows = f"Rounds, mean and interval of every team in {phase.phase}", Axis(names=teams)
    return chart_of(label, value_axis(metric), rows, series, height=30 + 34 * len(teams))


# --- The forms: of --json, and by the suffix of the file that is written


def document(board: Leaderboard) -> dict[str, Any]:
    """The leaderboard in terms of JSON, with stable keys."""
    return {"format_version": FORMAT_VERSION, **encode(board)}


FORMATS: Mapping[str, Callable[[Leaderboard], str]] = {
    ".html": lambda board: to_html(board_document(board)),
    ".md": lambda board: to_markdown(board_document(board)),
}


def check_board(path: Path, flag: str) -> None:
    """Raises InputError for a suffix that is no format's, naming `flag`, and for a bad place."""
    if path.suffix not in FORMATS:
        allowed, nearest = ", ".join(FORMATS), nearest_name(path.suffix, FORMATS)
        raise InputError(flag, found=str(path), allowed=f"a file {allowed}", nearest=nearest)
    check_output(path)
