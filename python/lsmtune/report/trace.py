"""The page of a trace: operations, sizes and keys, and the workload that was fitted to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
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
from lsmtune.report.figures import Trace, axis, scatter
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
    sections, damage = [], summary.damage
    if damage is not None:
        told = (
            f"At offset {damage.offset_bytes}, in record {damage.record}: {damage.reason}. "
            "All figures are of what comes before."
        )
        sections.append(Section("damage", "Damaged", [Paragraph(told)]))
    if fit is not None:
        warnings = [Paragraph(line, "detail") for line in fit.warnings]
        parts = [part for part in fit.parts if part.distances]
        table = Table.of(_FITTED, parts, "The fitted workload")
        sections.append(Section("fit", "The fitted workload", [table, *warnings]))
    sections.append(_mix(summary))
    for name, title in _TITLES.items():
        if name in figures:
            sections.append(Section(name, title, [Plot(name, title, figures[name])]))
    return Document(
        title=file,
        subtitle=f"a trace of RocksDB {summary.rocksdb_version} · {counted} · "
        f"{text.count(summary.operations, 'operation')} · {text.seconds(summary.duration_s)}",
        sections=sections,
        page_title=f"{file} · trace · lsmtune",
        footer=f"lsmtune {lsmtune.__version__}",
    )


_FITTED = (
    *(Column("part", key="name", number=False), Column("model", key="model", number=False)),
    Column("distance", key=lambda part: part.distances[0][0], number=False),
    Column("found", lambda p: f"{p.distances[0][1]:.4f}{'' if p.fits else ' (does not fit)'}"),
    Column("limit", key="limit"),
)


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
        (f"{what}, {name}", each.mean, each.min, each.p50, each.p99, each.max)
        for what, histograms in groups
        for name, each in histograms.items()
    ]
    keys = f"{summary.keys.distinct:.0f} distinct keys. {summary.sampling.text}."
    tables = [Table(operations, mix, "Operations"), Table(histogram, sizes, "Sizes")]
    return Section("mix", "Operations and sizes", [*tables, Paragraph(keys, "detail")])


# --- The figures

_STEPS = {"line": {"shape": "hv"}}
_MODEL_LINE = {"line": {"color": _OF_MODEL, "dash": "dash"}}
_MODEL_MARKS = {"mode": "markers", "marker": {"color": _OF_MODEL, "size": 8}}
_LOG = {"type": "log"}


def trace_figures(summary: TraceSummary, parts: Sequence[FittedPart] = ()) -> dict[str, Figure]:
    """Every figure there is something to draw for, by name; with the models of `parts`."""
    fitted = {part.name: part for part in parts if part.curve}
    operations = ("gets", "writes", "seeks")
    window_s, steps = summary.windows.window_s, summary.windows.steps
    times = [round(number * window_s, 6) for number in range(len(steps))]
    ranges, top = summary.ranges_by_number, summary.prefixes.top[:_PREFIXES]
    columns = {name: [step[at] for step in steps] for at, name in enumerate(operations)}
    rates = [
        _line(name, times, [count / window_s for count in counts])
        for name, counts in columns.items()
        if any(counts)
    ]
    seen = [
        _line("in the window", times, [step[3] for step in steps]),
        _line("since the beginning", times, [step[4] for step in steps]),
    ]
    by_range = {name: [getattr(each, name) for each in ranges] for name in operations}
    by_prefix = {name: [getattr(each, name) for each in top] for name in operations}
    # A logarithm has no place for 0.
    in_ranges = [
        _line(name, range(len(ranges)), [n if n > 0 else None for n in counts], **_STEPS)
        for name, counts in by_range.items()
        if any(counts)
    ]
    prefixes = [
        {"type": "bar", "name": name, "x": [prefix.hex for prefix in top], "y": counts}
        for name, counts in by_prefix.items()
        if any(counts)
    ]
    first_bytes = {"type": "category"}
    stacked = _figure(prefixes, "first bytes of the key, hexadecimal", "operations", x=first_bytes)
    stacked["layout"]["barmode"] = "stack"
    drawn = {
        "rate": _figure(rates, "seconds", "operations per second"),
        "working-set": _figure(seen if steps else [], "seconds", "distinct keys"),
        "hotness": _hotness(summary, fitted.get("hotness")),
        "ranges": _figure(in_ranges, "part of the key space", "operations", y=_LOG),
        "prefixes": stacked,
        "miss-ratio": _miss_ratio(summary, fitted.get("hit_rate")),
        "value-sizes": _sizes(summary.value_sizes, "bytes of a value", fitted.get("value_sizes")),
        "key-sizes": _sizes(summary.key_sizes, "bytes of a key"),
    }
    if summary.inter_arrival_us is not None:
        arrivals = {"records": summary.inter_arrival_us}
        drawn["inter-arrival"] = _sizes(arrivals, "microseconds to the next record", x=_LOG)
    if "rate" in fitted:
        drawn["rate-fit"] = _compared(fitted["rate"], "seconds", "operations per second")
    if "ranges" in fitted:
        hottest = "range, the hottest first"
        drawn["ranges-fit"] = _compared(fitted["ranges"], hottest, "share of accesses", y=_LOG)
    return {name: figure for name, figure in drawn.items() if figure["data"]}


def _line(name: str, x: Sequence[float], y: Sequence[float | None], **more: Any) -> Trace:
    return scatter("lines", escape(name), list(x), y) | more


def _figure(
    data: list[Trace],
    x_title: str,
    y_title: str,
    *,
    x: Mapping[str, Any] = MappingProxyType({}),
    y: Mapping[str, Any] = MappingProxyType({}),
) -> Figure:
    """A figure; `x` and `y` are more of its axes."""
    y_axis = {"rangemode": "tozero", **y}
    return {"data": data, "layout": {"xaxis": axis(x_title, **x), "yaxis": axis(y_title, **y_axis)}}


def _hotness(summary: TraceSummary, fitted: FittedPart | None) -> Figure:
    data = [
        _line(name, [p[0] for p in curve.points], [p[2] for p in curve.points])
        for name, curve in summary.hotness.items()
    ]
    if fitted is not None:
        rows = fitted.curve
        data.append(_line("model, all", [r[0] for r in rows], [r[2] for r in rows], **_MODEL_LINE))
    return _figure(data, "hottest keys", "share of accesses", x=_LOG)


def _miss_ratio(summary: TraceSummary, fitted: FittedPart | None) -> Figure:
    data = [
        _line(name, [p[0] for p in reuse.miss_ratio], [p[1] for p in reuse.miss_ratio])
        for name, reuse in sorted(summary.reuse.items())
    ]
    if fitted is not None:
        held, misses = [r[0] for r in fitted.curve], [1 - r[2] for r in fitted.curve]
        data.append(_line("model, all", held, misses, **_MODEL_MARKS))
    return _figure(data, "keys that a cache holds", "share of misses", x=_LOG)


def _sizes(
    groups: Mapping[str, Histogram],
    title: str,
    fitted: FittedPart | None = None,
    x: Mapping[str, Any] = MappingProxyType({}),
) -> Figure:
    """The share of sizes of at most x, for each group."""
    data = []
    for name, histogram in groups.items():
        shares = [so_far / histogram.count for so_far in accumulate(histogram.counts)]
        data.append(_line(name, [high for _, high, _ in histogram.buckets], shares, **_STEPS))
    if fitted is not None:
        rows = fitted.curve
        data.append(_line("model", [r[2] for r in rows], [r[0] for r in rows], **_MODEL_MARKS))
    return _figure(data, title, "share of at most", x=x)


def _compared(
    part: FittedPart, x_title: str, y_title: str, y: Mapping[str, Any] = MappingProxyType({})
) -> Figure:
    at = [row[0] for row in part.curve]
    data = [
        _line("trace", at, [row[1] for row in part.curve], line={"color": _OF_TRACE}),
        _line("model", at, [row[2] for row in part.curve], **_MODEL_LINE),
    ]
    return _figure(data, x_title, y_title, y=y)
