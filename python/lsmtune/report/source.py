"""What a report reads of a study, once: its description, every stored run, and which runs count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median

from optuna.trial import FrozenTrial

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Config, OptionValue
from lsmtune.model.files import read_text
from lsmtune.model.goal import Goal, Objective, WeightedWorkload, metric_value
from lsmtune.model.measurement import Measurement, Outcome, PhaseMeasurement
from lsmtune.model.metrics import METRICS
from lsmtune.model.request import PairMethod
from lsmtune.model.verdict import Verdict
from lsmtune.model.workload import PhaseKind, Workload
from lsmtune.proof.calibration import Calibration, calibration_of, calibration_pairs
from lsmtune.proof.crash_test import CrashTest, kept_crash_tests
from lsmtune.report.tables import GAIN, Arm, RunRow
from lsmtune.search.in_memory_study import TrialJudgement
from lsmtune.search.searcher import OUTCOME, PUT_BACK
from lsmtune.space.parameter import Parameter
from lsmtune.study.build import parse_stored_spec
from lsmtune.study.drift import Drift
from lsmtune.study.feasible import Feasibility
from lsmtune.study.judging import JudgedTrial, Judgement, judge
from lsmtune.study.loop import REFUSED
from lsmtune.study.spec import DataRungs, Spec, TimeRungs
from lsmtune.study.start import baseline_config
from lsmtune.study.stored import (
    Round,
    TrialRounds,
    TrialRuns,
    anchor_rounds,
    trial_rounds,
    trial_runs,
)

MACHINE_FACT = "machine"
_NOT_DEPLOYABLE = ("report.", "result.json")


@dataclass(frozen=True)
class TrialRound:
    """One run of a trial under every workload: the objectives' values, None unless it ended `ok`.

    `values` are as measured, `judged` as they would have been in the beginning of the study.
    `counts`: the trial's value is a mean over this one.
    """

    values: tuple[float, ...] | None
    judged: tuple[float, ...] | None
    counts: bool


@dataclass(frozen=True)
class Trial:
    """One trial that ended: its runs under each workload, and the smaller runs of each rung.

    `runs` are those that it began with, `repeats` what came later. `values` has one value per
    objective, a mean over all `rounds` that count, as the machine was in the beginning; None unless
    the trial ended `ok`. `broken` are the constraints on outcomes that it broke. `eligible`: it may
    be the best, or be picked. `first` is the row of the store in which it began, `moved` whether
    the machine changed during its first round. `told` is what the sampler is told of it.
    """

    number: int
    config: Config
    outcome: Outcome
    runs: tuple[StoredMeasurement, ...] = ()
    rungs: Mapping[int, tuple[StoredMeasurement, ...]] = field(default_factory=dict)
    repeats: tuple[StoredMeasurement, ...] = ()
    values: tuple[float, ...] | None = None
    broken: tuple[str, ...] = ()
    eligible: bool = False
    rounds: tuple[TrialRound, ...] = ()
    first: int = 0
    moved: bool = False
    told: TrialJudgement | None = None

    @property
    def all(self) -> tuple[StoredMeasurement, ...]:
        """Every run of the trial, in the order of rungs and repeats."""
        return (*(run for runs in self.rungs.values() for run in runs), *self.runs, *self.repeats)

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
    `best` is the number of the trial that is best by all that is known (`study.judging`).
    `anchors` are the runs of the baseline by which it was seen whether the machine changed, `drift`
    what they say, and `run_log_sd` what the search takes the noise of a run for: the standard
    deviation of the logarithm. `calibration` is None where there are no pairs of it.
    `crash_tests` are options of configurations and how these stood a crash.
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
    best: int | None = None
    anchors: tuple[Round, ...] = ()
    drift: Drift = field(default_factory=Drift)
    run_log_sd: float | None = None
    calibration: Calibration | None = None
    pairs_max: int = 0
    smallest_effect: float | None = None
    confidence: float = 0.95
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
    crash_tests: tuple[tuple[Mapping[str, str], CrashTest], ...] = ()

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
        """The values of the objectives in each anchor, as they would be in the beginning."""
        known = [anchor for anchor in self.anchors if anchor.values is not None]
        return tuple(self.drift.judged(anchor.values or (), anchor.first) for anchor in known)

    @cached_property
    def baseline_number(self) -> float | None:
        """The median of `Goal.number` over the anchors."""
        numbers = [self.goal.number(values) for values in self.baseline_values]
        known = [number for number in numbers if number is not None]
        return median(known) if known else None


def read_study(folder: StudyFolder) -> StudyRecords:
    """Everything that `folder` holds; raises InputError when its files cannot be read."""
    store = folder.measurements
    records = study_records(
        parse_stored_spec(read_text(folder.path / "study.yaml"), folder.origin),
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
        crash_tests=tuple(kept_crash_tests(store)),
    )


def study_records(
    spec: Spec,
    path: Path,
    measurements: tuple[StoredMeasurement, ...],
    kept: Sequence[FrozenTrial] = (),
) -> StudyRecords:
    """The records of a study from its spec and its runs; `kept` are Optuna's trials."""
    outcomes = {trial.number: trial.user_attrs.get(OUTCOME) for trial in kept}
    rounds = _rounds(spec, measurements, outcomes)
    anchors = anchor_rounds(measurements, spec.goal)
    judgement = judge(rounds.values(), anchors, spec.goal)
    return StudyRecords(
        name=spec.name,
        path=path,
        goal=spec.goal,
        workloads=spec.workloads,
        baseline=spec.baseline,
        fixed=dict(spec.fixed),
        parameters=spec.space.parameters,
        measurements=measurements,
        trials=_trials(trial_runs(measurements), rounds, judgement),
        best=judgement.best,
        anchors=tuple(anchors),
        drift=judgement.drift,
        run_log_sd=judgement.log_sd,
        calibration=_calibration(spec, measurements),
        pairs_max=spec.proof.pairs,
        smallest_effect=spec.proof.smallest_effect,
        confidence=spec.proof.confidence,
        seed=spec.seed,
        budget_trials=spec.budget.trials,
        budget_s=spec.budget.time_s,
        rungs=None if spec.pruner is None else spec.pruner.rungs,
        put_back=sum(outcome == PUT_BACK for outcome in outcomes.values()),
        unsafe_allowed=dict(spec.unsafe_options),
    )


