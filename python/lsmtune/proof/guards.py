"""Guards: how much worse than the baseline a candidate may be in what the objective does not see.

A guard is a constraint with the baseline's value in it: `write_amplification <= 1.5 * baseline`.
The search compares with the runs of the baseline before it; a proof with the other side of a pair.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.engines.memory_model import memory_model
from lsmtune.errors import InputError
from lsmtune.model.config import OptionValue
from lsmtune.model.goal import metric_value
from lsmtune.model.measurement import Measurement, PhaseMeasurement
from lsmtune.model.metrics import LATENCIES, METRICS, PERCENTILES, PHASE_METRICS, SHORT_NAMES
from lsmtune.model.verdict import GuardResult, Verdict, VerdictOutcome
from lsmtune.model.workload import Workload
from lsmtune.proof.verdict import PairedRuns, Runs
from lsmtune.space.constraint import BASELINE, Constraint, make_constraint
from lsmtune.space.parameter import is_option_name
from lsmtune.stats.intervals import MINIMUM_PAIRS
from lsmtune.stats.sequential import sequential_ratio
from lsmtune.workloads.distributions import data_bytes

# What a candidate may cost, as a multiple of the baseline, where the user does not say. Compactions
# that write half as much again wear the device and take its time from others; the space and the
# slow operations are what an operator has planned for.
_WRITES = "write_amplification"
_RATIOS = {_WRITES: 1.5, "space_amplification": 1.25}
_LATENCY, _LATENCY_RATIO = "latency_us_p99", 1.25
_EXAMPLE = f"write_amplification <= 1.5 * {BASELINE}"
# What an expression can name besides options and metrics; `facts_of` has their values.
MEMORY_MODEL = "memory_model_bytes"
FACTS = ("num", "key_bytes", "value_bytes", "data_bytes", "threads", MEMORY_MODEL)
# The type under which the driver files the latencies of an operation, where it differs.
_TYPES = {
    **dict.fromkeys(("fillseq", "fillrandom", "filluniquerandom", "overwrite"), "put"),
    **dict.fromkeys(("readrandom", "readuniquerandom", "readmissing", "readhot"), "get"),
    **dict.fromkeys(("deleterandom", "deleteuniquerandom", "delete_oldest"), "delete"),
    "readseq": "next",
    "seekrandom": "seek",
}
# Those of a trace that is performed again, of which none may have all.
_OF_TRACES = ("delete", "get", "merge", "put", "seek")

Observed = Mapping[str, OptionValue]  # the values of metrics by name


def operation_types(workloads: Sequence[Workload]) -> tuple[str, ...]:
    """The operation types of measured phases, as `get` in `get.latency_us_p99`.

    Those of mixes, of traces, and of what works beside a phase: the writer of `readwhilewriting`,
    and companions with their name in front (`writer.put`). A loop alone has no type of its own.
    """
    types: set[str] = set()
    for phase in (phase for workload in workloads for phase in workload.measured_phases):
        types.update(_OF_TRACES if phase.replay is not None else ())
        types.update(["put"] if phase.operation == "readwhilewriting" else [])
        if phase.mix is not None:
            types.update(_TYPES.get(name, name) for name in phase.mix.names)
        for beside in phase.companions:
            doing = {str(beside.operation)} if beside.mix is None else beside.mix.names
            types.update(f"{beside.name}.{_TYPES.get(name, name)}" for name in doing)
    return tuple(sorted(types))


def metric_names(workloads: Sequence[Workload]) -> tuple[str, ...]:
    """The metrics that a constraint may name under `workloads`.

    Of every phase, of one (`put.stall_s`), and latencies of one operation type
    (`get.latency_us_p99`).
    """
    phases = sorted({phase for workload in workloads for phase in workload.measured_names})
    of_phases = [f"{phase}.{metric}" for phase in phases for metric in PHASE_METRICS]
    of_types = [f"{kind}.{name}" for kind in operation_types(workloads) for name in LATENCIES]
    return (*METRICS, *SHORT_NAMES, *of_phases, *of_types)


def default_guards(workloads: Sequence[Workload]) -> tuple[str, ...]:
    """What is guarded unless the user says otherwise, as texts of constraints.

    Write and space amplification, and the p99 latency of every operation type: of a phase that
    repeats one operation, its own. What no expression can name has none.
    """
    typed = [f"{kind}.{_LATENCY}" for kind in operation_types(workloads) if is_option_name(kind)]
    measured = [phase for workload in workloads for phase in workload.measured_phases]
    # Of a mix only the types are limited. So beside one a phase is named, if that can be written.
    own = [
        f"{phase.name}.{_LATENCY}" if typed and is_option_name(phase.name) else _LATENCY
        for phase in measured
        if phase.mix is None and phase.replay is None
    ]
    latencies = [*typed, *own]
    ratios = {**_RATIOS, **dict.fromkeys(latencies, _LATENCY_RATIO)}
    return tuple(f"{metric} <= {ratio:g} * {BASELINE}" for metric, ratio in ratios.items())


def make_guards(
    texts: Sequence[str], engine: str, workloads: Sequence[Workload], source: str
) -> tuple[Constraint, ...]:
    """`texts` as guards of runs on `engine`.

    Raises `InputError`, naming `source`, for what is no constraint or has no baseline in it.
    """
    options = option_catalogue(engine) if engine in ENGINE_KINDS else ()
    metrics = metric_names(workloads)
    made = [make_constraint(text, options, metrics, FACTS, source, "") for text in texts]
    for guard in made:
        check_guard(guard, source, "")
    return tuple(made)


def check_guard(guard: Constraint, source: str, field: str) -> None:
    """Raises `InputError` for a constraint without the baseline's value in it."""
    if not guard.baseline_names:
        allowed = f"a condition with {BASELINE} in it, such as {_EXAMPLE}"
        raise InputError(source, field, found=guard.text, allowed=allowed)


