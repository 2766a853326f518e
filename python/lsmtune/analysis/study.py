"""A whole study analysed: every table that a report shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lsmtune.analysis.history import history
from lsmtune.analysis.latencies import latency_curves
from lsmtune.analysis.notices import notices
from lsmtune.analysis.options import option_rows
from lsmtune.analysis.outcomes import failures, outcome_counts
from lsmtune.analysis.pairs import medians, pairs
from lsmtune.analysis.runs import chosen, proof_runs, run_rows
from lsmtune.analysis.series import interval_series
from lsmtune.analysis.slices import slices
from lsmtune.analysis.source import StudyRecords
from lsmtune.analysis.tables import (
    Arm,
    FailureRow,
    History,
    LatencyCurve,
    Notice,
    OptionRow,
    OutcomeCount,
    PairRow,
    RunRow,
    Series,
    Slice,
    Status,
)
from lsmtune.records.engine import EngineIdentity
from lsmtune.records.objective import Objective
from lsmtune.records.verdict import Verdict
from lsmtune.records.workload import Workload


@dataclass(frozen=True)
class StudyAnalysis:
    """What a stored study says. `arms_from_proof` tells whether curves and series are the proof's.

    `engines` are those that the runs met, in order; `medians` are those of the pairs.
    `started_unix_s` is the first run's start.
    """

    name: str
    path: Path
    status: Status
    objective: Objective
    workload: Workload
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
    outcomes: tuple[OutcomeCount, ...]
    failures: tuple[FailureRow, ...]
    notices: tuple[Notice, ...]
    runs: tuple[RunRow, ...]


def analyse(records: StudyRecords) -> StudyAnalysis:
    """Every table of `records`; never raises for what runs did."""
    tuned = chosen(records)
    proven = pairs(records)
    curves, problems = latency_curves(records)
    return StudyAnalysis(
        name=records.name,
        path=records.path,
        status=Status.UNFINISHED if records.verdict is None else Status.FINISHED,
        objective=records.objective,
        workload=records.workload,
        engines=tuple(dict.fromkeys(s.measurement.engine for s in records.measurements)),
        verdict=records.verdict,
        tuned_trial=tuned.trial if tuned else None,
        arms_from_proof=bool(proof_runs(records)),
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
        outcomes=outcome_counts(records),
        failures=failures(records),
        notices=notices(records, problems),
        runs=run_rows(records),
    )
