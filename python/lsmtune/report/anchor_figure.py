"""The Plotly figure of the anchors: the baseline over the time of the study, and its levels."""

from __future__ import annotations

from typing import Any

from lsmtune.analysis.trust_tables import AnchorPoint, AnchorSeries
from lsmtune.report import text
from lsmtune.report.plotting import Figure, finite, value_axis

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
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "level of a segment",
            "x": x,
            "y": y,
            "line": {"width": 2, "dash": "dash", "color": "--baseline"},
            "hoverinfo": "skip",
        }
    ]


def _marks(series: AnchorSeries, role: str) -> dict[str, Any]:
    points = [point for point in series.points if point.role == role]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": role,
        "x": [point.at_s for point in points],
        "y": [finite(point.value) for point in points],
        "text": [_hover(series, point) for point in points],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"size": 8, "symbol": _SYMBOLS.get(role, "circle"), "color": "--baseline"},
    }


def _hover(series: AnchorSeries, point: AnchorPoint) -> str:
    after = text.count(point.trials_before, "trial")
    return f"{point.role} after {after}: {text.quantity(series.metric, point.value)}"
