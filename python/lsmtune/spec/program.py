"""From the model of `runner` to the CommandSpec of a program of the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lsmtune.errors import InputError
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
from lsmtune.records.goal import Goal
from lsmtune.records.workload import Phase, PhaseKind, Workload
from lsmtune.space import Space
from lsmtune.spec.models import ResultsModel, RunnerModel, StudyModel, TemplateModel

# What stands for engine and workload where only the program knows them.
PROGRAM = "program"
STEP = "step"


def engine_of(study: StudyModel, source: str) -> str:
    """The engine's name; `PROGRAM` where a program stands in its place."""
    if study.engine is not None:
        return str(study.engine.name)
    if study.runner is None:
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
    if study.runner is None:
        return ()
    results = study.runner.results
    pointers = results.json_pointer.metrics if results.json_pointer is not None else {}
    named = [o.metric for o in study.objectives or ([study.objective] if study.objective else [])]
    return tuple(dict.fromkeys([*named, *study.runner.metrics, *results.regex, *pointers]))


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
