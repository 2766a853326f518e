"""The proof as tables: pairs, workloads, what was sustained, the trees, series, how it ended."""

from __future__ import annotations

from collections.abc import Sequence

from lsmtune.model.goal import outcome_of
from lsmtune.model.measurement import Outcome, PhaseMeasurement
from lsmtune.model.metrics import shown_in
from lsmtune.model.verdict import VerdictOutcome
from lsmtune.proof.pairs import failed, measurements
from lsmtune.proof.survival import Survival
from lsmtune.report import words as text
from lsmtune.report.document import Column
from lsmtune.report.history import ratio
from lsmtune.report.source import (
    StudyRecords,
    arms,
    chosen,
    counted_pairs,
    counts,
    middle,
    proof_pairs,
    value_of,
    workload_label,
)
from lsmtune.report.tables import Arm, Ended, PairRow, ProofFacts, Row
from lsmtune.stats.sequential import pairs_at_least

# The burst, what was sustained, and what lies between: time to flush and compact what was left.
SHOWN = shown_in("sustained")

# By workload and phase, in the order in which they were run.
_Phases = dict[tuple[str, str], dict[Arm, list[PhaseMeasurement]]]


def _phases(records: StudyRecords) -> _Phases:
    phases: _Phases = {}
    for arm, runs in arms(records).items():
        for stored in runs:
            if stored.measurement.outcome is not Outcome.OK:
                continue
            for phase in stored.measurement.measured_phases:
                key = workload_label(records, stored), phase.name
                phases.setdefault(key, {each: [] for each in Arm})[arm].append(phase)
    return phases


def performance_rows(records: StudyRecords) -> list[Row]:
    """Each figure of `SHOWN` for each measure phase, where some run observed it: medians."""
    rows = []
    for (workload, phase), sides in _phases(records).items():
        for metric in SHOWN:
            baseline, tuned = (middle(getattr(run, metric) for run in sides[arm]) for arm in Arm)
            if baseline is not None or tuned is not None:
                row = {"workload": workload, "phase": phase, "metric": metric}
                figures = {"baseline": baseline, "tuned": tuned, "ratio": ratio(tuned, baseline)}
                rows.append(row | figures)
    return rows


def level_rows(records: StudyRecords) -> list[Row]:
    """The `tree_rows` of each arm, for each measure phase that tells."""
    return [
        {"workload": workload, "phase": phase, "arm": arm, **row}
        for (workload, phase), sides in _phases(records).items()
        for arm, runs in sides.items()
        for row in tree_rows(runs)
    ]


def tree_rows(phases: Sequence[PhaseMeasurement]) -> list[Row]:
    """Each level down to the deepest that some of `phases` used, or wrote to: medians over them.

    `files` and `bytes` are those at the end of the phase; `compactions` those into this level
    during the phase, `flushes` for level 0.
    """
    used = [-1]
    for phase in phases:
        used += [level for level, files in enumerate(phase.files_per_level or ()) if files]
        used += [level for level, size in enumerate(phase.bytes_per_level or ()) if size]
        used += [work.level for work in phase.levels or () if work.compactions]
    rows = []
    for level in range(1 + max(used)):
        columns = zip(*(_level_numbers(phase, level) for phase in phases), strict=True)
        files, size, compactions, written = map(middle, columns)
        top = phases if level == 0 else []
        rows.append(
            {
                "level": level,
                "files": files,
                "bytes": size,
                "flushes": middle(phase.flushes for phase in top),
                "flush_bytes": middle(phase.flush_bytes for phase in top),
                "compactions": compactions,
                "compaction_write_bytes": written,
            }
        )
    return rows


def _level_numbers(phase: PhaseMeasurement, level: int) -> tuple[float | None, ...]:
    """Of one level: its files and bytes at the end, the compactions into it, what they wrote."""
    work = {each.level: each for each in phase.levels or ()}.get(level)
    done = (0, 0) if phase.levels is not None else (None, None)
    if work is not None:
        done = (work.compactions, work.compaction_write_bytes)
    held = (
        values[level] if values is not None and level < len(values) else None
        for values in (phase.files_per_level, phase.bytes_per_level)
    )
    return (*held, *done)


TREE = (
    Column("level", key="level"),
    Column("files", text.number, "files"),
    Column("size", text.size, "bytes"),
    Column("flushes", lambda row: text.number(row["flushes"]) if row["level"] == 0 else ""),
    Column("compactions", text.number, "compactions"),
    Column("written by them", text.size, "compaction_write_bytes"),
)


# --- The proof run by run: the tuned Config beside the baseline, pair by pair


