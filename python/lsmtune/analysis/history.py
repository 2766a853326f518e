"""The search in order: each trial's value, the best so far, and the ratio to the baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from lsmtune.analysis.censored import censored
from lsmtune.analysis.runs import best_trial, chosen, value_of
from lsmtune.analysis.source import StudyRecords, Trial
from lsmtune.analysis.tables import History, Told, TrialRow, TrialRun


def history(records: StudyRecords) -> History:
    """All trials in order; ratios are to the median of the anchors."""
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
        row = replace(
            _row(records, trial, value),
            best_so_far=so_far,
            ratio_to_baseline=ratio(value, baseline),
            is_best=best is not None and trial.number == best.number,
            is_tuned=tuned is not None and trial.number == tuned.trial,
        )
        rows.append(row)
    return tuple(rows)


def _row(records: StudyRecords, trial: Trial, value: float | None) -> TrialRow:
    """What is known of a trial by itself."""
    runs = _runs(records, trial)
    return TrialRow(
        trial=trial.number,
        outcome=trial.outcome,
        value=value,
        best_so_far=None,
        ratio_to_baseline=None,
        is_best=False,
        is_tuned=False,
        elapsed_s=trial.elapsed_s,
        options=dict(trial.config.options),
        error=_error(trial),
        values=trial.values,
        broken=trial.broken,
        censored=censored(records, trial),
        runs=runs,
        spread=_spread(runs),
        told=_told(trial),
        run_again_after_change=trial.moved and len(runs) > 1,
    )


def _runs(records: StudyRecords, trial: Trial) -> tuple[TrialRun, ...]:
    return tuple(
        TrialRun(value_of(records, each.values), value_of(records, each.judged), each.counts)
        for each in trial.rounds
    )


def _spread(runs: Sequence[TrialRun]) -> float | None:
    values = [run.judged for run in runs if run.counts and run.judged is not None]
    middle = median(values) if len(values) > 1 else 0.0
    return (max(values) - min(values)) / 2 / middle if middle > 0 else None


def _told(trial: Trial) -> Told | None:
    told = trial.told
    if told is None:
        return None
    noise = told.noise
    return Told(
        state=told.state.name.lower(),
        values=told.values,
        sd=None if noise is None else math.sqrt(noise.variance),
        runs=None if noise is None else noise.runs,
    )


def _error(trial: Trial) -> str:
    return _first(run.measurement.error.message for run in trial.all if run.measurement.error)


def _first(messages: Iterable[str]) -> str:
    return next(iter(messages), "")
