"""A whole study analysed: every table that a report shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lsmtune.model.config import EngineIdentity
from lsmtune.model.goal import Direction, Objective, WeightedWorkload
from lsmtune.model.verdict import Verdict
from lsmtune.model.workload import Workload
from lsmtune.proof.crash_test import CrashTest
from lsmtune.report.front import front, workload_rows
from lsmtune.report.history import (
    failures,
    history,
    option_rows,
    outcome_counts,
    slices,
    statistics,
)
from lsmtune.report.importance import Method, importances
from lsmtune.report.latencies import latency_curves
from lsmtune.report.notices import notices
from lsmtune.report.proof import (
    crash_test,
    interval_series,
    level_rows,
    medians,
    pairs,
    performance_rows,
    proof_facts,
)
from lsmtune.report.source import StudyRecords, chosen, counted_pairs, metric_of, run_rows
from lsmtune.report.tables import (
    Arm,
    FailureRow,
    Front,
    History,
    Importance,
    LatencyCurve,
    Notice,
    OptionRow,
    OutcomeCount,
    PairRow,
    RunRow,
    Series,
    Slice,
    Statistics,
    Status,
    WorkloadRow,
)
from lsmtune.report.trust import anchor_series, conditions, noise_rows
from lsmtune.report.trust_tables import (
    AnchorSeries,
    Conditions,
    LevelRow,
    NoiseRow,
    PerformanceRow,
    ProofFacts,
)


@dataclass(frozen=True)
class StudyAnalysis:
    """What a stored study says. `arms_from_proof` tells whether curves and series are the proof's.

    `metric` and `direction` are those of the values of trials and pairs: the objective's, or of a
    gain over several objectives. `objective` and `workload` are the first of `objectives` and
    `workloads`. `engines` are those that the runs met, in order; `medians` are those of the pairs.
    `started_unix_s` is the first run's start. `front` is None with one objective,
    `by_workload` empty with one workload. `importances` has one table per objective, or none where
    none was asked for. `anchors` has one series per objective. `proof` is None without a verdict,
    `crash_test` where the tuned configuration was not tested so.
    """

    name: str
    path: Path
    status: Status
    metric: str
    direction: Direction
    objective: Objective
    objectives: tuple[Objective, ...]
    workload: Workload
    workloads: tuple[WeightedWorkload, ...]
    engines: tuple[EngineIdentity, ...]
    verdict: Verdict | None
    tuned_trial: int | None
    arms_from_proof: bool
    started_unix_s: float | None
    measured_s: float
    machine: Mapping[str, str]
    options: tuple[OptionRow, ...]
    result_files: tuple[Path, ...]
    history: History
    pairs: tuple[PairRow, ...]
    medians: Mapping[Arm, float]
    latencies: tuple[LatencyCurve, ...]
    series: tuple[Series, ...]
    slices: tuple[Slice, ...]
    front: Front | None
    by_workload: tuple[WorkloadRow, ...]
    importances: tuple[Importance, ...]
    statistics: Statistics
    outcomes: tuple[OutcomeCount, ...]
    failures: tuple[FailureRow, ...]
    notices: tuple[Notice, ...]
    runs: tuple[RunRow, ...]
    anchors: tuple[AnchorSeries, ...]
    noise: tuple[NoiseRow, ...]
    proof: ProofFacts | None
    crash_test: CrashTest | None
    performance: tuple[PerformanceRow, ...]
    levels: tuple[LevelRow, ...]
    conditions: Conditions


def analyse(
    records: StudyRecords,
    method: Method | None = Method.PED_ANOVA,
    on_progress: Callable[[int, int], None] | None = None,
) -> StudyAnalysis:
    """Every table of `records`; never raises for what runs did.

    `method` is that of the parameters' importance, None for none of it; `on_progress` is told how
    many of how many of its resamples are done.
    """
    tuned = chosen(records)
    proven = pairs(records)
    curves, problems = latency_curves(records)
    return StudyAnalysis(
        name=records.name,
        path=records.path,
        status=Status.UNFINISHED if records.verdict is None else Status.FINISHED,
        metric=metric_of(records),
        direction=records.goal.direction,
        objective=records.objective,
        objectives=records.goal.objectives,
        workload=records.workload,
        workloads=records.workloads,
        engines=tuple(dict.fromkeys(s.measurement.engine for s in records.measurements)),
        verdict=records.verdict,
        tuned_trial=tuned.trial if tuned else None,
        arms_from_proof=bool(counted_pairs(records)),
        started_unix_s=min(
            (s.measurement.started_unix_s for s in records.measurements), default=None
        ),
        measured_s=sum(s.measurement.elapsed_s for s in records.measurements),
        machine=records.machine,
        options=option_rows(records),
        result_files=records.result_files,
        history=history(records),
        pairs=proven,
        medians=medians(proven),
        latencies=curves,
        series=interval_series(records),
        slices=slices(records),
        front=front(records),
        by_workload=workload_rows(records),
        importances=() if method is None else importances(records, method, on_progress),
        statistics=statistics(records),
        outcomes=outcome_counts(records),
        failures=failures(records),
        notices=notices(records, problems),
        runs=run_rows(records),
        anchors=anchor_series(records),
        noise=noise_rows(records),
        proof=proof_facts(records),
        crash_test=crash_test(records),
        performance=performance_rows(records),
        levels=level_rows(records),
        conditions=conditions(records),
    )