def operations_min(metric: str) -> int:
    """How many operations a run needs to tell a latency: so many that one is above its percentile.

    100 for `latency_us_p99`. The p99 of fewer is the slowest of them, which chance decides.
    """
    return round(100 / (100 - PERCENTILES.get(metric, 0)))


def observations(
    run: Measurement, wanted: Collection[str] | None = None, *, of_baseline: bool = False
) -> list[dict[str, OptionValue]]:
    """What each measure phase observed, by the metrics' names; one element without phases.

    `phase.metric` is of that phase, and the same in all elements; `type.latency_us_p99` of one
    operation type of the phase. A metric without a phase has to hold in every one, but for
    `write_amplification`, which is that of all phases together: one that deletes what another has
    put writes so little that a single compaction doubles its own. Of the metrics without an
    operation type those that are `wanted`; None for all. `of_baseline` leaves out the latencies of
    types with too few operations to compare with.
    """
    measured = run.measured_phases
    together = _write_amplification(measured)
    dotted = {
        f"{phase.name}.{name}": metric_value(run, name, phase)
        for phase in measured
        for name in PHASE_METRICS
        if wanted is None or f"{phase.name}.{name}" in wanted
    }
    names = [*METRICS, *SHORT_NAMES, *run.reported]
    if wanted is not None:
        names = [name for name in names if name in wanted]
    phases: list[PhaseMeasurement | None] = [*measured] or [None]
    observed = []
    for phase in phases:
        typed = {
            f"{kind}.{name}": getattr(latency, name)
            for kind, latency in ({} if phase is None else phase.latencies).items()
            for name in LATENCIES
            if not of_baseline or latency.count >= operations_min(name)
        }
        values = {**typed, **dotted, **{name: metric_value(run, name, phase) for name in names}}
        if together is not None and _WRITES in values:
            values[_WRITES] = together
        # A program of the user's may report what is no number: that is nothing to compare.
        known = {name: value for name, value in values.items() if value is not None}
        observed.append(
            {n: v for n, v in known.items() if not isinstance(v, float) or math.isfinite(v)}
        )
    return observed


def _write_amplification(phases: Sequence[PhaseMeasurement]) -> float | None:
    """What the engine wrote over what was written to it, of all `phases`; None: not known."""
    writing = [phase for phase in phases if phase.user_bytes_written]
    known = [p for p in writing if p.write_amplification is not None]
    if not known or len(known) < len(writing):
        return None
    shares = [float(phase.user_bytes_written or 0) for phase in known]
    return fmean([phase.write_amplification or 0.0 for phase in known], shares)


def baseline_observations(runs: Sequence[Measurement]) -> list[dict[str, OptionValue]]:
    """What each measure phase of the baseline observed under one workload: the mean over `runs`."""
    phases = zip(*(observations(run, of_baseline=True) for run in runs), strict=True)
    means: list[dict[str, OptionValue]] = []
    for observed in phases:
        known = set.intersection(*(set(values) for values in observed))
        means.append({name: fmean(float(v[name]) for v in observed) for name in sorted(known)})
    return means


@dataclass(frozen=True)
class Circumstances:
    """What constraints may name beside metrics: `options` with their values, and workload facts.

    `facts` has one mapping per workload. `source` and `engine_name` are for messages.
    """

    options: Mapping[str, OptionValue]
    facts: Sequence[Mapping[str, OptionValue]]
    source: str
    engine_name: str


