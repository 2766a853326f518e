"""The runs of one trial: smaller ones, then one per workload; ended early where it is pruned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lsmtune.proof.measurer import Measurer
from lsmtune.proof.place import Place
from lsmtune.records.config import Config
from lsmtune.records.measurement import Outcome
from lsmtune.runners.messages import IntervalPassed, Message, PhaseStarted, Reported
from lsmtune.spec import DataRungs, Spec, TimeRungs
from lsmtune.storage.measurements import Role, StoredMeasurement
from lsmtune.study.rungs import TimeReports, rung_workloads
from lsmtune.study.stored import TrialRuns
from lsmtune.study.trials import Trials


@dataclass(frozen=True)
class TrialPlan:
    """One trial to run, the `index`th of its study; each run is killed after `deadline_s` seconds.

    `scale` is what values that a pruner is told are multiplied by, because the machine is not as
    fast as it was in the beginning.
    """

    number: int
    index: int
    config: Config
    seed: int
    deadline_s: float
    scale: float = 1.0

    def place(self, role: Role, workload: int, rung: int | None = None) -> Place:
        """Where a run of this trial belongs."""
        return Place(role, self.index, trial=self.number, workload=workload, rung=rung)

    def within(self, deadline_s: float) -> TrialPlan:
        """The same trial with runs of at most `deadline_s`."""
        return replace(self, deadline_s=min(self.deadline_s, deadline_s))


class TrialRunner:
    """Runs trials of `spec`, and asks the pruner at every rung."""

    def __init__(self, spec: Spec, measurer: Measurer, trials: Trials) -> None:
        self._spec = spec
        self._measurer = measurer
        self._trials = trials

    def run(self, plan: TrialPlan) -> TrialRuns | None:
        """All runs of a trial; None when it was interrupted.

        A trial that is pruned between two sizes has only runs of rungs, each of which ended well.
        """
        rungs = None if self._spec.pruner is None else self._spec.pruner.rungs
        if isinstance(rungs, DataRungs):
            return self._run_sizes(plan, rungs)
        metric = self._spec.objective.metric
        prune = None if rungs is None else Watch(plan, self._trials, rungs, metric)
        trial = TrialRuns(plan.number)
        return self._run_full(trial, plan, prune)

    def _run_sizes(self, plan: TrialPlan, rungs: DataRungs) -> TrialRuns | None:
        trial = TrialRuns(plan.number)
        deadlines_s = rungs.deadlines_s or [plan.deadline_s] * len(rungs.num)
        for rung in range(len(rungs.num) - 1):
            runs = self._run_size(plan.within(deadlines_s[rung]), rungs, rung)
            if runs is None:
                return None
            trial.rungs[rung] = runs
            value = self._spec.goal.value([run.measurement for run in runs])
            if value is None:
                return trial
            if self._trials.report(trial.number, rungs.step(rung), value * plan.scale):
                return trial
        return self._run_full(trial, plan.within(deadlines_s[-1]), None)

    def _run_size(
        self, plan: TrialPlan, rungs: DataRungs, rung: int
    ) -> list[StoredMeasurement] | None:
        """The runs of one size, up to one that fails; None when interrupted."""
        runs: list[StoredMeasurement] = []
        for workload, weighted in enumerate(self._spec.workloads):
            if self._measurer.stop.is_set():
                return None
            run = self._measurer.measure(
                plan.config,
                plan.seed,
                plan.place(Role.RUNG, workload, rung),
                deadline_s=plan.deadline_s,
                workload=rung_workloads(rungs, weighted.workload)[rung],
            )
            if run is None:
                return None
            runs.append(run)
            if run.measurement.outcome is not Outcome.OK:
                break
        return runs

    def _run_full(
        self, trial: TrialRuns, plan: TrialPlan, prune: Callable[[Message], bool] | None
    ) -> TrialRuns | None:
        """One run per workload, up to one that does not end well; None when interrupted."""
        for workload in range(self._measurer.workloads):
            if self._measurer.stop.is_set():
                return None
            run = self._measurer.measure(
                plan.config,
                plan.seed,
                plan.place(Role.TRIAL, workload),
                deadline_s=plan.deadline_s,
                prune=prune,
            )
            if run is None:
                return None
            trial.runs.append(run)
            if run.measurement.outcome is not Outcome.OK:
                break
        return trial


class Watch:
    """Follows one run, and says when the pruner wants it to end."""

    def __init__(self, plan: TrialPlan, trials: Trials, rungs: TimeRungs, metric: str) -> None:
        self._number = plan.number
        self._scale = plan.scale
        self._metric = metric
        self._trials = trials
        self._reports = TimeReports(rungs)
        self._measuring = False

    def __call__(self, message: Message) -> bool:
        """Whether the run is to end now that the driver, or a program, has said `message`."""
        if isinstance(message, Reported) and self._metric in message.metrics:
            value = message.metrics[self._metric]
            return self._report(message.step, value)
        if isinstance(message, PhaseStarted):
            self._measuring = message.kind == "measure"
        if not self._measuring or not isinstance(message, IntervalPassed):
            return False
        report = self._reports.take(message.interval())
        if report is None:
            return False
        return self._report(report.step, report.value)

    def _report(self, step: int, value: float) -> bool:
        return self._trials.report(self._number, step, value * self._scale)
