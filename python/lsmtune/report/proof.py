"""The proof as tables: pairs, what the engine sustained, the trees, series, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import median

from lsmtune.model.goal import outcome_of
from lsmtune.model.measurement import Outcome, PhaseMeasurement
from lsmtune.model.metrics import shown_in
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.proof.crash_test import CrashTest
from lsmtune.report.history import ratio
from lsmtune.report.source import (
    Side,
    StudyRecords,
    arms,
    chosen,
    counts,
    measured,
    method_of,
    proof_runs,
    value_of,
    workload_label,
)
from lsmtune.report.tables import Arm, PairRow, Series, SeriesPoint
from lsmtune.report.trust_tables import Ended, LevelRow, PerformanceRow, ProofFacts
from lsmtune.stats.sequential import pairs_at_least

# The burst, what was sustained, and what lies between: time to flush and compact what was left.
SHOWN = shown_in("sustained")

# By workload and phase, in the order in which they were run.
_Phases = dict[tuple[str, str], dict[Arm, list[PhaseMeasurement]]]


def performance_rows(records: StudyRecords) -> tuple[PerformanceRow, ...]:
    """Each figure of `SHOWN` for each measure phase, where some run observed it."""
    rows = (
        _row(workload, phase, metric, sides)
        for (workload, phase), sides in _phases(records).items()
        for metric in SHOWN
    )
    return tuple(row for row in rows if row.baseline is not None or row.tuned is not None)


def level_rows(records: StudyRecords) -> tuple[LevelRow, ...]:
    """Each level down to the deepest that either arm used, for each measure phase that tells."""
    return tuple(
        row
        for (workload, phase), sides in _phases(records).items()
        for arm, runs in sides.items()
        for row in _levels(workload, phase, arm, runs)
    )


def tree_depth(phases: Iterable[PhaseMeasurement]) -> int:
    """How many levels of the tree were used, or written to, in some of these phases."""
    return max((_depth(phase) for phase in phases), default=0)


def level_numbers(phase: PhaseMeasurement, level: int) -> tuple[float | None, ...]:
    """Of one level: its files and bytes at the end, the compactions into it, what they wrote."""
    work = {each.level: each for each in phase.levels or ()}.get(level)
    done = (0, 0) if phase.levels is not None else (None, None)
    if work is not None:
        done = (work.compactions, work.compaction_write_bytes)
    return (_at(phase.files_per_level, level), _at(phase.bytes_per_level, level), *done)


def middle(values: Iterable[float | None]) -> float | None:
    """The median of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _phases(records: StudyRecords) -> _Phases:
    found: _Phases = {}
    for arm, runs in arms(records).items():
        for stored in runs:
            if stored.measurement.outcome is not Outcome.OK:
                continue
            for phase in measured(stored.measurement):
                key = workload_label(records, stored), phase.name
                found.setdefault(key, {each: [] for each in Arm})[arm].append(phase)
    return found


def _row(
    workload: str, phase: str, metric: str, sides: dict[Arm, list[PhaseMeasurement]]
) -> PerformanceRow:
    baseline, tuned = (middle(getattr(run, metric) for run in sides[arm]) for arm in Arm)
    return PerformanceRow(workload, phase, metric, baseline, tuned, ratio(tuned, baseline))


def _levels(
    workload: str, phase: str, arm: Arm, runs: Sequence[PhaseMeasurement]
) -> Iterator[LevelRow]:
    for level in range(tree_depth(runs)):
        columns = zip(*(level_numbers(run, level) for run in runs), strict=True)
        files, size, compactions, written = (middle(column) for column in columns)
        flushes = middle(run.flushes for run in runs) if level == 0 else None
        flush_bytes = middle(run.flush_bytes for run in runs) if level == 0 else None
        yield LevelRow(
            workload, phase, arm, level, files, size, flushes, flush_bytes, compactions, written
        )


def _depth(phase: PhaseMeasurement) -> int:
    held = [level for level, files in enumerate(phase.files_per_level or ()) if files]
    held += [level for level, size in enumerate(phase.bytes_per_level or ()) if size]
    held += [work.level for work in phase.levels or () if work.compactions]
    return 1 + max(held, default=-1)


def _at(values: Sequence[int] | None, level: int) -> float | None:
    return values[level] if values is not None and level < len(values) else None


# --- The proof run by run: the tuned Config beside the baseline, pair by pair


def pairs(records: StudyRecords) -> tuple[PairRow, ...]:
    """Every pair of the latest proof, those with a failed or missing run included."""
    return tuple(
        replace(
            _pairs_row(records, number, runs.get(Arm.BASELINE), runs.get(Arm.TUNED)),
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


def _pairs_row(
    records: StudyRecords, number: int, baseline: Side | None, tuned: Side | None
) -> PairRow:
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


# --- How the proof was made, beside what its verdict says


def proof_facts(records: StudyRecords) -> ProofFacts | None:
    """None without a verdict."""
    verdict = records.verdict
    if verdict is None:
        return None
    each = verdict.confidence_each
    return ProofFacts(
        ended=_ended(verdict, records.pairs_max) if verdict.method else None,
        pairs_max=records.pairs_max,
        smallest_effect=records.smallest_effect,
        pairs_least_each=None if each is None else pairs_at_least(each),
    )


def _ended(verdict: Verdict, pairs_max: int) -> Ended:
    if verdict.outcome is VerdictOutcome.EQUIVALENT:
        return Ended.EQUIVALENT
    if _excludes_one(verdict):
        return Ended.DECIDED
    return Ended.PAIRS if verdict.pairs >= pairs_max else Ended.OTHER


def _excludes_one(verdict: Verdict) -> bool:
    """Whether the interval says that the sides differ; a bound that is None lies far off."""
    low, high = verdict.ratio_low, verdict.ratio_high
    return (low is not None and low > 1.0) or (high is not None and high < 1.0)


# --- What became of the tuned configuration's database when its process was killed


def crash_test(records: StudyRecords) -> CrashTest | None:
    """The latest crash test of the configuration that the study puts forward, if it was made."""
    tuned = chosen(records)
    if tuned is None:
        return None
    options = tuned.config.engine_options()
    return next((t for of, t in reversed(records.crash_tests) if dict(of) == options), None)


# --- Throughput over time: the interval series of both arms' runs


def interval_series(records: StudyRecords) -> tuple[Series, ...]:
    """The objective's phase of every run that stands for an arm, where it has intervals."""
    found = []
    for arm, runs in arms(records).items():
        for stored in runs:
            phase = records.objective.phase_of(stored.measurement)
            if phase is None or not phase.intervals:
                continue
            points = tuple(SeriesPoint(i.elapsed_s, i.throughput_ops_s) for i in phase.intervals)
            found.append(Series(arm, stored.id, points, workload_label(records, stored)))
    return tuple(found)
