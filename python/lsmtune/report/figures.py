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
from lsmtune.report.tables import Arm, PairRow, TrialRow

Trace = dict[str, Any]
# A pruned trial is a bound, not a value: hollow. A failed one is a cross.
MARK_PRUNED = {"size": 7, "symbol": "diamond-open", "color": "--muted"}
MARK_FAILED = {"size": 8, "symbol": "x-thin-open", "color": "--bad"}
# The axis of marks without a value, which stand along the bottom edge of the plot.
BOTTOM_AXIS = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
BOTTOM = 0.02


def scatter(mode: str, name: str, x: Sequence[object], y: Sequence[object], **more: Any) -> Trace:
    """A trace of `lines`, `markers`, or both."""
    return {"type": "scatter", "mode": mode, "name": name, "x": x, "y": y, **more}


def marks(
    name: str, x: Sequence[object], y: Sequence[object], hover: Sequence[str], marker: object
) -> Trace:
    """A trace of marks, each with a text of its own."""
    shown = {"text": hover, "hovertemplate": "%{text}<extra></extra>"}
    return scatter("markers", name, x, y, marker=marker, **shown)


def plain_line(
    name: str, x: Sequence[object], y: Sequence[object], style: Mapping[str, object]
) -> Trace:
    """A trace of a line that says nothing of its own under the pointer."""
    return scatter("lines", name, x, y, line=dict(style), hoverinfo="skip")


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis with a title."""
    return {"title": {"text": title}, **more}


def note(label: str, color: str, **place: Any) -> dict[str, Any]:
    """A text at a place of the plot."""
    return {"text": label, "showarrow": False, "font": {"color": color, "size": 12}, **place}


def bars(low: Sequence[float], high: Sequence[float], **style: Any) -> dict[str, Any]:
    """Bars of intervals: how far these reach below and above the values."""
    return {"type": "data", "symmetric": False, "array": high, "arrayminus": low, **style}


def options_hover(options: Mapping[str, OptionValue]) -> str:
    """The options of a trial, a line each."""
    return escape(text.options_line(options), quote=False).replace(", ", "<br>")


def baseline_line(analysis: StudyAnalysis) -> dict[str, Any]:
    """The layout that draws the level of the baseline, and the axis of marks without a value."""
    level = finite(analysis.history.baseline_value)
    if level is None:
        return {"yaxis2": BOTTOM_AXIS}
    line = {"width": 1.5, "dash": "dash", "color": "--baseline"}
    ends = {"x0": 0, "x1": 1, "xref": "paper", "y0": level, "y1": level}
    place = {"x": 1, "xref": "paper", "xanchor": "right", "y": level, "yanchor": "bottom"}
    return {
        "yaxis2": BOTTOM_AXIS,
        "shapes": [{"type": "line", "line": line, **ends}],
        "annotations": [note("baseline", "--muted", **place)],
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


def value_axis(metric: str, **more: Any) -> dict[str, Any]:
    """The axis of a metric."""
    unit = text.metric_unit(metric)
    label = text.metric_label(metric) + (f" ({unit})" if unit else "")
    return axis(label, tickformat="~s", **more)


def finite(value: float | None) -> float | None:
    """`value`, or None where it is not a number that a plot can show."""
    return value if value is not None and math.isfinite(value) else None


# --- Plotly figures of the search and the proof as plain data, from analysis' tables

_COLOR = {Arm.BASELINE: "--baseline", Arm.TUNED: "--tuned"}
_RATIOS_SHOWN_MAX = 16  # of pairs; of more the ratios would lie over one another
_PERCENTILE_TICKS = (50.0, 90.0, 99.0, 99.9, 99.99)


def history_figure(analysis: StudyAnalysis) -> Figure | None:
    """Value of each trial, the best so far, and the baseline's level."""
    rows = analysis.history.trials
    if not rows:
        return None
    known = [row for row in rows if row.best_so_far is not None]
    best = [finite(row.best_so_far) for row in known]
    style = {"shape": "hv", "width": 2, "color": "--tuned"}
    valued = [row for row in rows if row.value is not None]
    # Those with a value; hollow where one broke a constraint.
    marker = {
        "size": [12 if row.is_tuned else 7 for row in valued],
        "symbol": [
            "star" if row.is_tuned else "circle-open" if row.broken else "circle" for row in valued
        ],
        "color": "--tuned",
        "opacity": [1 if row.is_tuned else 0.55 for row in valued],
    }
    hover = [_trial_hover(analysis.metric, row) for row in valued]
    values = [finite(row.value) for row in valued]
    around = [rows[0].trial - 0.5, rows[-1].trial + 0.5]
    return {
        "data": [
            plain_line("best so far", [row.trial for row in known], best, style),
            marks("trial", [row.trial for row in valued], values, hover, marker),
            *_without_value(analysis),
        ],
        "layout": {
            "xaxis": axis("trial", tickformat="d", range=around),
            "yaxis": value_axis(analysis.metric),
            **baseline_line(analysis),
        },
    }


def _trial_hover(metric: str, row: TrialRow) -> str:
    lines = [f"trial {row.trial}: {text.quantity(metric, row.value)}"]
    lines += [f"breaks {escape(constraint, quote=False)}" for constraint in row.broken]
    return "<br>".join([*lines, options_hover(row.options)])


