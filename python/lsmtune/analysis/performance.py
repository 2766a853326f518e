"""What the engine sustained: burst, sustained and drain of both arms, and the tree they left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from lsmtune.analysis.history import ratio
from lsmtune.analysis.runs import arms, measured, workload_label
from lsmtune.analysis.source import StudyRecords
from lsmtune.analysis.tables import Arm
from lsmtune.analysis.trust_tables import LevelRow, PerformanceRow
from lsmtune.records.measurement import Outcome, PhaseMeasurement

# The burst, what was sustained, and what lies between: time to flush and compact what was left.
SHOWN = (
    *("throughput_ops_s", "sustained_throughput_ops_s", "drain_s", "elapsed_s"),
    *("flushes", "flush_bytes", "compactions", "compaction_read_bytes", "compaction_write_bytes"),
    *("write_amplification", "stall_s"),
)

# By workload and phase, in the order in which they were run.
_Phases = dict[tuple[str, str], dict[Arm, list[PhaseMeasurement]]]


def performance_rows(records: StudyRecords) -> tuple[PerformanceRow, ...]:
    """Each figure of `SHOWN` for each measure phase, where some run observed it."""
    rows = (
        _row(workload, phase, metric, sides)
        for (workload, phase), sides in _phases(records).items()
        for metric in SHOWN
    )
    return tuple(row for row in rows if row.baseline is not None or row.tuned is not None)


def level_rows(records: StudyRecords) -> tuple[LevelRow, ...]:
    """Each level down to the deepest that either arm used, for each measure phase that tells."""
    return tuple(
        row
        for (workload, phase), sides in _phases(records).items()
        for arm, runs in sides.items()
        for row in _levels(workload, phase, arm, runs)
    )


def tree_depth(phases: Iterable[PhaseMeasurement]) -> int:
    """How many levels of the tree were used, or written to, in some of these phases."""
    return max((_depth(phase) for phase in phases), default=0)


def level_numbers(phase: PhaseMeasurement, level: int) -> tuple[float | None, ...]:
    """Of one level: its files and bytes at the end, the compactions into it, what they wrote."""
    work = {each.level: each for each in phase.levels or ()}.get(level)
    done = (0, 0) if phase.levels is not None else (None, None)
    if work is not None:
        done = (work.compactions, work.compaction_write_bytes)
    return (_at(phase.files_per_level, level), _at(phase.bytes_per_level, level), *done)


def middle(values: Iterable[float | None]) -> float | None:
    """The median of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _phases(records: StudyRecords) -> _Phases:
    found: _Phases = {}
    for arm, runs in arms(records).items():
        for stored in runs:
            if stored.measurement.outcome is not Outcome.OK:
                continue
            for phase in measured(stored.measurement):
                key = workload_label(records, stored), phase.name
                found.setdefault(key, {each: [] for each in Arm})[arm].append(phase)
    return found


def _row(
    workload: str, phase: str, metric: str, sides: dict[Arm, list[PhaseMeasurement]]
) -> PerformanceRow:
    baseline, tuned = (middle(getattr(run, metric) for run in sides[arm]) for arm in Arm)
    return PerformanceRow(workload, phase, metric, baseline, tuned, ratio(tuned, baseline))


def _levels(
    workload: str, phase: str, arm: Arm, runs: Sequence[PhaseMeasurement]
) -> Iterator[LevelRow]:
    for level in range(tree_depth(runs)):
        columns = zip(*(level_numbers(run, level) for run in runs), strict=True)
        files, size, compactions, written = (middle(column) for column in columns)
        flushes = middle(run.flushes for run in runs) if level == 0 else None
        flush_bytes = middle(run.flush_bytes for run in runs) if level == 0 else None
        yield LevelRow(
            workload, phase, arm, level, files, size, flushes, flush_bytes, compactions, written
        )


def _depth(phase: PhaseMeasurement) -> int:
    held = [level for level, files in enumerate(phase.files_per_level or ()) if files]
    held += [level for level, size in enumerate(phase.bytes_per_level or ()) if size]
    held += [work.level for work in phase.levels or () if work.compactions]
    return 1 + max(held, default=-1)


def _at(values: Sequence[int] | None, level: int) -> float | None:
    return values[level] if values is not None and level < len(values) else None
