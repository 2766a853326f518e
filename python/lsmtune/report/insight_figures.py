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
    MARK_FAILED,
    MARK_PRUNED,
    baseline_line,
    byte_ticks,
    finite,
    marks,
    options_hover,
    plain_line,
    shown,
    value_axis,
    wrapped,
)
from lsmtune.report.tables import Front, FrontRow, Importance, Place, Slice, SlicePoint
from lsmtune.report.trust_tables import AnchorPoint, AnchorSeries

_SYMBOLS = {"baseline": "diamond", "calibration": "circle-open", "anchor": "circle"}


def anchor_figure(series: AnchorSeries) -> Figure | None:
    """A mark per anchor, a line at each segment's level, a band where the machine changed."""
    if not series.points:
        return None
    roles = dict.fromkeys(point.role for point in series.points)
    bands = [
        {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "x0": change.from_s,
            "x1": change.to_s,
            "y0": 0,
            "y1": 1,
            "line": {"width": 0},
            "fillcolor": "--warn-soft",
            "layer": "below",
        }
        for change in series.changes
    ]
    notes = [
        {
            "x": (change.from_s + change.to_s) / 2,
            "y": 1,
            "yref": "paper",
            "yanchor": "top",
            "text": text.ratio(change.ratio),
            "showarrow": False,
            "font": {"color": "--warn", "size": 12},
        }
        for change in series.changes
    ]
    return {
        "data": [*_levels(series), *(_marks(series, role) for role in roles)],
        "layout": {
            "xaxis": {"title": {"text": "seconds that the study worked"}, "rangemode": "tozero"},
            "yaxis": value_axis(series.metric),
            "shapes": bands,
            "annotations": notes,
        },
    }


def _levels(series: AnchorSeries) -> list[dict[str, Any]]:
    """One trace, broken between the segments."""
    if not series.segments:
        return []
    x: list[float | None] = []
    y: list[float | None] = []
    for segment in series.segments:
        x += [segment.from_s, segment.to_s, None]
        y += [finite(segment.level), finite(segment.level), None]
    style = {"width": 2, "dash": "dash", "color": "--baseline"}
    return [plain_line("level of a segment", x, y, style)]


def _marks(series: AnchorSeries, role: str) -> dict[str, Any]:
    points = [point for point in series.points if point.role == role]
    return marks(
        role,
        [point.at_s for point in points],
        [finite(point.value) for point in points],
        [_hover(series, point) for point in points],
        {"size": 8, "symbol": _SYMBOLS.get(role, "circle"), "color": "--baseline"},
    )


def _hover(series: AnchorSeries, point: AnchorPoint) -> str:
    after = text.count(point.trials_before, "trial")
    return f"{point.role} after {after}: {text.quantity(series.metric, point.value)}"


# --- Plotly figures of the parameters' importance and of the front of several objectives


def importance_figure(found: Importance) -> Figure | None:
    """A bar per parameter with its interval; grey where chance alone gives as much."""
    if not found.rows:
        return None
    rows = found.rows
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "x": [row.importance for row in rows],
                "y": [escape(row.parameter, quote=False) for row in rows],
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": [row.importance_high - row.importance for row in rows],
                    "arrayminus": [row.importance - row.importance_low for row in rows],
                    "color": "--muted",
                    "thickness": 1.5,
                },
                "text": [
                    f"{escape(row.parameter, quote=False)}: {text.share(row.importance)}"
                    f"<br>{text.share(row.importance_low)} to {text.share(row.importance_high)}"
                    for row in rows
                ],
                "textposition": "none",
                "hovertemplate": "%{text}<extra></extra>",
                "marker": {"color": ["--tuned" if r.above_chance else "--baseline" for r in rows]},
                "showlegend": False,
            }
        ],
        "layout": {
            "height": 70 + 24 * len(rows),
            "xaxis": {"tickformat": ".0%", "rangemode": "tozero"},
            "yaxis": {"autorange": "reversed", "dtick": 1, "nticks": 0},
            "margin": {"l": 60, "r": 16, "t": 10, "b": 30},
        },
    }


def front_figure(analysis: StudyAnalysis) -> Figure | None:
    """The first two objectives against each other: the front, the other trials, the baseline."""
    front = analysis.front
    if front is None or not (front.rows or front.others):
        return None
    on = [row for row in front.rows if not row.is_picked]
    picked = [row for row in front.rows if row.is_picked]
    others = [values for _, values in front.others]
    hover = [f"trial {number}, not on the front" for number, _ in front.others]
    traces = [
        _front_marks("other trials", others, hover, {"size": 6, "color": "--baseline"}),
        _front_marks(
            "front",
            [row.values for row in on],
            [_front_hover(front, row) for row in on],
            {"size": 9, "color": "--tuned"},
        ),
        _front_marks(
            "picked",
            [row.values for row in picked],
            [_front_hover(front, row) for row in picked],
            {"size": 14, "symbol": "star", "color": "--tuned"},
        ),
    ]
    if front.baseline is not None:
        mark = {"size": 11, "symbol": "diamond", "color": "--ink"}
        traces.append(_front_marks("baseline", [front.baseline], ["baseline"], mark))
    return {
        "data": [trace for trace in traces if trace["x"]],
        "layout": {
            "height": 420,
            "xaxis": _front_axis(front, 0),
            "yaxis": _front_axis(front, 1),
        },
    }


def _front_marks(
    name: str, points: Sequence[tuple[float, ...]], hover: list[str], marker: dict[str, Any]
) -> dict[str, Any]:
    x, y = ([finite(point[axis]) for point in points] for axis in (0, 1))
    return marks(name, x, y, hover, marker)


