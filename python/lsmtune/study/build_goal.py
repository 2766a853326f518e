"""What a study measures and makes better: from its file to workloads, a Goal, and who runs them.

The runs are the driver's, those of a program that people trust, or of the user's own command.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsmtune.engines.workload_options import check_workload
from lsmtune.errors import FieldError, InputError, by_name, check_name
from lsmtune.model.command import (
    CommandSpec,
    JsonLines,
    ParametersFile,
    ProgramSpec,
    RegularExpressions,
    Results,
    check_command,
)
from lsmtune.model.config import Config
from lsmtune.model.files import Document
from lsmtune.model.goal import Goal, Objective, Pick, WeightedWorkload
from lsmtune.model.metrics import METRICS, SHORT_NAMES
from lsmtune.model.workload import Durability, Phase, PhaseKind, Workload
from lsmtune.programs.registry import PROGRAMS
from lsmtune.space.constraint import Constraint
from lsmtune.space.space import Space
from lsmtune.study.models import ResultsModel, RunnerModel, StudyModel
from lsmtune.workloads.file import workload_fields

# What stands for engine and workload where only the program knows them.
PROGRAM = "program"
STEP = "step"
Workloads = tuple[WeightedWorkload, ...]


def own_command(study: StudyModel) -> RunnerModel | None:
    """The runner of a study whose runs a program of the user's own performs; None for others."""
    runner = study.runner
    return runner if runner is not None and runner.program is None else None


def engine_of(study: StudyModel) -> str:
    """The engine's name; `PROGRAM` where a program stands in its place."""
    if study.engine is not None:
        return str(study.engine.name)
    if own_command(study) is None:
        allowed = "a mapping with name and, if wanted, library; or runner: a program of your own"
        raise FieldError("engine", why="missing", allowed=allowed)
    return PROGRAM


def make_program(
    study: StudyModel, goal: Goal, workloads: Workloads, path: Path
) -> ProgramSpec | None:
    """The program that people trust of a study that names one.

    Raises `InputError` for one that is none or works on another engine, for what it cannot perform
    of a workload, and for an objective that it cannot tell.
    """
    runner = study.runner
    if runner is None or runner.program is None:
        return None
    # A program that people trust is told what to do in its own words, and read in them.
    for name in ("command", "environment", "parameters_file", "metrics", "results"):
        if getattr(runner, name) != getattr(RunnerModel(), name):
            raise FieldError(f"runner.{name}", why="stands beside program")
    info, engine = by_name(PROGRAMS, runner.program, "", "runner.program"), engine_of(study)
    if engine not in info.engines:
        allowed = f"{', '.join(info.engines)}, of {info.name}"
        raise FieldError("engine.name", found=engine, allowed=allowed)
    for workload in (weighted.workload for weighted in workloads):
        try:
            info.check(workload, engine)
        except InputError as error:
            why = f"{info.name} cannot perform {workload.name}: {error.field}: {error.why}"
            raise FieldError(
                "workload", found=error.found, allowed=error.allowed, why=why
            ) from None
    for index, objective in enumerate(goal.objectives):
        field = f"objectives[{index}].metric" if goal.several else "objective.metric"
        for weighted in workloads:
            info.check_reported(objective.metric, objective.phase, weighted.workload, "", field)
    file = None
    if runner.path is not None:
        file = path_from(path, runner.path, "runner.path", "the path of a program")
    return ProgramSpec(info.name, file, tuple(runner.arguments))


def path_from(study: Path, named: str, field: str, allowed: str) -> Path:
    """The path that `field` of the study file at `study` names, from where that file lies itself.

    Raises FieldError, which says what is `allowed`, for the ~ of a user that is none.
    """
    try:
        return study.parent.absolute() / Path(named).expanduser()
    except RuntimeError:
        raise FieldError(field, found=named, allowed=allowed) from None


def check_program_observes(
    study: StudyModel, constraints: Sequence[Constraint], field: str, workloads: Workloads
) -> None:
    """Raises InputError for a constraint of `field` on a metric that the program cannot tell.

    It would never be met, nor broken. A metric may be one of a phase (`run.stall_s`).
    """
    for constraint in constraints:
        for name in sorted(constraint.metric_names):
            untold = _untold(study, name, workloads)
            if untold is not None:
                why = f"{untold.why}: {constraint.text}"
                raise FieldError(field, found=name, why=why, allowed=untold.allowed)


def program_tells(study: StudyModel, name: str, workloads: Workloads) -> bool:
    """Whether what performs the runs can tell the metric `name`, which may be one of a phase."""
    return own_command(study) is None and _untold(study, name, workloads) is None