def _rounds(
    spec: Spec, measurements: tuple[StoredMeasurement, ...], outcomes: Mapping[int, object]
) -> dict[int, TrialRounds]:
    """The trials that ended, by number; those that still run, or were cut off, are left out."""
    feasibility, found = Feasibility(spec), {}
    for number, runs in trial_runs(measurements).items():
        # Pruned between two sizes of its data: its smaller runs all ended well.
        pruned = outcomes.get(number) == Outcome.PRUNED.value
        rounds = trial_rounds(runs, spec, feasibility, pruned=pruned)
        if rounds is not None:
            found[number] = rounds
    return found


def _trials(
    runs: Mapping[int, TrialRuns], rounds: Mapping[int, TrialRounds], judgement: Judgement
) -> tuple[Trial, ...]:
    told = judgement.for_searcher()
    return tuple(
        replace(
            _trial(runs[number], judged),
            rounds=tuple(_round(each, judged, judgement.drift) for each in rounds[number].rounds),
            moved=judgement.drift.segment_of(judged.first) is None,
            told=told[number],
        )
        for number, judged in judgement.trials.items()
    )


def _trial(runs: TrialRuns, judged: JudgedTrial) -> Trial:
    end = judged.end
    return Trial(
        number=runs.number,
        config=runs.config,
        outcome=end.outcome,
        runs=tuple(runs.runs),
        rungs={rung: tuple(smaller) for rung, smaller in runs.rungs.items()},
        repeats=tuple(run for _, again in sorted(runs.repeats.items()) for run in again),
        values=end.values,
        broken=tuple(text for text, violation in end.violations.items() if violation > 0),
        eligible=end.eligible,
        first=judged.first,
    )


def _round(found: Round, judged: JudgedTrial, drift: Drift) -> TrialRound:
    if found.values is None:
        return TrialRound(None, None, False)
    placed = judged.unplaced or drift.segment_of(found.first) is not None
    counts = judged.end.values is not None and placed
    return TrialRound(found.values, drift.judged(found.values, found.first), counts)


def _calibration(spec: Spec, measurements: Sequence[StoredMeasurement]) -> Calibration | None:
    """What the calibration's pairs by the method that it ended with say."""
    pairs = calibration_pairs(measurements, baseline_config(spec), len(spec.workloads))
    methods = [method for method in PairMethod if pairs and pairs[-1].is_of(method)]
    if not methods:
        return None
    return calibration_of([p for p in pairs if p.is_of(methods[0])], spec.goal, methods[0])


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


# --- Which stored runs a table looks at: the trials, the baseline, and the two arms of the proof


@dataclass(frozen=True)
class Chosen:
    """The Config that the study puts forward, and the trial that it came from when known."""

    config: Config
    trial: int | None


def metric_of(records: StudyRecords) -> str:
    """What the values of trials and pairs are: an objective's metric, or a gain over several."""
    chosen_ones = records.goal.chosen
    return chosen_ones[0].metric if len(chosen_ones) == 1 else GAIN


def value_of(records: StudyRecords, values: Sequence[float] | None) -> float | None:
    """The one number by which trials are compared: the value of the objective that counts.

    Where several count it is the weighted geometric mean of the ratios to the baseline, each
    turned over where less is better, with the weights of the study's `pick`: what `Goal.number`
    gives, over that of the baseline. None where that is not known.
    """
    number = None if values is None else records.goal.number(values)
    if number is None or len(records.goal.chosen) == 1:
        return number
    return number / records.baseline_number if records.baseline_number else None


def best_trial(records: StudyRecords) -> Trial | None:
    """The trial that is best by all that is known, as the study itself would say."""
    return next((trial for trial in records.trials if trial.number == records.best), None)


