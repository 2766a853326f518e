"""The importance of a study's parameters, for each of its objectives."""

from __future__ import annotations

from collections.abc import Callable

from lsmtune.analysis.encoding import ScoredTrial
from lsmtune.analysis.importance import RESAMPLES, Method, importance
from lsmtune.analysis.insight_tables import Importance
from lsmtune.analysis.source import StudyRecords, Trial
from lsmtune.records.measurement import Outcome
from lsmtune.records.objective import Direction

# They say nothing of the options: the user stopped the run, or the disk was full of something.
_NO_OBSERVATION = (Outcome.CANCELLED, Outcome.DISK_FULL)


def importances(
    records: StudyRecords,
    method: Method,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[Importance, ...]:
    """One table per objective; the draws follow from the study's seed."""
    several = len(records.goal.objectives)
    found = []
    for index, objective in enumerate(records.goal.objectives):

        def told(done: int, of: int, before: int = index * RESAMPLES[method]) -> None:
            if on_progress is not None:
                on_progress(before + done, several * of)

        found.append(
            importance(
                records.parameters,
                [_scored(t, index) for t in records.trials if t.outcome not in _NO_OBSERVATION],
                metric=objective.label,
                maximize=objective.direction is Direction.MAXIMIZE,
                method=method,
                seed=records.seed,
                on_progress=told,
            )
        )
    return tuple(found)


def _scored(trial: Trial, objective: int) -> ScoredTrial:
    value = None if trial.values is None else trial.values[objective]
    return ScoredTrial(trial.config.options, value)
