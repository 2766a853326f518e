"""What a report reads of a study, once: its description, every stored run, and which runs count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import NormalDist, median
from types import MappingProxyType
from typing import Any

from optuna.trial import FrozenTrial

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Config
from lsmtune.model.goal import Goal, metric_value
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.metrics import METRICS
from lsmtune.model.request import PairMethod
from lsmtune.model.verdict import Verdict
from lsmtune.proof.calibration import Calibration, calibration_of, calibration_pairs
from lsmtune.proof.crash_test import CRASH_TESTS, CrashTest, kept_tests
from lsmtune.proof.pairs import Pair, pairs_by_side
from lsmtune.proof.power_loss import POWER_TESTS, PowerTest
from lsmtune.report.tables import GAIN, Arm, Row
from lsmtune.search.searcher import OUTCOME, PUT_BACK
from lsmtune.study.build import stored_spec
from lsmtune.study.feasible import Feasibility
from lsmtune.study.judging import JudgedTrial, Judgement, judge
from lsmtune.study.promotion import promotion_of, stored_beliefs
from lsmtune.study.session import BUDGET, FLEET_ELAPSED, FLEET_HOSTS, REFUSED, SEARCH_ENDED
from lsmtune.study.size import at_length
from lsmtune.study.spec import Budget, Spec
from lsmtune.study.start import baseline_config
from lsmtune.study.stored import (
    Round,
    TrialRounds,
    TrialRuns,
    anchor_rounds,
    trial_rounds,
    trial_runs,
)

_NOT_DEPLOYABLE = ("report.", "result.json")


@dataclass(frozen=True)
class StudyRecords:
    """A study as stored; everything else in a report is a pure function of it.

    `measurements` are in the order in which they were stored. `judgement` is what the study itself
    makes of them, and `ran` has those of each trial. `anchors` are the runs of the baseline by
    which it was seen whether the machine changed. `calibrations` are by host, empty where there are
    no pairs of any.
    `crash_tests` and `power_tests` are what configurations survived, each with what it holds for.
    `put_back` counts the trials that an interruption cut off, `refused` the configurations that
    were refused before they cost a run, by reason. `result_files` are those of the study's
    `result/` folder that an engine or a program reads. `finalist` is the trial that the `verdict`
    is about, where that was noted. `machines` is what was noted of the machines that the runs were
    made on: of each host of a fleet by its name, else of the tuner's own. `elapsed_s` is how long a
    fleet worked by the clock, and `spent_s` what all runs cost, those among them that no longer
    count or were lost; 0 where nobody said. `search_ended` says why it did; empty while it goes on.
    """

    spec: Spec
    path: Path
    measurements: tuple[StoredMeasurement, ...]
    judgement: Judgement
    ran: Mapping[int, TrialRuns]
    anchors: tuple[Round, ...] = ()
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    put_back: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    verdict: Verdict | None = None
    finalist: int | None = None
    result_files: tuple[Path, ...] = ()
    machines: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    elapsed_s: float | None = None
    spent_s: float = 0.0
    search_ended: str = ""
    crash_tests: tuple[tuple[Mapping[str, Any], CrashTest], ...] = ()
    power_tests: tuple[tuple[Mapping[str, Any], PowerTest], ...] = ()

    @property
    def trials(self) -> tuple[JudgedTrial, ...]:
        """The trials that ended, by their numbers."""
        return tuple(self.judgement.trials.values())

    @property
    def of_fleet(self) -> bool:
        """Whether hosts of a fleet measured."""
        return any(stored.measurement.host for stored in self.measurements)

    @cached_property
    def baseline_values(self) -> tuple[tuple[float, ...], ...]:
        """The values of the objectives in each anchor, as they would be in the beginning."""
        drift = self.judgement.drift
        return tuple(drift.judged(a.values or (), a.first, a.host) for a in self.anchors)

    @cached_property
    def baseline_number(self) -> float | None:
        """The median of `Goal.number` over the anchors."""
        return middle(self.spec.goal.number(values) for values in self.baseline_values)


def middle(values: Iterable[float | None]) -> float | None:
    """The median of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


