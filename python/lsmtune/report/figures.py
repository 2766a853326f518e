"""The plots of a study's results, from the tables of an analysis, and what all plots share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median, quantiles

from lsmtune.model.config import OptionValue, option_text
from lsmtune.model.goal import Direction
from lsmtune.model.measurement import Outcome
from lsmtune.model.verdict import MetricRatio, Verdict
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.chart import BOTTOM, Axis, Chart, Form, Place, Point, Rule, Series, Span, si
from lsmtune.report.document import chart_of
from lsmtune.report.history import share_of_range
from lsmtune.report.tables import (
    GAIN,
    AnchorSeries,
    Arm,
    Front,
    FrontRow,
    Importance,
    PairRow,
    TrialRow,
)
from lsmtune.report.verdict import changed
from lsmtune.space.constraint import guard_limit
from lsmtune.space.parameter import Parameter


def value_axis(metric: str) -> Axis:
    """The axis of a metric."""
    unit = text.metric_unit(metric)
    label = text.metric_label(metric) + (f" ({unit})" if unit else "")
    return Axis(label, format=size_tick if unit == "bytes" else si)


def size_tick(value: float) -> str:
    """A tick of an axis of sizes: `64MiB`."""
    return text.option(round(value), "bytes")


def ratio_axis(title: str = "ratio to the baseline, log scale") -> Axis:
    """The axis of ratios."""
    return Axis(title, log=True, format=lambda value: f"{value:g}{text.TIMES}")


# --- The proof


def forest_chart(verdict: Verdict) -> Sequence[Chart]:
    """Every metric's ratio with its interval: the one that decides, the guarded ones, the others.

    A guard's limit is a red tick. Metrics without an interval are left out: a table has them.
    """
    rows: list[Verdict | MetricRatio] = [verdict]
    limits = {}
    for guard in verdict.guards:
        limit = guard_limit(guard.guard)
        if limit is not None:
            metric, most = limit
            limits[text.metric_label(metric)] = most
            interval = (guard.ratio, guard.ratio_low, guard.ratio_high)
            rows.append(MetricRatio(metric, "minimize", *interval))
    series: dict[str, list[Series]] = {}
    for row in (*rows, *verdict.others):
        name = text.metric_label(row.metric)
        ends = (row.ratio_low, row.ratio, row.ratio_high)
        known = [end for end in ends if end is not None and 0 < end < math.inf]
        if name in series or len(known) < len(ends):
            continue
        low, ratio, high = known
        tone = {"better": "tuned", "worse": "bad"}.get(changed(row), "muted")
        point = Point(
            ratio, name, f"{name}: {text.ratio(ratio)}, {text.interval(row)}", low=low, high=high
        )
        style = "large" if row is verdict else ""
        series[name] = [
            Series(Form.WHISKER, tone, [point]),
            Series(Form.DOT, tone, [point], style=style),
        ]
        if name in limits:
            limit_point = Point(limits[name], name, f"the guard allows {text.ratio(limits[name])}")
            series[name].append(Series(Form.TICK, "bad", [limit_point]))
    drawn = [each for of_metric in series.values() for each in of_metric]
    ratios = [1.0, *(p.x for each in drawn for p in each.points if isinstance(p.x, float))]
    # Wide intervals, which say little, end at the edge.
    axis = replace(
        ratio_axis("tuned over baseline, log scale"),
        low=min(ratios) / _FOREST_ROOM,
        high=max(ratios) * _FOREST_ROOM,
    )
    return chart_of(
        "Every metric, tuned over baseline",
        axis,
        Axis(names=list(series)),
        drawn,
        rules=[Rule(1.0, upright=True)],
        height=30 + 34 * len(series),
    )


_FOREST_ROOM = 1.3  # beyond the outermost ratios


def pairs_chart(analysis: StudyAnalysis) -> Sequence[Chart]:
    """The ratio of each pair, in the order in which they were run."""
    metric = analysis.metric
    points = [
        (Point(number, row.ratio, _pair_hover(metric, number, row)), row.counts)
        for number, row in enumerate(analysis.pairs, 1)
        if row.ratio is not None
    ]
    series = [
        Series(Form.DOT, "tuned", [point for point, counts in points if counts], "pair"),
        Series(Form.RING, "muted", [p for p, counts in points if not counts], "does not count"),
    ]
    rules = [Rule(1.0, "baseline")]
    if analysis.verdict is not None and analysis.verdict.ratio:
        rules.append(Rule(analysis.verdict.ratio, "all pairs", "tuned"))
    count = len(analysis.pairs)
    across = Axis("pair", low=0.5, high=count + 0.5, format=count_tick)
    label = "The ratio of each pair"
    return chart_of(label, across, ratio_axis(), series, rules=rules, height=220)


def _pair_hover(metric: str, number: int, row: PairRow) -> str:
    both = (text.quantity(metric, value) for value in (row.baseline_value, row.tuned_value))
    return f"pair {number}: {text.ratio(row.ratio)} (baseline {', tuned '.join(both)})"


def count_tick(value: float) -> str:
    """A tick of an axis of counts; nothing between two whole numbers."""
    return f"{value:,.0f}" if value == round(value) else ""


def latency_chart(analysis: StudyAnalysis, operation: str) -> Sequence[Chart]:
    """Percentile curves of both arms; the x axis is log in the share of slower operations."""
    series = []
    for curve in analysis.latencies:
        if curve.operation == operation:
            points = [
                Point(_slower(point["percentile"]), point["latency_us"])
                for point in curve.points
                if point["latency_us"] > 0
            ]
            series.append(Series(Form.LINE, curve.arm, points, curve.arm))
    ticks = [(_slower(percentile), f"p{percentile:g}") for percentile in _PERCENTILE_TICKS]
    low, high = _slower(_PERCENTILE_TICKS[0]), 1.05 * _slower(_PERCENTILE_TICKS[-1])
    across = Axis("percentile of operations", log=True, low=low, high=high, ticks=ticks)
    level = Axis("latency, log scale", log=True, format=text.duration_us)
    return chart_of(f"Latency of {operation}, percentiles", across, level, series)


_PERCENTILE_TICKS = (50.0, 90.0, 99.0, 99.9, 99.99)


def _slower(percentile: float) -> float:
    """One operation in how many is slower than that percentile."""
    return 100.0 / max(100.0 - percentile, 1e-4)


def series_chart(analysis: StudyAnalysis, workload: str = "") -> Sequence[Chart]:
    """Throughput over time: the median of each arm's runs, in a band from the lowest tenth up.

    Of the runs under one of several workloads, whose rates say nothing of each other's.
    Runs of different lengths are cut into `_STEPS_OF_TIME` parts of the longest one's time.
    """
    series: list[Series] = []
    runs = [row for row in analysis.series if row["workload"] == workload]
    longest_s = max((row["points"][-1]["elapsed_s"] for row in runs), default=0.0)
    for arm in Arm:
        rows = [row["points"] for row in runs if row["arm"] == arm]
        bins: list[list[float]] = [[] for _ in range(_STEPS_OF_TIME)]
        for row in rows:
            begun_s = 0.0
            for point in row:
                # By its middle: at its end, a rate would be drawn in the step after its own.
                middle_s, begun_s = (begun_s + point["elapsed_s"]) / 2, point["elapsed_s"]
                place = int(_STEPS_OF_TIME * middle_s / longest_s) if longest_s else 0
                if math.isfinite(point["throughput_ops_s"]):
                    bins[min(place, _STEPS_OF_TIME - 1)].append(point["throughput_ops_s"])
        points = []
        for number, rates in enumerate(bins):
            if rates:
                tenths = quantiles(rates, n=10) if len(rates) > 1 else [rates[0]] * 9
                low, high = max(tenths[0], min(rates)), min(tenths[-1], max(rates))
                at_s = (number + 0.5) * longest_s / _STEPS_OF_TIME
                points.append(Point(at_s, median(rates), low=low, high=high))
        name = f"{arm}: median, and the middle 80 % of {text.count(len(rows), 'run')}"
        series += [
            Series(Form.BAND, arm, points),
            Series(Form.LINE, arm, points, name if points else ""),
        ]
    time = Axis("seconds since the phase began", zero=True)
    label = f"Throughput over time of both{f' under {workload}' if workload else ''}"
    return chart_of(label, time, replace(value_axis("throughput_ops_s"), zero=True), series)


_STEPS_OF_TIME = 60


# --- The search: history, anchors


def history_chart(analysis: StudyAnalysis) -> Sequence[Chart]:
    """Each trial's ratio to the baseline as it was then, the best so far, and that of the proof.

    Values where there are no ratios. There is a trial.
    """
    rows, base = analysis.history.trials, analysis.history.baseline_value
    as_ratio = base is not None and base > 0 and analysis.metric != GAIN
    scale = base if as_ratio and base else 1.0

    def level(value: float | None) -> float | None:
        return None if value is None or not math.isfinite(value) else value / scale

    marks: dict[Series, list[Point]] = {}
    for row in rows:
        mark, at = _trial_mark(analysis, row)
        y = BOTTOM if at is None else level(at)
        point = Point(row.trial, y, _trial_hover(analysis.metric, row))
        marks.setdefault(mark, []).append(point)
    best = [Point(row.trial, level(row.best_so_far)) for row in rows if row.best_so_far is not None]
    series = [
        Series(Form.STEPS, "tuned", best, "best so far"),
        *(replace(mark, points=points) for mark, points in marks.items()),
    ]
    rules = [Rule(1.0 if as_ratio else base, "baseline")] if base is not None else []
    verdict = analysis.verdict
    if as_ratio and verdict is not None and verdict.ratio and verdict.ratio > 0:
        # Also where its interval includes 1, or a guard is broken: then nothing is proved.
        rules.append(Rule(verdict.ratio, f"in the proof: {text.ratio(verdict.ratio)}", "ink"))
    y_axis = ratio_axis() if as_ratio else value_axis(analysis.metric)
    across = Axis("trial", low=rows[0].trial - 0.5, high=rows[-1].trial + 0.5, format=count_tick)
    label = "Each trial over the baseline, and the best so far"
    return chart_of(label, across, y_axis, series, rules=rules, height=320)


def _trial_mark(analysis: StudyAnalysis, row: TrialRow) -> tuple[Series, float | None]:
    """The series that a trial is drawn in, without its points, and at which value.

    What a pruned trial had come to is on the scale of the plot where it is a rate among rates, or
    what a program reported of the objective; the value of a smaller run is not.
    """
    if row.value is not None:
        if row.is_tuned:
            return Series(Form.STAR, "tuned", (), "the candidate"), row.value
        if row.broken:
            return Series(Form.RING, "tuned", (), "breaks a constraint"), row.value
        return Series(Form.DOT, "tuned", (), "trial", "faint"), row.value
    if row.outcome is Outcome.OK:  # an objective of 0 leaves the product of several without one
        return Series(Form.RING, "muted", (), "without a value"), None
    if row.outcome is not Outcome.PRUNED:
        return Series(Form.CROSS, "bad", (), "failed"), None
    at, rates = row.censored, analysis.direction == Direction.MAXIMIZE
    shown = at is not None and at.reached_keys is None and (at.reached_s is None or rates)
    if at is None or at.value is None or not shown:
        return Series(Form.DIAMOND, "muted", (), "pruned"), None
    return Series(Form.DIAMOND, "muted", (), "pruned: the value when stopped"), at.value


def _trial_hover(metric: str, row: TrialRow) -> str:
    ended = f"{text.outcome(row.outcome)} {text.reached(row.censored)}".strip()
    shown = ended if row.value is None else text.quantity(metric, row.value)
    lines = [f"trial {row.trial}: {shown}", *(f"breaks {constraint}" for constraint in row.broken)]
    return "\n".join([*lines, text.options_line(row.options).replace(", ", "\n")])


def anchor_chart(series: AnchorSeries) -> Sequence[Chart]:
    """A mark per anchor, a line at each segment's level, a band where the machine changed."""
    levels: list[Point] = []
    for segment in series.segments:
        levels += [Point(segment.from_s, segment.level), Point(segment.to_s, segment.level)]
        levels.append(Point(segment.to_s, None))
    by_role: dict[str, list[Point]] = {}
    for anchor in series.points:
        after = f"{anchor.role} after {text.count(anchor.trials_before, 'trial')}"
        hover = f"{after}: {text.quantity(series.metric, anchor.value)}"
        by_role.setdefault(anchor.role, []).append(Point(anchor.at_s, anchor.value, hover))
    shown = [Series(Form.LINE, "baseline", levels, "level of a segment", "dash")]
    for role, points in by_role.items():
        shown.append(Series(_ROLES.get(role, Form.DOT), "baseline", points, role))
    spans = [Span(each.from_s, each.to_s, text.ratio(each.ratio)) for each in series.changes]
    time = Axis("seconds that the study worked", zero=True)
    label, level = "The anchors over the time of the study", value_axis(series.metric)
    return chart_of(label, time, level, shown, spans=spans, height=240)


