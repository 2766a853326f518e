"""The proof run by run: the tuned Config beside the baseline, pair by pair."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from lsmtune.analysis.history import ratio
from lsmtune.analysis.runs import Side, counts, method_of, proof_runs, value_of
from lsmtune.analysis.source import StudyRecords
from lsmtune.analysis.tables import Arm, PairRow
from lsmtune.records.goal import outcome_of
from lsmtune.records.measurement import Outcome


def pairs(records: StudyRecords) -> tuple[PairRow, ...]:
    """Every pair of the latest proof, those with a failed or missing run included."""
    return tuple(
        replace(
            _row(records, number, runs.get(Arm.BASELINE), runs.get(Arm.TUNED)),
            method=method_of(runs),
            counts=counts(records, runs),
        )
        for number, runs in proof_runs(records).items()
    )


def medians(rows: tuple[PairRow, ...]) -> dict[Arm, float]:
    """The median value of each arm over the pairs that count and have a ratio, if there are any."""
    whole = [row for row in rows if row.counts and row.ratio is not None]
    sides = {
        Arm.BASELINE: [row.baseline_value for row in whole if row.baseline_value is not None],
        Arm.TUNED: [row.tuned_value for row in whole if row.tuned_value is not None],
    }
    return {arm: median(values) for arm, values in sides.items() if values}


def _row(records: StudyRecords, number: int, baseline: Side | None, tuned: Side | None) -> PairRow:
    baseline_value, tuned_value = _value(records, baseline), _value(records, tuned)
    return PairRow(
        pair=number,
        baseline_value=baseline_value,
        tuned_value=tuned_value,
        ratio=ratio(tuned_value, baseline_value),
        baseline_outcome=_outcome(baseline),
        tuned_outcome=_outcome(tuned),
    )


def _value(records: StudyRecords, side: Side | None) -> float | None:
    """The value of one side, which has a run under each workload."""
    if side is None:
        return None
    return value_of(records, records.goal.values([run.measurement for run in side]))


def _outcome(side: Side | None) -> Outcome | None:
    return None if side is None else outcome_of([run.measurement for run in side])
