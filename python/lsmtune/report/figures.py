"""What plots of results share, and those of a proof, from the tables of an analysis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median, quantiles
from typing import Any

from lsmtune.model.verdict import GuardResult, MetricRatio, Verdict
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.chart import Axis, Chart, Form, Point, Rule, Series
from lsmtune.report.sentences import guard_limit
from lsmtune.report.tables import Arm, PairRow

_TONES = {Arm.BASELINE: "baseline", Arm.TUNED: "tuned"}


def value_axis(metric: str) -> Axis:
    """The axis of a metric."""
    unit = text.metric_unit(metric)
    label = text.metric_label(metric) + (f" ({unit})" if unit else "")
    return Axis(label, told=bytes_told if unit == "bytes" else Axis().told)


def bytes_told(value: float) -> str:
    """A tick of an axis of sizes: `64MiB`."""
    return text.option(round(value), "bytes")


def ratio_axis(title: str = "ratio to the baseline, log scale") -> Axis:
    """The axis of ratios."""
    return Axis(title, log=True, told=lambda value: f"{value:g}{text.TIMES}")


def chart_of(x: Axis, y: Axis, series: Sequence[Series], **more: Any) -> Chart | None:
    """The chart of the series that have points, with `more` of its attributes; None without any."""
    chart = Chart(x, y, [each for each in series if each.points], **more)
    return None if chart.is_empty() else chart


# --- The proof


def forest_chart(verdict: Verdict) -> Chart | None:
    """Every metric's ratio with its interval: the one that decides, the guarded ones, the others.

    A guard's limit is a red tick. Metrics without an interval are left out: a table has them.
    """
    higher = {"maximize": True, "minimize": False}
    rows: list[tuple[str, Verdict | MetricRatio | GuardResult, bool | None]] = []
    rows.append((verdict.metric, verdict, higher.get(verdict.direction)))
    limits = {}
    for guard in verdict.guards:
        limit = guard_limit(guard.guard)
        if limit is not None:
            limits[text.metric_label(limit[0])] = limit[1]
            rows.append((limit[0], guard, False))
    rows += [(each.metric, each, higher.get(each.direction)) for each in verdict.others]
    series: dict[str, list[Series]] = {}
    for metric, row, more_is_better in rows:
        name = text.metric_label(metric)
        ends = (row.ratio_low, row.ratio, row.ratio_high)
        known = [end for end in ends if end is not None and 0 < end < math.inf]
        if name in series or len(known) < len(ends):
            continue
        low, ratio, high = known
        tone = "muted" if low <= 1.0 <= high or more_is_better is None else "bad"
        tone = "tuned" if tone == "bad" and (ratio > 1.0) is more_is_better else tone
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
    names = list(series)[:_FOREST_ROWS_MAX]
    shown = [p.x for name in names for each in series[name] for p in each.points]
    ratios = [x for x in (1.0, *shown) if isinstance(x, float)]
    # Wide intervals, which say little, end at the edge.
    axis = replace(
        ratio_axis("tuned over baseline, log scale"),
        low=min(ratios) / _FOREST_ROOM,
        high=max(ratios) * _FOREST_ROOM,
    )
    return chart_of(
        axis,
        Axis(names=names),
        [each for name in names for each in series[name]],
        rules=[Rule(1.0, upright=True)],
        height=30 + 34 * len(names),
    )


_FOREST_ROWS_MAX = 14
_FOREST_ROOM = 1.3  # beyond the outermost ratios


def pairs_chart(analysis: StudyAnalysis) -> Chart | None:
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
    across = Axis("pair", low=0.5, high=count + 0.5, told=whole)
    return chart_of(across, ratio_axis(), series, rules=rules, height=220)


def _pair_hover(metric: str, number: int, row: PairRow) -> str:
    both = (text.quantity(metric, value) for value in (row.baseline_value, row.tuned_value))
    return f"pair {number}: {text.ratio(row.ratio)} (baseline {', tuned '.join(both)})"


def whole(value: float) -> str:
    """A tick of an axis of counts; nothing between two whole numbers."""
    return f"{value:,.0f}" if value == round(value) else ""


def latency_chart(analysis: StudyAnalysis, operation: str) -> Chart | None:
    """Percentile curves of both arms; the x axis is log in the share of slower operations."""
    series = []
    for curve in analysis.latencies:
        if curve.operation == operation:
            points = [
                Point(_slower(point["percentile"]), point["latency_us"])
                for point in curve.points
                if point["latency_us"] > 0
            ]
            series.append(Series(Form.LINE, _TONES[curve.arm], points, curve.arm))
    ticks = [(_slower(percentile), f"p{percentile:g}") for percentile in _PERCENTILE_TICKS]
    low, high = _slower(_PERCENTILE_TICKS[0]), 1.05 * _slower(_PERCENTILE_TICKS[-1])
    across = Axis("percentile of operations", log=True, low=low, high=high, ticks=ticks)
    return chart_of(across, Axis("latency, log scale", log=True, told=text.duration_us), series)


_PERCENTILE_TICKS = (50.0, 90.0, 99.0, 99.9, 99.99)


def _slower(percentile: float) -> float:
    """One operation in how many is slower than that percentile."""
    return 100.0 / max(100.0 - percentile, 1e-4)


def series_chart(analysis: StudyAnalysis) -> Chart | None:
    """Throughput over time: the median of each arm's runs, in a band from the lowest tenth up.

    Runs of different lengths are cut into `_STEPS_OF_TIME` parts of the longest one's time.
    """
    series: list[Series] = []
    longest_s = max((row["points"][-1]["elapsed_s"] for row in analysis.series), default=0.0)
    for arm in Arm:
        rows = [row["points"] for row in analysis.series if row["arm"] == arm]
        bins: list[list[float]] = [[] for _ in range(_STEPS_OF_TIME)]
        for point in (point for points in rows for point in points):
            place = int(_STEPS_OF_TIME * point["elapsed_s"] / longest_s) if longest_s else 0
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
            Series(Form.BAND, _TONES[arm], points),
            Series(Form.LINE, _TONES[arm], points, name if points else ""),
        ]
    time = Axis("seconds since the phase began", zero=True)
    return chart_of(time, replace(value_axis("throughput_ops_s"), zero=True), series)


_STEPS_OF_TIME = 60
