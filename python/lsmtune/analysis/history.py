"""The search in order: each trial's value, the best so far, and the ratio to the baseline."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from lsmtune.analysis.censored import censored
from lsmtune.analysis.runs import best_trial, chosen, value_of
from lsmtune.analysis.source import StudyRecords, Trial
from lsmtune.analysis.tables import History, TrialRow


def history(records: StudyRecords) -> History:
    """All trials in order; ratios are to the median of the baseline's runs during the search."""
    found = (value_of(records, values) for values in records.baseline_values)
    values = tuple(value for value in found if value is not None)
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
    best, tuned = best_trial(records), chosen(records)
    so_far: float | None = None
    rows = []
    for trial in records.trials:
        value = value_of(records, trial.values)
        if (
            value is not None
            and trial.eligible
            and (so_far is None or records.goal.better(value, so_far))
        ):
            so_far = value
        rows.append(
            TrialRow(
                trial=trial.number,
                outcome=trial.outcome,
                value=value,
                best_so_far=so_far,
                ratio_to_baseline=ratio(value, baseline),
                is_best=best is not None and trial.number == best.number,
                is_tuned=tuned is not None and trial.number == tuned.trial,
                elapsed_s=trial.elapsed_s,
                options=dict(trial.config.options),
                error=_error(trial),
                values=trial.values,
                broken=trial.broken,
                censored=censored(records, trial),
            )
        )
    return tuple(rows)


def _error(trial: Trial) -> str:
    return _first(run.measurement.error.message for run in trial.all if run.measurement.error)


def _first(messages: Iterable[str]) -> str:
    return next(iter(messages), "")