def pairs(records: StudyRecords) -> tuple[PairRow, ...]:
    """Every pair of the latest proof, those with a failed run included.

    A gain is over the median baseline of these pairs: runs of the search may be of another size.
    """
    rows, goal, proof = [], records.spec.goal, proof_pairs(records)
    base = middle(goal.value(measurements(pair.baseline)) for pair in proof)
    for pair, counted in zip(proof, counts(records, proof), strict=True):
        first = pair.runs[0]
        # A side has a run under each workload.
        sides = [measurements(side) for side in (pair.baseline, pair.candidate)]
        baseline, tuned = (value_of(records, goal.values(side), base) for side in sides)
        one, other = map(outcome_of, sides)
        number, method = first.pair or 0, first.measurement.paired_by
        quotient = ratio(tuned, baseline)
        rows.append(PairRow(number, baseline, tuned, quotient, one, other, method, counted))
    return tuple(rows)


def medians(rows: Sequence[PairRow]) -> dict[Arm, float]:
    """The median value of each arm over the pairs that count and have a ratio, if there are any."""
    whole = [row for row in rows if row.counts and row.ratio is not None]
    sides = {
        Arm.BASELINE: middle(row.baseline_value for row in whole),
        Arm.TUNED: middle(row.tuned_value for row in whole),
    }
    return {arm: value for arm, value in sides.items() if value is not None}


def workload_rows(records: StudyRecords) -> list[Row]:
    """Each objective under each workload, on both arms; empty for a single workload.

    Medians over the runs of the proof; before any, over those of the search. The ratio is of these
    medians.
    """
    goal, workloads = records.spec.goal, records.spec.workloads
    if len(workloads) == 1:
        return []
    sides, rows = arms(records), []
    for index, workload in enumerate(workloads):
        for objective in goal.objectives:
            baseline, tuned = (
                middle(objective.value(r.measurement) for r in sides[arm] if r.workload == index)
                for arm in Arm
            )
            rows.append(
                {
                    "workload": workload.label,
                    "share": goal.shares[index],
                    "objective": objective.label,
                    "metric": objective.metric,
                    "baseline": baseline,
                    "tuned": tuned,
                    "ratio": ratio(tuned, baseline),
                }
            )
    return rows


# --- How the proof was made, beside what its verdict says


def proof_facts(records: StudyRecords) -> ProofFacts | None:
    """None without a verdict."""
    verdict, plan = records.verdict, records.spec.proof
    if verdict is None:
        return None
    low, high = verdict.ratio_low, verdict.ratio_high
    ended = None
    if verdict.method and not records.of_fleet:
        ended = Ended.PAIRS if verdict.pairs >= plan.pairs else Ended.OTHER
        # A bound that is None lies far off.
        if (low is not None and low > 1.0) or (high is not None and high < 1.0):
            ended = Ended.DECIDED
        # Also where a guard was broken, and made another outcome of it.
        limit = 1.0 + (plan.smallest_effect or 0.0)
        within = low is not None and high is not None and 1.0 / limit <= low and high <= limit
        alike = plan.smallest_effect is not None and within
        if alike or verdict.outcome is VerdictOutcome.EQUIVALENT:
            ended = Ended.EQUIVALENT
        # Also where a gain was clear: its proof goes on for the intervals of the other metrics.
        if any(failed(pair.candidate) for pair in counted_pairs(records)[-1:]):
            ended = Ended.OTHER
    each = verdict.confidence_each
    least = None if each is None else pairs_at_least(each)
    return ProofFacts(ended, plan.pairs, plan.smallest_effect, least)


def survival(records: StudyRecords) -> Survival:
    """The latest tests of the configuration that the study puts forward, those that were made."""
    tuned = chosen(records)
    options = None if tuned is None else tuned.config.engine_options()
    return Survival(
        next((t for of, t in reversed(records.crash_tests) if of["options"] == options), None),
        next((t for of, t in reversed(records.power_tests) if of["options"] == options), None),
    )


# --- Throughput over time: the interval series of both arms' runs


def interval_series(records: StudyRecords) -> list[Row]:
    """The objective's phase of every run that stands for an arm and ended well.

    As far as it has intervals.
    """
    rows = []
    for arm, runs in arms(records).items():
        for stored in runs:
            phase = records.spec.objective.phase_of(stored.measurement)
            ended_well = stored.measurement.outcome is Outcome.OK
            if phase is None or not phase.intervals or not ended_well:
                continue
            points = [
                {"elapsed_s": each.elapsed_s, "throughput_ops_s": each.throughput_ops_s}
                for each in phase.intervals
            ]
            label = workload_label(records, stored)
            rows.append({"arm": arm, "measurement": stored.id, "points": points, "workload": label})
    return rows
