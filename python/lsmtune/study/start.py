"""The beginning of a study: its baseline, its calibration, and the first configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.engines.option_names import same_to
from lsmtune.experiment.database_key import layout_of, load_and_run
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.measurer import Measurer
from lsmtune.experiment.schedule import Arm, Slot, Stream, derive_seed
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.machine.host import usable_cores
from lsmtune.model.config import Config, OptionValue, option_text
from lsmtune.model.goal import Goal
from lsmtune.model.measurement import Outcome
from lsmtune.proof.calibration import PAIRS_LEAST, Calibration, calibrate, smallest_effect
from lsmtune.proof.pairs import FAILURES_TOLERATED
from lsmtune.search.auto import KIND as AUTO
from lsmtune.search.pruners import PRUNERS
from lsmtune.search.sampler import AmplificationGuard, Problem
from lsmtune.search.searcher import Searcher
from lsmtune.search.starts import projected, textbook_starts
from lsmtune.search.unit_space import make_unit_space
from lsmtune.space.constraint import guard_limit
from lsmtune.study.budget import SHARE_MAX
from lsmtune.study.feasible import Feasibility, without_baseline
from lsmtune.study.observer import TuneObserver
from lsmtune.study.spec import Spec
from lsmtune.units import format_duration, format_share


def open_study(path: Path, spec: Spec, storage: str = "") -> StudyFolder:
    """The folder of `spec` at `path`, as `StudyFolder.create_or_resume` has it."""
    parts, text = spec.comparable_parts(), spec.text
    return StudyFolder.create_or_resume(
        path, parts, text=text, directions=spec.goal.directions, storage=storage
    )


# --- The baseline of a study: measured once under every workload, before the search.


def stored_baseline(
    rows: Sequence[StoredMeasurement], goal: Goal, workloads: int
) -> list[StoredMeasurement]:
    """The newest run that ended well under each workload, in the order of the workloads.

    Workloads beyond the last of them are still to be run.
    """
    newest = {
        row.workload: row
        for row in rows
        if row.measurement.outcome is Outcome.OK
        and all(objective.value(row.measurement) is not None for objective in goal.objectives)
    }
    known = takewhile(newest.__contains__, range(workloads))
    return [newest[workload] for workload in known]


def measure_baseline(
    spec: Spec, baseline: Arm, measurer: Measurer
) -> list[StoredMeasurement] | None:
    """The newest run under each workload, measured where there is none; None when interrupted.

    Raises LsmtuneError when the baseline does not run.
    """
    rows, count = measurer.folder.measurements.of(Role.BASELINE), len(spec.workloads)
    stored = stored_baseline(rows, spec.goal, count)
    for workload in range(len(stored), count):
        if measurer.stop.is_set():
            return None
        seed = derive_seed(spec.seed, Stream.BASELINE, len(rows))
        slot = Slot(Role.BASELINE, index=len(rows), workload=workload)
        run = measurer.measure(baseline, seed, slot)
        if run is None:
            return None
        rows.append(run)
        stored = stored_baseline(rows, spec.goal, count)
        if len(stored) <= workload:
            raise without_baseline(spec, run.measurement)
    return stored


# --- The calibration at the start of a study: how many pairs, and what they say in one line.


def calibrate_study(
    spec: Spec, baseline: Arm, measurer: Measurer, *, round_s: float, searched: bool
) -> None:
    """Run the calibration, or what is missing of it.

    `round_s` is what one run of the baseline under all workloads took. A study that has `searched`
    already gets no more of it. The calibration takes at most `SHARE_MAX` of the time budget.
    """
    wanted = pairs = 0 if searched else spec.noise.calibration_pairs
    rows = measurer.folder.measurements.of(Role.CALIBRATION)
    left_s = None
    if spec.budget.time_s is not None:
        left_s = SHARE_MAX * spec.budget.time_s - sum(row.wall_s for row in rows)
        pairs = wanted if left_s >= 2 * round_s else 0
    if not pairs and not rows:
        if wanted:
            measurer.observer.warning(
                f"no calibration: a pair of runs takes {format_duration(2 * round_s)}, more than "
                f"{100 * SHARE_MAX:.0f} % of the time budget"
            )
        return
    calibration = calibrate(
        baseline,
        spec.goal,
        measurer,
        study_seed=spec.seed,
        pairs=pairs,
        method=spec.proof.method,
        deadline_s=left_s,
    )
    if not measurer.stop.is_set():
        measurer.observer.calibrated(calibration_line(calibration, spec))


def calibration_line(calibration: Calibration, spec: Spec) -> str:
    """What a calibration says of this study's metric and proof, in one line."""
    wanted = spec.noise.calibration_pairs
    bad = calibration.pairs_failed
    why = f"as {bad} failed" if bad > FAILURES_TOLERATED else "as time allowed"
    of = "" if calibration.pairs >= wanted else f" (of {wanted}, {why})"
    noise = calibration.metrics.get(spec.goal.metric)
    if noise is None:
        lacks = "too few to say how noisy the machine is"
        if calibration.pairs >= PAIRS_LEAST:
            lacks = f"and {spec.goal.metric} is not above 0 in all: its noise is not known"
        return f"calibration: {calibration.pairs} pairs{of}, {lacks}"
    varies = f"{spec.goal.metric} varies by {format_share(noise.run_log_sd)} from run to run"
    text = f"calibration: {calibration.pairs} pairs by {calibration.method.value}{of}: {varies}"
    proof = spec.proof
    effect = smallest_effect(calibration, spec.goal.metric, proof.pairs, proof.confidence)
    if effect is None:
        return text
    shown = format_share(effect)
    return f"{text}; a proof of {proof.pairs} pairs can show a difference of {shown}"


