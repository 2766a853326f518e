"""A sweep's result as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from typing import Any

from lsmtune.report import text
from lsmtune.report.markdown_text import safe, table
from lsmtune.report.sweep_words import (
    Column,
    columns_of,
    headline,
    how_to_read,
    ratio_columns_of,
)
from lsmtune.stats.mean import MeanInterval
from lsmtune.stats.paired import RatioInterval
from lsmtune.sweep.metrics import METRICS, RATIOS
from lsmtune.sweep.result import CellSummary, SweepResult, Table

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
        "metrics": _known(cell.metrics, _mean_parts),
        "ratios": _known(cell.ratios, _ratio_parts),
    }


def _known(found: Mapping[str, Any], parts: Any) -> dict[str, Any]:
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
