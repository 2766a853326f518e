"""What the figures share: colours, marks, axes, and text that Plotly may take as HTML.

Colours are names of the page's CSS variables under keys that end in `color` (`"--tuned"`): the
page's script puts the scheme's colours in, so that one figure serves light and dark. All text from
the study is escaped here, because Plotly reads its text as HTML.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from html import escape
from typing import Any

from lsmtune.analysis.study import StudyAnalysis
from lsmtune.records.config import OptionValue, option_text
from lsmtune.report import text

Figure = dict[str, Any]
# A pruned trial is a bound, not a value: hollow. A failed one is a cross.
MARK_PRUNED = {"size": 7, "symbol": "diamond-open", "color": "--muted"}
MARK_FAILED = {"size": 8, "symbol": "x-thin-open", "color": "--bad"}


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
