"""What the figures share: colours, marks, axes, and text that Plotly may take as HTML.

Colours are names of the page's CSS variables under keys that end in `color` (`"--tuned"`): the
page's script puts the scheme's colours in, so that one figure serves light and dark. All text from
the study is escaped here, because Plotly reads its text as HTML.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from lsmtune.model.config import OptionValue, option_text
from lsmtune.model.measurement import Outcome
from lsmtune.model.metrics import HIGHER_IS_BETTER
from lsmtune.report import words as text
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.document import Figure
from lsmtune.report.tables import Arm, LatencyCurve, PairRow, Series, TrialRow

# A pruned trial is a bound, not a value: hollow. A failed one is a cross.
MARK_PRUNED = {"size": 7, "symbol": "diamond-open", "color": "--muted"}
MARK_FAILED = {"size": 8, "symbol": "x-thin-open", "color": "--bad"}


def marks(
    name: str, x: Sequence[object], y: Sequence[object], hover: Sequence[str], marker: object
) -> dict[str, Any]:
    """A trace of marks, each with a text of its own."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": x,
        "y": y,
        "text": hover,
        "hovertemplate": "%{text}<extra></extra>",
        "marker": marker,
    }


def plain_line(
    name: str, x: Sequence[object], y: Sequence[object], style: Mapping[str, object]
) -> dict[str, Any]:
    """A trace of a line that says nothing of its own under the pointer."""
    trace = {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y}
    return {**trace, "line": dict(style), "hoverinfo": "skip"}


def options_hover(options: Mapping[str, OptionValue]) -> str:
    """The options of a trial, a line each."""
    return escape(text.options_line(dict(options)), quote=False).replace(", ", "<br>")


def baseline_line(analysis: StudyAnalysis) -> dict[str, Any]:
    """The layout that draws the level of the baseline, and the axis of marks without a value."""
    level = finite(analysis.history.baseline_value)
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


def shown(value: OptionValue) -> str:
    """A value as text, escaped."""
    return escape(option_text(value), quote=False)


def wrapped(label: str, width: int = 10) -> str:
    """`label` in lines of about `width` characters, broken between the words of a name."""
    lines = [""]
    for word in re.split(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[_.])", label):
        if lines[-1] and len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += word
    return "<br>".join(escape(line, quote=False) for line in lines)


def byte_ticks(bounds: list[float], log: bool) -> dict[str, Any]:
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


def value_axis(metric: str) -> dict[str, Any]:
    """The axis of a metric."""
    unit = text.metric_unit(metric)
    label = text.metric_label(metric) + (f" ({unit})" if unit else "")
    return {"title": {"text": label}, "tickformat": "~s"}


def finite(value: float | None) -> float | None:
    """`value`, or None where it is not a number that a plot can show."""
    return value if value is not None and math.isfinite(value) else None


# --- Plotly figures of the search and the proof as plain data, from analysis' tables

_COLOR = {Arm.BASELINE: "--baseline", Arm.TUNED: "--tuned"}
_NAME = {Arm.BASELINE: "baseline", Arm.TUNED: "tuned"}
_RATIOS_SHOWN_MAX = 16  # of pairs; of more the ratios would lie over one another
_PERCENTILE_TICKS = (50.0, 90.0, 99.0, 99.9, 99.99)


def history_figure(analysis: StudyAnalysis) -> Figure | None:
    """Value of each trial, the best so far, and the baseline's level."""
    rows = analysis.history.trials
    if not rows:
        return None
    known = [row for row in rows if row.best_so_far is not None]
    traces = [
        plain_line(
            "best so far",
            [row.trial for row in known],
            [finite(row.best_so_far) for row in known],
            {"shape": "hv", "width": 2, "color": "--tuned"},
        ),
        _trials(analysis),
        *_without_value(analysis),
    ]
    return {
        "data": traces,
        "layout": {
            "xaxis": {
                "title": {"text": "trial"},
                "tickformat": "d",
                "range": [rows[0].trial - 0.5, rows[-1].trial + 0.5],
            },
            "yaxis": value_axis(analysis.metric),
            **baseline_line(analysis),
        },
    }


def _trials(analysis: StudyAnalysis) -> dict[str, Any]:
    """The trials with a value; hollow where one broke a constraint."""
    ok = [row for row in analysis.history.trials if row.value is not None]
    return marks(
        "trial",
        [row.trial for row in ok],
        [finite(row.value) for row in ok],
        [_trial_hover(analysis.metric, row) for row in ok],
        {
            "size": [12 if row.is_tuned else 7 for row in ok],
            "symbol": [
                "star" if row.is_tuned else "circle-open" if row.broken else "circle" for row in ok
            ],
            "color": "--tuned",
            "opacity": [1 if row.is_tuned else 0.55 for row in ok],
        },
    )


def _trial_hover(metric: str, row: TrialRow) -> str:
    lines = [f"trial {row.trial}: {text.quantity(metric, row.value)}"]
    lines += [f"breaks {escape(constraint, quote=False)}" for constraint in row.broken]
    return "<br>".join([*lines, options_hover(row.options)])


