"""A sweep's report: what each cell came to, and its ratios to the first one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import lsmtune
from lsmtune.experiment.sweep_tables import METRICS, RATIOS, CellSummary, SweepResult, Table
from lsmtune.machine.files import write_output
from lsmtune.model.codec import encode
from lsmtune.model.metrics import BURST, PHASE_TOTAL_S, RATE_MB, SUSTAINED, SUSTAINED_MB
from lsmtune.report import words as text
from lsmtune.report.chart import Axis, Chart, Form, Point, Series
from lsmtune.report.document import (
    NOT_KNOWN,
    Beside,
    Block,
    Column,
    Document,
    Heading,
    Notice,
    Notices,
    Paragraph,
    Section,
    chart_of,
    paragraphs,
    words,
)
from lsmtune.report.document import Table as ReportTable
from lsmtune.report.render import to_csv, to_html, to_json, to_markdown
from lsmtune.stats.intervals import MeanInterval, RatioInterval

FORMAT_VERSION = 1
# A drain of less than this share of a phase changes no digit that is shown.
_DRAIN_SHOWN = 5e-4
_RUNS_WITH_A_MEDIAN = 3

WHY_BOTH_RATES = (
    "MB/s (10^6 bytes of keys and values per second) stands beside operations per second and never "
    "alone: an operation costs much that does not depend on the size of its record (finding the "
    "key, the log's header, the call itself), so that larger records raise MB/s even where each "
    "operation becomes slower. Between cells whose records differ in size, compare operations per "
    "second to learn what an operation costs, and MB/s to learn what a byte costs."
)
WHY_SUSTAINED = (
    "Sustained rates charge the time to flush and to drain compactions; a burst ends with the last "
    "operation."
)


def sweep_document(result: SweepResult) -> Document:
    """Everything that the page, Markdown and the terminal say."""
    took = f"{text.seconds(result.runs_s)} of runs, seed {result.seed}."
    reading: list[Block] = [*paragraphs(how_to_read(result)), Paragraph(took, "quiet")]
    if result.warnings:
        reading.append(Notices([Notice(line) for line in result.warnings]))
    sections = [
        Section(f"table-{number}", table.title, _table_blocks(result, table))
        for number, table in enumerate(result.tables)
    ]
    sections.append(Section("reading", "How to read this", reading))
    if result.failures:
        columns = (*words("cell"), Column("round"), *words("outcome", "what the run said"))
        rows = [(f.cell, f.round + 1, text.outcome(f.outcome), f.why) for f in result.failures]
        failed = ReportTable(columns, rows, "Failures")
        sections.append(Section("failures", "Runs that did not end well", [failed], "Failures"))
    return Document(
        title=result.name,
        subtitle=headline(result),
        sections=sections,
        page_title=f"{result.name} · sweep · lsmtune",
        footer=f"Written by lsmtune {lsmtune.__version__} from stored measurements alone. "
        f"The plots show at most {LINES_MAX} lines.",
    )


def _table_blocks(result: SweepResult, table: Table) -> list[Block]:
    """The cells of one table, their plots, and their ratios to the first one."""
    plots = _charts(result, table)
    best = {} if table.best is None else {table.best: "best"}
    axes = [Column(axis.name, key=("values", at)) for at, axis in enumerate(result.axes)]
    blocks: list[Block] = [Paragraph(note, "finding") for note in table.notes]
    blocks += [Beside(plots, "pair")] if plots else []
    columns = [*axes, *columns_of(table)]
    blocks.append(ReportTable.of(columns, table.cells, table.title, marks=best))
    ratios = ratio_columns_of(table)
    if ratios:
        first = zip(result.axes, table.cells[0].values, strict=True)
        point = ", ".join(f"{axis.name}={value}" for axis, value in first)
        later = {at - 1: mark for at, mark in best.items()}
        label, columns = f"Ratios of {table.title}", [*axes, *ratios]
        blocks += [
            Heading(f"Ratios to the first cell, {point}"),
            ReportTable.of(columns, table.cells[1:], label, marks=later),
        ]
    return blocks


def headline(result: SweepResult) -> str:
    """What was measured, in one line."""
    # One table per workload, so that its cells are counted once.
    first_phases = {table.workload: table for table in reversed(result.tables)}
    cells = text.count(sum(len(table.cells) for table in first_phases.values()), "cell")
    done = f"{result.runs:,} of {result.runs_wanted:,} runs"
    return f"{result.engine.title}: {cells}, {text.count(result.repeats, 'round')}, {done}"


def how_to_read(result: SweepResult) -> list[str]:
    """A paragraph for each thing that a reader must know."""
    lines = [
        "Each cell ran once per round, on a fresh database (or a fresh copy of one that was loaded "
        "before), in an order of the round's own and on the round's seed.",
        WHY_SUSTAINED,
    ]
    if result.varies_size:
        lines.append(WHY_BOTH_RATES)
    if result.repeats > 1:
        level = text.percent(result.confidence)
        lines.append(
            "Rates, p99 latencies and times with drain are geometric means over the rounds, all "
            f"others arithmetic ones. Intervals are at {level}: Student's t, of the logarithms "
            "where the mean is geometric, for ratios of those of each round's ratio to the first "
            "cell. They hold one by one, for a number of rounds that was decided beforehand; of "
            "many cells some will look different by chance. To decide between two, use lsmtune "
            "verify."
        )
    else:
        lines.append("There is one round, and nothing says how much its figures scatter.")
    if result.runs < result.runs_wanted:
        lines.append("The sweep is unfinished; the same command goes on where it stopped.")
    return lines


def columns_of(table: Table) -> list[Column]:
    """What is shown of each cell, without columns of which nothing is known."""

    def mean(label: str, metric: str, *, terminal: bool = True) -> Column:
        quantity = partial(text.quantity, metric)
        return Column(label, quantity, lambda cell: cell.value(metric), terminal=terminal)

    rate, *other_rates = _rate_columns(table, "metrics", interval)
    columns = [
        rate,
        Column("median", _median, ("metrics", table.metric)),
        *other_rates,
        mean("p99", "latency_us_p99"),
        mean("time with drain", PHASE_TOTAL_S),
        mean("compactions", "compactions"),
        mean("compacted (read)", "compaction_read_bytes", terminal=False),
        mean("compacted (written)", "compaction_write_bytes"),
        mean("write amplification", "write_amplification"),
        mean("database", "database_bytes", terminal=False),
        Column("runs", _runs),
    ]
    return _known(columns, table.cells)


def ratio_columns_of(table: Table) -> list[Column]:
    """Ratios to the first cell of `table`, without columns of which nothing is known."""
    columns = [
        *_rate_columns(table, "ratios", ratio_interval),
        Column("p99", ratio_interval, ("ratios", "latency_us_p99")),
        Column("time with drain", ratio_interval, ("ratios", PHASE_TOTAL_S)),
    ]
    return _known(columns, table.cells[1:])


def _rate_columns(table: Table, kind: str, format: Callable[[Any], str]) -> list[Column]:
    """The rates of a cell, or their ratios, as `kind` says: `metrics` or `ratios`.

    Where nothing was left to drain, the sustained ones are those of the burst, and stand once.
    """
    drained = ((cell.value("drain_s"), cell.value("elapsed_s")) for cell in table.cells)
    if not any(drain_s and run_s and drain_s > _DRAIN_SHOWN * run_s for drain_s, run_s in drained):
        return [Column("ops/s", format, (kind, BURST)), Column("MB/s", format, (kind, RATE_MB))]
    return [
        Column("ops/s, sustained", format, (kind, SUSTAINED)),
        Column("MB/s, sustained", format, (kind, SUSTAINED_MB)),
        Column("ops/s, burst", format, (kind, BURST), terminal=False),
        Column("MB/s, burst", format, (kind, RATE_MB), terminal=False),
    ]


def _known(columns: list[Column], cells: tuple[CellSummary, ...]) -> list[Column]:
    return [
        column
        for column in columns
        if any(column.cell(column.value(cell)).text != NOT_KNOWN for cell in cells)
    ]


def interval(mean: MeanInterval | None) -> str:
    """A mean with its interval: `81,200 (79,800 to 82,600)`."""
    if mean is None:
        return NOT_KNOWN
    if mean.low is None or mean.high is None:
        return text.number(mean.mean)
    return f"{text.number(mean.mean)} ({text.number(mean.low)} to {text.number(mean.high)})"


def ratio_interval(ratio: RatioInterval | None) -> str:
    """A ratio with its interval: `0.81 (0.78 to 0.84)`."""
    if ratio is None:
        return NOT_KNOWN
    shown = text.plain_ratio(ratio.ratio)
    if ratio.pairs < 2:
        return shown
    return f"{shown} ({text.plain_ratio(ratio.low)} to {text.plain_ratio(ratio.high)})"


def _median(mean: MeanInterval | None) -> str:
    """Of two values it is their mean, and says nothing more."""
    if mean is None or mean.runs < _RUNS_WITH_A_MEDIAN:
        return NOT_KNOWN
    return text.number(mean.median)


def _runs(cell: CellSummary) -> str:
    bad = sum(cell.outcomes.values()) - cell.runs_ok
    return f"{cell.runs_ok}, {bad} failed" if bad else str(cell.runs_ok)


# --- CSV and JSON


def cells_csv(result: SweepResult) -> str:
    """One line per cell and measure phase: means, medians, intervals, ratios. RFC 4180."""
    columns = ["workload", "phase", *(axis.name for axis in result.axes)]
    columns += ["runs", "runs_failed"]
    columns += [f"{metric}.{part}" for metric in METRICS for part in _mean_parts(None)]
    columns += [f"{metric}.{part}" for metric in RATIOS for part in _ratio_parts(None)]
    rows = []
    for table in result.tables:
        for cell in table.cells:
            bad = sum(cell.outcomes.values()) - cell.runs_ok
            row: list[object] = [table.workload, table.phase, *cell.values, cell.runs_ok, bad]
            for metric in METRICS:
                row += _mean_parts(cell.metrics.get(metric)).values()
            for metric in RATIOS:
                row += _ratio_parts(cell.ratios.get(metric)).values()
            rows.append(row)
    return to_csv(columns, rows)


def runs_csv(result: SweepResult) -> str:
    """One line per run and measure phase, with everything that it observed of METRICS."""
    axes = [axis.name for axis in result.axes]
    rows = (
        [
            *(row.cell.workload_title, row.phase, *row.cell.values),
            *(row.run.round, row.run.seed, row.run.measurement.outcome.value, row.run.wall_s),
            *(row.metrics.get(metric) for metric in METRICS),
        ]
        for row in result.rows
    )
    ran = ("round", "seed", "outcome", "wall_s")
    return to_csv(["workload", "phase", *axes, *ran, *METRICS], rows)


def document(result: SweepResult) -> dict[str, Any]:
    """The whole result in terms of JSON, with stable keys."""
    engine, names = result.engine, [axis.name for axis in result.axes]
    return {
        "format_version": FORMAT_VERSION,
        "name": result.name,
        "headline": headline(result),
        "engine": {"name": engine.name, "version": engine.version, "build": engine.build.value},
        "axes": [
            {"kind": axis.kind.value, "name": axis.name, "values": list(axis.texts)}
            for axis in result.axes
        ],
        "repeats": result.repeats,
        "seed": result.seed,
        "runs": result.runs,
        "runs_wanted": result.runs_wanted,
        "runs_s": result.runs_s,
        "confidence": result.confidence,
        "how_to_read": how_to_read(result),
        "tables": [
            {
                "workload": table.workload,
                "phase": table.phase,
                "metric": table.metric,
                "best": None if table.best is None else table.cells[table.best].cell.name,
                "notes": list(table.notes),
                "cells": [_cell_document(names, cell) for cell in table.cells],
            }
            for table in result.tables
        ],
        "failures": encode(result.failures),
        "warnings": list(result.warnings),
    }


def _cell_document(axes: list[str], cell: CellSummary) -> dict[str, Any]:
    workload = cell.cell.workload
    return {
        "cell": cell.cell.name,
        "values": dict(zip(axes, cell.values, strict=True)),
        "options": dict(cell.cell.config.options),
        "num": workload.num,
        "key_bytes": workload.key_bytes,
        "value_bytes": workload.value_bytes,
        "outcomes": dict(cell.outcomes),
        "metrics": {name: _mean_parts(mean) for name, mean in cell.metrics.items()},
        "ratios": {name: _ratio_parts(ratio) for name, ratio in cell.ratios.items()},
    }


def _mean_parts(mean: MeanInterval | None) -> dict[str, float | None]:
    if mean is None:
        return dict.fromkeys(("mean", "median", "low", "high"))
    return {"mean": mean.mean, "median": mean.median, "low": mean.low, "high": mean.high}


def _ratio_parts(ratio: RatioInterval | None) -> dict[str, float | None]:
    """The bounds are None where there is one pair only, or none."""
    if ratio is None:
        return dict.fromkeys(("ratio", "ratio_low", "ratio_high"))
    low, high = ratio.ends
    return {"ratio": ratio.ratio, "ratio_low": low, "ratio_high": high}


def write_sweep(result: SweepResult, folder: Path) -> tuple[Path, ...]:
    """Write `sweep.html`, `.md`, `.csv`, `.json` and `sweep-runs.csv` into `folder`, each whole.

    Raises InputError when one cannot be written.
    """
    if not folder.exists():
        folder.mkdir()
    report = sweep_document(result)
    contents = {
        "sweep.html": to_html(report),
        "sweep.md": to_markdown(report),
        "sweep.csv": cells_csv(result),
        "sweep-runs.csv": runs_csv(result),
        "sweep.json": to_json(document(result)),
    }
    return tuple(write_output(folder / name, content) for name, content in contents.items())


# --- The plots: a rate over the values of one axis, a line for each of the rest

_TONES = ("tuned", "info", "warn", "bad", "muted", "ink")
_STYLES = ("", "dash", "dots")
# More lines than this cannot be told apart; the table has them all.
LINES_MAX = len(_TONES) * len(_STYLES)
_IN_MB = {SUSTAINED: SUSTAINED_MB, BURST: RATE_MB}


def _charts(result: SweepResult, table: Table) -> list[Sequence[Chart]]:
    """Two plots that stand side by side: operations per second, and MB/s."""
    if table.best is None:
        return []
    kind = "sustained" if table.metric.startswith("sustained") else "burst"
    metrics = {f"ops/s, {kind}": table.metric, f"MB/s, {kind}": _IN_MB[table.metric]}
    charts = (_chart(result, table, metric, title) for title, metric in metrics.items())
    return [chart for chart in charts if chart]


def _chart(result: SweepResult, table: Table, metric: str, title: str) -> Sequence[Chart]:
    # Along x the axis with the most values is drawn, the last one of several.
    along = max(range(len(result.axes)), key=lambda at: (len(result.axes[at].values), at))
    lines: dict[str, list[Point]] = {}
    for cell in table.cells:
        values = zip(result.axes, cell.values, strict=True)
        at = [f"{axis.name}={value}" for axis, value in values]
        mean = cell.metrics.get(metric)
        if mean is not None:
            hover = f"{', '.join(at)}: {text.quantity(metric, mean.mean)}"
            point = Point(cell.values[along], mean.mean, hover, low=mean.low, high=mean.high)
            lines.setdefault(", ".join(at[:along] + at[along + 1 :]), []).append(point)
    series = []
    for number, (name, points) in enumerate(list(lines.items())[:LINES_MAX]):
        tone, style = _TONES[number % len(_TONES)], _STYLES[number // len(_TONES)]
        series += [
            Series(Form.WHISKER, tone, points, style="thin"),
            Series(Form.LINE, tone, points, name, style),
            Series(Form.DOT, tone, points),
        ]
    label, axis = f"{title} of {table.title}", result.axes[along]
    return chart_of(label, Axis(axis.name, names=axis.texts), Axis(title, zero=True), series)
