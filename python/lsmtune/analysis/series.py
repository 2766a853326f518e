"""Throughput over time: the interval series of both arms' runs."""

from __future__ import annotations

from lsmtune.analysis.runs import arms, workload_label
from lsmtune.analysis.source import StudyRecords
from lsmtune.analysis.tables import Series, SeriesPoint


def interval_series(records: StudyRecords) -> tuple[Series, ...]:
    """The objective's phase of every run that stands for an arm, where it has intervals."""
    found = []
    for arm, runs in arms(records).items():
        for stored in runs:
            phase = records.objective.phase_of(stored.measurement)
            if phase is None or not phase.intervals:
                continue
            points = tuple(SeriesPoint(i.elapsed_s, i.throughput_ops_s) for i in phase.intervals)
            found.append(Series(arm, stored.id, points, workload_label(records, stored)))
    return tuple(found)
