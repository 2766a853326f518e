"""The page of a trace: operations, sizes and keys, and the workload that was fitted to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsmtune.report import words as text
from lsmtune.report.chart import Axis, Chart, Form, Point, Series
from lsmtune.report.document import (
    Block,
    Cell,
    Column,
    Document,
    Facts,
    Notice,
    Notices,
    Paragraph,
    Section,
    Table,
    chart_of,
    words,
)
from lsmtune.traces.summary import Histogram, TraceSummary
from lsmtune.units import format_bytes
from lsmtune.workloads.file import workload_document

if TYPE_CHECKING:
    from lsmtune.traces.fit import TraceFit
    from lsmtune.traces.sizes import FittedPart

Rows = Sequence[Sequence[float]]
_PREFIXES = 40
# Of these there is a figure in words, too; caches by the share of the keys that they hold.
_HOTTEST = (1, 10, 100, 1000, 10_000)
_CACHE_SHARES = (0.001, 0.01, 0.1)
_PREFIXES_TOLD = 5
# The trace is what is compared with; the model, which is new, is `tuned`.
_TONES = ("baseline", "info", "warn", "muted", "ink")


def trace_document(summary: TraceSummary, fit: TraceFit | None = None) -> Document:
    """Everything that the page shows; a terminal has the tables, with `fit` only those of it."""
    file, counted = Path(summary.path).name, text.count(summary.records, "record")
    sections, damage = [], summary.damage
    if damage is not None:
        where = (
            f"At offset {damage.offset_bytes}, in record {damage.record}: {damage.reason}. "
            "All figures are of what comes before."
        )
        sections.append(Section("damage", "Damaged", [Paragraph(where, "fail")]))
    if fit is not None:
        sections.append(Section("fit", "The fitted workload", _fitted(fit)))
    facts = [(name, ", ".join(parts)) for name, parts in _facts(summary).items() if parts]
    alone = fit is None
    sections.append(Section("mix", "Operations and sizes", _mix(summary), terminal=alone))
    sections.append(Section("facts", "File and keys", [Facts(facts)], terminal=alone))
    for name, chart in trace_charts(summary, () if fit is None else fit.parts).items():
        sections.append(Section(name, chart.label, [chart], terminal=False))
    return Document(
        title=file,
        subtitle=f"a trace of RocksDB {summary.rocksdb_version} · {counted} · "
        f"{text.count(summary.operations, 'operation')} · {text.seconds(summary.duration_s)}",
        sections=sections,
        page_title=f"{file} · trace · lsmtune",
    )


_FITTED = (
    Column("part", key="name", number=False),
    Column(
        "fit",
        lambda fits: "fits" if fits else Cell("DOES NOT FIT", tone="fail"),
        key="fits",
        number=False,
    ),
    Column("distance", text.outcome, key=lambda part: part.distances[0][0], number=False),
    Column("found", "{:.4f}".format, key=lambda part: part.distances[0][1]),
    Column("limit", key="limit"),
    Column("model", key="model", number=False),
)


def _fitted(fit: TraceFit) -> list[Block]:
    """How well each part fits, what to mind, and db_bench's flags."""
    parts = [part for part in fit.parts if part.distances]
    blocks: list[Block] = [Table.of(_FITTED, parts, "The fitted workload")]
    if fit.warnings:
        blocks.append(Notices([Notice(warning) for warning in fit.warnings]))
    if fit.db_bench:
        flags = " ".join(f"--{name}={value}" for name, value in fit.db_bench.items())
        code = f"--benchmarks=mixgraph {flags}"
        blocks.append(Paragraph("As db_bench would make it:", code=code))
    return blocks


def fit_document(fit: TraceFit) -> dict[str, Any]:
    """For programs: the fitted workload, and how well each part of it fits."""
    return {
        "fits": fit.fits,
        "parts": [
            {
                "name": part.name,
                "model": part.model,
                "distances": dict(part.distances),
                "limit": part.limit,
                "fits": part.fits,
                "curve": [{"x": x, "trace": trace, "model": y} for x, trace, y in part.curve],
            }
            for part in fit.parts
        ],
        "warnings": list(fit.warnings),
        "workload": workload_document(fit.workload),
        "db_bench": dict(fit.db_bench) or None,
        "damage": None if fit.summary.damage is None else asdict(fit.summary.damage),
    }