def _untold(study: StudyModel, name: str, workloads: Workloads) -> InputError | None:
    """Why a program that people trust cannot tell the metric `name`; None where it can."""
    if study.runner is None or study.runner.program is None:
        return None
    info = by_name(PROGRAMS, study.runner.program, "", "runner.program")
    phase, _, metric = name.rpartition(".")
    metric = SHORT_NAMES.get(metric, metric)
    for weighted in workloads:
        measured = weighted.workload.measured_phases
        # db_bench times no writer beside its readers, YCSB-cpp the two halves of such an operation.
        beside = {"put" for each in measured if each.operation == "readwhilewriting"}
        untimed = {"read_modify_write", *beside} - {each.name for each in measured}
        if phase in untimed:
            return InputError("", found=name, why=f"{info.name} cannot tell it")
        try:
            info.check_reported(metric, phase or None, weighted.workload, "")
        except InputError as error:
            return error
    return None


def reported_metrics(study: StudyModel) -> tuple[str, ...]:
    """The metrics that a program is said to report, beside those of the objectives."""
    runner = own_command(study)
    if runner is None:
        return ()
    results = runner.results
    pointers = results.json_pointer.pointers if results.json_pointer is not None else {}
    objectives = study.objectives if study.objective is None else [study.objective]
    named = [objective.metric for objective in objectives]
    return tuple(dict.fromkeys([*named, *runner.metrics, *results.regex, *pointers]))


def make_command(
    runner: RunnerModel, goal: Goal, space: Space, baseline: Config, path: Path
) -> CommandSpec:
    """The program, checked against the parameters that it is given.

    Raises `InputError` for what `check_command` finds, for more than one way to the results, for
    what a program that people trust is given, and for a baseline of which a parameter has no value.
    """
    for name in ("path", "arguments"):
        if getattr(runner, name):
            raise FieldError(f"runner.{name}", why="has no effect without program")
    metrics = [objective.metric for objective in goal.objectives]
    for field, names in (("objective.metric", metrics), ("runner.metrics", runner.metrics)):
        if STEP in names:  # a line with `step` is an intermediate one (programs.command)
            why = "counts intermediate results, and is no metric"
            raise FieldError(field, why=why, found=STEP)
    file = runner.parameters_file
    spec = CommandSpec(
        command=tuple(
            tuple(element) if isinstance(element, list) else element for element in runner.command
        ),
        folder=path.parent.absolute(),
        environment=dict(runner.environment),
        parameters_file=ParametersFile(file) if isinstance(file, str) else file,
        results=_results(runner.results),
        metrics=tuple(dict.fromkeys([*metrics, *runner.metrics])),
    )
    names = [parameter.name for parameter in space.parameters]
    optional = [parameter.name for parameter in space.parameters if parameter.conditions]
    check_command(spec, names, optional)
    if space.point_of(baseline.options) is None:
        why = "is no point of the space, and a program has no defaults of its own"
        allowed = "a value within the space for each parameter, here or as its default"
        raise FieldError("baseline", why=why, allowed=allowed)
    return spec


def _results(model: ResultsModel) -> Results:
    stated = [name for name in ResultsModel.model_fields if getattr(model, name)]
    if len(stated) > 1:
        why = f"stands beside {stated[0]}"
        raise FieldError(f"runner.results.{stated[1]}", why=why, allowed="one of them")
    if model.regex:
        return RegularExpressions(dict(model.regex))
    if model.json_pointer is not None:
        return model.json_pointer
    return JsonLines(stdout=model.json_lines == "stdout")


# --- The workloads, each with its weight.


def make_workloads(study: StudyModel, path: Path) -> tuple[Workloads, tuple[str, ...]]:
    """The workloads of the study, and what is to be said of them, a line each.

    Files that it names are from where its own `path` is. Raises `InputError` for none, for
    `workload` beside `workloads`, for a repeated label, and for what each of them has wrong.
    """
    if study.workload is not None and study.workloads:
        raise FieldError("workloads", why="stands beside workload", allowed="one of them")
    if study.workload is not None:
        for name in ("weight", "label"):
            if name in study.workload:
                why = "has no effect with a single workload"
                raise FieldError(f"workload.{name}", why=why, allowed="workloads: a list")
        weighted, notes = _workload(study, study.workload, "workload", path)
        return (weighted,), notes
    if not study.workloads and own_command(study) is not None:
        # As far as lsmtune knows: one phase, and a size where rungs name one.
        num = study.rungs.num
        workload = Workload(
            PROGRAM, (Phase(PROGRAM, PhaseKind.MEASURE),), num=num[-1] if num else 0
        )
        return (WeightedWorkload(PROGRAM, workload, 1.0),), ()
    if not study.workloads:
        allowed = "a mapping with name and parameters, or workloads: a list of them"
        raise FieldError("workload", why="missing", allowed=allowed)
    made: dict[str, WeightedWorkload] = {}
    all_notes: list[str] = []
    for index, fields in enumerate(study.workloads):
        field = f"workloads[{index}]"
        weighted, notes = _workload(study, fields, field, path)
        all_notes += notes
        if weighted.label in made:
            why, allowed = "the same label twice", "a label of its own for each"
            raise FieldError(field, why=why, found=weighted.label, allowed=allowed)
        made[weighted.label] = weighted
    return tuple(made.values()), tuple(dict.fromkeys(all_notes))