def read_study(folder: StudyFolder) -> StudyRecords:
    """Everything that `folder` holds; raises InputError when its files cannot be read."""
    store, results = folder.measurements, folder.result_path.absolute()
    spec = at_length(stored_spec(folder), folder)
    if bounds := store.fact(BUDGET):
        spec = replace(spec, budget=Budget(*bounds))
    spent_s = store.spent_s()  # ahead of the rows, of which a tuner may add more meanwhile
    measurements, trials = tuple(store.all()), folder.trials()
    tried = {number: trial.config.options for number, trial in trial_runs(measurements).items()}
    folder.refuse_changed(trials, tried, spec.space)
    believed = stored_beliefs(store)
    records = study_records(spec, folder.path.absolute(), measurements, trials, believed)
    noted: Mapping[str, object] = store.fact("machine") or {}
    machine = {name: str(value) for name, value in noted.items() if value is not None}
    # The head of a fleet measures nothing: what is noted of it are the plugins that all use.
    used = {name: value for name, value in machine.items() if name.startswith("plugin: ")}
    hosts: Mapping[str, Mapping[str, Any]] = store.fact(FLEET_HOSTS) or {}
    machines = {name: {**used, **host["hardware"]} for name, host in hosts.items()}
    files = [path for path in results.iterdir() if path.is_file()] if results.is_dir() else []
    return replace(
        records,
        refused=store.fact(REFUSED) or {},
        verdict=store.verdict(),
        finalist=store.finalist(),
        result_files=tuple(
            sorted(path for path in files if not path.name.startswith((".", *_NOT_DEPLOYABLE)))
        ),
        machines=machines or {"": machine},
        elapsed_s=store.fact(FLEET_ELAPSED),
        spent_s=spent_s,
        search_ended=store.fact(SEARCH_ENDED) or "",
        crash_tests=tuple(kept_tests(store, CRASH_TESTS, CrashTest)),
        power_tests=tuple(kept_tests(store, POWER_TESTS, PowerTest)),
    )


def study_records(
    spec: Spec,
    path: Path,
    measurements: tuple[StoredMeasurement, ...],
    kept: Sequence[FrozenTrial] = (),
    believed: Mapping[int, NormalDist] = MappingProxyType({}),
) -> StudyRecords:
    """The records of a study from its spec and its runs; `kept` are Optuna's trials.

    `believed` is that of its Promotion.
    """
    outcomes = {trial.number: trial.user_attrs.get(OUTCOME) for trial in kept}
    # That of the engine that ran, by which the study itself judged.
    version = measurements[-1].measurement.engine.version if measurements else None
    spec = replace(spec, engine_version=version)
    feasibility, runs = Feasibility(spec, measurements), trial_runs(measurements)
    # The trials that ended: those that still run, or were cut off, are left out.
    ended: list[TrialRounds] = []
    for number, of_trial in runs.items():
        # Pruned between two sizes of its data: its smaller runs all ended well.
        pruned = outcomes.get(number) == Outcome.PRUNED.value
        rounds = trial_rounds(of_trial, spec, feasibility, pruned=pruned)
        if rounds is not None:
            ended.append(rounds)
    anchors = anchor_rounds(measurements, spec.goal)
    promotion = promotion_of(measurements, spec, believed)
    # Of the calibration, what the pairs of each host by the method that it ended with say.
    pairs: dict[str, list[Pair]] = {}
    for pair in calibration_pairs(measurements, baseline_config(spec), len(spec.workloads)):
        pairs.setdefault(pair.runs[0].measurement.host, []).append(pair)
    by_host = {host: _calibration(of_host, spec.goal) for host, of_host in pairs.items()}
    return StudyRecords(
        spec=spec,
        path=path,
        measurements=measurements,
        judgement=judge(ended, anchors, spec.goal, promotion),
        ran=runs,
        anchors=tuple(anchor for anchor in anchors if not anchor.in_turns),
        calibrations={host: each for host, each in by_host.items() if each is not None},
        put_back=sum(outcome == PUT_BACK for outcome in outcomes.values()),
    )


def _calibration(pairs: Sequence[Pair], goal: Goal) -> Calibration | None:
    """What `pairs` of one host say; None where the last of them is of no method that is known."""
    method = next((each for each in PairMethod if pairs[-1].is_of(each)), None)
    if method is None:
        return None
    return calibration_of([pair for pair in pairs if pair.is_of(method)], goal, method)


# --- Which stored runs a table looks at: the trials, the baseline, and the two arms of the proof


@dataclass(frozen=True)
class Chosen:
    """The Config that the study puts forward, and the trial that it came from when known."""

    config: Config
    trial: int | None


def metric_of(records: StudyRecords) -> str:
    """What the values of trials and pairs are: an objective's metric, or a gain over several."""
    chosen_ones = records.spec.goal.chosen
    return chosen_ones[0].metric if len(chosen_ones) == 1 else GAIN


def value_of(
    records: StudyRecords, values: Sequence[float] | None, baseline: float | None = None
) -> float | None:
    """The one number by which trials are compared: the value of the objective that counts.

    Where several count it is the weighted geometric mean of the ratios to the baseline, each
    turned over where less is better, with the weights of the study's `pick`: what `Goal.number`
    gives, over that of the `baseline`, by default of the anchors. None where that is not known.
    """
    number = None if values is None else records.spec.goal.number(values)
    if number is None or len(records.spec.goal.chosen) == 1:
        return number
    base = records.baseline_number if baseline is None else baseline
    return number / base if base else None


