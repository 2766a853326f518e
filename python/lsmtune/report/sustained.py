"""Burst, sustained and drain as tables: grouped by phase, in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from lsmtune.analysis.tables import Arm
from lsmtune.analysis.trust_tables import LevelRow, PerformanceRow
from lsmtune.report import text

_LABELS = {
    "throughput_ops_s": "burst",
    "sustained_throughput_ops_s": "sustained",
    "elapsed_s": "time until the last call",
    "flush_bytes": "written by flushes",
    "compaction_read_bytes": "read by compactions",
    "compaction_write_bytes": "written by compactions",
}
LevelTable = tuple[str, str, Arm, list[LevelRow]]


def performance_label(metric: str) -> str:
    """A figure's name where all of them stand side by side."""
    return _LABELS.get(metric, text.metric_label(metric))


def performance_tables(
    rows: Sequence[PerformanceRow],
) -> list[tuple[tuple[str, str], list[PerformanceRow]]]:
    """The rows of each (workload, phase)."""
    return [(key, list(of)) for key, of in groupby(rows, lambda row: (row.workload, row.phase))]


def level_tables(rows: Sequence[LevelRow]) -> list[LevelTable]:
    """The levels of each workload, phase and arm."""
    grouped = groupby(rows, lambda row: (row.workload, row.phase, row.arm))
    return [(*key, list(of)) for key, of in grouped]
