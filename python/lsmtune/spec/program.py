"""From the model of `runner` to what performs the runs: a command, or a program people trust."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lsmtune.errors import InputError
from lsmtune.programs.info import ProgramInfo
from lsmtune.programs.registry import info_named
from lsmtune.records.command import (
    CommandSpec,
    JsonLines,
    JsonPointers,
    ParametersFile,
    RegularExpressions,
    Results,
    check_command,
)
from lsmtune.records.config import Config
from lsmtune.records.goal import Goal, WeightedWorkload
from lsmtune.records.objective import SHORT_NAMES
from lsmtune.records.program import ProgramSpec
from lsmtune.records.workload import Phase, PhaseKind, Workload
from lsmtune.space import Constraint, Space
from lsmtune.spec.models import ResultsModel, RunnerModel, StudyModel, TemplateModel

# What stands for engine and workload where only the program knows them.
PROGRAM = "program"
STEP = "step"


def own_command(study: StudyModel) -> RunnerModel | None:
    """The runner of a study whose runs a program of the user's own performs; None for others."""
    runner = study.runner
    return runner if runner is not None and runner.program is None else None


def make_program(
    study: StudyModel,
    goal: Goal,
    workloads: Sequence[WeightedWorkload],
    path: Path,
    source: str,
) -> ProgramSpec | None:
    """The program that people trust of a study that names one.

    Raises `InputError` for one that is none or works on another engine, for what it cannot perform
    of a workload, and for an objective that it cannot tell.
    """
    model = study.runner
    if model is None or model.program is None:
        return None
    _refuse_command_fields(model, source)
    info = info_named(model.program, source, "runner.program")
    engine = engine_of(study, source)
    if engine not in info.engines:
        allowed = ", ".join(info.engines)
        raise InputError(source, "engine.name", found=engine, allowed=f"{allowed}, of {info.name}")
    if study.engine is not None and study.engine.library is not None:
        why = f"has no effect with {info.name}, which carries an engine of its own"
        raise InputError(source, "engine.library", why=why, allowed="runner.path")
    for weighted in workloads:
        _check_performs(info, weighted.workload, engine, source)
    for index, objective in enumerate(goal.objectives):
        field = f"objectives[{index}]" if goal.several else "objective"
        for weighted in workloads:
            metric, phase = objective.metric, objective.phase
            info.check_told(metric, phase, weighted.workload, source, f"{field}.metric")
    place = None if model.path is None else path.parent.absolute() / Path(model.path).expanduser()
    return ProgramSpec(info.name, place, tuple(model.arguments))


def _refuse_command_fields(model: RunnerModel, source: str) -> None:
    """A program that people trust is told what to do in its own words, and read in them."""
    for name in ("command", "environment", "parameters_file", "metrics"):
        if getattr(model, name):
            raise InputError(source, f"runner.{name}", why="stands beside program")
    if model.results != ResultsModel():
        raise InputError(source, "runner.results", why="stands beside program")


def _check_performs(info: ProgramInfo, workload: Workload, engine: str, source: str) -> None:
    try:
        info.check(workload, engine)
    except InputError as error:
        raise InputError(
            source,
            "workload",
            found=error.found,
            allowed=error.allowed,
            why=f"{info.name} cannot perform {workload.name}: {error.field}: {error.why}",
        ) from None


def check_constraints_told(
    study: StudyModel,
    constraints: Sequence[Constraint],
    field: str,
    workloads: Sequence[WeightedWorkload],
    source: str,
) -> None:
    """Raises InputError for a constraint of `field` on a metric that the program cannot tell.

    It would never be met, nor broken. A metric may be one of a phase (`run.stall_s`).
    """
    if study.runner is None or study.runner.program is None:
        return
    info = info_named(study.runner.program, source, "runner.program")
    for constraint in constraints:
        for name in sorted(constraint.metric_names):
            phase, _, metric = name.rpartition(".")
            for weighted in workloads:
                try:
                    metric = SHORT_NAMES.get(metric, metric)
                    info.check_told(metric, phase or None, weighted.workload, source, field)
                except InputError as error:
                    why = f"{error.why}: {constraint.text}"
                    allowed = error.allowed
                    raise InputError(source, field, found=name, why=why, allowed=allowed) from None


