"""What `sweep` prints: its plan before, its tables after. Nothing is printed here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lsmtune.report.sweep_words import (
    Column,
    columns_of,
    headline,
    how_to_read,
    ratio_columns_of,
)
from lsmtune.rounds import CellRun
from lsmtune.sweep import GridCell, Sweep, SweepResult
from lsmtune.sweep.estimate import is_rough, left_s, written_bytes
from lsmtune.sweep.result import CellSummary
from lsmtune.sweep.result import Table as SweepTable
from lsmtune.units import format_bytes, format_duration

# On a terminal; the files have all of them.
_LEFT_OUT = ("ops/s, burst", "MB/s, burst", "compacted (read)", "database")
_FAILURES_SHOWN = 10


def plan_document(
    sweep: Sweep, cells: Sequence[GridCell], runs: Sequence[CellRun], folder: Path
) -> dict[str, object]:
    """What `sweep --plan --json` prints; `left_s` is None before a run has ended."""
    names = [cell.cell.name for cell in cells]
    return {
        "name": sweep.name,
        "folder": str(folder),
        "cells": [
            {
                "cell": cell.cell.name,
                "workload": cell.workload,
                "num": cell.cell.workload.num,
                "key_bytes": cell.cell.workload.key_bytes,
                "value_bytes": cell.cell.workload.value_bytes,
                "options": dict(cell.cell.config.options),
            }
            for cell in cells
        ],
        "rounds": sweep.repeats,
        "runs": len(cells) * sweep.repeats,
        "runs_stored": len(runs),
        "user_bytes_per_round": written_bytes(cells),
        "left_s": left_s(names, sweep.repeats, runs),
    }


def plan_view(
    sweep: Sweep, cells: Sequence[GridCell], runs: Sequence[CellRun], folder: Path
) -> RenderableType:
    """The cells, and how long they will take as far as that is known."""
    table = Table(box=None, pad_edge=False)
    for name in ("workload", *(axis.name for axis in sweep.axes), "keys", "user data", "runs"):
        table.add_column(name, justify="left" if name == "workload" else "right")
    for cell in cells:
        stored = sum(run.cell == cell.cell.name for run in runs)
        table.add_row(
            cell.workload,
            *cell.values,
            f"{cell.cell.workload.num:,}",
            format_bytes(written_bytes([cell])),
            f"{stored} of {sweep.repeats}",
        )
    lines = [
        f"{len(cells)} cells, {sweep.repeats} rounds, {len(cells) * sweep.repeats} runs; "
        f"{format_bytes(written_bytes(cells))} of user data per round; kept in {folder}",
        _time_line([cell.cell.name for cell in cells], sweep.repeats, runs),
    ]
    return Group(table, *(Text(line) for line in lines))


def _time_line(names: Sequence[str], rounds: int, runs: Sequence[CellRun]) -> str:
    seconds = left_s(names, rounds, runs)
    if seconds is None:
        return "how long it takes is known after the first round: ask again with --plan then"
    about = "very roughly" if is_rough(names, runs) else "about"
    return f"{about} {format_duration(round(seconds))} left"


def result_view(result: SweepResult) -> RenderableType:
    """The tables, with what there is to see in each."""
    parts: list[RenderableType] = [Text(f"{result.name}: {headline(result)}", style="bold")]
    for table in result.tables:
        parts += [Text(""), Text(table.title, style="bold")]
        columns = [c for c in columns_of(table) if c.label not in _LEFT_OUT]
        parts.append(_table(result, table, columns, table.cells))
        ratios = [c for c in ratio_columns_of(table) if c.label not in _LEFT_OUT]
        if ratios:
            parts.append(Text("ratios to the first cell", style="dim"))
            parts.append(_table(result, table, ratios, table.cells[1:]))
        parts += [Text(note) for note in table.notes]
    parts.append(Text(""))
    parts += [Text(line, style="dim") for line in how_to_read(result)]
    for failure in result.failures[:_FAILURES_SHOWN]:
        why = f": {failure.why}" if failure.why else ""
        line = f"{failure.cell}, round {failure.round + 1}: {failure.outcome}{why}"
        parts.append(Text(line, style="red"))
    parts += [Text(f"warning: {line}", style="yellow") for line in result.warnings]
    return Group(*parts)


def _table(
    result: SweepResult, found: SweepTable, columns: Sequence[Column], cells: Sequence[CellSummary]
) -> Table:
    table = Table(box=None, pad_edge=False)
    for axis in result.axes:
        table.add_column(axis.name, justify="right", no_wrap=True)
    for column in columns:
        table.add_column(column.label, justify="right", overflow="fold")
    best = None if found.best is None else found.cells[found.best]
    for cell in cells:
        told = (column.told(cell) for column in columns)
        table.add_row(*cell.values, *told, style="green" if cell is best else "")
    return table
