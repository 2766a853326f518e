"""What the stored runs of a study say of its trials, and what a pruner is told: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Config
from lsmtune.model.distribution import Distribution
from lsmtune.model.goal import Goal, outcome_of
from lsmtune.model.measurement import Interval, Measurement, Outcome
from lsmtune.model.metrics import BURST, SUSTAINED
from lsmtune.model.request import PairMethod
from lsmtune.model.workload import Mix, Workload
from lsmtune.study.feasible import Feasibility
from lsmtune.study.spec import DataRungs, PrunerSpec, Spec, TimeRungs
from lsmtune.workloads.ycsb import scattered_as


class TimeReports:
    """Turns the interval series of the rungs' phase into reports, one per rung passed, from 1.

    A report is a step, which grows with what the trial has cost, and a value. That is the rate
    since the phase began. Charged rungs add to its time what the compactions that are due would
    take: their bytes over the rate at which flushes and compactions wrote while they did.
    """

    def __init__(self, rungs: TimeRungs) -> None:
        self._rungs = rungs
        self._step = 0
        self._written_bytes = 0
        self._writing_s = 0.0

    def take(self, interval: Interval) -> tuple[int, float] | None:
        """The report due with `interval`, if it reached a new rung and its value is known.

        It is not where nothing was written out so far: memtables that have not filled say what they
        take, and nothing of what that costs later.
        """
        if interval.background_write_bytes:
            self._written_bytes += interval.background_write_bytes
            self._writing_s += interval.interval_s
        # Interval ends fall a little after their nominal time, never before it.
        step = int(interval.elapsed_s / self._rungs.every_s)
        if step <= self._step:
            return None
        self._step = step
        owed_s = self._owed_s(interval) if self._rungs.charged else 0.0
        if owed_s is None:
            return None
        return step, interval.operations_total / (interval.elapsed_s + owed_s)

    def _owed_s(self, interval: Interval) -> float | None:
        """Seconds that compactions are behind at the end of `interval`; None: nobody can tell."""
        pending_bytes = interval.pending_compaction_bytes
        if pending_bytes == 0 and interval.background_write_bytes is None:
            return 0.0
        if pending_bytes is None or not self._written_bytes or not self._writing_s:
            return None
        return pending_bytes * self._writing_s / self._written_bytes


def time_reports(
    rungs: TimeRungs, measurement: Measurement, metric: str
) -> Iterator[tuple[int, float]]:
    """The reports that a stored run gave while it ran, in order.

    A program of the user's own has steps of its own choice, at which it reports `metric`.
    """
    for reported in measurement.intermediate:
        if metric in reported.metrics:
            yield reported.step, reported.metrics[metric]
    if not rungs.judge(measurement.options):
        return
    reports = TimeReports(rungs)
    series = [phase.intervals for phase in measurement.phases if phase.name == rungs.phase]
    if measurement.phase_unfinished == rungs.phase:
        series.append(measurement.intervals_unfinished)
    for interval in chain.from_iterable(series):
        report = reports.take(interval)
        if report is not None:
            yield report


def smaller(workload: Workload, num: int) -> Workload:
    """`workload` with `num` keys: every phase shrinks by the same factor, to 1 operation at least.

    The records that a mix finds, and those over which it scatters its choices, shrink with it. A
    phase whose size is a duration keeps it, and a replay its trace.
    """
    factor = num / workload.num
    phases = []
    for phase in workload.phases:
        each, whole = phase.operations_per_thread, phase.operations
        companions = (replace(c, mix=_smaller_mix(c.mix, factor)) for c in phase.companions)
        smaller_phase = replace(
            phase,
            operations_per_thread=None if each is None else _some(each, factor),
            operations=None if whole is None else _some(whole, factor),
            mix=_smaller_mix(phase.mix, factor),
            companions=tuple(companions),
        )
        phases.append(scattered_as(phase, smaller_phase))
    return replace(workload, num=num, phases=tuple(phases))


def _smaller_mix(mix: Mix | None, factor: float) -> Mix | None:
    if mix is None:
        return None
    records, first = _some(mix.records, factor), round(mix.first * factor)
    insert_from = None
    if mix.insert_from is not None:
        # Rounding must not let new records fall on old ones.
        insert_from = max(first + records, round(mix.insert_from * factor))
    keys, items = mix.keys, mix.keys.get("items")
    if isinstance(items, int):
        scattered = max(records, round(items * factor))
        keys = Distribution.of(keys.name, **{**dict(keys.parameters), "items": scattered})
    return replace(mix, records=records, first=first, insert_from=insert_from, keys=keys)


def _some(count: int, factor: float) -> int:
    """`count` times `factor`; what is not nothing does not become nothing."""
    return max(1, round(count * factor)) if count else 0


def rung_workloads(rungs: DataRungs, workload: Workload) -> tuple[Workload, ...]:
    """The workload of each rung, the last one being the study's own.

    Of several workloads that became longer, some may have other numbers of keys than the last rung.
    """
    shares = [num / rungs.num[-1] for num in rungs.num[:-1]]
    fewer = [smaller(workload, max(1, round(workload.num * share))) for share in shares]
    return (*fewer, workload)


# --- What the stored runs of a study say of its trials: pure functions of rows.


@dataclass
class TrialRuns:
    """The runs of one trial: those of each rung, those that count, and those of its repeats.

    Each in the order stored; `repeats` by their number, which counts from 1.
    """

    number: int
    rungs: dict[int, list[StoredMeasurement]] = field(default_factory=dict)
    runs: list[StoredMeasurement] = field(default_factory=list)
    repeats: dict[int, list[StoredMeasurement]] = field(default_factory=dict)

    @property
    def all(self) -> list[StoredMeasurement]:
        """Every run of the trial, in the order of rungs and repeats."""
        repeats = (runs for _, runs in sorted(self.repeats.items()))
        return list(chain(*self.rungs.values(), self.runs, *repeats))

    @property
    def config(self) -> Config:
        """What was run."""
        return self.all[0].config


@dataclass(frozen=True)
class Round:
    """One run under every workload, of a trial or of the baseline: what it came to.

    It is in rows `first` to `last` of the store, and took `wall_s` seconds, of which its runs on
    loaded databases took `run_s`. `values` has one value per objective as measured, None unless all
    runs ended `ok`. `violations` and `pickable` are as in a TrialEnd. `reached`, of a run that its
    deadline ended in its measure phase, is the rate up to there: what it was to do would have taken
    longer, so that its value is no better. `log_odds`: of its guards, by this round (see
    `Feasibility.log_odds`). All its runs were on one `host`, empty for the tuner's own machine.
    `in_turns`: it shared the machine with another run in slices. It scatters no more than others
    do, and is no part of the series of anchors.
    """

    first: int
    last: int
    outcome: Outcome
    wall_s: float = 0.0
    values: tuple[float, ...] | None = None
    violations: Mapping[str, float] = field(default_factory=dict)
    pickable: bool = True
    reached: float | None = None
    run_s: float = 0.0
    log_odds: float = 0.0
    host: str = ""
    in_turns: bool = False


@dataclass(frozen=True)
class TrialRounds:
    """All that is known of a trial that ended: its rounds in order, the smaller runs in the first.

    `reports` is what a pruner was told, step to value as measured.
    """

    number: int
    config: Config
    rounds: tuple[Round, ...]
    reports: Mapping[int, float] = field(default_factory=dict)

    @property
    def began(self) -> Round:
        """Its first round."""
        return self.rounds[0]


def trial_runs(rows: Iterable[StoredMeasurement]) -> dict[int, TrialRuns]:
    """The trials among `rows` by number, in rising order."""
    trials: dict[int, TrialRuns] = {}
    for row in rows:
        if row.trial is None or row.role not in (Role.TRIAL, Role.RUNG):
            continue
        trial = trials.setdefault(row.trial, TrialRuns(row.trial))
        if row.role is Role.TRIAL:
            runs = trial.repeats.setdefault(row.repeat, []) if row.repeat else trial.runs
            runs.append(row)
        elif row.rung is not None:
            trial.rungs.setdefault(row.rung, []).append(row)
    return dict(sorted(trials.items()))


def trial_rounds(
    trial: TrialRuns, spec: Spec, feasibility: Feasibility, *, pruned: bool = False
) -> TrialRounds | None:
    """The rounds of a trial, from its runs alone; None when a kill cut off the first of them.

    A trial that was `pruned` between two sizes of its data has smaller runs only, all of them well.
    A repeat that was cut off is left out.
    """
    first = round_of(trial.runs, spec, feasibility, list(chain(*trial.rungs.values())))
    if first is None and pruned:
        first = _round(trial.all, Outcome.PRUNED)
    if first is None:
        return None
    repeats = (round_of(runs, spec, feasibility) for _, runs in sorted(trial.repeats.items()))
    rounds = (first, *(repeat for repeat in repeats if repeat is not None))
    reports = stored_reports(trial, spec.pruner, spec.goal)
    return TrialRounds(trial.number, trial.config, rounds, reports)


def round_of(
    runs: Sequence[StoredMeasurement],
    spec: Spec,
    feasibility: Feasibility,
    rungs: Sequence[StoredMeasurement] = (),
) -> Round | None:
    """What runs of one configuration under each workload came to; None while some are missing.

    The smaller runs of its `rungs` were before them.
    """
    every = [*rungs, *runs]
    outcome = outcome_of([run.measurement for run in every])
    if outcome is not Outcome.OK:
        return replace(_round(every, outcome), reached=reached_by(every[-1].measurement, spec))
    if len(runs) < len(spec.workloads):
        return None
    measurements = [run.measurement for run in runs]
    values = spec.goal.values(measurements)
    if values is None:
        return _round(every, Outcome.INVALID)
    options, feasibility = runs[0].config.options, feasibility.on(measurements[0].host)
    broken = feasibility.violations(options, measurements)
    return replace(
        _round(every, Outcome.OK),
        values=values,
        violations=broken | feasibility.broken(options),
        pickable=feasibility.picks(options, measurements),
        log_odds=feasibility.log_odds(broken),
    )


def _round(runs: Sequence[StoredMeasurement], outcome: Outcome) -> Round:
    rows = [run.id for run in runs]
    wall_s, run_s = sum(r.wall_s for r in runs), sum(r.measurement.elapsed_s for r in runs)
    host = runs[0].measurement.host
    return Round(min(rows), max(rows), outcome, wall_s, run_s=run_s, host=host)


def reached_by(measurement: Measurement, spec: Spec) -> float | None:
    """The rate that a run had when its deadline ended it; None unless that bounds the objective.

    It does for the rate of a phase of a single workload that is a number of operations. A run that
    performed none of them hangs: that is no rate, and would leave no model its logarithms.
    """
    alone = len(spec.workloads) == 1 and not spec.goal.several
    steps = measurement.intervals_unfinished
    if measurement.outcome is not Outcome.TIMEOUT or not alone or not steps:
        return None
    phase, last = spec.objective.phase_in(spec.workload), steps[-1]
    was_in = measurement.phase_unfinished == phase.name and phase.duration_s is None
    if not was_in or spec.objective.metric not in (BURST, SUSTAINED):
        return None
    moved = last.operations_total > 0 and last.elapsed_s > 0
    return last.operations_total / last.elapsed_s if moved else None


def anchor_rounds(rows: Iterable[StoredMeasurement], goal: Goal) -> list[Round]:
    """Every run of the baseline under all workloads that says how its runs vary.

    Those of the baseline itself, of the calibration, and the anchors, in the order of their rows.
    Runs of a duet are as fast as half of the machine, and left out.
    """
    groups: dict[tuple[object, ...], list[StoredMeasurement]] = {}
    rounds_begun: dict[tuple[str, int], int] = {}
    for row in rows:
        if row.measurement.outcome is not Outcome.OK:
            continue
        if row.role is Role.BASELINE:
            # The k-th runs under each workload belong together, whatever ran between them.
            place = row.measurement.host, row.workload
            begun = rounds_begun.get(place, 0)
            rounds_begun[place] = begun + 1
            groups.setdefault((row.role, place[0], begun), []).append(row)
            continue
        duet = row.measurement.paired_by == PairMethod.DUET.value
        if row.role is Role.ANCHOR or (row.role is Role.CALIBRATION and not duet):
            groups.setdefault((row.role, row.pair, row.repeat), []).append(row)
    rounds = []
    for runs in groups.values():
        in_order = sorted(runs, key=lambda run: run.workload)
        values = goal.values([run.measurement for run in in_order])
        if values is not None:
            in_turns = runs[0].measurement.paired_by == PairMethod.SLICES.value
            rounds.append(replace(_round(runs, Outcome.OK), values=values, in_turns=in_turns))
    return sorted(rounds, key=lambda anchor: anchor.first)


def stored_reports(trial: TrialRuns, pruner: PrunerSpec | None, goal: Goal) -> dict[int, float]:
    """What a pruner was told of a trial, step to value."""
    if pruner is None:
        return {}
    if isinstance(pruner.rungs, TimeRungs):
        metric, rungs = goal.objectives[0].metric, pruner.rungs
        reports = (r for run in trial.runs for r in time_reports(rungs, run.measurement, metric))
        return dict(reports)
    sizes = pruner.rungs
    values = {n: goal.value([run.measurement for run in runs]) for n, runs in trial.rungs.items()}
    return {sizes.step(rung): value for rung, value in values.items() if value is not None}