def chosen(records: StudyRecords) -> Chosen | None:
    """The Config of the latest proof; before any proof, that of the best trial."""
    proven = [s for s in records.measurements if s.role is Role.PROOF_CANDIDATE]
    if proven:
        config = proven[-1].config
        return Chosen(config, _trial_with(records, config, proven[-1].trial))
    best = best_trial(records)
    return None if best is None else Chosen(best.config, best.number)


def _trial_with(records: StudyRecords, config: Config, known: int | None) -> int | None:
    if known is not None:
        return known
    same = [t.number for t in records.trials if t.config.options == config.options]
    return same[0] if same else None


Side = tuple[StoredMeasurement, ...]


def proof_runs(records: StudyRecords) -> dict[int, dict[Arm, Side]]:
    """Pair number to the runs of its arms, in the workloads' order, for the latest proof's Config.

    A pair of which only the baseline was run counts too, unless it belongs to an earlier proof.
    """
    tuned = chosen(records)
    pairs: dict[int, dict[Arm, list[StoredMeasurement]]] = {}
    earlier: set[int] = set()
    for stored in sorted(records.measurements, key=lambda stored: stored.workload):
        if stored.pair is None or tuned is None:
            continue
        if stored.role is Role.PROOF_BASELINE:
            pairs.setdefault(stored.pair, {}).setdefault(Arm.BASELINE, []).append(stored)
        elif stored.role is Role.PROOF_CANDIDATE:
            pairs.setdefault(stored.pair, {}).setdefault(Arm.TUNED, []).append(stored)
            if stored.config.options != tuned.config.options:
                earlier.add(stored.pair)
    return {
        number: {arm: tuple(side) for arm, side in pairs[number].items()}
        for number in sorted(pairs)
        if number not in earlier
    }


def method_of(pair: Mapping[Arm, Side]) -> str:
    """How the runs of a pair shared the machine; empty where that was not noted."""
    return next((run.measurement.paired_by for side in pair.values() for run in side), "")


def counts(records: StudyRecords, pair: Mapping[Arm, Side]) -> bool:
    """Whether the verdict stands on a pair: not where it was run by another method."""
    verdict = records.verdict
    return verdict is None or not verdict.method or method_of(pair) == verdict.method


def counted_pairs(records: StudyRecords) -> list[dict[Arm, Side]]:
    """The pairs of `proof_runs` on which the verdict stands."""
    return [pair for pair in proof_runs(records).values() if counts(records, pair)]


def arms(records: StudyRecords) -> dict[Arm, list[StoredMeasurement]]:
    """The runs that stand for each arm: those of the proof; before any, those of the search."""
    pairs = counted_pairs(records)
    if pairs:
        return {arm: [run for pair in pairs for run in pair.get(arm, ())] for arm in Arm}
    best = best_trial(records)
    alone = (Role.BASELINE, Role.ANCHOR)
    return {
        Arm.BASELINE: [s for s in records.measurements if s.role in alone],
        Arm.TUNED: [] if best is None else [*best.runs, *best.repeats],
    }


def workload_label(records: StudyRecords, stored: StoredMeasurement) -> str:
    """The label of the workload of a run, empty where the study has one alone."""
    several = len(records.workloads) > 1
    return records.workloads[stored.workload].label if several else ""


def run_rows(records: StudyRecords) -> tuple[RunRow, ...]:
    """Every stored run as one flat row."""
    return tuple(_row(records, stored) for stored in records.measurements)


def _row(records: StudyRecords, stored: StoredMeasurement) -> RunRow:
    measurement = stored.measurement
    return RunRow(
        measurement=stored.id,
        role=stored.role.value,
        trial=stored.trial,
        pair=stored.pair,
        outcome=measurement.outcome,
        value=records.objective.value(measurement),
        seed=measurement.seed,
        started_unix_s=measurement.started_unix_s,
        elapsed_s=measurement.elapsed_s,
        wall_s=stored.wall_s,
        workload=workload_label(records, stored),
        rung=stored.rung,
        engine=measurement.engine.name,
        engine_version=measurement.engine.version,
        build=measurement.engine.build.value,
        options=dict(stored.config.options),
        metrics=_metrics(records, measurement),
        reported=dict(measurement.reported),
        error=measurement.error.message if measurement.error else "",
        repeat=stored.repeat,
        paired_by=measurement.paired_by,
        memory_limited_by=measurement.memory_limited_by,
        steal_s=_total(phase.steal_s for phase in measured(measurement)),
        page_cache_cached_share=max(cached_shares(measurement), default=None),
    )


def measured(measurement: Measurement) -> list[PhaseMeasurement]:
    """The measure phases of a run."""
    return [phase for phase in measurement.phases if phase.kind == PhaseKind.MEASURE]


def cached_shares(measurement: Measurement) -> list[float]:
    """What was still cached of the database at the start of each phase that was to begin cold."""
    shares = (phase.page_cache_cached_share for phase in measured(measurement))
    return [share for share in shares if share is not None]


def _total(values: Iterable[float | None]) -> float | None:
    """The sum of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _metrics(records: StudyRecords, measurement: Measurement) -> Mapping[str, float | None]:
    phase = records.objective.phase_of(measurement)
    return {name: metric_value(measurement, name, phase) for name in METRICS}