_ROLES = {"baseline": Form.DIAMOND, "calibration": Form.RING, "anchor": Form.DOT}


# --- What mattered: importance, the front, parallel coordinates, slices


def importance_chart(importance: Importance) -> Sequence[Chart]:
    """A bar per parameter with its interval; grey where chance alone gives as much."""
    series = []
    for row in importance.rows:
        tone = "tuned" if row.above_chance else "baseline"
        point = Point(
            row.importance, row.parameter, low=row.importance_low, high=row.importance_high
        )
        series += [
            Series(Form.BAR, tone, [point]),
            Series(Form.WHISKER, "ink", [point], style="thin"),
        ]
    names = [row.parameter for row in importance.rows]
    share = Axis("importance", zero=True, format=text.percent)
    label, rows = "Importance of each parameter", Axis(names=names)
    return chart_of(label, share, rows, series, height=40 + 36 * len(names))


def front_chart(front: Front) -> Sequence[Chart]:
    """The first two objectives against each other: the front, the other trials, the baseline."""

    def at(values: Sequence[float], hover: str = "") -> Point:
        x, y = (v if math.isfinite(v) else None for v in values[:2])
        return Point(x, y, hover)

    def hover_of(row: FrontRow) -> str:
        lines = [f"trial {row.trial}"]
        for label, metric, value in zip(front.objectives, front.metrics, row.values, strict=True):
            lines.append(f"{text.metric_label(label)}: {text.quantity(metric, value)}")
        return "\n".join([*lines, text.options_line(row.options).replace(", ", "\n")])

    off = [at(values, f"trial {number}, not on the front") for number, values in front.others]
    picked = [at(row.values, hover_of(row)) for row in front.rows if row.is_picked]
    others = [at(row.values, hover_of(row)) for row in front.rows if not row.is_picked]
    base = [] if front.baseline is None else [at(front.baseline, "baseline")]
    series = [
        Series(Form.DOT, "baseline", off, "other trials", "faint"),
        Series(Form.DOT, "tuned", others, "front"),
        Series(Form.STAR, "tuned", picked, "picked"),
        Series(Form.DIAMOND, "ink", base, "baseline"),
    ]
    axes = []
    for label, direction in zip(front.objectives[:2], front.directions, strict=False):
        axis = value_axis(label)
        axes.append(replace(axis, title=f"{axis.title}, {text.direction_words(direction)}"))
    title = "The front of the first two objectives"
    return chart_of(title, axes[0], axes[1], series, height=400)