def _workload(
    study: StudyModel, fields: dict[str, Any], field: str, path: Path
) -> tuple[WeightedWorkload, tuple[str, ...]]:
    """One workload with its weight, and what is to be said of it."""
    stated_fields = dict(fields)
    weight = stated_fields.pop("weight", 1.0)
    label = stated_fields.pop("label", None)
    engine = "" if study.engine is None else study.engine.name
    try:
        stated = workload_fields(stated_fields, path.parent, str(path), engine)
    except InputError as error:
        if error.source != str(path):  # what a file of its own has wrong
            raise
        raise error.but(field=".".join(part for part in (field, error.field) if part)) from None
    # From the root: a host of a fleet has another current folder.
    workload = stated.workload.with_traces(lambda trace: str(trace.absolute()))
    label = workload.name if label is None else label
    if not isinstance(label, str) or not label or not label.isprintable():
        raise FieldError(f"{field}.label", found=label, allowed="text of one line")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or weight <= 0:
        raise FieldError(f"{field}.weight", found=weight, allowed="a number above 0")
    if engine == "leveldb" and workload.durability is Durability.NONE:
        allowed = "sync, wal; LevelDB cannot write without its log"
        raise FieldError(f"{field}.durability", found=workload.durability.value, allowed=allowed)
    check_workload(workload, engine, "", field)
    # Properties of engines are a configuration, which is named elsewhere.
    where = "name the file as baseline, options or start to use it"
    notes = (
        f"{option.where}: {name}: left out of the workload: {where}"
        for name, option in stated.engine.items()
    )
    weighted = WeightedWorkload(label, workload, float(weight), stated.parameters)
    return weighted, (*stated.notes, *notes)


# --- The goal: objectives, and how one configuration is picked from their front.


def make_goal(study: StudyModel, workloads: Workloads, document: Document) -> Goal:
    """What the study makes better.

    Raises `InputError` for `objective` beside `objectives`, repeated or unknown objectives, and a
    `pick` that names none of them.
    """
    shares = _shares([weighted.weight for weighted in workloads], "workloads")
    own = own_command(study) is not None
    if not study.objectives:
        if study.pick is not None:
            why = "has no effect with a single objective"
            raise FieldError("pick", why=why, allowed="objectives: a list of at least 2")
        if study.objective is None and own:
            allowed = "a mapping with the metric that the program reports"
            raise FieldError("objective", why="missing", allowed=allowed)
        objective = study.objective or Objective()
        stated = document.data.get("objective") or {}
        _check_objective(objective, stated, "objective", workloads, own=own)
        return Goal((objective,), shares)
    if study.objective is not None:
        raise FieldError("objectives", why="stands beside objective", allowed="one of them")
    if len(study.objectives) < 2:
        allowed = "at least 2; a single one belongs under objective"
        raise FieldError("objectives", found=len(study.objectives), allowed=allowed)
    labels: list[str] = []
    for index, objective in enumerate(study.objectives):
        field, stated = f"objectives[{index}]", document.data["objectives"][index]
        _check_objective(objective, stated, field, workloads, own=own)
        if objective.label in labels:
            why = "the same objective twice"
            raise FieldError(f"{field}.metric", why=why, found=objective.label)
        labels.append(objective.label)
    if study.pick is not None:
        _check_pick(study.pick, labels)
    return Goal(tuple(study.objectives), shares, study.pick)


def _check_objective(
    objective: Objective, stated: dict[str, Any], field: str, workloads: Workloads, *, own: bool
) -> None:
    if own and objective.metric not in METRICS and stated.get("direction") is None:
        # Of a metric that only the program knows, nobody here knows which way is better.
        raise FieldError(f"{field}.direction", why="missing", allowed="maximize, minimize")
    if not own:
        check_name(objective.metric, METRICS, "", f"{field}.metric")
    for weighted in workloads:
        check_name(objective.phase, weighted.workload.measured_names, "", f"{field}.phase")


def _check_pick(pick: Pick, labels: Sequence[str]) -> None:
    if pick.best is not None:
        if pick.weights:
            raise FieldError("pick.best", why="stands beside weights", allowed="one of them")
        check_name(pick.best, labels, "", "pick.best")
    for label, weight in pick.weights.items():
        field = f"pick.weights.{label}"
        check_name(label, labels, "", field)
        if weight <= 0:
            raise FieldError(field, found=weight, allowed="a number above 0")
    _shares(list(pick.weights.values()), "pick.weights")


def _shares(weights: Sequence[float], field: str) -> tuple[float, ...]:
    """Each of `weights` as a part of 1. Raises `FieldError` where one comes to nothing."""
    total = sum(weights)
    shares = tuple(weight / total for weight in weights)
    if not all(share > 0 for share in shares):
        why = "a weight comes to nothing beside the others"
        raise FieldError(field, why=why, allowed="weights of similar size")
    return shares
