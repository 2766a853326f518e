"""Plotly figures of the parameters' importance and of the front of several objectives."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from lsmtune.analysis.insight_tables import Front, FrontRow, Importance
from lsmtune.analysis.study import StudyAnalysis
from lsmtune.records.objective import Direction
from lsmtune.report import text
from lsmtune.report.plotting import Figure, finite, options_hover, value_axis


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
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [finite(point[0]) for point in points],
        "y": [finite(point[1]) for point in points],
        "text": hover,
        "hovertemplate": "%{text}<extra></extra>",
        "marker": marker,
    }


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
