"""The plan of `lsmtune sweep --plan`: its cells, and how long they will take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import RenderableType

from lsmtune.cli.rounds_progress import time_left
from lsmtune.experiment.store import StoredMeasurement
from lsmtune.experiment.sweep import Sweep
from lsmtune.experiment.sweep_grid import GridCell, left_s, written_bytes
from lsmtune.report.document import Paragraph, Table, numbers, words
from lsmtune.report.terminal import blocks_view
from lsmtune.units import format_bytes


def plan_document(
    sweep: Sweep, cells: Sequence[GridCell], runs: Sequence[StoredMeasurement], folder: Path
) -> dict[str, object]:
    """What `sweep --plan --json` prints; `left_s` is None before a run has ended."""
    names = [cell.cell.name for cell in cells]
    return {
        "name": sweep.name,
        "folder": str(folder),
        "cells": [
            {
                "cell": each.cell.name,
                "workload": each.workload,
                "num": each.cell.workload.num,
                "key_bytes": each.cell.workload.key_bytes,
                "value_bytes": each.cell.workload.value_bytes,
                "options": dict(each.cell.config.options),
            }
            for each in cells
        ],
        "rounds": sweep.repeats,
        "runs": len(cells) * sweep.repeats,
        "runs_stored": len(runs),
        "user_bytes_per_round": written_bytes(cells),
        "left_s": left_s(names, sweep.repeats, runs),
    }


def plan_view(
    sweep: Sweep, cells: Sequence[GridCell], runs: Sequence[StoredMeasurement], folder: Path
) -> RenderableType:
    """The cells, and how long they will take as far as that is known."""
    stored = Counter(run.arm for run in runs)
    rows = [
        (
            *(each.workload, *each.values, f"{each.cell.workload.num:,}"),
            format_bytes(written_bytes([each])),
            f"{stored[each.cell.name]} of {sweep.repeats}",
        )
        for each in cells
    ]
    axes = (axis.name for axis in sweep.axes)
    columns = (*words("workload"), *numbers(*axes, "keys", "user data", "runs"))
    size = f"{len(cells)} cells, {sweep.repeats} rounds, {len(cells) * sweep.repeats} runs"
    data = f"{format_bytes(written_bytes(cells))} of user data per round; kept in {folder}"
    unknown = "how long it takes is known after the first round: ask again with --plan then"
    left = time_left([each.cell.name for each in cells], sweep.repeats, runs)
    return blocks_view(
        [Table(columns, rows), Paragraph(f"{size}; {data}"), Paragraph(left or unknown)]
    )
