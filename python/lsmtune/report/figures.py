"""Plotly figures as plain data, from analysis' tables.

Colours are names of the page's CSS variables under keys that end in `color` (`"--tuned"`): the
page's script puts the scheme's colours in, so that one figure serves light and dark. All text from
the study is escaped here, because Plotly reads its text as HTML.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from html import escape
from typing import Any

from lsmtune.analysis.study import StudyAnalysis
from lsmtune.analysis.tables import Arm, LatencyCurve, Slice
from lsmtune.records.config import OptionValue, option_text
from lsmtune.report import text

Figure = dict[str, Any]
_COLOR = {Arm.BASELINE: "--baseline", Arm.TUNED: "--tuned"}
_NAME = {Arm.BASELINE: "baseline", Arm.TUNED: "tuned"}
_PERCENTILE_TICKS = (50.0, 90.0, 99.0, 99.9, 99.99)


def history_figure(analysis: StudyAnalysis) -> Figure | None:
    """Value of each trial, the best so far, and the baseline's level."""
    rows = analysis.history.trials
    if not rows:
        return None
    metric = analysis.objective.metric
    ok = [row for row in rows if row.value is not None]
    known = [row for row in rows if row.best_so_far is not None]
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "best so far",
            "x": [row.trial for row in known],
            "y": [_finite(row.best_so_far) for row in known],
            "line": {"shape": "hv", "width": 2, "color": "--tuned"},
            "hoverinfo": "skip",
        },
        {
            "type": "scatter",
            "mode": "markers",
            "name": "trial",
            "x": [row.trial for row in ok],
            "y": [_finite(row.value) for row in ok],
            "text": [
                f"trial {row.trial}: {text.quantity(metric, row.value)}<br>"
                + escape(text.options_line(dict(row.options)), quote=False).replace(", ", "<br>")
                for row in ok
            ],
            "hovertemplate": "%{text}<extra></extra>",
            "marker": {
                "size": [12 if row.is_tuned else 7 for row in ok],
                "symbol": ["star" if row.is_tuned else "circle" for row in ok],
                "color": "--tuned",
                "opacity": [1 if row.is_tuned else 0.55 for row in ok],
            },
        },
        *_failed_trials(analysis),
    ]
    return {
        "data": traces,
        "layout": {
            "xaxis": {
                "title": {"text": "trial"},
                "tickformat": "d",
                "range": [rows[0].trial - 0.5, rows[-1].trial + 0.5],
            },
            "yaxis": _value_axis(metric),
            **_baseline_line(analysis),
        },
    }


def _failed_trials(analysis: StudyAnalysis) -> list[dict[str, Any]]:
    """Failed trials have no value: marks along the bottom edge of the plot."""
    failed = [row for row in analysis.history.trials if row.value is None]
    if not failed:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "failed",
            "yaxis": "y2",
            "x": [row.trial for row in failed],
            "y": [0.02] * len(failed),
            "text": [f"trial {row.trial}: {text.outcome(row.outcome)}" for row in failed],
            "hovertemplate": "%{text}<extra></extra>",
            "marker": {"size": 8, "symbol": "x-thin-open", "color": "--bad"},
        }
    ]


def _baseline_line(analysis: StudyAnalysis) -> dict[str, Any]:
    level = _finite(analysis.history.baseline_value)
    hidden = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
    if level is None:
        return {"yaxis2": hidden}
    line = {"width": 1.5, "dash": "dash", "color": "--baseline"}
    edges = {"x0": 0, "x1": 1, "xref": "paper", "y0": level, "y1": level}
    note = {
        "x": 1,
        "xref": "paper",
        "xanchor": "right",
        "y": level,
        "yanchor": "bottom",
        "text": "baseline",
        "showarrow": False,
        "font": {"color": "--muted", "size": 12},
    }
    return {
        "yaxis2": hidden,
        "shapes": [{"type": "line", "line": line, **edges}],
        "annotations": [note],
    }