def circumstances_of(
    engine: str,
    options: Mapping[str, OptionValue],
    defaults: Mapping[str, OptionValue],
    workloads: Sequence[Workload],
    source: str,
    *,
    of_memory: bool = True,
    version: str | None = None,
) -> Circumstances:
    """Those of a configuration of `options` on `engine`; `defaults` are what it leaves alone.

    `of_memory`: whether a constraint asks for the memory by the model, which takes a while;
    `version`: the engine's, None for the newest one that the model knows.
    """
    modelled = of_memory and engine in ENGINE_KINDS
    parts = memory_model(engine, options, version=version) if modelled else {}
    known = {**defaults, **options, MEMORY_MODEL: sum(parts.values())}
    return Circumstances(known, [facts_of(workload) for workload in workloads], source, engine)


def facts_of(workload: Workload) -> dict[str, OptionValue]:
    """What expressions may say of a workload."""
    return {
        "num": workload.num,
        "key_bytes": workload.key_bytes,
        "value_bytes": workload.value_bytes,
        "data_bytes": data_bytes(workload),
        "threads": max(phase.threads for phase in workload.phases),
    }


def violations(
    constraints: Sequence[Constraint],
    circumstances: Circumstances,
    runs: Runs,
    baseline: Sequence[Sequence[Observed]],
) -> dict[str, float]:
    """By how much each constraint is broken by `runs`, one per workload; 0 or less where it holds.

    The worst of all workloads and measure phases counts. `baseline` has the `baseline_observations`
    of each workload; empty before they are known. A constraint is left out where the run, or the
    baseline for a guard, did not observe its metric: by chance no operation was a scan, say.
    """
    places = _violations(constraints, circumstances, runs, baseline)
    return {text: max(amounts.values()) for text, amounts in places.items()}


def check_observed(
    constraints: Sequence[Constraint], circumstances: Circumstances, runs: Runs
) -> None:
    """Raises `InputError` for a constraint, but for guards, on what one of `runs` did not observe.

    Of the baseline's first runs: what an engine never tells would never be judged.
    """
    for constraint in constraints:
        if constraint.baseline_names or constraint.option_names - circumstances.options.keys():
            continue
        for run in runs:
            own = observations(run, constraint.metric_names)
            least = min((constraint.metric_names - observed.keys() for observed in own), key=len)
            if least:
                engine = circumstances.engine_name
                why = f"{engine} did not observe {min(least)} under this workload"
                raise InputError(circumstances.source, constraint.expression.field, why=why)


# A workload and a measure phase of it, both counted from 0.
_Place = tuple[int, int]


def _violations(
    constraints: Sequence[Constraint],
    circumstances: Circumstances,
    runs: Runs,
    baseline: Sequence[Sequence[Observed]],
) -> dict[str, dict[_Place, float]]:
    """As `violations`, but in each place."""
    broken: dict[str, dict[_Place, float]] = {}
    wanted = {name for constraint in constraints for name in constraint.metric_names}
    for index, (facts, run) in enumerate(zip(circumstances.facts, runs, strict=True)):
        own, base = observations(run, wanted), baseline[index] if baseline else []
        for constraint in constraints:
            if constraint.option_names - circumstances.options.keys():
                continue
            observing = _observing_phases(constraint, own, base)
            if not observing:
                continue
            amounts = broken.setdefault(constraint.text, {})
            for phase, values in observing.items():
                known = {**circumstances.options, **facts, **values}
                amounts[index, phase] = constraint.violation(known)
    return broken


def _observing_phases(
    constraint: Constraint, own: Sequence[Observed], baseline: Sequence[Observed]
) -> dict[int, dict[str, Any]]:
    """The values of the phases that have all the metrics of `constraint`, the baseline's beside."""
    names, of_baseline = constraint.metric_names, constraint.baseline_names
    observing = {}
    for index, observed in enumerate(own):
        base = baseline[index] if index < len(baseline) else {}
        if names <= observed.keys() and of_baseline <= base.keys():
            observing[index] = {**observed, **{f"{BASELINE}.{n}": base[n] for n in of_baseline}}
    return observing


