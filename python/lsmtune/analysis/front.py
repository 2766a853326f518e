"""The front of a study with several objectives, and what each workload of several came to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from lsmtune.analysis.history import ratio
from lsmtune.analysis.insight_tables import Front, FrontRow, WorkloadRow
from lsmtune.analysis.runs import arms, best_trial, chosen, counted_pairs, metric_of, value_of
from lsmtune.analysis.source import StudyRecords, Trial
from lsmtune.analysis.tables import GAIN, Arm
from lsmtune.records.objective import Direction, Objective
from lsmtune.stats.pareto import front as front_of
from lsmtune.storage.measurements import StoredMeasurement

Sides = Mapping[Arm, Sequence[StoredMeasurement]]


@dataclass(frozen=True)
class _Marks:
    """The trials that a table marks."""

    tuned: int | None
    picked: int | None


def front(records: StudyRecords) -> Front | None:
    """The trials that no other beats, in the order of the first objective; None with one alone.

    A trial that broke a constraint is not on the front, and keeps no other off it.
    """
    goal = records.goal
    if not goal.several:
        return None
    valued = [t for t in records.trials if t.values and all(map(math.isfinite, t.values))]
    allowed = [trial for trial in valued if not trial.broken]
    maximize = [direction is Direction.MAXIMIZE for direction in goal.directions]
    numbers = [_values(trial) for trial in allowed]
    on = [allowed[k] for k in front_of(numbers, maximize)]
    on.sort(key=lambda trial: _values(trial)[0], reverse=maximize[0])
    kept = {trial.number for trial in on}
    baseline = _medians(records.baseline_values)
    tuned, picked = chosen(records), best_trial(records)
    marks = _Marks(tuned.trial if tuned else None, picked.number if picked else None)
    return Front(
        objectives=tuple(objective.label for objective in goal.objectives),
        metrics=tuple(objective.metric for objective in goal.objectives),
        directions=tuple(direction.value for direction in goal.directions),
        weights=goal.weights,
        baseline=baseline,
        rows=tuple(_row(records, trial, baseline, marks) for trial in on),
        others=tuple((t.number, _values(t)) for t in valued if t.number not in kept),
    )


def _values(trial: Trial) -> tuple[float, ...]:
    return trial.values or ()


def _medians(rounds: Sequence[tuple[float, ...]]) -> tuple[float, ...] | None:
    return tuple(median(column) for column in zip(*rounds, strict=True)) if rounds else None


def _row(
    records: StudyRecords, trial: Trial, baseline: tuple[float, ...] | None, marks: _Marks
) -> FrontRow:
    values = _values(trial)
    known = baseline or (None,) * len(values)
    return FrontRow(
        trial=trial.number,
        values=values,
        ratios=tuple(ratio(value, base) for value, base in zip(values, known, strict=True)),
        gain=value_of(records, values) if metric_of(records) == GAIN else None,
        is_picked=trial.number == marks.picked,
        is_tuned=trial.number == marks.tuned,
        options=dict(trial.config.options),
    )


def workload_rows(records: StudyRecords) -> tuple[WorkloadRow, ...]:
    """Each objective under each workload, on both arms; empty for a single workload.

    Medians over the pairs of the proof that are whole on both sides; before any proof, over the
    runs of the search. The ratio is of these medians.
    """
    if len(records.workloads) == 1:
        return ()
    sides = _whole_sides(records)
    return tuple(
        _workload_row(records, index, objective, sides)
        for index in range(len(records.workloads))
        for objective in records.goal.objectives
    )


def _workload_row(
    records: StudyRecords, index: int, objective: Objective, sides: Sides
) -> WorkloadRow:
    baseline, tuned = (_median_of(sides[arm], index, objective) for arm in Arm)
    return WorkloadRow(
        workload=records.workloads[index].label,
        share=records.goal.shares[index],
        objective=objective.label,
        metric=objective.metric,
        baseline=baseline,
        tuned=tuned,
        ratio=ratio(tuned, baseline),
    )


def _median_of(
    runs: Sequence[StoredMeasurement], workload: int, objective: Objective
) -> float | None:
    values = [objective.value(s.measurement) for s in runs if s.workload == workload]
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _whole_sides(records: StudyRecords) -> Sides:
    pairs = [pair for pair in counted_pairs(records) if len(pair) == len(Arm)]
    if not pairs:
        return arms(records)
    return {arm: [run for pair in pairs for run in pair[arm]] for arm in Arm}
