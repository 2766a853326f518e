"""The page of a trace: operations, sizes and keys, and the workload that was fitted to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import lsmtune
from lsmtune.report import words as text
from lsmtune.report.document import (
    Column,
    Document,
    Figure,
    Paragraph,
    Plot,
    Section,
    Table,
    numbers,
    words,
)
from lsmtune.report.render import to_html, write_text
from lsmtune.traces.fit import TraceFit
from lsmtune.traces.sizes import FittedPart
from lsmtune.traces.summary import Histogram, TraceSummary

_PREFIXES = 40
# Colours of the page: the trace is what is compared with, the model what is new.
_OF_TRACE, _OF_MODEL = "--baseline", "--tuned"


_TITLES = {
    "rate": "Operations over time",
    "rate-fit": "The rate, and its model",
    "working-set": "Keys asked for over time",
    "hotness": "Which share the hottest keys draw",
    "ranges": "Operations over the key space",
    "ranges-fit": "Ranges of keys, and their model",
    "prefixes": "The hottest prefixes",
    "miss-ratio": "What a cache of keys would miss",
    "value-sizes": "Sizes of values",
    "key-sizes": "Sizes of keys",
    "inter-arrival": "Time between records",
}


def write_trace_page(summary: TraceSummary, output: Path, fit: TraceFit | None = None) -> Path:
    """Write the page of `summary` to `output`, whole or not at all; returns `output`.

    Raises InputError when it cannot be written.
    """
    return write_text(output, to_html(trace_document(summary, fit)))


def trace_document(summary: TraceSummary, fit: TraceFit | None = None) -> Document:
    """Everything that the page shows."""
    figures = trace_figures(summary, () if fit is None else fit.parts)
    file, counted = Path(summary.path).name, text.count(summary.records, "record")
    sections = [
        *_damaged(summary),
        *([] if fit is None else [_fitted(fit)]),
        _mix(summary),
        *(
            Section(name, title, [Plot(name, title, figures[name])])
            for name, title in _TITLES.items()
            if name in figures
        ),
    ]
    return Document(
        title=file,
        subtitle=f"a trace of RocksDB {summary.rocksdb_version} · {counted} · "
        f"{text.count(summary.operations, 'operation')} · {text.seconds(summary.duration_s)}",
        sections=sections,
        page_title=f"{file} · trace · lsmtune",
        footer=f"lsmtune {lsmtune.__version__}",
    )


def _damaged(summary: TraceSummary) -> list[Section]:
    damage = summary.damage
    if damage is None:
        return []
    told = (
        f"At offset {damage.offset_bytes}, in record {damage.record}: {damage.reason}. "
        "All figures are of what comes before."
    )
    return [Section("damage", "Damaged", [Paragraph(told)])]


def _fitted(fit: TraceFit) -> Section:
    rows = [
        (
            part.name,
            part.model,
            part.distances[0][0],
            f"{part.distances[0][1]:.4f}{'' if part.fits else ' (does not fit)'}",
            part.limit,
        )
        for part in fit.parts
        if part.distances
    ]
    columns = (*words("part", "model", "distance"), *numbers("found", "limit"))
    warnings = [Paragraph(line, "detail") for line in fit.warnings]
    table = Table(columns, rows, "The fitted workload")
    return Section("fit", "The fitted workload", [table, *warnings])


def _mix(summary: TraceSummary) -> Section:
    operations = (
        *words("operation"),
        Column("count", "{:,}".format),
        Column("share", lambda share: f"{100 * share:.3f} %"),
    )
    mix = [
        (name, count, count / summary.operations)
        for name, count in summary.operation_counts.items()
        if count
    ]
    histogram = (
        *words("bytes of"),
        Column("mean", "{:.1f}".format),
        *numbers("min"),
        Column("median", "{:g}".format),
        Column("p99", "{:g}".format),
        *numbers("max"),
    )
    groups = (("key", summary.key_sizes), ("value", summary.value_sizes))
    sizes = [
        (f"{what}, {name}", found.mean, found.min, found.p50, found.p99, found.max)
        for what, histograms in groups
        for name, found in histograms.items()
    ]
    keys = f"{summary.keys.distinct:.0f} distinct keys. {summary.sampling.text}."
    return Section(
        "mix",
        "Operations and sizes",
        [
            Table(operations, mix, "Operations"),
            Table(histogram, sizes, "Sizes"),
            Paragraph(keys, "detail"),
        ],
    )


# --- The figures


def trace_figures(summary: TraceSummary, parts: Sequence[FittedPart] = ()) -> dict[str, Figure]:
    """Every figure there is something to draw for, by name; with the models of `parts`."""
    fitted = {part.name: part for part in parts if part.curve}
    found: dict[str, Figure] = {
        "rate": _rate(summary),
        "working-set": _working_set(summary),
        "hotness": _hotness(summary, fitted.get("hotness")),
        "ranges": _ranges(summary),
        "prefixes": _prefixes(summary),
        "miss-ratio": _miss_ratio(summary, fitted.get("hit_rate")),
        "value-sizes": _sizes(summary.value_sizes, "bytes of a value", fitted.get("value_sizes")),
        "key-sizes": _sizes(summary.key_sizes, "bytes of a key", None),
    }
    if summary.inter_arrival_us is not None:
        arrivals = {"records": summary.inter_arrival_us}
        found["inter-arrival"] = _sizes(arrivals, "microseconds to the next record", None, log=True)
    if "rate" in fitted:
        found["rate-fit"] = _compared(fitted["rate"], "seconds", "operations per second")
    if "ranges" in fitted:
        ranges = _compared(fitted["ranges"], "range, the hottest first", "share of accesses")
        found["ranges-fit"] = _with_axes(ranges, y={"type": "log"})
    return {name: figure for name, figure in found.items() if figure["data"]}


def _line(name: str, x: Sequence[float], y: Sequence[float], **more: Any) -> dict[str, Any]:
    return {"type": "scatter", "mode": "lines", "name": escape(name), "x": x, "y": y, **more}


def _axes(x: str, y: str, **more: Any) -> dict[str, Any]:
    return {
        "xaxis": {"title": {"text": x}, **more.get("xaxis", {})},
        "yaxis": {"title": {"text": y}, "rangemode": "tozero", **more.get("yaxis", {})},
    }


def _with_axes(figure: Figure, y: Mapping[str, Any]) -> Figure:
    layout = figure["layout"]
    return {**figure, "layout": {**layout, "yaxis": {**layout["yaxis"], **y}}}


def _times(summary: TraceSummary) -> list[float]:
    window_s = summary.windows.window_s
    return [round(number * window_s, 6) for number in range(len(summary.windows.steps))]


def _rate(summary: TraceSummary) -> Figure:
    window_s, steps = summary.windows.window_s, summary.windows.steps
    data = [
        _line(name, _times(summary), [step[column] / window_s for step in steps])
        for column, name in enumerate(("gets", "writes", "seeks"))
        if any(step[column] for step in steps)
    ]
    return {"data": data, "layout": _axes("seconds", "operations per second")}


def _working_set(summary: TraceSummary) -> Figure:
    steps = summary.windows.steps
    data = [
        _line("in the window", _times(summary), [step[3] for step in steps]),
        _line("since the beginning", _times(summary), [step[4] for step in steps]),
    ]
    return {"data": data if steps else [], "layout": _axes("seconds", "distinct keys")}


def _hotness(summary: TraceSummary, fitted: FittedPart | None) -> Figure:
    data = [
        _line(name, [p[0] for p in curve.points], [p[2] for p in curve.points])
        for name, curve in summary.hotness.items()
    ]
    if fitted is not None:
        rows = fitted.curve
        model = {"line": {"color": _OF_MODEL, "dash": "dash"}}
        data.append(_line("model, all", [r[0] for r in rows], [r[2] for r in rows], **model))
    axes = _axes("hottest keys", "share of accesses", xaxis={"type": "log"})
    return {"data": data, "layout": axes}


def _ranges(summary: TraceSummary) -> Figure:
    parts = summary.ranges_by_number
    axes = _axes("part of the key space", "operations", yaxis={"type": "log"})
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "line": {"shape": "hv"},
            "name": name,
            "x": list(range(len(parts))),
            # A logarithm has no place for 0.
            "y": [value if value > 0 else None for value in values],
        }
        for name, values in (
            ("gets", [part.gets for part in parts]),
            ("writes", [part.writes for part in parts]),
            ("seeks", [part.seeks for part in parts]),
        )
        if any(values)
    ]
    return {"data": data, "layout": axes}


def _prefixes(summary: TraceSummary) -> Figure:
    top = summary.prefixes.top[:_PREFIXES]
    data = [
        {
            "type": "bar",
            "name": name,
            "x": [prefix.hex for prefix in top],
            "y": values,
        }
        for name, values in (
            ("gets", [prefix.gets for prefix in top]),
            ("writes", [prefix.writes for prefix in top]),
            ("seeks", [prefix.seeks for prefix in top]),
        )
        if any(values)
    ]
    axes = _axes("first bytes of the key, hexadecimal", "operations", xaxis={"type": "category"})
    return {"data": data, "layout": {"barmode": "stack", **axes}}


def _miss_ratio(summary: TraceSummary, fitted: FittedPart | None) -> Figure:
    data = [
        _line(name, [p[0] for p in reuse.miss_ratio], [p[1] for p in reuse.miss_ratio])
        for name, reuse in sorted(summary.reuse.items())
    ]
    if fitted is not None:
        rows = fitted.curve
        model = {"mode": "markers", "marker": {"color": _OF_MODEL, "size": 8}}
        data.append(_line("model, all", [r[0] for r in rows], [1 - r[2] for r in rows], **model))
    axes = _axes("keys that a cache holds", "share of misses", xaxis={"type": "log"})
    return {"data": data, "layout": axes}


def _sizes(
    groups: Mapping[str, Histogram], title: str, fitted: FittedPart | None, *, log: bool = False
) -> Figure:
    """The share of sizes of at most x, for each group."""
    data = []
    for name, histogram in groups.items():
        so_far, y = 0.0, []
        for count in histogram.counts:
            so_far += count
            y.append(so_far / histogram.count)
        line = {"line": {"shape": "hv"}}
        data.append(_line(name, [high for _, high, _ in histogram.buckets], y, **line))
    if fitted is not None:
        rows = fitted.curve
        model = {"mode": "markers", "marker": {"color": _OF_MODEL, "size": 8}}
        data.append(_line("model", [r[2] for r in rows], [r[0] for r in rows], **model))
    axes = _axes(title, "share of at most", xaxis={"type": "log"} if log else {})
    return {"data": data, "layout": axes}


def _compared(part: FittedPart, x: str, y: str) -> Figure:
    at = [row[0] for row in part.curve]
    trace = {"line": {"color": _OF_TRACE}}
    model = {"line": {"color": _OF_MODEL, "dash": "dash"}}
    data = [
        _line("trace", at, [row[1] for row in part.curve], **trace),
        _line("model", at, [row[2] for row in part.curve], **model),
    ]
    return {"data": data, "layout": _axes(x, y)}
