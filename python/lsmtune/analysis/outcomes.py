"""How the runs ended: counts by role and outcome, and the failures grouped by what they said."""

from __future__ import annotations

from collections import Counter

from lsmtune.analysis.source import StudyRecords
from lsmtune.analysis.tables import FailureRow, OutcomeCount
from lsmtune.records.measurement import Measurement, Outcome


def outcome_counts(records: StudyRecords) -> tuple[OutcomeCount, ...]:
    """Runs per role and outcome, in the order in which roles and outcomes were first seen."""
    counts = Counter((s.role.value, s.measurement.outcome) for s in records.measurements)
    return tuple(OutcomeCount(role, outcome, n) for (role, outcome), n in counts.items())


def failures(records: StudyRecords) -> tuple[FailureRow, ...]:
    """Failed runs, grouped by outcome, kind and message; the most frequent first.

    A pruned run did not fail: it was ended because it promised nothing.
    """
    groups: dict[tuple[Outcome, str, str], list[int | None]] = {}
    for stored in records.measurements:
        if stored.measurement.outcome not in (Outcome.OK, Outcome.PRUNED):
            groups.setdefault(_key(stored.measurement), []).append(stored.trial)
    rows = [
        FailureRow(outcome, kind, message, len(trials), tuple(t for t in trials if t is not None))
        for (outcome, kind, message), trials in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.count))


def _key(measurement: Measurement) -> tuple[Outcome, str, str]:
    error = measurement.error
    if error is None:
        return measurement.outcome, "", "the run left no message"
    return measurement.outcome, error.kind, error.message
