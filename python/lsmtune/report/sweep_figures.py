"""Plotly figures of a sweep as plain data: a rate over the values of one axis, a line per rest."""

from __future__ import annotations

from html import escape
from typing import Any

from lsmtune.experiment.sweep_tables import (
    AxisRow,
    CellSummary,
    SweepResult,
    Table,
)
from lsmtune.model.metrics import BURST, RATE_MB, SUSTAINED, SUSTAINED_MB
from lsmtune.report.figures import Figure, finite
from lsmtune.stats.intervals import MeanInterval

_COLORS = ("--tuned", "--info", "--warn", "--bad", "--muted", "--ink")
_DASHES = ("solid", "dash", "dot", "dashdot")
# More lines than this cannot be told apart; the table has them all.
LINES_MAX = len(_COLORS) * len(_DASHES)
_IN_MB = {SUSTAINED: SUSTAINED_MB, BURST: RATE_MB}


def figures_of(result: SweepResult) -> dict[str, Figure]:
    """Two figures for each table, side by side: operations per second, and MB/s."""
    drawn: dict[str, Figure] = {}
    for number, table in enumerate(result.tables):
        if table.best is None:
            continue
        kind = "sustained" if table.metric.startswith("sustained") else "burst"
        for name, metric in (("ops", table.metric), ("mb", _IN_MB[table.metric])):
            unit = "ops/s" if name == "ops" else "MB/s"
            drawn[f"{name}-{number}"] = _figure(result, table, metric, f"{unit}, {kind}")
    return drawn


def x_axis(axes: tuple[AxisRow, ...]) -> int:
    """The axis that is drawn along x: the one with the most values, the last one of several."""
    return max(range(len(axes)), key=lambda index: (len(axes[index].values), index))


def _figure(result: SweepResult, table: Table, metric: str, title: str) -> Figure:
    along = x_axis(result.axes)
    lines: dict[tuple[str, ...], list[CellSummary]] = {}
    for cell in table.cells:
        rest = tuple(text for index, text in enumerate(cell.values) if index != along)
        lines.setdefault(rest, []).append(cell)
    names = [axis.name for index, axis in enumerate(result.axes) if index != along]
    shown = list(lines.items())[:LINES_MAX]
    return {
        "data": [
            _line(number, names, rest, cells, along, metric)
            for number, (rest, cells) in enumerate(shown)
        ],
        "layout": {
            "xaxis": {"title": {"text": escape(result.axes[along].name)}, "type": "category"},
            "yaxis": {"title": {"text": title}, "tickformat": "~s", "rangemode": "tozero"},
            "showlegend": bool(names),
        },
    }


def _line(
    number: int,
    names: list[str],
    rest: tuple[str, ...],
    cells: list[CellSummary],
    along: int,
    metric: str,
) -> dict[str, Any]:
    color = _COLORS[number % len(_COLORS)]
    name = ", ".join(f"{axis}={text}" for axis, text in zip(names, rest, strict=True))
    found = [cell.metrics.get(metric) for cell in cells]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": escape(name, quote=False),
        "x": [cell.values[along] for cell in cells],
        "y": [None if mean is None else finite(mean.mean) for mean in found],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [_above(mean) for mean in found],
            "arrayminus": [_below(mean) for mean in found],
            "thickness": 1,
            "color": color,
        },
        "line": {
            "width": 2,
            "color": color,
            "dash": _DASHES[number // len(_COLORS) % len(_DASHES)],
        },
        "marker": {"size": 7, "color": color},
    }


def _above(mean: MeanInterval | None) -> float:
    """How far the interval reaches above the mean; nowhere without one."""
    return 0.0 if mean is None or mean.high is None else mean.high - mean.mean


def _below(mean: MeanInterval | None) -> float:
    """How far the interval reaches below the mean; nowhere without one."""
    return 0.0 if mean is None or mean.low is None else mean.mean - mean.low
