"""The search in order: each trial's value, the best so far, and the ratio to the baseline."""

from __future__ import annotations

from statistics import median

from lsmtune.analysis.runs import best_trial, chosen, trials_of
from lsmtune.analysis.source import StudyRecords
from lsmtune.analysis.tables import History, TrialRow
from lsmtune.records.objective import Direction
from lsmtune.storage.measurements import Role


def history(records: StudyRecords) -> History:
    """All trials in order; ratios are to the median of the baseline's runs during the search."""
    values = tuple(
        value
        for stored in records.measurements
        if stored.role is Role.BASELINE
        and (value := records.objective.value(stored.measurement)) is not None
    )
    baseline = median(values) if values else None
    rows = _rows(records, baseline)
    best = next((row for row in rows if row.is_best), None)
    return History(
        trials=rows,
        baseline_values=values,
        baseline_value=baseline,
        best_trial=best.trial if best else None,
        best_value=best.value if best else None,
        best_ratio=best.ratio_to_baseline if best else None,
    )


def ratio(value: float | None, baseline: float | None) -> float | None:
    """`value` over `baseline`; None when either is not known or the baseline is zero."""
    return value / baseline if value is not None and baseline else None


def _rows(records: StudyRecords, baseline: float | None) -> tuple[TrialRow, ...]:
    better = max if records.objective.direction is Direction.MAXIMIZE else min
    best = best_trial(records)
    tuned = chosen(records)
    so_far: float | None = None
    rows = []
    for stored in trials_of(records):
        value = records.objective.value(stored.measurement)
        if value is not None:
            so_far = value if so_far is None else better(so_far, value)
        error = stored.measurement.error
        rows.append(
            TrialRow(
                trial=stored.trial if stored.trial is not None else -1,
                outcome=stored.measurement.outcome,
                value=value,
                best_so_far=so_far,
                ratio_to_baseline=ratio(value, baseline),
                is_best=best is not None and stored.id == best.id,
                is_tuned=tuned is not None and stored.trial == tuned.trial,
                elapsed_s=stored.measurement.elapsed_s,
                options=dict(stored.config.options),
                error=error.message if error else "",
            )
        )
    return tuple(rows)