def engine_of(study: StudyModel, source: str) -> str:
    """The engine's name; `PROGRAM` where a program stands in its place."""
    if study.engine is not None:
        return str(study.engine.name)
    if own_command(study) is None:
        allowed = "a mapping with name and, if wanted, library; or runner: a program of your own"
        raise InputError(source, "engine", why="missing", allowed=allowed)
    return PROGRAM


def program_workload(study: StudyModel) -> Workload:
    """What a program does, as far as lsmtune knows: one phase, and a size where rungs name one."""
    num = study.pruner.rungs.num
    phase = Phase(PROGRAM, PhaseKind.MEASURE)
    return Workload(PROGRAM, (phase,), num=num[-1] if num else 0)


def reported_metrics(study: StudyModel) -> tuple[str, ...]:
    """The metrics that a program is said to report, beside those of the objectives."""
    runner = own_command(study)
    if runner is None:
        return ()
    results = runner.results
    pointers = results.json_pointer.metrics if results.json_pointer is not None else {}
    named = [o.metric for o in study.objectives or ([study.objective] if study.objective else [])]
    return tuple(dict.fromkeys([*named, *runner.metrics, *results.regex, *pointers]))


def make_command(
    model: RunnerModel, goal: Goal, space: Space, baseline: Config, path: Path, source: str
) -> CommandSpec:
    """The program, checked against the parameters that it is given.

    Raises `InputError` for what `check_command` finds, for more than one way to the results, and
    for a baseline of which a parameter has no value.
    """
    metrics = [objective.metric for objective in goal.objectives]
    _refuse_step(metrics, model.metrics, source)
    spec = CommandSpec(
        command=tuple(
            tuple(element) if isinstance(element, list) else element for element in model.command
        ),
        folder=path.parent.absolute(),
        environment=dict(model.environment),
        parameters_file=_parameters_file(model.parameters_file),
        results=_results(model.results, source),
        metrics=tuple(dict.fromkeys([*metrics, *model.metrics])),
    )
    names = [parameter.name for parameter in space.parameters]
    optional = [parameter.name for parameter in space.parameters if parameter.conditions]
    check_command(spec, names, optional, source, "runner")
    if space.point_of(baseline.options) is None:
        why = "is no point of the space, and a program has no defaults of its own"
        allowed = "a value within the space for each parameter, here or as its default"
        raise InputError(source, "baseline", why=why, allowed=allowed)
    return spec


def _refuse_step(objectives: Sequence[str], others: Sequence[str], source: str) -> None:
    """A line with `step` is an intermediate one (runners.command_results)."""
    for field, names in (("objective.metric", objectives), ("runner.metrics", others)):
        if STEP in names:
            why = "counts intermediate results, and is no metric"
            raise InputError(source, field, why=why, found=STEP)


def _parameters_file(given: str | TemplateModel | None) -> ParametersFile | None:
    if isinstance(given, TemplateModel):
        return ParametersFile(given.name, given.template)
    return None if given is None else ParametersFile(given)


def _results(model: ResultsModel, source: str) -> Results:
    stated = [name for name in ResultsModel.model_fields if getattr(model, name)]
    if len(stated) > 1:
        field = f"runner.results.{stated[1]}"
        why = f"stands beside {stated[0]}"
        raise InputError(source, field, why=why, allowed="one of them")
    if model.regex:
        return RegularExpressions(dict(model.regex))
    if model.json_pointer is not None:
        return JsonPointers(dict(model.json_pointer.metrics), model.json_pointer.file)
    return JsonLines(stdout=model.json_lines == "stdout")
