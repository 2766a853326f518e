"""What reports of a sweep say in words, and which columns its tables have."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lsmtune
from lsmtune.experiment.sweep_tables import (
    METRICS,
    RATIOS,
    CellSummary,
    SweepResult,
    Table,
)
from lsmtune.model.metrics import BURST, PHASE_TOTAL_S, RATE_MB, SUSTAINED, SUSTAINED_MB
from lsmtune.report import pages
from lsmtune.report import words as text
from lsmtune.report.pages import safe, table, write_text
from lsmtune.report.sweep_figures import LINES_MAX, figures_of
from lsmtune.stats.intervals import MeanInterval, RatioInterval

_NOT_KNOWN = "\N{EN DASH}"
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


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and how a cell is told."""

    label: str
    told: Callable[[CellSummary], str]


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
        SUSTAINED,
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
        Column("compacted (read)", _mean("compaction_read_bytes", _size)),
        Column("compacted (written)", _mean("compaction_write_bytes", _size)),
        Column("write amplification", _mean("write_amplification", _factor)),
        Column("database", _mean("database_bytes", _size)),
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
    burst = [Column("ops/s, burst", of(BURST)), Column("MB/s, burst", of(RATE_MB))]
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
    return [column for column in columns if any(column.told(c) != _NOT_KNOWN for c in cells)]


def interval(found: MeanInterval | None) -> str:
    """A mean with its interval: `81,200 (79,800 to 82,600)`."""
    if found is None:
        return _NOT_KNOWN
    if found.low is None or found.high is None:
        return text.number(_rounded(found.mean))
    low, high = (text.number(_rounded(end)) for end in (found.low, found.high))
    return f"{text.number(_rounded(found.mean))} ({low} to {high})"


def ratio_interval(found: RatioInterval | None) -> str:
    """A ratio with its interval: `0.81 (0.78 to 0.84)`."""
    if found is None:
        return _NOT_KNOWN
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
        return _NOT_KNOWN if value is None else told(value)

    return tell


def _median(metric: str) -> Callable[[CellSummary], str]:
    """Of two values it is their mean, and says nothing more."""

    def tell(cell: CellSummary) -> str:
        found = cell.metrics.get(metric)
        few = found is None or found.runs < _RUNS_WITH_A_MEDIAN
        return _NOT_KNOWN if few or found is None else text.number(_rounded(found.median))

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


# ----------
# A sweep's result as Markdown, CSV and JSON.

FORMAT_VERSION = 1


def markdown(result: SweepResult) -> str:
    """The whole result as Markdown."""
    parts = [f"# {safe(result.name)}\n\n{safe(headline(result))}\n"]
    parts += [f"{safe(line)}\n" for line in how_to_read(result)]
    for found in result.tables:
        parts.append(f"## {safe(found.title)}\n")
        parts.append(_markdown_table(result, found, columns_of(found), found.cells))
        ratios = ratio_columns_of(found)
        if ratios:
            parts.append(f"Ratios to the first cell, {safe(_first(result, found))}:\n")
            parts.append(_markdown_table(result, found, ratios, found.cells[1:]))
        parts.append("".join(f"- {safe(note)}\n" for note in found.notes))
    parts.append(_markdown_failures(result))
    parts += [f"Warning: {safe(line)}\n" for line in result.warnings]
    return "\n".join(part for part in parts if part)


def _first(result: SweepResult, found: Table) -> str:
    first = found.cells[0]
    axes = zip(result.axes, first.values, strict=True)
    return ", ".join(f"{axis.name}={value}" for axis, value in axes)


def _markdown_table(
    result: SweepResult, found: Table, columns: list[Column], cells: tuple[CellSummary, ...]
) -> str:
    names = [*(axis.name for axis in result.axes), *(column.label for column in columns)]
    best = None if found.best is None else found.cells[found.best]
    rows = []
    for cell in cells:
        first, *rest = cell.values
        marked = f"{first} (best)" if cell is best else first
        rows.append([marked, *rest, *(column.told(cell) for column in columns)])
    return table(names, rows)


