"""The search as tables: trials in order, statistics, failures, slices, repeats, options.

Values are as the machine was in the beginning; a pruned trial is a bound, not a value.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from lsmtune.model.config import OptionValue
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.metrics import shown_in
from lsmtune.report.source import StudyRecords, Trial, best_trial, chosen, measured, value_of
from lsmtune.report.tables import (
    Censored,
    FailureRow,
    History,
    KindRow,
    OptionRow,
    OutcomeCount,
    Place,
    RoleRow,
    RungRow,
    Slice,
    SlicePoint,
    Statistics,
    Told,
    TrialRow,
    TrialRun,
)
from lsmtune.space.parameter import Parameter
from lsmtune.stats.noise import Noise, noise_of
from lsmtune.study.spec import DataRungs, TimeRungs
from lsmtune.study.stored import time_reports


def history(records: StudyRecords) -> History:
    """All trials in order; ratios are to the median of the anchors."""
    anchors = (value_of(records, values) for values in records.baseline_values)
    values = tuple(value for value in anchors if value is not None)
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
        if value is not None and trial.eligible:
            so_far = value if so_far is None or records.goal.better(value, so_far) else so_far
        runs = _runs(records, trial)
        errors = (run.measurement.error for run in trial.all)
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
                error=next((error.message for error in errors if error), ""),
                values=trial.values,
                broken=trial.broken,
                censored=censored(records, trial),
                runs=runs,
                spread=_spread(runs),
                told=_told(trial),
                run_again_after_change=trial.moved and len(runs) > 1,
            )
        )
    return tuple(rows)


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


# --- Pruned trials: how far each came, and what it had shown by then. A bound, not a value


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


# --- How the trials of a study ended, and where its time went

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
    reasons: Counter[str] = Counter()
    for reason, count in records.refused.items():
        reasons[_OVER_MEMORY if reason.startswith(_MEMORY_MODEL) else reason] += count
    return dict(reasons.most_common())


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
    stopped: dict[Censored, list[float]] = {}
    for trial in records.trials:
        at = censored(records, trial)
        if at is not None:
            stopped.setdefault(replace(at, value=None), []).append(trial.wall_s)
    rows = [
        RungRow(at.rung, at.reached_s, at.reached_keys, len(w), sum(w), median(w))
        for at, w in stopped.items()
    ]
    return tuple(sorted(rows, key=lambda row: row.rung))


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


# --- How the runs ended: counts by role and outcome, and the failures grouped by what they said


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
        outcome, error = stored.measurement.outcome, stored.measurement.error
        if outcome not in (Outcome.OK, Outcome.PRUNED):
            said = (error.kind, error.message) if error else ("", "the run left no message")
            groups.setdefault((outcome, *said), []).append(stored.trial)
    rows = [
        FailureRow(outcome, kind, message, len(trials), tuple(t for t in trials if t is not None))
        for (outcome, kind, message), trials in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.count))


# --- Parameter slices: one option of the space against the objective, over all trials


def slices(records: StudyRecords) -> tuple[Slice, ...]:
    """A slice for every parameter of the space, in its order, with a point for every trial."""
    return tuple(_slice(records, parameter) for parameter in records.parameters)


def _slice(records: StudyRecords, parameter: Parameter) -> Slice:
    tuned = chosen(records)
    points = []
    for trial in records.trials:
        option = trial.config.options.get(parameter.name)
        points.append(
            SlicePoint(
                trial=trial.number,
                option_value=option,
                value=value_of(records, trial.values),
                outcome=trial.outcome,
                place=_place(parameter, option),
                is_tuned=tuned is not None and trial.number == tuned.trial,
            )
        )
    return Slice(
        parameter=parameter,
        points=tuple(points),
        baseline=records.baseline.options.get(parameter.name),
        tuned=None if tuned is None else tuned.config.options.get(parameter.name),
    )


def _place(parameter: Parameter, value: OptionValue | None) -> Place:
    if value is None:
        return Place.INACTIVE
    special = any(special.value == value for special in parameter.specials)
    return Place.SPECIAL if special else Place.RANGE


# --- What runs of the same configuration under the same workload come to: medians, ranges, noise

# Of two runs the spread is known within a factor of 30 only.
RUNS_LEAST = 3


@dataclass(frozen=True)
class RepeatRow:
    """One metric of one measure phase over `runs` runs; `low` and `high` are its range.

    `noise` is None with fewer than `RUNS_LEAST` runs, and for values that are not above zero.
    """

    phase: str
    metric: str
    runs: int
    median: float
    low: float
    high: float
    noise: Noise | None


def repeat_rows(measurements: Sequence[Measurement]) -> tuple[RepeatRow, ...]:
    """Each reported metric of each measure phase, over the runs that ended well, in their order."""
    good = [run for run in measurements if run.outcome is Outcome.OK]
    names = dict.fromkeys(phase.name for run in good for phase in measured(run))
    return tuple(row for name in names for row in _repeats_rows(name, good))


def _repeats_rows(name: str, runs: Sequence[Measurement]) -> Iterator[RepeatRow]:
    phases = [phase for run in runs for phase in measured(run) if phase.name == name]
    for metric in shown_in("verdict"):
        values = [value for phase in phases if (value := getattr(phase, metric)) is not None]
        if values:
            yield RepeatRow(
                phase=name,
                metric=metric,
                runs=len(values),
                median=median(values),
                low=min(values),
                high=max(values),
                noise=_noise(values),
            )


def _noise(values: Sequence[float]) -> Noise | None:
    if len(values) < RUNS_LEAST or not all(v > 0 and math.isfinite(v) for v in values):
        return None
    return noise_of(values)


# --- The tuned Config beside the baseline, option by option


def baseline_options(records: StudyRecords) -> Mapping[str, OptionValue]:
    """What the baseline's runs were given: the study's fixed options, and the baseline's own."""
    return {**records.fixed, **records.baseline.options}


def option_rows(records: StudyRecords) -> tuple[OptionRow, ...]:
    """Every option that either arm sets: those of the space first, the changed before the others.

    Empty while the study has no Config to put forward.
    """
    tuned = chosen(records)
    if tuned is None:
        return ()
    space = {parameter.name: parameter for parameter in records.parameters}
    baseline = baseline_options(records)
    candidate = {**records.fixed, **tuned.config.options}
    rows = [
        OptionRow(
            name=name,
            baseline=baseline.get(name),
            tuned=candidate.get(name),
            tuned_by_study=name in space,
            unit=space[name].unit if name in space else "",
            engine_default=space[name].default if name in space else None,
        )
        for name in sorted({*baseline, *candidate})
    ]
    return tuple(sorted(rows, key=lambda row: (not row.tuned_by_study, not row.changed)))
