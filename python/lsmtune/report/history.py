"""The search as tables: trials in order, the front, statistics, failures, repeats, options.

Values are as the machine was in the beginning; a pruned trial is a bound, not a value.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from lsmtune.engines.differences import differences, option_unit
from lsmtune.model.goal import Direction
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.metrics import shown_in
from lsmtune.report.source import StudyRecords, chosen, metric_of, value_of
from lsmtune.report.tables import GAIN, Censored, Front, FrontRow, History, Row, TrialRow, TrialRun
from lsmtune.space.range import Range
from lsmtune.stats.noise import Noise, noise_of
from lsmtune.stats.pareto import front as front_of
from lsmtune.study.judging import JudgedTrial
from lsmtune.study.spec import DataRungs
from lsmtune.study.start import baseline_config
from lsmtune.study.stored import Round


def history(records: StudyRecords) -> History:
    """All trials in order; ratios are to the median of the anchors."""
    anchors = (value_of(records, values) for values in records.baseline_values)
    values = tuple(value for value in anchors if value is not None)
    baseline = median(values) if values else None
    tuned, rows = chosen(records), []
    so_far: float | None = None
    for trial in records.trials:
        value = value_of(records, trial.end.values)
        rejected = trial.number in records.judgement.rejected
        if value is not None and trial.end.eligible and not rejected:
            best_yet = so_far is None or records.spec.goal.direction.better(value, so_far)
            so_far = value if best_yet else so_far
        is_tuned = tuned is not None and trial.number == tuned.trial
        rows.append(_trial_row(records, trial, baseline, so_far, is_tuned=is_tuned))
    best = next((row for row in rows if row.is_best), None)
    return History(
        trials=tuple(rows),
        baseline_values=values,
        baseline_value=baseline,
        best_trial=best.trial if best else None,
        best_value=best.value if best else None,
        best_ratio=best.ratio_to_baseline if best else None,
        lifted_trial=_lifted(records, best.value if best else baseline),
    )


def _lifted(records: StudyRecords, least: float | None) -> int | None:
    """The best of the trials that break guards and nothing else; None where `least` is as good."""
    guards, direction = {guard.text for guard in records.spec.guards}, records.spec.goal.direction
    number: int | None = None
    value = least
    for trial in records.trials:
        own, end = value_of(records, trial.end.values), trial.end
        only_guards = end.pickable and end.broken and guards.issuperset(end.broken)
        if own is None or value is None or not only_guards:
            continue
        if direction.better(own, value):
            number, value = trial.number, own
    return number


def ratio(value: float | None, baseline: float | None) -> float | None:
    """`value` over `baseline`; None when either is not known, or that says nothing.

    It says nothing of a value below zero, nor over a baseline that is not above it.
    """
    if value is None or baseline is None or baseline <= 0 or value < 0:
        return None
    return value / baseline


def _trial_row(
    records: StudyRecords,
    trial: JudgedTrial,
    baseline: float | None,
    so_far: float | None,
    *,
    is_tuned: bool,
) -> TrialRow:
    value, ran = value_of(records, trial.end.values), records.ran[trial.number].all
    runs = tuple(_trial_run(records, trial, each) for each in trial.rounds)
    counted = [run.judged for run in runs if run.counts and run.judged is not None]
    level = median(counted) if len(counted) > 1 else 0.0
    errors = (run.measurement.error for run in ran)
    return TrialRow(
        trial=trial.number,
        outcome=trial.end.outcome,
        value=value,
        best_so_far=so_far,
        ratio_to_baseline=ratio(value, baseline),
        is_best=trial.number == records.judgement.best,
        is_tuned=is_tuned,
        elapsed_s=sum(run.measurement.elapsed_s for run in ran),
        options=dict(trial.config.options),
        error=next((error.message for error in errors if error), ""),
        values=trial.end.values,
        broken=trial.end.broken,
        censored=censored(records, trial),
        runs=runs,
        spread=(max(counted) - min(counted)) / 2 / level if level > 0 else None,
        run_again_after_change=len(runs) > 1 and not _is_placed(records, trial.rounds[0]),
    )


# --- The front, of a study with several objectives


def front(records: StudyRecords) -> Front | None:
    """The trials that no other beats, in the order of the first objective; None with one alone.

    A trial that broke a constraint is not on the front, and keeps no other off it.
    """
    goal, rounds = records.spec.goal, records.baseline_values
    if not goal.several:
        return None
    ended = ((trial, trial.end.values) for trial in records.trials)
    valued = [(trial, v) for trial, v in ended if v and all(map(math.isfinite, v))]
    allowed = [(trial, values) for trial, values in valued if not trial.end.broken]
    maximize = [direction is Direction.MAXIMIZE for direction in goal.directions]
    on = [allowed[k] for k in front_of([values for _, values in allowed], maximize)]
    on.sort(key=lambda entry: entry[1][0], reverse=maximize[0])
    kept = {trial.number for trial, _ in on}
    baseline = tuple(median(column) for column in zip(*rounds, strict=True)) if rounds else None
    known = baseline or (None,) * len(goal.objectives)
    tuned = chosen(records)
    return Front(
        objectives=tuple(objective.label for objective in goal.objectives),
        metrics=tuple(objective.metric for objective in goal.objectives),
        directions=tuple(direction.value for direction in goal.directions),
        weights=goal.weights,
        baseline=baseline,
        rows=tuple(
            FrontRow(
                trial=trial.number,
                values=values,
                ratios=tuple(map(ratio, values, known)),
                gain=value_of(records, values) if metric_of(records) == GAIN else None,
                is_picked=trial.number == records.judgement.best,
                is_tuned=tuned is not None and trial.number == tuned.trial,
                options=dict(trial.config.options),
            )
            for trial, values in on
        ),
        others=tuple((t.number, values) for t, values in valued if t.number not in kept),
    )


def _trial_run(records: StudyRecords, trial: JudgedTrial, each: Round) -> TrialRun:
    if each.values is None:
        return TrialRun(None, None, False)
    judged = records.judgement.drift.judged(each.values, each.first, each.host)
    counts = trial.end.values is not None and (trial.unplaced or _is_placed(records, each))
    return TrialRun(value_of(records, each.values), value_of(records, judged), counts)


def _is_placed(records: StudyRecords, each: Round) -> bool:
    """Whether it is known how fast the machine was."""
    return records.judgement.drift.segment_of(each.first, each.host) is not None


# --- Pruned trials: how far each came, and what it had shown by then. A bound, not a value


def censored(records: StudyRecords, trial: JudgedTrial) -> Censored | None:
    """Where `trial` was stopped; None for one that was not pruned, or of which nothing is known."""
    if trial.end.outcome is not Outcome.PRUNED or records.spec.pruner is None:
        return None
    rungs, ran = records.spec.pruner.rungs, records.ran[trial.number]
    if isinstance(rungs, DataRungs):
        if not ran.rungs:
            return None
        last = max(ran.rungs)
        value = trial.reports.get(rungs.step(last))
        return Censored(last, reached_keys=rungs.num[last], value=value)
    if not trial.reports:
        return None
    step, value = list(trial.reports.items())[-1]
    # A program of the user's own says how it does at steps of its own, which are no times.
    own = any(run.measurement.intermediate for run in ran.runs)
    return Censored(step, reached_s=None if own else step * rungs.every_s, value=value)


# --- How the trials of a study ended, and where its time went

_MEMORY_MODEL = "may come to use "  # how the study begins a refusal by the memory model
_OVER_MEMORY = "may come to use more memory than the limit"


def statistics(records: StudyRecords) -> Row:
    """How the trials ended and where the time went. All shares are of `spent_s`.

    `finished` counts every trial that ended, `complete` those with a value, `failed` those that
    neither have one nor were pruned; `without_pruning` is `finished` less `pruned`. `put_back`
    were cut off by an interruption and tried again; `refused` counts, by reason, the configurations
    that were refused before they cost a run; `broken` the trials that broke each constraint on
    outcomes. A budget that is None is open. `elapsed_s` is None but for a fleet, whose hosts work
    at once: its time by the clock, which the budget is of. `uncounted_s` of `spent_s` went to runs
    that no longer count, since runs became longer, and to those that were lost.
    """
    trials = records.trials
    counted_s = sum(stored.wall_s for stored in records.measurements)
    spent_s = max(records.spent_s, counted_s)
    complete = sum(trial.end.values is not None for trial in trials)
    pruned = sum(trial.end.outcome is Outcome.PRUNED for trial in trials)
    # By reason, the most frequent first; those of the memory model, each with its size, as one.
    refused: Counter[str] = Counter()
    for reason, count in records.refused.items():
        refused[_OVER_MEMORY if reason.startswith(_MEMORY_MODEL) else reason] += count
    kinds: dict[Outcome, list[float]] = {}
    rungs: dict[Censored, list[float]] = {}
    for trial in trials:
        wall_s = sum(run.wall_s for run in records.ran[trial.number].all)
        kinds.setdefault(trial.end.outcome, []).append(wall_s)
        at = censored(records, trial)
        if at is not None:
            rungs.setdefault(replace(at, value=None), []).append(wall_s)
    roles: dict[str, list[float]] = {}
    for stored in records.measurements:
        roles.setdefault(stored.role.value, []).append(stored.wall_s)

    def cost(walls_s: Sequence[float]) -> Row:
        return {"total_s": sum(walls_s), "median_s": median(walls_s)}

    def share(walls_s: Sequence[float]) -> Row:
        return {"share": sum(walls_s) / spent_s if spent_s > 0 else 0.0}

    return {
        "finished": len(trials),
        "complete": complete,
        "pruned": pruned,
        "failed": len(trials) - complete - pruned,
        "without_pruning": len(trials) - pruned,
        "put_back": records.put_back,
        "refused": dict(refused.most_common()),
        "broken": dict(records.judgement.broken),
        # The most frequent outcome first, the lowest rung first, roles in the order of the study.
        "kinds": [
            {"outcome": outcome, "trials": len(walls), **cost(walls), **share(walls)}
            for outcome, walls in sorted(kinds.items(), key=lambda kind: -len(kind[1]))
        ],
        "rungs": [
            {"rung": at.rung, "at_s": at.reached_s, "at_keys": at.reached_keys}
            | {"trials": len(walls), **cost(walls)}
            for at, walls in sorted(rungs.items(), key=lambda rung: rung[0].rung)
        ],
        "roles": [
            {"role": role, "runs": len(walls), **cost(walls), **share(walls)}
            for role, walls in roles.items()
        ],
        "spent_s": spent_s,
        "uncounted_s": spent_s - counted_s,
        "elapsed_s": records.elapsed_s,
        "search_ended": records.search_ended or None,
        "budget_s": records.spec.budget.time_s,
        "budget_trials": records.spec.budget.trials,
    }


# --- How the runs ended: counts by role and outcome, and the failures grouped by what they said


def outcome_counts(records: StudyRecords) -> list[Row]:
    """Runs per role and outcome, in the order in which roles and outcomes were first seen."""
    counts = Counter((s.role.value, s.measurement.outcome) for s in records.measurements)
    return [{"role": role, "outcome": end, "count": n} for (role, end), n in counts.items()]


def failures(records: StudyRecords) -> list[Row]:
    """Failed runs, grouped by outcome, kind and message; the most frequent first.

    A pruned run did not fail: it was ended because it promised nothing.
    """
    groups: dict[tuple[Outcome, str, str], list[int | None]] = {}
    for stored in records.measurements:
        outcome, error = stored.measurement.outcome, stored.measurement.error
        if outcome not in (Outcome.OK, Outcome.PRUNED):
            kind = error.kind if error else ""
            message = error.message if error else "the run left no message"
            groups.setdefault((outcome, kind, message), []).append(stored.trial)
    return [
        {"outcome": outcome, "kind": kind, "message": message, "count": len(trials)}
        | {"trials": [trial for trial in trials if trial is not None]}
        for (outcome, kind, message), trials in sorted(groups.items(), key=lambda g: -len(g[1]))
    ]


# --- Where a value lies in its range


def share_of_range(numbers: Range, value: float) -> float:
    """Where `value` is in its range, from 0 to 1, on the range's own scale."""
    low, high, at = float(numbers.low), float(numbers.high), float(value)
    if numbers.log and at > 0:
        low, high, at = math.log(low), math.log(high), math.log(at)
    return (at - low) / (high - low)


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
    phases = [phase for run in good for phase in run.measured_phases]
    rows = []
    for name in dict.fromkeys(phase.name for phase in phases):
        for metric in shown_in("verdict"):
            all_values = (getattr(phase, metric) for phase in phases if phase.name == name)
            values = [value for value in all_values if value is not None]
            if not values:
                continue
            few = len(values) < RUNS_LEAST
            bad = few or not all(value > 0 and math.isfinite(value) for value in values)
            noise = None if bad else noise_of(values)
            middle, low, high = median(values), min(values), max(values)
            rows.append(RepeatRow(name, metric, len(values), middle, low, high, noise))
    return tuple(rows)


# --- The tuned Config beside the baseline, option by option


def option_rows(records: StudyRecords) -> list[Row]:
    """Every option that either arm sets: those of the space first, what differs before the others.

    Empty while the study has no Config to put forward. A value that is None: the engine's default
    holds. `tuned_by_study` tells an option of the space from one that the study fixed;
    `engine_default` is that of the version that ran, None where nobody knows it.
    """
    tuned, spec = chosen(records), records.spec
    if tuned is None:
        return []
    units = {parameter.name: parameter.unit for parameter in spec.space.parameters}
    baseline = baseline_config(spec).options
    candidate = {**spec.fixed, **tuned.config.options}
    differ = {d.option for d in differences(spec.engine_name, candidate, baseline, spec.defaults)}
    rows = [
        {
            "name": name,
            "baseline": baseline.get(name),
            "tuned": candidate.get(name),
            "differs": name in differ,
            "tuned_by_study": name in units,
            "unit": units.get(name) or option_unit(spec.engine_name, name),
            "engine_default": spec.defaults.get(name),
        }
        for name in sorted({*baseline, *candidate})
    ]
    rows.sort(key=lambda row: (not row["tuned_by_study"], not row["differs"]))
    return rows
