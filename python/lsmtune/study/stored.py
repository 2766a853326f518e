"""What the stored runs of a study say of its trials: pure functions of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lsmtune.records.config import Config
from lsmtune.records.goal import Goal, outcome_of
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.spec import DataRungs, PrunerSpec, Spec, TimeRungs
from lsmtune.storage.measurements import Role, StoredMeasurement
from lsmtune.study.feasible import Feasibility
from lsmtune.study.rungs import time_reports
from lsmtune.study.trials import TrialEnd


@dataclass
class TrialRuns:
    """The runs of one trial: those of each rung, and those that count, in the order stored."""

    number: int
    rungs: dict[int, list[StoredMeasurement]] = field(default_factory=dict)
    runs: list[StoredMeasurement] = field(default_factory=list)

    @property
    def all(self) -> list[StoredMeasurement]:
        """Every run of the trial."""
        return [run for runs in self.rungs.values() for run in runs] + self.runs

    @property
    def config(self) -> Config:
        """What was run."""
        return self.all[0].config

    @property
    def wall_s(self) -> float:
        """Seconds that the trial cost."""
        return sum(run.wall_s for run in self.all)

    @property
    def measurements(self) -> list[Measurement]:
        """What the runs that count observed."""
        return [run.measurement for run in self.runs]


def trial_runs(rows: Iterable[StoredMeasurement]) -> dict[int, TrialRuns]:
    """The trials among `rows` by number, in rising order."""
    trials: dict[int, TrialRuns] = {}
    for row in rows:
        if row.trial is None or row.role not in (Role.TRIAL, Role.RUNG):
            continue
        trial = trials.setdefault(row.trial, TrialRuns(row.trial))
        if row.role is Role.TRIAL:
            trial.runs.append(row)
        elif row.rung is not None:
            trial.rungs.setdefault(row.rung, []).append(row)
    return dict(sorted(trials.items()))


def trial_end(trial: TrialRuns, spec: Spec, feasibility: Feasibility) -> TrialEnd | None:
    """How a trial ended, from its runs alone; None when a kill cut it off between two of them.

    A trial that was pruned between two sizes of its data has smaller runs only, all of them well.
    """
    failed = outcome_of([run.measurement for run in trial.all])
    if failed is not Outcome.OK:
        return TrialEnd(failed)
    if len(trial.runs) < len(spec.workloads):
        return None
    values = spec.goal.values(trial.measurements)
    if values is None:
        return TrialEnd(Outcome.INVALID)
    options = trial.config.options
    return TrialEnd(
        Outcome.OK,
        values,
        feasibility.violations(options, trial.measurements) | feasibility.broken(options),
        feasibility.picks(options, trial.measurements),
    )


def stored_reports(trial: TrialRuns, pruner: PrunerSpec | None, goal: Goal) -> dict[int, float]:
    """What a pruner was told of a trial, step to value."""
    if pruner is None:
        return {}
    if isinstance(pruner.rungs, TimeRungs):
        metric, rungs = goal.objectives[0].metric, pruner.rungs
        reports = (r for run in trial.runs for r in time_reports(rungs, run.measurement, metric))
        return {report.step: report.value for report in reports}
    return _data_reports(trial.rungs, pruner.rungs, goal)


def _data_reports(
    rungs: Mapping[int, Sequence[StoredMeasurement]], sizes: DataRungs, goal: Goal
) -> dict[int, float]:
    values = {rung: goal.value([run.measurement for run in runs]) for rung, runs in rungs.items()}
    return {sizes.step(rung): value for rung, value in values.items() if value is not None}