def _without_value(analysis: StudyAnalysis) -> list[dict[str, Any]]:
    """Pruned trials where they were stopped; failed ones along the bottom edge of the plot."""
    rows = [row for row in analysis.history.trials if row.value is None]
    pruned = [row for row in rows if row.outcome is Outcome.PRUNED]
    stopped = [row for row in pruned if _comparable(analysis, row)]
    bottom = [row for row in pruned if row not in stopped]
    failed = [row for row in rows if row.outcome is not Outcome.PRUNED]
    values = [finite(row.censored.value) if row.censored else None for row in stopped]
    traces = [
        _ended(stopped, "pruned: the value when stopped", values),
        _ended(bottom, "pruned", None),
        _ended(failed, "failed", None),
    ]
    return [trace for trace in traces if trace["x"]]


def _comparable(analysis: StudyAnalysis, row: TrialRow) -> bool:
    """Whether what a pruned trial had come to is on the scale of the plot.

    A rate is, among rates, and what a program reported of the objective; a smaller run is not.
    """
    at = row.censored
    if at is None or at.value is None or at.reached_keys is not None:
        return False
    return at.reached_s is None or analysis.metric in HIGHER_IS_BETTER


def _ended(
    rows: Sequence[TrialRow], name: str, levels: list[float | None] | None
) -> dict[str, Any]:
    """Trials without a value: at `levels` on the plot's own axis, else along its bottom edge."""
    told = [f"trial {r.trial}: {text.outcome(r.outcome)} {text.reached(r.censored)}" for r in rows]
    trials, hover = [row.trial for row in rows], [line.strip() for line in told]
    marker = MARK_FAILED if name == "failed" else MARK_PRUNED
    if levels:
        return marks(name, trials, levels, hover, marker)
    return marks(name, trials, [0.02] * len(rows), hover, marker) | {"yaxis": "y2"}


def pairs_figure(analysis: StudyAnalysis) -> Figure | None:
    """Both arms of each pair, joined, with the pair's ratio above."""
    numbered = [(n, row) for n, row in enumerate(analysis.pairs, 1) if row.ratio is not None]
    if not numbered:
        return None
    metric = analysis.metric
    labels, rows = [f"pair {n}" for n, _ in numbered], [row for _, row in numbered]
    x, y = list[str | None](), list[float | None]()
    for label, row in zip(labels, rows, strict=True):
        x += [label, label, None]
        y += [finite(row.baseline_value), finite(row.tuned_value), None]
    joined = plain_line("", x, y, {"width": 2, "color": "--rule"}) | {"showlegend": False}
    return {
        "data": [joined, *(_pair_marks(metric, labels, rows, arm) for arm in Arm)],
        "layout": {"xaxis": {"type": "category"}, "yaxis": value_axis(metric)},
    }


def _pair_marks(
    metric: str, labels: list[str], rows: Sequence[PairRow], arm: Arm
) -> dict[str, Any]:
    """One arm of all pairs; the ratios stand beside the tuned one while there is room."""
    values = [row.baseline_value if arm is Arm.BASELINE else row.tuned_value for row in rows]
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "name": _NAME[arm],
        "x": labels,
        "y": [finite(value) for value in values],
        "hovertext": [
            f"{_NAME[arm]}: {text.quantity(metric, value)}, ratio {text.ratio(row.ratio)}"
            for value, row in zip(values, rows, strict=True)
        ],
        "hoverinfo": "text",
        "marker": {"size": 11, "color": _COLOR[arm]},
    }
    if arm is Arm.BASELINE or len(rows) > _RATIOS_SHOWN_MAX:
        return trace
    above = [(row.ratio or 0) >= 1 for row in rows]
    return trace | {
        "mode": "markers+text",
        "text": [text.ratio(row.ratio) for row in rows],
        "textposition": ["top center" if up else "bottom center" for up in above],
        "textfont": {"color": "--ink", "size": 12},
        "cliponaxis": False,
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
                "mode": "lines" if len(series.points) > 1 else "markers",
                "name": _NAME[series.arm],
                "legendgroup": series.arm,
                "showlegend": series.arm not in shown,
                "x": [point.elapsed_s for point in series.points],
                "y": [finite(point.throughput_ops_s) for point in series.points],
                "hovertemplate": f"{_series_name(series)}<br>"
                "%{x:.2f} s: %{y:,.0f} ops/s<extra></extra>",
                "line": {"width": 1.5, "color": _COLOR[series.arm]},
                "marker": {"size": 6, "color": _COLOR[series.arm]},
                "opacity": 0.75,
            }
        )
        shown.add(series.arm)
    return {
        "data": traces,
        "layout": {
            "xaxis": {"title": {"text": "seconds since the phase began"}, "rangemode": "tozero"},
            "yaxis": {**value_axis("throughput_ops_s"), "rangemode": "tozero"},
        },
    }


def _series_name(series: Series) -> str:
    under = f" under {escape(series.workload, quote=False)}" if series.workload else ""
    return f"{_NAME[series.arm]}, run {series.measurement}{under}"