# --- The configurations that a study compares, made from its Spec.


def baseline_config(spec: Spec) -> Config:
    """The baseline with the options that every run has.

    A program of the user's own has no defaults that come into force by themselves: for it, the
    parameters' defaults are part of the baseline.
    """
    options = spec.baseline.options
    if spec.command is not None:
        options = spec.space.point_of(options) or options
    return Config({**spec.fixed, **options}, spec.baseline.label)


def candidate_config(spec: Spec, number: int, values: Mapping[str, OptionValue]) -> Config:
    """The configuration of trial `number`, which was given `values`."""
    return Config({**spec.fixed, **values}, f"{spec.path.name}#{number}")


def allowed_points(
    spec: Spec, feasibility: Feasibility, observer: TuneObserver
) -> list[dict[str, OptionValue]]:
    """The points of the space to try first: the baseline, those of `start`, then textbook ones.

    `observer` is told what keeps one of `start` out, and what candidates lack of the baseline.
    """
    for line in outside(spec):
        observer.warning(line)
    if alone := _of_baseline_alone(spec):
        observer.warning(
            f"candidates are tried without {', '.join(alone)} of the baseline: no parameters of "
            "the space; what every run is to have belongs under options"
        )
    known: list[dict[str, OptionValue]] = []
    allowed = []
    for config in (spec.baseline, *spec.start):
        point = spec.space.point_of(config.options, spec.defaults)
        if point is None or point in known:
            continue
        known.append(point)
        refusal = feasibility.refusal(point)
        if refusal:
            observer.warning(f"{config.label} {refusal} and is not tried")
        else:
            allowed.append(point)
    if spec.sampler.name == AUTO.name:
        for point in textbook_points(spec, feasibility):
            if point not in allowed:
                allowed.append(point)
    return allowed


def points_by_hand(
    spec: Spec,
    feasibility: Feasibility,
    observer: TuneObserver,
    wanted: Sequence[Mapping[str, OptionValue]],
) -> list[dict[str, OptionValue]]:
    """Configurations that somebody wants to be tried, as points; the rest is the baseline's."""
    points = []
    for options in wanted:
        point = spec.space.point_of({**spec.baseline.options, **options}, spec.defaults)
        if point is None:
            refusal = "is outside the space"
        elif left := [n for n, v in options.items() if n not in point and spec.fixed.get(n) != v]:
            refusal = f"is outside the space, which has no active parameter {', '.join(left)},"
        else:
            refusal = feasibility.refusal(point)
        if point is None or refusal:
            named = ", ".join(f"{name}={option_text(value)}" for name, value in options.items())
            observer.warning(f"{named} {refusal} and is not tried")
        else:
            points.append(point)
    return points


