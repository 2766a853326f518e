"""A sweep's report: what each cell came to, and its ratios to the first one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import lsmtune
from lsmtune.experiment.sweep_tables import (
    METRICS,
    RATIOS,
    AxisRow,
    CellSummary,
    SweepResult,
    Table,
)
from lsmtune.model.metrics import BURST, PHASE_TOTAL_S, RATE_MB, SUSTAINED, SUSTAINED_MB
from lsmtune.report import words as text
from lsmtune.report.document import (
    NOT_KNOWN,
    Beside,
    Block,
    Column,
    Document,
    Figure,
    Heading,
    Notice,
    Notices,
    Paragraph,
    Plot,
    Section,
    words,
)
from lsmtune.report.document import Table as ReportTable
from lsmtune.report.figures import finite
from lsmtune.report.render import to_csv, to_html, to_json, to_markdown, write_text
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
    warnings = [Notice(line) for line in result.warnings]
    reading: list[Block] = [
        *(Paragraph(line) for line in how_to_read(result)),
        Paragraph(took, "quiet"),
        *([Notices(warnings)] if warnings else []),
    ]
    sections = [Section("reading", "How to read this", reading)]
    drawn = figures_of(result)
    for number, table in enumerate(result.tables):
        blocks = _table_blocks(result, table, number, drawn)
        sections.append(Section(f"table-{number}", table.title, blocks))
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


def _table_blocks(
    result: SweepResult, table: Table, number: int, drawn: Mapping[str, Figure]
) -> list[Block]:
    """The cells of one table, their plots, and their ratios to the first one."""
    plots = [
        [Plot(name, f"{unit} per second of {table.title}", drawn[name])]
        for name, unit in ((f"ops-{number}", "Operations"), (f"mb-{number}", "MB"))
        if name in drawn
    ]
    best = {} if table.best is None else {table.best: "best"}
    blocks: list[Block] = [Paragraph(note, "finding") for note in table.notes]
    blocks += [Beside(plots, "pair")] if plots else []
    blocks.append(_cells_table(result, columns_of(table), table.cells, table.title, best))
    ratios = ratio_columns_of(table)
    if ratios:
        first = zip(result.axes, table.cells[0].values, strict=True)
        point = ", ".join(f"{axis.name}={value}" for axis, value in first)
        later = {at - 1: mark for at, mark in best.items()}
        label = f"Ratios of {table.title}"
        blocks += [
            Heading(f"Ratios to the first cell, {point}"),
            _cells_table(result, ratios, table.cells[1:], label, later),
        ]
    return blocks


def _cells_table(
    result: SweepResult,
    columns: list[Column],
    cells: tuple[CellSummary, ...],
    label: str,
    best: Mapping[int, str],
) -> ReportTable:
    axes = [Column(axis.name) for axis in result.axes]
    rows = [(*cell.values, *(column.told(cell) for column in columns)) for cell in cells]
    told = [Column(column.label, terminal=column.terminal) for column in columns]
    return ReportTable([*axes, *told], rows, label, best)


def headline(result: SweepResult) -> str:
    """What was measured, in one line."""
    engine = result.engine
    version = f" {engine.version}" if engine.version else ""
    cells = text.count(sum(len(table.cells) for table in _first_phases(result)), "cell")
    done = f"{result.runs:,} of {result.runs_wanted:,} runs"
    return f"{engine.name}{version}: {cells}, {text.count(result.repeats, 'round')}, {done}"


def _first_phases(result: SweepResult) -> list[Table]:
    """One table per workload, so that its cells are counted once."""
    return list({table.workload: table for table in reversed(result.tables)}.values())


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
            "Rates, latencies and times are geometric means over the rounds. Intervals are at "
            f"{level}: Student's t of the logarithms, for ratios of those of each round's ratio to "
            "the first cell. They hold one by one, for a number of rounds that was decided "
            "beforehand; of many cells some will look different by chance. To decide between two, "
            "use lsmtune verify."
        )
    else:
        lines.append("There is one round, and nothing says how much its figures scatter.")
    if result.runs < result.runs_wanted:
        lines.append("The sweep is unfinished; the same command goes on where it stopped.")
    return lines


def columns_of(table: Table) -> list[Column]:
    """What is shown of each cell, without columns of which nothing is known."""
    wanted = [
        *_rate_columns(table, _rate),
        Column("p99", _mean("latency_us_p99", text.duration_us)),
        Column("time with drain", _mean(PHASE_TOTAL_S, _time)),
        Column("compactions", _mean("compactions", text.number)),
        Column("compacted (read)", _mean("compaction_read_bytes", _size), terminal=False),
        Column("compacted (written)", _mean("compaction_write_bytes", _size)),
        Column("write amplification", _mean("write_amplification", _factor)),
        Column("database", _mean("database_bytes", _size), terminal=False),
        Column("runs", _runs),
    ]
    wanted.insert(1, Column("median", _median(table.metric)))
    return _known(wanted, table.cells)


def ratio_columns_of(table: Table) -> list[Column]:
    """Ratios to the first cell of `table`, without columns of which nothing is known."""
    wanted = [
        *_rate_columns(table, _ratio),
        Column("p99", _ratio("latency_us_p99")),
        Column("time with drain", _ratio(PHASE_TOTAL_S)),
    ]
    return _known(wanted, table.cells[1:])


def _rate_columns(table: Table, of: Callable[[str], Callable[[CellSummary], str]]) -> list[Column]:
    """Rates of both kinds; of one where nothing was left to drain, so that both are the same."""
    burst = [
        Column("ops/s, burst", of(BURST), terminal=False),
        Column("MB/s, burst", of(RATE_MB), terminal=False),
    ]
    sustained = [
        Column("ops/s, sustained", of(SUSTAINED)),
        Column("MB/s, sustained", of(SUSTAINED_MB)),
    ]
    if any(_drains(cell) for cell in table.cells):
        return [*sustained, *burst]
    ops, mb = burst
    return [Column("ops/s", ops.told), Column("MB/s", mb.told)]


def _drains(cell: CellSummary) -> bool:
    drain_s, elapsed_s = cell.value("drain_s"), cell.value("elapsed_s")
    return bool(drain_s and elapsed_s and drain_s > _DRAIN_SHOWN * elapsed_s)


def _known(columns: Sequence[Column], cells: Sequence[CellSummary]) -> list[Column]:
    return [column for column in columns if any(column.told(c) != NOT_KNOWN for c in cells)]


def interval(found: MeanInterval | None) -> str:
    """A mean with its interval: `81,200 (79,800 to 82,600)`."""
    if found is None:
        return NOT_KNOWN
    if found.low is None or found.high is None:
        return text.number(_rounded(found.mean))
    low, high = (text.number(_rounded(end)) for end in (found.low, found.high))
    return f"{text.number(_rounded(found.mean))} ({low} to {high})"


def ratio_interval(found: RatioInterval | None) -> str:
    """A ratio with its interval: `0.81 (0.78 to 0.84)`."""
    if found is None:
        return NOT_KNOWN
    told = text.plain_ratio(found.ratio)
    if found.pairs < 2:
        return told
    return f"{told} ({text.plain_ratio(found.low)} to {text.plain_ratio(found.high)})"


def _rounded(value: float) -> float:
    """Of a large number the fraction says nothing."""
    return float(round(value)) if abs(value) >= 1000 else value


def _rate(metric: str) -> Callable[[CellSummary], str]:
    return lambda cell: interval(cell.metrics.get(metric))


def _ratio(metric: str) -> Callable[[CellSummary], str]:
    return lambda cell: ratio_interval(cell.ratios.get(metric))


def _mean(metric: str, told: Callable[[float], str]) -> Callable[[CellSummary], str]:
    def tell(cell: CellSummary) -> str:
        value = cell.value(metric)
        return NOT_KNOWN if value is None else told(value)

    return tell


def _median(metric: str) -> Callable[[CellSummary], str]:
    """Of two values it is their mean, and says nothing more."""

    def tell(cell: CellSummary) -> str:
        found = cell.metrics.get(metric)
        few = found is None or found.runs < _RUNS_WITH_A_MEDIAN
        return NOT_KNOWN if few or found is None else text.number(_rounded(found.median))

    return tell


def _time(seconds: float) -> str:
    return text.seconds(round(seconds)) if seconds >= 60 else f"{seconds:.3g} s"


def _size(value: float) -> str:
    return text.size(round(value))


def _factor(value: float) -> str:
    return f"{value:.2f}"


def _runs(cell: CellSummary) -> str:
    bad = sum(cell.outcomes.values()) - cell.runs_ok
    return f"{cell.runs_ok}, {bad} failed" if bad else str(cell.runs_ok)


# --- CSV and JSON


def cells_csv(result: SweepResult) -> str:
    """One line per cell and measure phase: means, medians, intervals, ratios. RFC 4180."""
    columns = ["workload", "phase", *(axis.name for axis in result.axes), "runs", "runs_failed"]
    for metric in METRICS:
        columns += [f"{metric}.{part}" for part in ("mean", "median", "low", "high")]
    for metric in RATIOS:
        columns += [f"{metric}.{part}" for part in ("ratio", "ratio_low", "ratio_high")]
    rows = (
        [table.workload, table.phase, *cell.values, *_cell_figures(cell)]
        for table in result.tables
        for cell in table.cells
    )
    return to_csv(columns, rows)


def _cell_figures(cell: CellSummary) -> list[object]:
    figures: list[object] = [cell.runs_ok, sum(cell.outcomes.values()) - cell.runs_ok]
    for metric in METRICS:
        mean = cell.metrics.get(metric)
        figures += _mean_parts(mean).values()
    for metric in RATIOS:
        figures += _ratio_parts(cell.ratios.get(metric)).values()
    return figures


def runs_csv(result: SweepResult) -> str:
    """One line per run and measure phase, with everything that it observed of METRICS."""
    axes = [axis.name for axis in result.axes]
    rows = (
        [
            *(row.workload, row.phase, *row.values),
            *(row.round, row.seed, row.outcome, row.wall_s),
            *(row.metrics.get(metric) for metric in METRICS),
        ]
        for row in result.rows
    )
    ran = ("round", "seed", "outcome", "wall_s")
    return to_csv(["workload", "phase", *axes, *ran, *METRICS], rows)


def document(result: SweepResult) -> dict[str, Any]:
    """The whole result in terms of JSON, with stable keys."""
    engine = result.engine
    return {
        "format_version": FORMAT_VERSION,
        "name": result.name,
        "headline": headline(result),
        "engine": {"name": engine.name, "version": engine.version, "build": engine.build.value},
        "axes": [
            {"kind": axis.kind, "name": axis.name, "values": list(axis.values)}
            for axis in result.axes
        ],
        "repeats": result.repeats,
        "seed": result.seed,
        "runs": result.runs,
        "runs_wanted": result.runs_wanted,
        "runs_s": result.runs_s,
        "confidence": result.confidence,
        "how_to_read": how_to_read(result),
        "tables": [_table_document(result, found) for found in result.tables],
        "failures": [
            {"cell": f.cell, "round": f.round, "outcome": f.outcome, "why": f.why}
            for f in result.failures
        ],
        "warnings": list(result.warnings),
    }


def _table_document(result: SweepResult, found: Table) -> dict[str, Any]:
    return {
        "workload": found.workload,
        "phase": found.phase,
        "metric": found.metric,
        "best": None if found.best is None else found.cells[found.best].cell,
        "notes": list(found.notes),
        "cells": [_cell_document(result, cell) for cell in found.cells],
    }


def _cell_document(result: SweepResult, cell: CellSummary) -> dict[str, Any]:
    names = (axis.name for axis in result.axes)
    return {
        "cell": cell.cell,
        "values": dict(zip(names, cell.values, strict=True)),
        "options": dict(cell.options),
        "num": cell.num,
        "key_bytes": cell.key_bytes,
        "value_bytes": cell.value_bytes,
        "outcomes": dict(cell.outcomes),
        "metrics": {name: _mean_parts(mean) for name, mean in cell.metrics.items()},
        "ratios": {name: _ratio_parts(ratio) for name, ratio in cell.ratios.items()},
    }


def _mean_parts(mean: MeanInterval | None) -> dict[str, float | None]:
    if mean is None:
        return dict.fromkeys(("mean", "median", "low", "high"))
    return {"mean": mean.mean, "median": mean.median, "low": mean.low, "high": mean.high}


def _ratio_parts(found: RatioInterval | None) -> dict[str, float | None]:
    """The bounds are None where there is one pair only, or none."""
    if found is None:
        return dict.fromkeys(("ratio", "ratio_low", "ratio_high"))
    low = found.low if found.low > 0.0 else None
    high = found.high if math.isfinite(found.high) else None
    return {"ratio": found.ratio, "ratio_low": low, "ratio_high": high}


def write_sweep(result: SweepResult, folder: Path) -> tuple[Path, ...]:
    """Write `sweep.html`, `.md`, `.csv`, `.json` and `sweep-runs.csv` into `folder`, each whole.

    Raises InputError when one cannot be written.
    """
    report = sweep_document(result)
    contents = {
        "sweep.html": to_html(report),
        "sweep.md": to_markdown(report),
        "sweep.csv": cells_csv(result),
        "sweep-runs.csv": runs_csv(result),
        "sweep.json": to_json(document(result)),
    }
    return tuple(write_text(folder / name, content) for name, content in contents.items())


# --- The plots: a rate over the values of one axis, a line for each of the rest

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
            # A mean without an interval has no bar.
            "array": [m.high - m.mean if m and m.high is not None else 0.0 for m in found],
            "arrayminus": [m.mean - m.low if m and m.low is not None else 0.0 for m in found],
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