def pairs_figure(analysis: StudyAnalysis) -> Figure | None:
    """Both arms of each pair, joined, with the pair's ratio above."""
    numbered = [(n, row) for n, row in enumerate(analysis.pairs, 1) if row.ratio is not None]
    if not numbered:
        return None
    metric = analysis.objective.metric
    labels, rows = [f"pair {n}" for n, _ in numbered], [row for _, row in numbered]
    joined: dict[str, list[Any]] = {"x": [], "y": []}
    for label, row in zip(labels, rows, strict=True):
        joined["x"] += [label, label, None]
        joined["y"] += [_finite(row.baseline_value), _finite(row.tuned_value), None]
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            **joined,
            "line": {"width": 2, "color": "--rule"},
            "hoverinfo": "skip",
            "showlegend": False,
        }
    ]
    for arm, values in (
        (Arm.BASELINE, [row.baseline_value for row in rows]),
        (Arm.TUNED, [row.tuned_value for row in rows]),
    ):
        trace: dict[str, Any] = {
            "type": "scatter",
            "mode": "markers",
            "name": _NAME[arm],
            "x": labels,
            "y": [_finite(value) for value in values],
            "hovertext": [f"{_NAME[arm]}: {text.quantity(metric, value)}" for value in values],
            "hoverinfo": "text",
            "marker": {"size": 11, "color": _COLOR[arm]},
        }
        if arm is Arm.TUNED:
            trace["mode"] = "markers+text"
            trace["text"] = [text.ratio(row.ratio) for row in rows]
            trace["textposition"] = [
                "top center" if (row.ratio or 0) >= 1 else "bottom center" for row in rows
            ]
            trace["textfont"] = {"color": "--ink", "size": 12}
            trace["cliponaxis"] = False
        traces.append(trace)
    return {
        "data": traces,
        "layout": {"xaxis": {"type": "category"}, "yaxis": _value_axis(metric)},
    }


def latency_figure(analysis: StudyAnalysis, operation: str) -> Figure | None:
    """Percentile curves of both arms; the x axis is log in the share of slower operations."""
    curves = [curve for curve in analysis.latencies if curve.operation == operation]
    if not curves:
        return None
    return {
        "data": [_curve(curve) for curve in curves],
        "layout": {
            "xaxis": {
                "type": "log",
                "autorange": False,
                "range": [math.log10(_slower(50.0)), math.log10(_slower(99.99)) + 0.02],
                "tickvals": [_slower(percentile) for percentile in _PERCENTILE_TICKS],
                "ticktext": [f"p{percentile:g}" for percentile in _PERCENTILE_TICKS],
                "title": {"text": "percentile of operations"},
            },
            "yaxis": {"type": "log", "title": {"text": "latency (µs)"}, "tickformat": "~s"},
        },
    }


def _curve(curve: LatencyCurve) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": _NAME[curve.arm],
        "x": [_slower(point.percentile) for point in curve.points],
        "y": [point.latency_us if point.latency_us > 0 else None for point in curve.points],
        "text": [
            f"{_NAME[curve.arm]} p{point.percentile:.6g}: {text.duration_us(point.latency_us)}"
            for point in curve.points
        ],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"width": 2.5, "color": _COLOR[curve.arm]},
    }


def _slower(percentile: float) -> float:
    """One operation in how many is slower than that percentile."""
    return 100.0 / (100.0 - percentile)


def series_figure(analysis: StudyAnalysis) -> Figure | None:
    """Throughput over time: a thin line per run, one colour per arm."""
    if not analysis.series:
        return None
    shown: set[Arm] = set()
    traces = []
    for series in analysis.series:
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": _NAME[series.arm],
                "legendgroup": series.arm,
                "showlegend": series.arm not in shown,
                "x": [point.elapsed_s for point in series.points],
                "y": [_finite(point.throughput_ops_s) for point in series.points],
                "hovertemplate": f"{_NAME[series.arm]}, run {series.measurement}<br>"
                "%{x:.2f} s: %{y:,.0f} ops/s<extra></extra>",
                "line": {"width": 1.5, "color": _COLOR[series.arm]},
                "opacity": 0.75,
            }
        )
        shown.add(series.arm)
    return {
        "data": traces,
        "layout": {
            "xaxis": {"title": {"text": "seconds since the phase began"}, "rangemode": "tozero"},
            "yaxis": {**_value_axis("throughput_ops_s"), "rangemode": "tozero"},
        },
    }


