"""Pruned trials: how far each came, and what it had shown by then. A bound, not a value."""

from __future__ import annotations

from lsmtune.analysis.source import StudyRecords, Trial
from lsmtune.analysis.tables import Censored
from lsmtune.records.measurement import Outcome
from lsmtune.spec import DataRungs, TimeRungs
from lsmtune.study.rungs import time_reports


def censored(records: StudyRecords, trial: Trial) -> Censored | None:
    """Where `trial` was stopped; None for one that was not pruned, or of which nothing is known."""
    if trial.outcome is not Outcome.PRUNED:
        return None
    if isinstance(records.rungs, TimeRungs):
        return _in_time(records.rungs, trial, records.objective.metric)
    if isinstance(records.rungs, DataRungs):
        return _in_size(records, records.rungs, trial)
    return None


def _in_time(rungs: TimeRungs, trial: Trial, metric: str) -> Censored | None:
    reports = [r for run in trial.runs for r in time_reports(rungs, run.measurement, metric)]
    if not reports:
        return None
    last = reports[-1]
    # A program of the user's own says how it does at steps of its own, which are no times.
    own = any(run.measurement.intermediate for run in trial.runs)
    reached_s = None if own else last.step * rungs.every_s
    return Censored(last.step, reached_s=reached_s, value=last.value)


def _in_size(records: StudyRecords, rungs: DataRungs, trial: Trial) -> Censored | None:
    if not trial.rungs:
        return None
    rung = max(trial.rungs)
    runs = [run.measurement for run in trial.rungs[rung]]
    return Censored(rung, reached_keys=rungs.num[rung], value=records.goal.value(runs))