def best_first(analysis: StudyAnalysis) -> list[TrialRow]:
    """The trials with a value, the best first."""
    rows = [row for row in analysis.history.trials if row.value is not None]
    turned = analysis.direction == Direction.MAXIMIZE
    return sorted(rows, key=lambda row: row.value or 0.0, reverse=turned)


def parallel_chart(analysis: StudyAnalysis) -> Sequence[Chart]:
    """A line per trial through its options, each from the least to the greatest of its range.

    The best tenth of the trials is in colour, the candidate above all.
    """
    parameters, rows = analysis.parameters, best_first(analysis)
    if len(parameters) < 2:
        return []
    short = _short_names([parameter.name for parameter in parameters])
    tuned = [row for row in rows if row.is_tuned]
    ranked = [row for row in rows if not row.is_tuned][:_LINES_MAX]
    tenth = max(1, len(rows) // 10)

    def of(shown: Sequence[TrialRow]) -> list[Point]:
        points: list[Point] = []
        for row in shown:
            points += [Point(short[p.name], _share_of_range(p, row)) for p in parameters]
            points.append(Point("", None))
        return points

    series = [
        Series(Form.LINE, "muted", of(ranked[tenth:]), "other trials", "thin faint"),
        Series(Form.LINE, "info", of(ranked[:tenth]), "the best tenth", "thin"),
        Series(Form.LINE, "tuned", of(tuned), "the candidate"),
    ]
    level = Axis(low=0.0, high=1.0, ticks=[(0.0, "least"), (1.0, "greatest")])
    label = "A line per trial through its options, each from the least to the greatest of its range"
    return chart_of(label, Axis(names=[*short.values()]), level, series, height=320)


def _short_names(names: Sequence[str]) -> dict[str, str]:
    """`block_based_table_factory.block_size` as `block_size` where no other ends so."""
    last = {name: name.rpartition(".")[2] for name in names}
    ends = Counter(last.values())
    return {name: end if ends[end] == 1 else name for name, end in last.items()}


_LINES_MAX = 300  # of the parallel coordinates; the best ones, since more are a grey area


def _within(parameter: Parameter, row: TrialRow) -> OptionValue | None:
    """What a trial had within the range or the choices; None where it was special or inactive."""
    value = row.options.get(parameter.name)
    return None if value in {special.value for special in parameter.specials} else value


def _share_of_range(parameter: Parameter, row: TrialRow) -> float | None:
    """Where a trial's value is in its range, from 0 to 1, on the range's own scale."""
    choices, value = parameter.choices, _within(parameter, row)
    if parameter.numbers is None:
        return choices.index(value) / max(len(choices) - 1, 1) if value in choices else None
    if value is None or isinstance(value, str | bool):
        return None
    return share_of_range(parameter.numbers, value)


def slice_chart(analysis: StudyAnalysis, parameter: Parameter) -> Sequence[Chart]:
    """The objective over one parameter, one mark per trial; specials and inactive ones apart."""
    # The tuned trial is drawn last, on top of the others.
    rows = sorted(analysis.history.trials, key=lambda row: (row.is_tuned, row.trial))
    if all(row.value is None for row in rows):
        return []
    place, across = _slice_axis(parameter, rows)
    marks: dict[Series, list[Point]] = {}
    for row in rows:
        form = Form.STAR if row.is_tuned else Form.DOT
        mark = Series(form, "tuned", (), style="" if row.is_tuned else "faint")
        if row.value is None:
            failed = row.outcome not in (Outcome.OK, Outcome.PRUNED)
            mark = Series(Form.CROSS, "bad", ()) if failed else Series(Form.DIAMOND, "muted", ())
        y = BOTTOM if row.value is None else row.value
        hover = _slice_hover(analysis.metric, parameter, row)
        marks.setdefault(mark, []).append(Point(place(row), y, hover))
    series = [replace(mark, points=at) for mark, at in marks.items()]
    level = analysis.history.baseline_value
    rules = [] if level is None or not math.isfinite(level) else [Rule(level)]
    axis = replace(value_axis(analysis.metric), title="")
    label = f"Objective over {parameter.name}"
    return chart_of(label, across, axis, series, rules=rules, height=190)


def _slice_hover(metric: str, parameter: Parameter, row: TrialRow) -> str:
    value = row.options.get(parameter.name)
    shown = "inactive" if value is None else text.option(value, parameter.unit)
    came_to = text.outcome(row.outcome) if row.value is None else text.quantity(metric, row.value)
    return f"trial {row.trial}: {shown}\n{came_to}"


def byte_ticks(low: float, high: float, *, log: bool) -> list[tuple[float, str]]:
    """At most four ticks at round sizes: powers of two on a log scale, else even steps of one."""
    if log:
        first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
        ticks = [
            2.0**power for power in range(first, last + 1, max(1, math.ceil((last - first) / 3)))
        ]
    else:
        step = 2 ** math.ceil(math.log2(max((high - low) / 3, 1)))
        ticks = [step * k for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return [(tick, size_tick(tick)) for tick in ticks]


def _slice_axis(
    parameter: Parameter, rows: Sequence[TrialRow]
) -> tuple[Callable[[TrialRow], Place], Axis]:
    """Where a trial stands along x, and that axis: numbers as such, all else by name."""

    def name(row: TrialRow) -> str:
        value = row.options.get(parameter.name)
        return "inactive" if value is None else option_text(value)

    def at(row: TrialRow) -> Place:
        value = _within(parameter, row)
        return name(row) if value is None or isinstance(value, bool) else value

    numbers, within = parameter.numbers, [_within(parameter, row) for row in rows]
    known = [value for value in within if value is not None]
    real = [v for v in known if isinstance(v, int | float) and not isinstance(v, bool)]
    if numbers is None or len(real) < len(known):
        names = [option_text(choice) for choice in parameter.choices]
        tried = {name(row) for row in rows}
        return name, Axis(names=[*names, *sorted(tried - set(names))])
    log = numbers.log and all(value > 0 for value in real)
    ticks = byte_ticks(numbers.low, numbers.high, log=log) if parameter.unit == "bytes" else []
    aside = sorted({name(row) for row, value in zip(rows, within, strict=True) if value is None})
    tick = count_tick if numbers.integer else si
    axis = Axis(log=log, aside=aside, low=numbers.low, high=numbers.high, ticks=ticks, format=tick)
    return at, axis
