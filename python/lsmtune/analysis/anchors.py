"""The series of anchors: the baseline over the time of the study, and where the machine changed.

What the series says is `study.drift`'s: this only puts numbers of rows into seconds and trials.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from lsmtune.analysis.source import StudyRecords, Trial
from lsmtune.analysis.trust_tables import AnchorPoint, AnchorSegment, AnchorSeries, MachineChange
from lsmtune.stats.changepoint import VALUES_LEAST
from lsmtune.study.drift import Segment
from lsmtune.study.stored import Round


def anchor_series(records: StudyRecords) -> tuple[AnchorSeries, ...]:
    """One series for each objective; empty where the baseline has not been run."""
    if not records.anchors:
        return ()
    return tuple(_series(records, index) for index in range(len(records.goal.objectives)))


def _series(records: StudyRecords, index: int) -> AnchorSeries:
    objective, clock = records.goal.objectives[index], _Clock(records)
    # A series in which nothing can be judged has no segments.
    segments = records.drift.series[index].segments if records.drift.series else ()
    points = [
        _point(clock, anchor, anchor.values[index], _segment_of(anchor, segments))
        for anchor in records.anchors
        if anchor.values is not None
    ]
    return AnchorSeries(
        objective=objective.label,
        metric=objective.metric,
        anchors_least=VALUES_LEAST,
        points=tuple(points),
        segments=tuple(_segment(clock, records.anchors, each) for each in segments),
        changes=tuple(
            _change(records, clock, before, after) for before, after in pairwise(segments)
        ),
    )


class _Clock:
    """How long the study had worked at each row, and how many trials it had begun."""

    def __init__(self, records: StudyRecords) -> None:
        rows = sorted(records.measurements, key=lambda stored: stored.id)
        self._ids = [stored.id for stored in rows]
        self._ends_s = [0.0, *accumulate(stored.wall_s for stored in rows)]
        self._firsts = sorted(trial.first for trial in records.trials)
        self.roles = {stored.id: stored.role.value for stored in rows}

    def begin_s(self, row: int) -> float:
        return self._ends_s[bisect_left(self._ids, row)]

    def end_s(self, row: int) -> float:
        return self._ends_s[bisect_right(self._ids, row)]

    def trials_before(self, row: int) -> int:
        return bisect_left(self._firsts, row)


def _point(clock: _Clock, anchor: Round, value: float, segment: int | None) -> AnchorPoint:
    return AnchorPoint(
        role=clock.roles[anchor.first],
        at_s=clock.end_s(anchor.last),
        trials_before=clock.trials_before(anchor.first),
        value=value,
        segment=segment,
    )


def _segment_of(anchor: Round, segments: Sequence[Segment]) -> int | None:
    inside = (n for n, each in enumerate(segments) if each.first <= anchor.first <= each.last)
    return next(inside, None)


def _segment(clock: _Clock, anchors: Sequence[Round], segment: Segment) -> AnchorSegment:
    return AnchorSegment(
        from_s=clock.begin_s(segment.first),
        to_s=clock.end_s(segment.last),
        level=math.exp(segment.log_level),
        anchors=sum(_segment_of(anchor, [segment]) is not None for anchor in anchors),
    )


def _change(records: StudyRecords, clock: _Clock, before: Segment, after: Segment) -> MachineChange:
    meanwhile = [trial for trial in records.trials if before.last < trial.first < after.first]
    earlier = [trial.number for trial in records.trials if trial.first < before.last]
    later = [trial.number for trial in records.trials if trial.first > after.first]
    return MachineChange(
        from_s=clock.end_s(before.last),
        to_s=clock.begin_s(after.first),
        ratio=math.exp(after.log_level - before.log_level),
        last_trial=max(earlier, default=None),
        first_trial=min(later, default=None),
        run_again=tuple(trial.number for trial in meanwhile if len(trial.rounds) > 1),
        left=tuple(trial.number for trial in meanwhile if _to_be_run_again(trial)),
    )


def _to_be_run_again(trial: Trial) -> bool:
    """Whether a trial has a value of which nobody knows how fast the machine was."""
    return len(trial.rounds) == 1 and trial.values is not None