def _front_hover(front: Front, row: FrontRow) -> str:
    lines = [f"trial {row.trial}"]
    lines += [
        f"{text.metric_label(label)}: {text.quantity(metric, value)}"
        for label, metric, value in zip(front.objectives, front.metrics, row.values, strict=True)
    ]
    return "<br>".join([*(escape(line, quote=False) for line in lines), options_hover(row.options)])


def _front_axis(front: Front, index: int) -> dict[str, Any]:
    axis = value_axis(front.objectives[index])
    better = "higher" if front.directions[index] == Direction.MAXIMIZE else "lower"
    axis["title"] = {"text": f"{axis['title']['text']}, {better} is better"}
    return axis


# --- The Plotly figure of a parameter's slice: specials and inactive trials beside the range


def slice_figure(analysis: StudyAnalysis, plotted: Slice) -> Figure | None:
    """The objective over one parameter, one mark per trial; specials and inactive ones apart."""
    if all(point.value is None for point in plotted.points):
        return None
    show, axis = _slice_axis(plotted)
    # The tuned trial is drawn last, on top of the others.
    points = sorted(plotted.points, key=lambda point: (point.is_tuned, point.trial))
    within = [point for point in points if point.place is Place.RANGE]
    aside = [point for point in points if point.place is not Place.RANGE]
    traces = [
        *_slice_marks(analysis, plotted, within, "x", [show(_option(p)) for p in within]),
        *_slice_marks(analysis, plotted, aside, "x2", [_aside(p) for p in aside]),
    ]
    layout: dict[str, Any] = {
        "xaxis": axis,
        "yaxis": {**value_axis(analysis.metric), "title": None},
        "height": 220,
        "margin": {"l": 48, "r": 12, "t": 10, "b": 34},
        "shapes": baseline_line(analysis).get("shapes", []),
        "yaxis2": {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True},
    }
    if aside:
        layout |= _beside(axis, sorted({_aside(point) for point in aside}))
    return {"data": traces, "layout": layout}


def _option(point: SlicePoint) -> OptionValue:
    return "" if point.option_value is None else point.option_value


def _aside(point: SlicePoint) -> str:
    if point.place is Place.INACTIVE:
        return point.place.value
    return shown(_option(point))


def _beside(axis: dict[str, Any], values: list[str]) -> dict[str, Any]:
    """The axis of the range makes room, on its left, for one of what lies outside it."""
    width = min(0.45, sum(0.05 + 0.02 * len(value) for value in values))
    own = {"type": "category", "categoryorder": "array", "categoryarray": values}
    style = {"gridcolor": "--grid", "linecolor": "--rule", "tickfont": {"color": "--muted"}}
    room = {"domain": [0, width], "fixedrange": True}
    return {
        "xaxis": {**axis, "domain": [width + 0.06, 1]},
        "xaxis2": {**own, **style, **room},
        "yaxis": {"tickformat": "~s", "title": None, "anchor": "x2"},
    }


def _slice_marks(
    analysis: StudyAnalysis,
    plotted: Slice,
    points: Sequence[SlicePoint],
    axis: str,
    places: Sequence[object],
) -> list[dict[str, Any]]:
    """The trials with a value, and, along the bottom edge, those without one."""
    at = list(zip(points, places, strict=True))
    groups = (
        ([pair for pair in at if pair[0].value is not None], None),
        ([pair for pair in at if _ended(pair[0], pruned=True)], MARK_PRUNED),
        ([pair for pair in at if _ended(pair[0], pruned=False)], MARK_FAILED),
    )
    return [
        marks(
            "",
            [place for _, place in group],
            [0.02 if mark else finite(point.value) for point, _ in group],
            [_point_hover(analysis, plotted, point) for point, _ in group],
            mark or _slice_marker([point for point, _ in group]),
        )
        | {"xaxis": axis, "showlegend": False, **({"yaxis": "y2"} if mark else {})}
        for group, mark in groups
        if group
    ]


def _ended(point: SlicePoint, *, pruned: bool) -> bool:
    return point.value is None and (point.outcome is Outcome.PRUNED) is pruned


def _slice_marker(points: Sequence[SlicePoint]) -> dict[str, Any]:
    return {
        "size": [12 if point.is_tuned else 7 for point in points],
        "symbol": ["star" if point.is_tuned else "circle" for point in points],
        "color": "--tuned",
        "opacity": [1 if point.is_tuned else 0.5 for point in points],
    }


def _point_hover(analysis: StudyAnalysis, plotted: Slice, point: SlicePoint) -> str:
    told = (
        "inactive"
        if point.option_value is None
        else escape(text.option(point.option_value, plotted.parameter.unit), quote=False)
    )
    ended = text.outcome(point.outcome)
    value = ended if point.value is None else text.quantity(analysis.metric, point.value)
    return f"trial {point.trial}: {told}<br>{value}"


def _slice_axis(plotted: Slice) -> tuple[Callable[[OptionValue], object], dict[str, Any]]:
    """How a value is put on the x axis, and that axis: numbers as such, all else as text."""
    numbers = plotted.parameter.numbers
    values = [_option(point) for point in plotted.points if point.place is Place.RANGE]
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if numbers is None or not numeric:
        return shown, {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": [shown(choice) for choice in plotted.parameter.choices],
            "tickvals": [shown(choice) for choice in plotted.parameter.choices],
            "ticktext": [wrapped(option_text(choice)) for choice in plotted.parameter.choices],
            "tickangle": 0 if len(plotted.parameter.choices) <= 5 else 45,
        }
    if numbers.log and all(isinstance(v, int | float) and v > 0 for v in values):
        axis: dict[str, Any] = {"type": "log"}
    else:
        axis = {"type": "linear"}
    if plotted.parameter.unit == "bytes":
        axis |= byte_ticks([numbers.low, numbers.high], axis["type"] == "log")
    return lambda value: value, axis