def _mix(summary: TraceSummary) -> list[Block]:
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
    figures = [Column(name, text.number) for name in ("mean", "min", "median", "p99", "max")]
    histograms = {f"bytes of a key, {name}": each for name, each in summary.key_sizes.items()}
    histograms |= {f"bytes of a value, {name}": h for name, h in summary.value_sizes.items()}
    if summary.inter_arrival_us is not None:
        histograms["microseconds between records"] = summary.inter_arrival_us
    sizes = [(name, h.mean, h.min, h.p50, h.p99, h.max) for name, h in histograms.items()]
    return [
        Table(operations, mix, "Operations"),
        Table((*words("size or time"), *figures), sizes, "Sizes and times"),
    ]


def _facts(summary: TraceSummary) -> dict[str, list[str]]:
    """The file and its keys: how many, how hot the hottest are, what a cache of them would hit."""
    curve, reuse, prefixes = summary.hotness.get("all"), summary.reuse.get("all"), summary.prefixes
    hottest = () if curve is None else curve.points
    misses = () if reuse is None else reuse.miss_ratio
    rooms = [max(share * summary.keys.distinct, 1.0) for share in _CACHE_SHARES]
    read = f"read in {text.seconds(summary.elapsed_s)}"
    return {
        "trace": [f"version {summary.trace_version}", format_bytes(summary.bytes_total), read],
        "column families": [f"{number}: {count:,}" for number, count in summary.column_families],
        "distinct keys": [f"{summary.keys.distinct:,.0f} ({summary.sampling.text})"],
        "share of the hottest keys": [
            f"{rank:,}: {100 * up_to[-1][2]:.2f} %"
            for rank in _HOTTEST
            if hottest and rank <= hottest[-1][0] and (up_to := _up_to(hottest, rank))
        ],
        f"hottest of {prefixes.distinct:,.0f} prefixes": [
            f"{prefix.hex} {100 * prefix.accesses / max(summary.operations, 1):.1f} %"
            for prefix in prefixes.top[:_PREFIXES_TOLD]
        ],
        "hits of an LRU cache of keys": [
            f"{room:,.0f} keys {100 * (1 - up_to[-1][1]):.1f} %"
            for room in rooms
            if (up_to := _up_to(misses, room))
        ],
    }


def _up_to(rows: Rows, limit: float) -> Rows:
    """Those of `rows` whose first figure is at most `limit`."""
    return [row for row in rows if row[0] <= limit]


# --- The plots


