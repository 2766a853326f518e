"""What analysis reads of a study: its description and every stored run, once, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median

from optuna.trial import FrozenTrial

from lsmtune.records.config import Config, OptionValue
from lsmtune.records.goal import Goal, WeightedWorkload
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.records.objective import Objective
from lsmtune.records.verdict import Verdict
from lsmtune.records.workload import Workload
from lsmtune.samplers import OUTCOME, PUT_BACK
from lsmtune.space import Parameter
from lsmtune.spec import DataRungs, Spec, TimeRungs, parse_spec
from lsmtune.spec.document import read_text
from lsmtune.storage.folder import StudyFolder
from lsmtune.storage.measurements import Role, StoredMeasurement
from lsmtune.study.feasible import Feasibility
from lsmtune.study.loop import REFUSED
from lsmtune.study.stored import TrialRuns, trial_end, trial_runs
from lsmtune.study.trials import TrialEnd

MACHINE_FACT = "machine"
_NOT_DEPLOYABLE = ("report.", "result.json")


@dataclass(frozen=True)
class Trial:
    """One trial that ended: its runs under each workload, and the smaller runs of each rung.

    `values` has one value per objective, None unless the trial ended `ok`. `broken` are the
    constraints on outcomes that it broke. `eligible`: it may be the best, or be picked.
    """

    number: int
    config: Config
    outcome: Outcome
    runs: tuple[StoredMeasurement, ...] = ()
    rungs: Mapping[int, tuple[StoredMeasurement, ...]] = field(default_factory=dict)
    values: tuple[float, ...] | None = None
    broken: tuple[str, ...] = ()
    eligible: bool = False

    @property
    def all(self) -> tuple[StoredMeasurement, ...]:
        """Every run of the trial, in the order of rungs."""
        return (*(run for runs in self.rungs.values() for run in runs), *self.runs)

    @property
    def elapsed_s(self) -> float:
        """Seconds that its runs took."""
        return sum(run.measurement.elapsed_s for run in self.all)

    @property
    def wall_s(self) -> float:
        """Seconds that it cost, preparation and clean-up included."""
        return sum(run.wall_s for run in self.all)


@dataclass(frozen=True)
class StudyRecords:
    """A study as stored; everything else in analysis is a pure function of it.

    `measurements` are in the order in which they were stored, `trials` in that of their numbers.
    `rungs` says where a pruner looked. `put_back` counts the trials that an interruption cut off,
    `refused` the configurations that were refused before they cost a run, by reason.
    `result_files` are those of the study's `result/` folder that an engine or a program
    reads. `unsafe_allowed` maps the unsafe options that the study file allows to the reason why
    they are unsafe. `machine` is what the tuner noted of the machine it ran on, if it did.
    """

    name: str
    path: Path
    goal: Goal
    workloads: tuple[WeightedWorkload, ...]
    baseline: Config
    fixed: Mapping[str, OptionValue]
    parameters: tuple[Parameter, ...]
    measurements: tuple[StoredMeasurement, ...]
    trials: tuple[Trial, ...] = ()
    seed: int = 0
    budget_trials: int | None = None
    budget_s: float | None = None
    rungs: TimeRungs | DataRungs | None = None
    put_back: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    verdict: Verdict | None = None
    result_files: tuple[Path, ...] = ()
    unsafe_allowed: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)

    @property
    def objective(self) -> Objective:
        """The first objective, which most studies have alone: its phase stands for a run."""
        return self.goal.objectives[0]

    @property
    def workload(self) -> Workload:
        """The first workload, which most studies have alone."""
        return self.workloads[0].workload

    @cached_property
    def baseline_values(self) -> tuple[tuple[float, ...], ...]:
        """The values of the objectives in each round of the baseline under all workloads."""
        rows: dict[int, list[Measurement]] = {}
        for stored in self.measurements:
            if stored.role is Role.BASELINE:
                rows.setdefault(stored.workload, []).append(stored.measurement)
        # The k-th runs under each workload belong together, whatever ran between them.
        sides = (rows.get(index, []) for index in range(len(self.workloads)))
        rounds = (self.goal.values(runs) for runs in zip(*sides, strict=False))
        return tuple(values for values in rounds if values is not None)

    @cached_property
    def baseline_number(self) -> float | None:
        """The median of `Goal.number` over the rounds of the baseline."""
        numbers = [self.goal.number(values) for values in self.baseline_values]
        known = [number for number in numbers if number is not None]
        return median(known) if known else None


def read_study(folder: StudyFolder) -> StudyRecords:
    """Everything that `folder` holds; raises InputError when its files cannot be read."""
    store = folder.measurements
    records = study_records(
        parse_spec(read_text(folder.path / "study.yaml"), folder.origin),
        folder.path.absolute(),
        tuple(store.all()),
        folder.trials(),
    )
    return replace(
        records,
        refused=_counts(store.fact(REFUSED)),
        verdict=store.verdict(),
        result_files=_result_files(folder.result_path.absolute()),
        machine=_machine(folder),
    )


def study_records(
    spec: Spec,
    path: Path,
    measurements: tuple[StoredMeasurement, ...],
    kept: Sequence[FrozenTrial] = (),
) -> StudyRecords:
    """The records of a study from its spec and its runs; `kept` are Optuna's trials."""
    outcomes = {trial.number: trial.user_attrs.get(OUTCOME) for trial in kept}
    return StudyRecords(
        name=spec.name,
        path=path,
        goal=spec.goal,
        workloads=spec.workloads,
        baseline=spec.baseline,
        fixed=dict(spec.fixed),
        parameters=spec.space.parameters,
        measurements=measurements,
        trials=_trials(spec, measurements, outcomes),
        seed=spec.seed,
        budget_trials=spec.budget.trials,
        budget_s=spec.budget.time_s,
        rungs=None if spec.pruner is None else spec.pruner.rungs,
        put_back=sum(outcome == PUT_BACK for outcome in outcomes.values()),
        unsafe_allowed=dict(spec.unsafe_options),
    )