def _without_value(analysis: StudyAnalysis) -> list[Trace]:
    """Pruned trials where they were stopped; failed ones along the bottom edge of the plot.

    What a pruned trial had come to is on the scale of the plot where it is a rate among rates, or
    what a program reported of the objective; the value of a smaller run is not.
    """
    rates, stopped = analysis.metric in HIGHER_IS_BETTER, "pruned: the value when stopped"
    groups: dict[str, list[TrialRow]] = {stopped: [], "pruned": [], "failed": []}
    for row in analysis.history.trials:
        at = row.censored
        if row.value is not None:
            continue
        if row.outcome is not Outcome.PRUNED:
            groups["failed"].append(row)
        elif at is None or at.value is None or at.reached_keys is not None:
            groups["pruned"].append(row)
        else:
            groups[stopped if at.reached_s is None or rates else "pruned"].append(row)
    traces = []
    for name, rows in groups.items():
        marker = MARK_FAILED if name == "failed" else MARK_PRUNED
        x = [row.trial for row in rows]
        ended = [f"{text.outcome(r.outcome)} {text.reached(r.censored)}".strip() for r in rows]
        hover = [f"trial {row.trial}: {said}" for row, said in zip(rows, ended, strict=True)]
        values = [finite(row.censored.value) if row.censored else None for row in rows]
        y = values if name == stopped else [BOTTOM] * len(rows)
        bottom = {} if name == stopped else {"yaxis": "y2"}
        traces += [marks(name, x, y, hover, marker) | bottom] if rows else []
    return traces


def pairs_figure(analysis: StudyAnalysis) -> Figure | None:
    """Both arms of each pair, joined, with the pair's ratio above."""
    metric = analysis.metric
    numbered = {
        f"pair {n}": row for n, row in enumerate(analysis.pairs, 1) if row.ratio is not None
    }
    if not numbered:
        return None
    x, y = list[str | None](), list[float | None]()
    for label, row in numbered.items():
        x += [label, label, None]
        y += [finite(row.baseline_value), finite(row.tuned_value), None]
    joined = plain_line("", x, y, {"width": 2, "color": "--rule"}) | {"showlegend": False}
    return {
        "data": [joined, *(_pair_marks(metric, numbered, arm) for arm in Arm)],
        "layout": {"xaxis": {"type": "category"}, "yaxis": value_axis(metric)},
    }


def _pair_marks(metric: str, numbered: Mapping[str, PairRow], arm: Arm) -> Trace:
    """One arm of all pairs; the ratios stand beside the tuned one while there is room."""
    rows = list(numbered.values())
    values = [row.baseline_value if arm is Arm.BASELINE else row.tuned_value for row in rows]
    hover = [
        f"{arm}: {text.quantity(metric, value)}, ratio {text.ratio(row.ratio)}"
        for value, row in zip(values, rows, strict=True)
    ]
    marker = {"size": 11, "color": _COLOR[arm]}
    said = {"hovertext": hover, "hoverinfo": "text", "marker": marker}
    trace = scatter("markers", arm, list(numbered), [finite(value) for value in values], **said)
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
    traces = []
    for curve in curves:
        points = [(point["percentile"], point["latency_us"]) for point in curve.points]
        x, y = [_slower(p) for p, _ in points], [us if us > 0 else None for _, us in points]
        hover = [f"{curve.arm} p{p:.6g}: {text.duration_us(us)}" for p, us in points]
        shown = {"text": hover, "hovertemplate": "%{text}<extra></extra>"}
        line = {"width": 2.5, "color": _COLOR[curve.arm]}
        traces.append(scatter("lines", curve.arm, x, y, line=line, **shown))
    percentiles = axis(
        "percentile of operations",
        type="log",
        autorange=False,
        range=[math.log10(_slower(50.0)), math.log10(_slower(99.99)) + 0.02],
        tickvals=[_slower(percentile) for percentile in _PERCENTILE_TICKS],
        ticktext=[f"p{percentile:g}" for percentile in _PERCENTILE_TICKS],
    )
    latency = axis("latency (µs)", type="log", tickformat="~s")
    return {"data": traces, "layout": {"xaxis": percentiles, "yaxis": latency}}


def _slower(percentile: float) -> float:
    """One operation in how many is slower than that percentile."""
    return 100.0 / (100.0 - percentile)


def series_figure(analysis: StudyAnalysis) -> Figure | None:
    """Throughput over time: a thin line per run, one colour per arm."""
    if not analysis.series:
        return None
    in_legend: set[Arm] = set()
    traces = []
    for series in analysis.series:
        arm, points, workload = series["arm"], series["points"], series["workload"]
        under = f" under {escape(workload, quote=False)}" if workload else ""
        trace = scatter(
            "lines" if len(points) > 1 else "markers",
            arm,
            [point["elapsed_s"] for point in points],
            [finite(point["throughput_ops_s"]) for point in points],
            legendgroup=arm,
            showlegend=arm not in in_legend,
            hovertemplate=f"{arm}, run {series['measurement']}{under}<br>"
            "%{x:.2f} s: %{y:,.0f} ops/s<extra></extra>",
            line={"width": 1.5, "color": _COLOR[arm]},
            marker={"size": 6, "color": _COLOR[arm]},
            opacity=0.75,
        )
        traces.append(trace)
        in_legend.add(arm)
    time = axis("seconds since the phase began", rangemode="tozero")
    rate = value_axis("throughput_ops_s", rangemode="tozero")
    return {"data": traces, "layout": {"xaxis": time, "yaxis": rate}}
