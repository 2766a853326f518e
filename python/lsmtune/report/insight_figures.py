"""Plotly figures of anchors, importance, the front, and the slices of parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from lsmtune.model.config import OptionValue, option_text
from lsmtune.model.goal import Direction
from lsmtune.model.measurement import Outcome
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.document import Figure
from lsmtune.report.figures import (
    BOTTOM,
    BOTTOM_AXIS,
    MARK_FAILED,
    MARK_PRUNED,
    Trace,
    axis,
    bars,
    baseline_line,
    byte_ticks,
    finite,
    marks,
    note,
    options_hover,
    plain_line,
    shown,
    value_axis,
    wrapped,
)
from lsmtune.report.tables import (
    AnchorSeries,
    Front,
    FrontRow,
    Importance,
    Place,
    Slice,
    SlicePoint,
)

_SYMBOLS = {"baseline": "diamond", "calibration": "circle-open", "anchor": "circle"}


def anchor_figure(series: AnchorSeries) -> Figure | None:
    """A mark per anchor, a line at each segment's level, a band where the machine changed."""
    if not series.points:
        return None
    # The levels are one trace, broken between the segments.
    x, y = list[float | None](), list[float | None]()
    for segment in series.segments:
        x += [segment.from_s, segment.to_s, None]
        y += [finite(segment.level), finite(segment.level), None]
    style = {"width": 2, "dash": "dash", "color": "--baseline"}
    traces = [plain_line("level of a segment", x, y, style)] if x else []
    for role in dict.fromkeys(point.role for point in series.points):
        points = [point for point in series.points if point.role == role]
        after = [f"{role} after {text.count(point.trials_before, 'trial')}" for point in points]
        values = [text.quantity(series.metric, point.value) for point in points]
        hover = [f"{when}: {value}" for when, value in zip(after, values, strict=True)]
        at, levels = [point.at_s for point in points], [finite(point.value) for point in points]
        marker = {"size": 8, "symbol": _SYMBOLS.get(role, "circle"), "color": "--baseline"}
        traces.append(marks(role, at, levels, hover, marker))
    band = {"type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "line": {"width": 0}}
    fill = {"fillcolor": "--warn-soft", "layer": "below"}
    top = {"y": 1, "yref": "paper", "yanchor": "top"}
    return {
        "data": traces,
        "layout": {
            "xaxis": axis("seconds that the study worked", rangemode="tozero"),
            "yaxis": value_axis(series.metric),
            "shapes": [
                {**band, "x0": each.from_s, "x1": each.to_s, **fill} for each in series.changes
            ],
            "annotations": [
                note(text.ratio(each.ratio), "--warn", x=(each.from_s + each.to_s) / 2, **top)
                for each in series.changes
            ],
        },
    }


# --- Plotly figures of the parameters' importance and of the front of several objectives


def importance_figure(importance: Importance) -> Figure | None:
    """A bar per parameter with its interval; grey where chance alone gives as much."""
    rows = importance.rows
    if not rows:
        return None
    below = [row.importance - row.importance_low for row in rows]
    above = [row.importance_high - row.importance for row in rows]
    trace = {
        "type": "bar",
        "orientation": "h",
        "x": [row.importance for row in rows],
        "y": [escape(row.parameter, quote=False) for row in rows],
        "error_x": bars(below, above, color="--muted", thickness=1.5),
        "text": [
            f"{escape(row.parameter, quote=False)}: {text.share(row.importance)}"
            f"<br>{text.share(row.importance_low)} to {text.share(row.importance_high)}"
            for row in rows
        ],
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"color": ["--tuned" if row.above_chance else "--baseline" for row in rows]},
        "showlegend": False,
    }
    layout = {
        "height": 70 + 24 * len(rows),
        "xaxis": {"tickformat": ".0%", "rangemode": "tozero"},
        "yaxis": {"autorange": "reversed", "dtick": 1, "nticks": 0},
        "margin": {"l": 60, "r": 16, "t": 10, "b": 30},
    }
    return {"data": [trace], "layout": layout}


def front_figure(analysis: StudyAnalysis) -> Figure | None:
    """The first two objectives against each other: the front, the other trials, the baseline."""
    front = analysis.front
    if front is None or not (front.rows or front.others):
        return None

    def of(
        name: str, points: Sequence[tuple[float, ...]], hover: list[str], **marker: object
    ) -> Trace:
        x, y = ([finite(point[index]) for point in points] for index in (0, 1))
        return marks(name, x, y, hover, marker)

    def of_rows(name: str, rows: list[FrontRow], **marker: object) -> Trace:
        hover = [_front_hover(front, row) for row in rows]
        return of(name, [row.values for row in rows], hover, **marker)

    off = [f"trial {number}, not on the front" for number, _ in front.others]
    picked = [row for row in front.rows if row.is_picked]
    others = [row for row in front.rows if not row.is_picked]
    baseline = [] if front.baseline is None else [front.baseline]
    traces = [
        of("other trials", [v for _, v in front.others], off, size=6, color="--baseline"),
        of_rows("front", others, size=9, color="--tuned"),
        of_rows("picked", picked, size=14, symbol="star", color="--tuned"),
        of("baseline", baseline, ["baseline"], size=11, symbol="diamond", color="--ink"),
    ]
    axes: dict[str, object] = {}
    for name, label, direction in zip(("x", "y"), front.objectives, front.directions, strict=False):
        better = "higher" if direction == Direction.MAXIMIZE else "lower"
        title = f"{value_axis(label)['title']['text']}, {better} is better"
        axes[f"{name}axis"] = value_axis(label) | {"title": {"text": title}}
    return {"data": [trace for trace in traces if trace["x"]], "layout": {"height": 420, **axes}}


