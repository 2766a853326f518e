"""How the trials of a study ended, and where its time went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from lsmtune.analysis.censored import censored
from lsmtune.analysis.insight_tables import KindRow, RoleRow, RungRow, Statistics
from lsmtune.analysis.source import StudyRecords, Trial
from lsmtune.analysis.tables import Censored
from lsmtune.records.measurement import Outcome

_MEMORY_MODEL = "may come to use "  # how the study begins a refusal by the memory model
_OVER_MEMORY = "may come to use more memory than the limit"


def statistics(records: StudyRecords) -> Statistics:
    """The figures of the whole study, over all its sessions."""
    spent_s = sum(stored.wall_s for stored in records.measurements)
    trials = records.trials
    complete = sum(trial.values is not None for trial in trials)
    pruned = sum(trial.outcome is Outcome.PRUNED for trial in trials)
    return Statistics(
        finished=len(trials),
        complete=complete,
        pruned=pruned,
        failed=len(trials) - complete - pruned,
        without_pruning=len(trials) - pruned,
        put_back=records.put_back,
        refused=_refused(records),
        broken=dict(Counter(text for trial in trials for text in trial.broken)),
        kinds=_kinds(trials, spent_s),
        rungs=_rungs(records),
        roles=_roles(records, spent_s),
        spent_s=spent_s,
        budget_s=records.budget_s,
        budget_trials=records.budget_trials,
    )


def _refused(records: StudyRecords) -> dict[str, int]:
    """By reason, the most frequent first; those of the memory model, each with its size, as one."""
    found: Counter[str] = Counter()
    for reason, count in records.refused.items():
        found[_OVER_MEMORY if reason.startswith(_MEMORY_MODEL) else reason] += count
    return dict(found.most_common())


def _kinds(trials: Sequence[Trial], spent_s: float) -> tuple[KindRow, ...]:
    """By outcome, the most frequent first."""
    walls: dict[Outcome, list[float]] = {}
    for trial in trials:
        walls.setdefault(trial.outcome, []).append(trial.wall_s)
    rows = [
        KindRow(outcome, len(w), sum(w), median(w), _share(sum(w), spent_s))
        for outcome, w in walls.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.trials))


def _rungs(records: StudyRecords) -> tuple[RungRow, ...]:
    """The pruned trials by the rung at which they were stopped, the lowest first."""
    found: dict[int, list[tuple[Trial, Censored]]] = {}
    for trial in records.trials:
        at = censored(records, trial)
        if at is not None:
            found.setdefault(at.rung, []).append((trial, at))
    return tuple(_rung(rung, found[rung]) for rung in sorted(found))


def _rung(rung: int, stopped: Sequence[tuple[Trial, Censored]]) -> RungRow:
    walls = [trial.wall_s for trial, _ in stopped]
    at = stopped[0][1]
    return RungRow(rung, at.reached_s, at.reached_keys, len(walls), sum(walls), median(walls))


def _roles(records: StudyRecords, spent_s: float) -> tuple[RoleRow, ...]:
    """By what the runs were for, in the order in which the study first did it."""
    walls: dict[str, list[float]] = {}
    for stored in records.measurements:
        walls.setdefault(stored.role.value, []).append(stored.wall_s)
    return tuple(
        RoleRow(role, len(w), sum(w), median(w), _share(sum(w), spent_s))
        for role, w in walls.items()
    )


def _share(part_s: float, whole_s: float) -> float:
    return part_s / whole_s if whole_s > 0 else 0.0