def chosen(records: StudyRecords) -> Chosen | None:
    """The Config of the verdict, or else of the latest proof; before any, that of the best trial.

    A verdict may stand on pairs that are older than those of another trial.
    """
    finalist = next((trial for trial in records.trials if trial.number == records.finalist), None)
    if finalist is not None:
        return Chosen(finalist.config, finalist.number)
    proven = [s for s in records.measurements if s.role is Role.PROOF_CANDIDATE]
    if proven:
        config, trial = proven[-1].config, proven[-1].trial
        if trial is None:
            same = (t.number for t in records.trials if t.config.options == config.options)
            trial = next(same, None)
        return Chosen(config, trial)
    best = records.judgement.best_trial
    return None if best is None else Chosen(best.config, best.number)


def proof_pairs(records: StudyRecords) -> list[Pair]:
    """The pairs of the proof of the Config that is put forward, of all methods.

    By number; those that were cut off, which say nothing, are left out.
    """
    tuned = chosen(records)

    def side(run: StoredMeasurement) -> int | None:
        if run.role is Role.PROOF_BASELINE:
            return 0
        proven = tuned is not None and run.config.options == tuned.config.options
        return 1 if run.role is Role.PROOF_CANDIDATE and proven else None

    return pairs_by_side(records.measurements, side, len(records.spec.workloads))


def counts(records: StudyRecords, pairs: Sequence[Pair]) -> list[bool]:
    """Of each of the `pairs` of a proof, whether the verdict stands on it: not by another method.

    Each host of a fleet has a method of its own, by which its last pair was run.
    """
    verdict, runs = records.verdict, [pair.runs[0].measurement for pair in pairs]
    of_fleet = records.of_fleet
    if verdict is None or not (verdict.method or of_fleet):
        return [True] * len(pairs)
    methods = {run.host: run.paired_by if of_fleet else verdict.method for run in runs}
    return [run.paired_by == methods[run.host] for run in runs]


def counted_pairs(records: StudyRecords) -> list[Pair]:
    """The pairs of `proof_pairs` on which the verdict stands."""
    pairs = proof_pairs(records)
    return [pair for pair, counted in zip(pairs, counts(records, pairs), strict=True) if counted]


def arms(records: StudyRecords) -> dict[Arm, list[StoredMeasurement]]:
    """The runs that stand for each arm: those of the proof; before any, those of the search.

    Of a fleet those of the search are of the hosts alone that ran the best trial.
    """
    pairs = counted_pairs(records)
    if pairs:
        return {
            Arm.BASELINE: [run for pair in pairs for run in pair.baseline],
            Arm.TUNED: [run for pair in pairs for run in pair.candidate],
        }
    best = records.judgement.best
    alone = [s for s in records.measurements if s.role in (Role.BASELINE, Role.ANCHOR)]
    if best is None:
        return {Arm.BASELINE: alone, Arm.TUNED: []}
    ran = records.ran[best].all
    hosts = {run.measurement.host for run in ran}
    return {
        Arm.BASELINE: [run for run in alone if run.measurement.host in hosts],
        Arm.TUNED: [run for run in ran if run.role is not Role.RUNG],
    }


def workload_label(records: StudyRecords, stored: StoredMeasurement) -> str:
    """The label of the workload of a run, empty where the study has one alone."""
    several = len(records.spec.workloads) > 1
    return records.spec.workloads[stored.workload].label if several else ""


def run_row(records: StudyRecords, stored: StoredMeasurement) -> Row:
    """A stored run with the figures of the objective's phase, for tables and spreadsheets.

    `steal_s` are processor seconds that the host took during its measure phases, all processors
    together; `page_cache_cached_share` is the largest of a phase that was to begin cold.
    """
    run, objective = stored.measurement, records.spec.objective
    phase = objective.phase_of(run)
    stolen = [each.steal_s for each in run.measured_phases if each.steal_s is not None]
    return {
        "measurement": stored.id,
        "role": stored.role.value,
        "trial": stored.trial,
        "pair": stored.pair,
        "outcome": run.outcome,
        "value": objective.value(run),
        "seed": run.seed,
        "started_unix_s": run.started_unix_s,
        "elapsed_s": run.elapsed_s,
        "wall_s": stored.wall_s,
        "workload": workload_label(records, stored),
        "rung": stored.rung,
        "engine": run.engine.name,
        "engine_version": run.engine.version,
        "build": run.engine.build.value,
        "options": dict(stored.config.options),
        "metrics": {name: metric_value(run, name, phase) for name in METRICS},
        "reported": dict(run.reported),
        "error": run.message,
        "repeat": stored.repeat,
        "paired_by": run.paired_by,
        "memory_limited_by": run.memory_limited_by,
        "steal_s": sum(stolen) if stolen else None,
        "page_cache_cached_share": max(cached_shares(run), default=None),
    }


def cached_shares(measurement: Measurement) -> list[float]:
    """What was still cached of the database at the start of each phase that was to begin cold."""
    shares = (phase.page_cache_cached_share for phase in measurement.measured_phases)
    return [share for share in shares if share is not None]
