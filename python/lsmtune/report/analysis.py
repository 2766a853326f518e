"""A whole study analysed: every table that a report shows."""

from __future__ import annotations

from collections.abc import Callable

from lsmtune.report import history, proof, trust
from lsmtune.report.importance import Method, importances
from lsmtune.report.latencies import latency_curves
from lsmtune.report.notices import notices
from lsmtune.report.source import StudyRecords, chosen, counted_pairs, metric_of, run_row


class StudyAnalysis:
    """What a stored study says. Its attributes, in their order, are the JSON form of the report.

    `metric` and `direction` are those of the values of trials and pairs: the objective's, or of a
    gain over several objectives. `objective` and `workload` are the first of `objectives` and
    `workloads`. `engines` are those that the runs met, in order; `arms_from_proof` tells whether
    curves and series are the proof's; `medians` are those of the pairs. `started_unix_s` is the
    first run's start. `front` is None with one objective, `by_workload` empty with one workload.
    `importances` has one table per objective, or none where none was asked for. `anchors` has one
    series per objective. `proof` is None without a verdict, `crash_test` and `power_test` where the
    tuned configuration was not tested so.

    `method` is that of the parameters' importance, None for none of it; `on_progress` is told how
    many of how many of its resamples are done. Never raises for what runs did.
    """

    def __init__(
        self,
        records: StudyRecords,
        method: Method | None = Method.PED_ANOVA,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        spec, tuned = records.spec, chosen(records)
        runs = [stored.measurement for stored in records.measurements]
        curves, problems = latency_curves(records)
        self.name = spec.name
        self.file = spec.path
        self.path = records.path
        self.status = "unfinished" if records.verdict is None else "finished"
        self.metric = metric_of(records)
        self.direction = spec.goal.direction
        self.objective = spec.objective
        self.objectives = spec.goal.objectives
        self.workload = spec.workload
        self.workloads = spec.workloads
        self.engines = tuple(dict.fromkeys(run.engine for run in runs))
        self.verdict = records.verdict
        self.tuned_trial = tuned.trial if tuned else None
        self.arms_from_proof = bool(counted_pairs(records))
        self.started_unix_s = min((run.started_unix_s for run in runs), default=None)
        self.measured_s = sum(run.elapsed_s for run in runs)
        self.machine = trust.machine_facts(records)
        self.options = history.option_rows(records)
        self.result_files = records.result_files
        self.history = history.history(records)
        self.pairs = proof.pairs(records)
        self.medians = proof.medians(self.pairs)
        self.latencies = curves
        self.series = proof.interval_series(records)
        self.parameters = spec.space.parameters
        self.front = history.front(records)
        self.by_workload = proof.workload_rows(records)
        self.importances = () if method is None else importances(records, method, on_progress)
        self.statistics = history.statistics(records)
        self.outcomes = history.outcome_counts(records)
        self.failures = history.failures(records)
        self.notices = notices(records, problems)
        self.runs = [run_row(records, stored) for stored in records.measurements]
        self.anchors = trust.anchor_series(records)
        self.noise = trust.noise_rows(records)
        self.proof = proof.proof_facts(records)
        survived = proof.survival(records)
        self.crash_test = survived.crash
        self.power_test = survived.power
        self.performance = proof.performance_rows(records)
        self.levels = proof.level_rows(records)
        self.conditions = trust.conditions(records)