def slice_figure(analysis: StudyAnalysis, plotted: Slice) -> Figure | None:
    """The objective over one parameter, one mark per trial."""
    if not plotted.points:
        return None
    show, axis = _slice_axis(plotted)
    metric = analysis.objective.metric
    unit = plotted.parameter.unit
    # The tuned trial is drawn last, on top of the others.
    points = sorted(plotted.points, key=lambda point: (point.is_tuned, point.trial))
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [show(point.option_value) for point in points],
        "y": [_finite(point.value) for point in points],
        "text": [
            f"trial {point.trial}: {escape(text.option(point.option_value, unit), quote=False)}"
            f"<br>{text.quantity(metric, point.value)}"
            for point in points
        ],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "size": [12 if point.is_tuned else 7 for point in points],
            "symbol": ["star" if point.is_tuned else "circle" for point in points],
            "color": "--tuned",
            "opacity": [1 if point.is_tuned else 0.5 for point in points],
        },
        "showlegend": False,
    }
    layout = {"xaxis": axis, "yaxis": {**_value_axis(metric), "title": None}, "height": 220}
    layout["margin"] = {"l": 48, "r": 12, "t": 10, "b": 34}
    level = {"shapes": _baseline_line(analysis).get("shapes", [])}
    return {"data": [trace], "layout": {**layout, **level}}


def _slice_axis(plotted: Slice) -> tuple[Callable[[OptionValue], object], dict[str, Any]]:
    """How a value is put on the x axis, and that axis: numbers as such, all else as text."""
    numbers, values = plotted.parameter.numbers, [point.option_value for point in plotted.points]
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if numbers is None or not numeric:
        return _shown, {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": [_shown(choice) for choice in plotted.parameter.choices],
            "tickvals": [_shown(choice) for choice in plotted.parameter.choices],
            "ticktext": [_wrapped(option_text(choice)) for choice in plotted.parameter.choices],
            "tickangle": 0 if len(plotted.parameter.choices) <= 5 else 45,
        }
    if numbers.log and all(isinstance(v, int | float) and v > 0 for v in values):
        axis: dict[str, Any] = {"type": "log"}
    else:
        axis = {"type": "linear"}
    if plotted.parameter.unit == "bytes":
        axis |= _byte_ticks([numbers.low, numbers.high], axis["type"] == "log")
    return lambda value: value, axis


def _shown(value: OptionValue) -> str:
    return escape(option_text(value), quote=False)


def _wrapped(label: str, width: int = 10) -> str:
    """`label` in lines of about `width` characters, broken between the words of a name."""
    lines = [""]
    for word in re.split(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[_.])", label):
        if lines[-1] and len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += word
    return "<br>".join(escape(line, quote=False) for line in lines)


def _byte_ticks(bounds: list[float], log: bool) -> dict[str, Any]:
    """At most five ticks at round sizes: powers of two on a log scale, else even steps of one."""
    low, high = bounds
    if log:
        first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
        stride = max(1, math.ceil((last - first) / 4))
        ticks = [2**power for power in range(first, last + 1, stride)]
    else:
        step = 2 ** math.ceil(math.log2(max((high - low) / 4, 1)))
        ticks = [step * k for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return {"tickvals": ticks, "ticktext": [text.option(tick, "bytes") for tick in ticks]}


def _value_axis(metric: str) -> dict[str, Any]:
    unit = text.metric_unit(metric)
    label = text.metric_label(metric) + (f" ({unit})" if unit else "")
    return {"title": {"text": label}, "tickformat": "~s"}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