# The models' constants and steps, apart from all else that follows from a study's seed.
_MODELS_SEED = 12


def problem_of(spec: Spec) -> Problem | None:
    """What samplers may know of the study before a run; None without an engine to know of."""
    if spec.engine_name not in ENGINE_KINDS:
        return None
    known, layout = {**spec.defaults, **spec.fixed}, frozenset[str]()
    loads = (load_and_run(each.workload, spec.engine_name) for each in spec.workloads)
    if spec.databases.reuse and any(parts is not None for parts in loads):
        parameters = Config({p.name: known.get(p.name, 0) for p in spec.space.parameters})
        layout = frozenset(layout_of(parameters, spec.engine_name).options)
    return Problem(
        spec.engine_name,
        spec.workloads,
        known,
        spec.limits.memory_bytes,
        len(usable_cores()),
        layout=layout,
        baseline=baseline_config(spec).options,
        guard=_amplification_guard(spec),
    )


def _amplification_guard(spec: Spec) -> AmplificationGuard | None:
    """The first constraint that is about the write amplification over the baseline's alone."""
    for guard in (*spec.guards, *spec.constraints):
        metric, most = guard_limit(guard.text) or ("", 0.0)
        if metric == "write_amplification" and most >= 1.0:
            return AmplificationGuard(guard.text, most)
    return None


def make_searcher(spec: Spec, accepts: Callable[[Mapping[str, OptionValue]], str]) -> Searcher:
    """What proposes the trials of `spec`; `accepts` says why a configuration may not be one."""
    pruner = spec.pruner
    return Searcher(
        spec.space,
        spec.sampler.name,
        spec.sampler.settings,
        derive_seed(spec.seed, Stream.SAMPLER, 0),
        spec.goal.directions,
        accepts=accepts,
        problem=problem_of(spec),
        pruner=None if pruner is None else PRUNERS[pruner.name].make(**pruner.settings),
    )


def textbook_points(spec: Spec, feasibility: Feasibility) -> list[dict[str, OptionValue]]:
    """What `auto` tries first (`textbook_starts`); all hold the constraints on options."""
    problem = problem_of(spec)
    if problem is None:
        return []
    unit_space = make_unit_space(spec.space)
    origin = projected(unit_space, spec.baseline.options, problem.defaults)
    seed = derive_seed(_MODELS_SEED, Stream.SAMPLER, 0)
    return textbook_starts(problem, unit_space, feasibility.refusal, origin, seed)


def outside(spec: Spec) -> list[str]:
    """What of the study's `start` cannot be tried as it stands, one line each."""
    lines = []
    for config in spec.start:
        why = spec.space.outside(config.options, spec.defaults)
        if why:
            lines.append(f"{config.label} lies outside the space and is not tried: {why}")
            continue
        if left := ", ".join(_left(spec, config)):
            lines.append(f"{config.label} is tried without {left}: no parameters of the space")
    return lines


def _left(spec: Spec, config: Config) -> list[str]:
    """The options of `config` that no candidate has."""
    fixed = {name for name, value in spec.fixed.items() if config.options.get(name) == value}
    known = {parameter.name for parameter in spec.space.parameters} | fixed
    return [name for name in config.options if name not in known]


def _of_baseline_alone(spec: Spec) -> list[str]:
    """What the baseline sets that no candidate has, and the engine has otherwise by itself."""
    options, defaults, engine = spec.baseline.options, spec.defaults, spec.engine_name
    return [
        name
        for name in _left(spec, spec.baseline)
        if name not in defaults or not same_to(engine, options[name], defaults[name])
    ]


def is_baseline(spec: Spec, config: Config) -> bool:
    """Whether `config` is the baseline, in its own words or as a point of the space."""
    first = spec.space.point_of(spec.baseline.options, spec.defaults)
    as_point: Mapping[str, OptionValue] | None = None
    if first is not None and not _of_baseline_alone(spec):
        as_point = candidate_config(spec, 0, first).options
    return config.options in (baseline_config(spec).options, as_point)
