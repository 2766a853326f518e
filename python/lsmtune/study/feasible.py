"""What may be run and counts as feasible in a study, and why one cannot start."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from statistics import fmean

import scipy

from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.engines.memory_model import memory_model
from lsmtune.errors import InputError, LsmtuneError
from lsmtune.experiment.run_length import can_last, flushes_missing
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import OptionValue
from lsmtune.model.measurement import Measurement, Outcome, RunError
from lsmtune.model.metrics import GROWING, SHORT_NAMES, SIZED
from lsmtune.model.request import PairMethod
from lsmtune.proof.guards import (
    MEMORY_MODEL,
    Circumstances,
    baseline_observations,
    check_observed,
    circumstances_of,
    facts_of,
    violations,
)
from lsmtune.space.constraint import Constraint, ConstraintKind, broken_by
from lsmtune.study.build import place_of
from lsmtune.study.spec import Spec
from lsmtune.units import format_bytes


def without_baseline(spec: Spec, measurement: Measurement) -> LsmtuneError:
    """Why the study cannot start; an InputError when its engine refuses what the file says."""
    if measurement.outcome is Outcome.INVALID and measurement.error is not None:
        return _refused(spec, measurement.error)
    ended = measurement.ended
    unseen = [o.metric for o in spec.goal.objectives if o.value(measurement) is None]
    if spec.objective.phase_of(measurement) is not None and not measurement.error and unseen:
        ended += f": it did not observe {unseen[0]}"
    return LsmtuneError(f"{spec.path}: the study cannot start: its baseline run ended {ended}")


def without_mean(spec: Spec, runs: Sequence[Measurement]) -> LsmtuneError:
    """Why the study cannot start: an objective is not above 0 under one of several workloads."""
    values = [
        f"{objective.metric} is {objective.value(run):g} under {weighted.label}"
        for objective in spec.goal.objectives
        for weighted, run in zip(spec.workloads, runs, strict=True)
        if (objective.value(run) or 0) <= 0
    ]
    return LsmtuneError(
        f"{spec.path}: the study cannot start: {', '.join(values)} in the baseline's run; "
        "over several workloads only values above 0 have a mean"
    )


def unknown_option(spec: Spec, measurement: Measurement) -> InputError | None:
    """The error for an option that the engine does not have, else None.

    Other values may suit an option that refuses one. A mistyped name fails every trial.
    """
    error = measurement.error
    if measurement.outcome is not Outcome.INVALID or error is None or not error.is_unknown_option:
        return None
    return _refused(spec, error)


def _refused(spec: Spec, error: RunError) -> InputError:
    """`error` at the place where the study file states the option that the driver names."""
    field = error.field or ""
    option = field.removeprefix("options.")
    stated = {
        "space": [parameter.name for parameter in spec.space.parameters],
        "baseline": list(spec.baseline.options),
        "options": list(spec.fixed),
    }
    places = (
        f"{section}.{name}"
        for section, names in stated.items()
        for name in names
        if option == name or option.startswith(f"{name}.")
    )
    field = next(places, field)
    return error.input_error(place_of(spec, field), field)


# --- Which configurations of a study may be run, and which measurements meet its constraints.

# What a guarded metric of the baseline varies by from run to run, as a share of its value: a guess,
# about that of the p99 latency of a run of seconds, for as many degrees of freedom.
_PRIOR_SD, _PRIOR_FREEDOM = 0.25, 0.25
FLUSHES = "enough flushes and compactions to show what is sustained"
_COMPARED_WITH = (Role.BASELINE, Role.CALIBRATION)


def one_length(spec: Spec) -> bool:
    """Whether the runs of all trials have to be as long as each other.

    Smaller runs stand for them in a pruner, or they are compared by what grows with a run.
    """
    constraints = (*spec.constraints, *spec.guards, *spec.pick_where)
    asked = {name for each in constraints for name in _metrics_of(each)}
    asked |= {objective.metric for objective in spec.goal.objectives}
    return spec.data_rungs is not None or not GROWING.isdisjoint(asked)


# The facts that are as large as the data; constraints on outcomes have those of the target.
_FACTS_OF_SIZE = frozenset({"num", "data_bytes", MEMORY_MODEL})


def limits_of_size(spec: Spec) -> list[str]:
    """The constraints on outcomes that runs on less data keep, or break, by that alone."""
    asked = [c for c in (*spec.constraints, *spec.guards, *spec.pick_where) if c.metric_names]
    return [c.text for c in asked if c.fact_names & _FACTS_OF_SIZE or _is_figure(c, SIZED)]


def limits_of_length(spec: Spec) -> list[str]:
    """The constraints on outcomes that longer runs break, or keep, by that alone."""
    asked = (*spec.constraints, *spec.pick_where)
    return [c.text for c in asked if _is_figure(c, GROWING)]


def _is_figure(constraint: Constraint, metrics: Set[str]) -> bool:
    """Whether it holds one of `metrics` to a figure, and not to what the baseline had of it."""
    return not constraint.baseline_names and not metrics.isdisjoint(_metrics_of(constraint))


def _metrics_of(constraint: Constraint) -> set[str]:
    """The metrics that it names, without phases and by their full names."""
    names = {name.rpartition(".")[2] for name in constraint.metric_names}
    return {SHORT_NAMES.get(name, name) for name in names}


class Feasibility:
    """The constraints and guards of one study, with the values of whatever they may name."""

    def __init__(self, spec: Spec, baseline: Iterable[StoredMeasurement] = ()) -> None:
        """`baseline` are the rows of the store that guards compare with, of any roles.

        Those of the baseline and of the calibration before the search count. Guards hold while
        there are none.
        """
        self._spec = spec
        self._facts = [facts_of(weighted.workload) for weighted in spec.workloads]
        self._before = [c for c in spec.constraints if c.kind is ConstraintKind.OPTIONS]
        self._after = [c for c in spec.constraints if c.kind is ConstraintKind.OUTCOME]
        asking = (*self._after, *spec.guards, *spec.pick_where)
        self._of_memory = any(MEMORY_MODEL in c.fact_names for c in asking)
        runs: list[list[Measurement]] = [[] for _ in spec.workloads]
        self._rows: dict[str, list[StoredMeasurement]] = {}  # by host
        for row in baseline:
            # A run of a duet had half of the cores.
            alone = row.measurement.paired_by != PairMethod.DUET.value
            if row.role in _COMPARED_WITH and alone and row.measurement.outcome is Outcome.OK:
                runs[row.workload].append(row.measurement)
                self._rows.setdefault(row.measurement.host, []).append(row)
        self._own: dict[str, Feasibility] = {}
        self._baseline = [baseline_observations(each) for each in runs] if all(runs) else []
        # By a guard's text, in its own unit: what the baseline's runs scatter by.
        self._noise = self._scatter(runs) if self._baseline else {}
        # Under a workload where most runs of the baseline flush too seldom, a trial's may, too.
        # Where the proof alone can have longer runs, it has them for what a trial lacks.
        later = one_length(spec) and all(can_last(each.workload) for each in spec.workloads)
        asks = spec.command is None and not spec.burst and not later
        short = [[bool(flushes_missing(run, spec.goal)) for run in each] for each in runs]
        self._asks_for_flushes = [asks and bool(s) and 2 * sum(s) <= len(s) for s in short]

    def on(self, host: str) -> Feasibility:
        """The same for runs on one host of a fleet: guards compare with its own baseline alone."""
        if not self._rows.keys() - {host}:
            return self
        if host not in self._own:
            rows = self._rows.get(host, ())
            self._own[host] = Feasibility(self._spec, rows)
        return self._own[host]

    def refusal(self, values: Mapping[str, OptionValue]) -> str:
        """Why a candidate with `values` may not be run, in one line; empty when it may."""
        options = {**self._spec.fixed, **values}
        memory_bytes = self._memory_bytes(options)
        limit_bytes = self._spec.limits.memory_bytes
        if memory_bytes > limit_bytes:
            # Without the amount, so that refusals for one reason can be counted together.
            return f"may come to use more memory than the limit of {format_bytes(limit_bytes)}"
        broken = next(self._broken(options, memory_bytes), None)
        return "" if broken is None else f"breaks {broken[0]}"

    def broken(self, options: Mapping[str, OptionValue]) -> dict[str, float]:
        """The constraints on options that `options` break, and by how much.

        No candidate that is run breaks one, but a stored trial may break one that is new.
        """
        return dict(self._broken(options, self._memory_bytes(options))) if self._before else {}

    def _broken(
        self, options: Mapping[str, OptionValue], memory_bytes: int
    ) -> Iterator[tuple[str, float]]:
        if self._before:
            known = {**self._spec.defaults, **options, MEMORY_MODEL: memory_bytes}
            # Only a baseline leaves open what every candidate has (study.build).
            asked = [c for c in self._before if c.option_names <= known.keys()]
            yield from broken_by(asked, [{**known, **facts} for facts in self._facts])

    def complaints(
        self, options: Mapping[str, OptionValue], runs: Sequence[Measurement]
    ) -> list[str]:
        """What speaks against the baseline with these runs, in words.

        Raises `InputError` for a constraint on a metric that they did not observe.
        """
        asked = [*self._after, *self._spec.pick_where]
        check_observed(asked, self.circumstances(options), runs)
        amounts = self.on(runs[0].host).violations(options, runs)
        broken = [f"breaks {text}" for text, by in amounts.items() if by > 0]
        refusal = self.refusal(options)
        return [refusal, *broken] if refusal else broken

    def violations(
        self, options: Mapping[str, OptionValue], runs: Sequence[Measurement]
    ) -> dict[str, float]:
        """By how much each constraint on outcomes, and each guard, is broken by `runs`.

        As `proof.guards.violations`. Guards give way by a standard deviation of the baseline's
        runs: the search has one run, which may break one by chance, and the proof decides. Runs
        that flush too seldom break `FLUSHES`: what was not yet paid for cannot be proved better.
        """
        after = [*self._after, *self._spec.guards]
        broken = violations(after, self.circumstances(options), runs, self._baseline)
        held = {text: by - self._noise.get(text, 0.0) for text, by in broken.items()}
        judged = zip(runs, self._asks_for_flushes, strict=True)
        missing = [flushes_missing(run, self._spec.goal) for run, asked in judged if asked]
        known = [share for share in missing if share is not None]
        if known:
            held[FLUSHES] = max(known)
        return held

    def log_odds(self, broken: Mapping[str, float]) -> float:
        """The logarithm of the probability that a proof finds all guards held.

        By the `violations` of one round alone: a normal distribution about what it observed, of the
        baseline's scatter, for each guard by itself.
        """
        # A violation is counted from one standard deviation beyond the limit on.
        beyond = [
            1.0 + by / self._noise[text] for text, by in broken.items() if text in self._noise
        ]
        return float(sum(scipy.special.log_ndtr(-each) for each in beyond))

    def _scatter(self, runs: Sequence[Sequence[Measurement]]) -> dict[str, float]:
        """What each guard's difference from its limit varies by among runs of the baseline."""
        noise, options = {}, self.circumstances(self._spec.baseline.options)
        broken = [
            violations(self._spec.guards, options, rounds, self._baseline)
            for rounds in zip(*runs, strict=False)
        ]
        for guard in self._spec.guards:
            values = [by[guard.text] for by in broken if guard.text in by]
            # The largest of the baseline's values in it; 0 where it observed none.
            phases = [phase for each in self._baseline for phase in each]
            names = guard.baseline_names
            known = [phase[name] for phase in phases for name in names & phase.keys()]
            size = max((abs(float(value)) for value in known), default=0.0)
            if values and size:
                middle = fmean(values)
                # Violations are shares of a limit above 1, and amounts below it.
                squares = _PRIOR_FREEDOM * (_PRIOR_SD * min(size, 1.0)) ** 2
                squares += sum((value - middle) ** 2 for value in values)
                noise[guard.text] = math.sqrt(squares / (_PRIOR_FREEDOM + len(values) - 1))
        return noise

    def picks(self, options: Mapping[str, OptionValue], runs: Sequence[Measurement]) -> bool:
        """Whether a point of the front meets what the study wants of the one it picks."""
        wanted = self._spec.pick_where
        if not wanted:
            return True
        broken = violations(wanted, self.circumstances(options), runs, self._baseline)
        return all(violation <= 0 for violation in broken.values())

    def circumstances(self, options: Mapping[str, OptionValue]) -> Circumstances:
        """What constraints may name beside metrics, for a configuration of `options`."""
        return circumstances_of(
            self._spec.engine_name,
            options,
            self._spec.defaults,
            [weighted.workload for weighted in self._spec.workloads],
            str(self._spec.path),
            of_memory=self._of_memory,
            version=self._spec.engine_version,
        )

    def _memory_bytes(self, options: Mapping[str, OptionValue]) -> int:
        """By the model of the engine; 0 for one that has none."""
        engine = self._spec.engine_name
        if engine not in ENGINE_KINDS:
            return 0
        return sum(memory_model(engine, options, version=self._spec.engine_version).values())