def _markdown_failures(result: SweepResult) -> str:
    rows = [
        [failure.cell, str(failure.round + 1), text.outcome(failure.outcome), failure.why]
        for failure in result.failures
    ]
    found = table(("cell", "round", "outcome", "what the run said"), rows)
    return f"## Runs that did not end well\n\n{found}" if found else ""


def cells_csv(result: SweepResult) -> str:
    """One line per cell and measure phase: means, medians, intervals, ratios. RFC 4180."""
    columns = ["workload", "phase", *(axis.name for axis in result.axes), "runs", "runs_failed"]
    for metric in METRICS:
        columns += [f"{metric}.{part}" for part in ("mean", "median", "low", "high")]
    for metric in RATIOS:
        columns += [f"{metric}.{part}" for part in ("ratio", "ratio_low", "ratio_high")]
    output = io.StringIO()
    writer = csv.writer(output)
    writer.writerow(columns)
    for found in result.tables:
        for cell in found.cells:
            writer.writerow([found.workload, found.phase, *cell.values, *_cell_figures(cell)])
    return output.getvalue()


def _cell_figures(cell: CellSummary) -> list[object]:
    figures: list[object] = [cell.runs_ok, sum(cell.outcomes.values()) - cell.runs_ok]
    for metric in METRICS:
        mean = cell.metrics.get(metric)
        figures += ["" if value is None else value for value in _mean_parts(mean).values()]
    for metric in RATIOS:
        parts = _ratio_parts(cell.ratios.get(metric))
        figures += ["" if value is None else value for value in parts.values()]
    return figures


def runs_csv(result: SweepResult) -> str:
    """One line per run and measure phase, with everything that it observed of METRICS."""
    output = io.StringIO()
    writer = csv.writer(output)
    axes = [axis.name for axis in result.axes]
    writer.writerow(
        ["workload", "phase", *axes, "round", "seed", "outcome", "wall_s", *METRICS],
    )
    for row in result.rows:
        observed = (row.metrics.get(metric, "") for metric in METRICS)
        place = (row.workload, row.phase, *row.values)
        writer.writerow([*place, row.round, row.seed, row.outcome, row.wall_s, *observed])
    return output.getvalue()


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


def json_text(result: SweepResult) -> str:
    """`document` as text."""
    return json.dumps(document(result), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


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
        "metrics": _sweep_documents_known(cell.metrics, _mean_parts),
        "ratios": _sweep_documents_known(cell.ratios, _ratio_parts),
    }


def _sweep_documents_known(found: Mapping[str, Any], parts: Any) -> dict[str, Any]:
    return {name: parts(value) for name, value in found.items()}


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


# ----------
# The files of a sweep's result: one self-contained page, Markdown, CSV, JSON.


def write_sweep(result: SweepResult, folder: Path) -> tuple[Path, ...]:
    """Write `sweep.html`, `.md`, `.csv`, `.json` and `sweep-runs.csv` into `folder`, each whole.

    Raises InputError when one cannot be written.
    """
    contents = {
        "sweep.html": html(result),
        "sweep.md": markdown(result),
        "sweep.csv": cells_csv(result),
        "sweep-runs.csv": runs_csv(result),
        "sweep.json": json_text(result),
    }
    return tuple(write_text(folder / name, content) for name, content in contents.items())


def html(result: SweepResult) -> str:
    """One page that needs no network, and no script for its text."""
    figures = figures_of(result)
    environment = pages.environment()
    environment.filters.update(count=text.count, outcome=text.outcome, seconds=text.seconds)
    environment.globals.update(columns_of=columns_of, ratio_columns_of=ratio_columns_of)
    return environment.get_template("sweep.html").render(
        result=result,
        headline=headline(result),
        how_to_read=how_to_read(result),
        figures=figures,
        lines_max=LINES_MAX,
        version=lsmtune.__version__,
        plotly=pages.plotly() if figures else None,
        style=pages.asset("report.css"),
        script=pages.asset("report.js"),
    )