def _front_hover(front: Front, row: FrontRow) -> str:
    lines = [f"trial {row.trial}"]
    lines += [
        f"{text.metric_label(label)}: {text.quantity(metric, value)}"
        for label, metric, value in zip(front.objectives, front.metrics, row.values, strict=True)
    ]
    return "<br>".join([*(escape(line, quote=False) for line in lines), options_hover(row.options)])


# --- The Plotly figure of a parameter's slice: specials and inactive trials beside the range


def slice_figure(analysis: StudyAnalysis, plotted: Slice) -> Figure | None:
    """The objective over one parameter, one mark per trial; specials and inactive ones apart."""
    if all(point.value is None for point in plotted.points):
        return None
    show, of_range = _slice_axis(plotted)
    # The tuned trial is drawn last, on top of the others.
    points = sorted(plotted.points, key=lambda point: (point.is_tuned, point.trial))
    within = [(point, show(_option(point))) for point in points if point.place is Place.RANGE]
    aside = [(point, _aside(point)) for point in points if point.place is not Place.RANGE]
    layout: dict[str, Any] = {
        "xaxis": of_range,
        "yaxis": {**value_axis(analysis.metric), "title": None},
        "height": 220,
        "margin": {"l": 48, "r": 12, "t": 10, "b": 34},
        "shapes": baseline_line(analysis).get("shapes", []),
        "yaxis2": BOTTOM_AXIS,
    }
    if aside:
        # The axis of the range makes room, on its left, for one of what lies outside it.
        values = sorted({place for _, place in aside})
        width = min(0.45, sum(0.05 + 0.02 * len(value) for value in values))
        own = {"type": "category", "categoryorder": "array", "categoryarray": values}
        style = {"gridcolor": "--grid", "linecolor": "--rule", "tickfont": {"color": "--muted"}}
        layout |= {
            "xaxis": {**of_range, "domain": [width + 0.06, 1]},
            "xaxis2": {**own, **style, "domain": [0, width], "fixedrange": True},
            "yaxis": {"tickformat": "~s", "title": None, "anchor": "x2"},
        }
    traces = _slice_marks(analysis, plotted, within, "x")
    return {"data": [*traces, *_slice_marks(analysis, plotted, aside, "x2")], "layout": layout}


def _option(point: SlicePoint) -> OptionValue:
    return "" if point.option_value is None else point.option_value


def _aside(point: SlicePoint) -> str:
    return point.place.value if point.place is Place.INACTIVE else shown(_option(point))


def _slice_marks(
    analysis: StudyAnalysis,
    plotted: Slice,
    placed: Sequence[tuple[SlicePoint, object]],
    x_axis: str,
) -> list[Trace]:
    """The trials with a value, and, along the bottom edge, those without one."""
    groups: dict[str, list[tuple[SlicePoint, object]]] = {"value": [], "pruned": [], "failed": []}
    for point, place in placed:
        ended = "pruned" if point.outcome is Outcome.PRUNED else "failed"
        groups["value" if point.value is not None else ended].append((point, place))
    traces = []
    for kind, group in groups.items():
        points, y = [point for point, _ in group], [finite(point.value) for point, _ in group]
        marker: dict[str, Any] = {
            "size": [12 if point.is_tuned else 7 for point in points],
            "symbol": ["star" if point.is_tuned else "circle" for point in points],
            "color": "--tuned",
            "opacity": [1 if point.is_tuned else 0.5 for point in points],
        }
        more: dict[str, Any] = {"xaxis": x_axis, "showlegend": False}
        if kind != "value":
            marker = MARK_PRUNED if kind == "pruned" else MARK_FAILED
            y, more = [BOTTOM] * len(points), {**more, "yaxis": "y2"}
        hover = [_point_hover(analysis, plotted, point) for point in points]
        traces += [marks("", [x for _, x in group], y, hover, marker) | more] if group else []
    return traces


def _point_hover(analysis: StudyAnalysis, plotted: Slice, point: SlicePoint) -> str:
    option = text.option(point.option_value, plotted.parameter.unit)
    told = "inactive" if point.option_value is None else escape(option, quote=False)
    ended = text.outcome(point.outcome)
    value = ended if point.value is None else text.quantity(analysis.metric, point.value)
    return f"trial {point.trial}: {told}<br>{value}"


def _slice_axis(plotted: Slice) -> tuple[Callable[[OptionValue], object], dict[str, Any]]:
    """How a value is put on the x axis, and that axis: numbers as such, all else as text."""
    numbers, choices = plotted.parameter.numbers, plotted.parameter.choices
    values = [_option(point) for point in plotted.points if point.place is Place.RANGE]
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if numbers is None or not numeric:
        return shown, {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": [shown(choice) for choice in choices],
            "tickvals": [shown(choice) for choice in choices],
            "ticktext": [wrapped(option_text(choice)) for choice in choices],
            "tickangle": 0 if len(choices) <= 5 else 45,
        }
    is_log = numbers.log and all(isinstance(v, int | float) and v > 0 for v in values)
    sizes = plotted.parameter.unit == "bytes"
    ticks = byte_ticks([numbers.low, numbers.high], is_log) if sizes else {}
    return lambda value: value, {"type": "log" if is_log else "linear", **ticks}
