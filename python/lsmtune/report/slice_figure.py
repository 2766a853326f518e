"""The Plotly figure of a parameter's slice: specials and inactive trials beside the range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from lsmtune.analysis.study import StudyAnalysis
from lsmtune.analysis.tables import Place, Slice, SlicePoint
from lsmtune.records.config import OptionValue, option_text
from lsmtune.records.measurement import Outcome
from lsmtune.report import text
from lsmtune.report.plotting import (
    MARK_FAILED,
    MARK_PRUNED,
    Figure,
    baseline_line,
    byte_ticks,
    finite,
    shown,
    value_axis,
    wrapped,
)


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
        {
            "type": "scatter",
            "mode": "markers",
            "xaxis": axis,
            **({"yaxis": "y2"} if mark else {}),
            "x": [place for _, place in group],
            "y": [0.02 if mark else finite(point.value) for point, _ in group],
            "text": [_point_hover(analysis, plotted, point) for point, _ in group],
            "hovertemplate": "%{text}<extra></extra>",
            "marker": mark or _slice_marker([point for point, _ in group]),
            "showlegend": False,
        }
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