def judged_by_guards(
    verdict: Verdict,
    guards: Sequence[Constraint],
    circumstances: Circumstances,
    pairs: PairedRuns,
) -> Verdict:
    """`verdict` in the light of `guards`, by the complete `pairs` of baseline and candidate.

    A guard is broken when most pairs break it in the same phase: one run may keep or break a limit
    by luck, and of several phases one more likely so than one alone. A candidate that breaks one is
    neither better nor equivalent, whatever it gains. Of types that a trace has not got, the default
    guards are left out.
    """
    by_pair = [
        _violations(
            guards, circumstances, candidate, [baseline_observations([r]) for r in baseline]
        )
        for baseline, candidate in pairs
    ]
    results = tuple(
        _result(guard, [broken.get(guard.text, {}) for broken in by_pair], pairs)
        for guard in guards
    )
    runs = (run for pair in pairs for side in pair for run in side)
    if any(phase.replay is not None for run in runs for phase in run.measured_phases):
        of_traces = {f"{kind}.{_LATENCY} <= {_LATENCY_RATIO:g} * {BASELINE}" for kind in _OF_TRACES}
        results = tuple(each for each in results if each.pairs or each.guard not in of_traces)
    notes = [
        f"{each.guard}: {each.pairs} of {len(pairs)} pairs observed it"
        + (f" in {each.where}" if each.where else "")
        for each in results
        if 0 < each.pairs < len(pairs)
    ]
    notes += _notes_on_rare_types(guards, pairs)
    broken = [_broken_text(each) for each in results if each.held is False]
    gained = verdict.outcome in (VerdictOutcome.BETTER, VerdictOutcome.EQUIVALENT)
    if broken and gained:
        why = f"the candidate breaks {', '.join(broken)}"
        verdict = verdict.but(VerdictOutcome.NOT_PROVEN, why)
    return replace(verdict, guards=results, notes=(*verdict.notes, *notes))


def _notes_on_rare_types(guards: Sequence[Constraint], pairs: PairedRuns) -> list[str]:
    """Which guards a run of the baseline could not judge, for want of operations of their type."""
    notes = []
    for metric in sorted({name for guard in guards for name in guard.baseline_names}):
        kind, _, name = metric.rpartition(".")
        counts = [
            phase.latencies[kind].count
            for baseline, _candidate in pairs
            for run in baseline
            for phase in run.measured_phases
            if kind in phase.latencies
        ]
        if counts and min(counts) < operations_min(name):
            least = f"{operations_min(name)} operations are needed to judge it"
            notes.append(f"{metric}: {least}, and a run of the baseline had {min(counts)}")
    return notes


def _broken_text(result: GuardResult) -> str:
    text = f"{result.guard} in {result.broken} of {result.pairs} pairs"
    relative = BASELINE in result.guard and result.ratio is not None
    where = f" of {result.where}" if result.where else ""
    return f"{text}{where} ({result.ratio:.2f}x)" if relative else f"{text}{where}"


def _result(
    guard: Constraint, by_pair: Sequence[Mapping[_Place, float]], pairs: PairedRuns
) -> GuardResult:
    """What the pairs say of `guard`, by the amounts by which each broke it in each place.

    A place that most of the pairs that observed it break counts before one that holds; of several
    the one that most pairs break, and of those the one where they do it most.
    """
    places: dict[_Place, list[float]] = {}
    for amounts in by_pair:
        for place, amount in amounts.items():
            places.setdefault(place, []).append(amount)
    if not places:
        return GuardResult(guard.text, 0, 0)
    known: dict[_Place, tuple[bool, int, float]] = {}
    for place, of_place in places.items():
        broken = sum(amount > 0 for amount in of_place)
        known[place] = (2 * broken > len(of_place), broken, fmean(of_place))
    worst = max(known, key=lambda place: known[place])
    result = GuardResult(guard.text, len(places[worst]), known[worst][1])
    if len(set(known.values())) > 1:
        run = pairs[0][1][worst[0]]
        several = len({workload for workload, _ in places}) > 1
        # A program of the user's own has no phases.
        names = [phase.name for phase in run.measured_phases[worst[1] : worst[1] + 1]]
        result = replace(result, where=", ".join([run.workload, *names] if several else names))
    return _with_ratio(result, guard, pairs, worst)


def _with_ratio(
    result: GuardResult, guard: Constraint, pairs: PairedRuns, place: _Place
) -> GuardResult:
    """`result` with the ratio of the guard's metric, where it has one that each pair observed."""
    if len(guard.metric_names) != 1 or len(pairs) < MINIMUM_PAIRS:
        return result
    (metric,), (workload, phase) = guard.metric_names, place
    sides: tuple[list[float], list[float]] = ([], [])
    for pair in pairs:
        for side, runs in zip(sides, pair, strict=True):
            observed = observations(runs[workload], {metric})
            value = observed[phase].get(metric) if phase < len(observed) else None
            if value is None or isinstance(value, str) or value <= 0:
                return result
            side.append(float(value))
    interval = sequential_ratio(*sides, 0.95)
    low, high = interval.ends
    return replace(result, ratio=interval.ratio, ratio_low=low, ratio_high=high)