def _trials(
    spec: Spec,
    measurements: tuple[StoredMeasurement, ...],
    outcomes: Mapping[int, object],
) -> tuple[Trial, ...]:
    """The trials that ended; those that still run, or were cut off, are left out."""
    feasibility = Feasibility(spec)
    found = []
    for number, runs in trial_runs(measurements).items():
        end = trial_end(runs, spec, feasibility)
        if end is None and outcomes.get(number) == Outcome.PRUNED.value:
            # Pruned between two sizes of its data: its smaller runs all ended well.
            end = TrialEnd(Outcome.PRUNED)
        if end is not None:
            found.append(_trial(runs, end))
    return tuple(found)


def _trial(runs: TrialRuns, end: TrialEnd) -> Trial:
    return Trial(
        number=runs.number,
        config=runs.config,
        outcome=end.outcome,
        runs=tuple(runs.runs),
        rungs={rung: tuple(smaller) for rung, smaller in runs.rungs.items()},
        values=end.values,
        broken=tuple(text for text, violation in end.violations.items() if violation > 0),
        eligible=end.eligible,
    )


def _counts(fact: object) -> dict[str, int]:
    """A stored fact that maps names to numbers."""
    counts = fact if isinstance(fact, Mapping) else {}
    return {str(name): count for name, count in counts.items() if isinstance(count, int)}


def _result_files(directory: Path) -> tuple[Path, ...]:
    if not directory.is_dir():
        return ()
    files = (path for path in directory.iterdir() if path.is_file())
    return tuple(
        sorted(path for path in files if not path.name.startswith((".", *_NOT_DEPLOYABLE)))
    )


def _machine(folder: StudyFolder) -> dict[str, str]:
    """The store's fact `machine`: an object of names and values."""
    noted = folder.measurements.fact(MACHINE_FACT)
    if not isinstance(noted, Mapping):
        return {}
    return {str(name): str(value) for name, value in noted.items() if value is not None}