def trace_charts(summary: TraceSummary, parts: Sequence[FittedPart] = ()) -> dict[str, Chart]:
    """Every plot there is something to draw for, by name; with the models of `parts`."""
    fitted: Mapping[str, Rows] = defaultdict(tuple, {part.name: part.curve for part in parts})
    operations = ("gets", "writes", "seeks")
    window_s, steps = summary.windows.window_s, summary.windows.steps
    times = [round(number * window_s, 6) for number in range(len(steps))]
    ranges, top = summary.ranges_by_number, summary.prefixes.top[:_PREFIXES]
    rates = {
        name: _points(times, [step[at] / window_s for step in steps])
        for at, name in enumerate(operations)
    }
    asked = {
        name: _points(times, [step[at] for step in steps])
        for at, name in ((3, "in the window"), (4, "since the beginning"))
    }
    in_ranges = {
        name: _points(range(len(ranges)), [getattr(each, name) for each in ranges])
        for name in operations
    }
    by_prefix = {
        name: [Point(each.hex, getattr(each, name)) for each in top if getattr(each, name)]
        for name in operations
    }
    hottest = {name: _columns(curve.points, 0, 2) for name, curve in summary.hotness.items()}
    misses = {name: _columns(reuse.miss_ratio, 0, 1) for name, reuse in summary.reuse.items()}
    modelled_misses = [Point(row[0], 1 - row[2]) for row in fitted["hit_rate"]]
    seconds, per_s = Axis("seconds"), Axis("operations per second", zero=True)
    many, share = Axis("operations", zero=True), "share of accesses"
    first_bytes = Axis("first bytes of the key, hexadecimal", names=[each.hex for each in top])
    arrivals = {} if summary.inter_arrival_us is None else {"records": summary.inter_arrival_us}
    drawn = {
        "rate": chart_of("Operations over time", seconds, per_s, _lines(rates)),
        "rate-fit": _compared("The rate, and its model", fitted["rate"], seconds, per_s),
        "working-set": chart_of(
            "Keys asked for over time", seconds, Axis("distinct keys", zero=True), _lines(asked)
        ),
        "hotness": chart_of(
            "Which share the hottest keys draw",
            Axis("hottest keys", log=True),
            Axis(share, zero=True),
            [*_lines(hottest), *_model(Form.LINE, _columns(fitted["hotness"], 0, 2))],
        ),
        "ranges": chart_of(
            "Operations over the key space",
            Axis("part of the key space"),
            Axis("operations", log=True),
            _lines(in_ranges, Form.STEPS),
        ),
        "ranges-fit": _compared(
            "Ranges of keys, and their model",
            fitted["ranges"],
            Axis("range, the hottest first"),
            Axis(share, log=True),
        ),
        "prefixes": chart_of(
            "The hottest prefixes", first_bytes, many, _lines(by_prefix, Form.DOT)
        ),
        "miss-ratio": chart_of(
            "What a cache of keys would miss",
            Axis("keys that a cache holds", log=True),
            Axis("share of misses", zero=True),
            [*_lines(dict(sorted(misses.items()))), *_model(Form.DOT, modelled_misses)],
        ),
        "value-sizes": _sizes(
            "Sizes of values", summary.value_sizes, Axis("bytes of a value"), fitted["value_sizes"]
        ),
        "key-sizes": _sizes("Sizes of keys", summary.key_sizes, Axis("bytes of a key")),
        "inter-arrival": _sizes(
            "Time between records", arrivals, Axis("microseconds to the next record", log=True)
        ),
    }
    return {name: chart for name, charts in drawn.items() for chart in charts}


def _columns(rows: Rows, x: int, y: int) -> list[Point]:
    return [Point(row[x], row[y]) for row in rows]


def _points(x: Sequence[float], y: Sequence[float]) -> list[Point]:
    """The points of a line; none where nothing happened."""
    return [Point(at, value) for at, value in zip(x, y, strict=True)] if any(y) else []


def _lines(groups: Mapping[str, Sequence[Point]], form: Form = Form.LINE) -> list[Series]:
    """One series for each group, the trace's own."""
    known = {name: points for name, points in groups.items() if points}
    return [
        Series(form, _TONES[number % len(_TONES)], points, name)
        for number, (name, points) in enumerate(known.items())
    ]


def _model(form: Form, points: Sequence[Point], name: str = "model, all") -> list[Series]:
    """What a fitted workload would do."""
    return [Series(form, "tuned", points, name, "dash" if form is Form.LINE else "")]


def _sizes(
    label: str, groups: Mapping[str, Histogram], size: Axis, fitted: Rows = ()
) -> Sequence[Chart]:
    """The share of sizes of at most x, for each group."""
    lines = {}
    for name, histogram in groups.items():
        shares = [so_far / histogram.count for so_far in accumulate(histogram.counts)]
        highs = [high for _, high, _ in histogram.buckets]
        lines[name] = [Point(high, share) for high, share in zip(highs, shares, strict=True)]
    series = [*_lines(lines, Form.STEPS), *_model(Form.DOT, _columns(fitted, 2, 0), "model")]
    return chart_of(label, size, Axis("share of at most", zero=True), series)


def _compared(label: str, rows: Rows, x: Axis, y: Axis) -> Sequence[Chart]:
    of_trace = Series(Form.LINE, "baseline", _columns(rows, 0, 1), "trace")
    return chart_of(label, x, y, [of_trace, *_model(Form.LINE, _columns(rows, 0, 2), "model")])
