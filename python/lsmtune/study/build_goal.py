"""What a study measures and makes better: from its file to workloads, a Goal, and who runs them.

The runs are the driver's, those of a program that people trust, or of the user's own command.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsmtune.engines.workload_options import check_workload
from lsmtune.errors import FieldError, InputError, nearest_name
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
from lsmtune.model.goal import Direction, Goal, Objective, Pick, WeightedWorkload, default_direction
from lsmtune.model.metrics import METRICS, SHORT_NAMES
from lsmtune.model.workload import Durability, Phase, PhaseKind, Workload
from lsmtune.programs.program import Program
from lsmtune.programs.registry import program_named
from lsmtune.space.constraint import Constraint
from lsmtune.space.space import Space
from lsmtune.study.models import (
    ObjectiveModel,
    PickModel,
    ResultsModel,
    RunnerModel,
    StudyModel,
)
from lsmtune.workloads.stated import Stated
from lsmtune.workloads.study_fields import workload_fields

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
) -> ProgramSpec | None:
    """The program that people trust of a study that names one.

    Raises `InputError` for one that is none or works on another engine, for what it cannot perform
    of a workload, and for an objective that it cannot tell.
    """
    model = study.runner
    if model is None or model.program is None:
        return None
    _refuse_command_fields(model)
    info = program_named(model.program, "", "runner.program")
    engine = engine_of(study)
    if engine not in info.engines:
        allowed = ", ".join(info.engines)
        raise FieldError("engine.name", found=engine, allowed=f"{allowed}, of {info.name}")
    if study.engine is not None and study.engine.library is not None:
        why = f"has no effect with {info.name}, which carries an engine of its own"
        raise FieldError("engine.library", why=why, allowed="runner.path")
    for weighted in workloads:
        _check_performs(info, weighted.workload, engine)
    for index, objective in enumerate(goal.objectives):
        field = f"objectives[{index}]" if goal.several else "objective"
        for weighted in workloads:
            metric, phase = objective.metric, objective.phase
            info.check_told(metric, phase, weighted.workload, "", f"{field}.metric")
    place = None if model.path is None else path.parent.absolute() / Path(model.path).expanduser()
    return ProgramSpec(info.name, place, tuple(model.arguments))


def _refuse_command_fields(model: RunnerModel) -> None:
    """A program that people trust is told what to do in its own words, and read in them."""
    for name in ("command", "environment", "parameters_file", "metrics"):
        if getattr(model, name):
            raise FieldError(f"runner.{name}", why="stands beside program")
    if model.results != ResultsModel():
        raise FieldError("runner.results", why="stands beside program")


def _check_performs(info: Program, workload: Workload, engine: str) -> None:
    try:
        info.check(workload, engine)
    except InputError as error:
        raise FieldError(
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
) -> None:
    """Raises InputError for a constraint of `field` on a metric that the program cannot tell.

    It would never be met, nor broken. A metric may be one of a phase (`run.stall_s`).
    """
    if study.runner is None or study.runner.program is None:
        return
    info = program_named(study.runner.program, "", "runner.program")
    for constraint in constraints:
        for name in sorted(constraint.metric_names):
            phase, _, metric = name.rpartition(".")
            for weighted in workloads:
                try:
                    metric = SHORT_NAMES.get(metric, metric)
                    info.check_told(metric, phase or None, weighted.workload, "", field)
                except InputError as error:
                    why = f"{error.why}: {constraint.text}"
                    allowed = error.allowed
                    raise FieldError(field, found=name, why=why, allowed=allowed) from None


def engine_of(study: StudyModel) -> str:
    """The engine's name; `PROGRAM` where a program stands in its place."""
    if study.engine is not None:
        return str(study.engine.name)
    if own_command(study) is None:
        allowed = "a mapping with name and, if wanted, library; or runner: a program of your own"
        raise FieldError("engine", why="missing", allowed=allowed)
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
    pointers = results.json_pointer.pointers if results.json_pointer is not None else {}
    named = [o.metric for o in study.objectives or ([study.objective] if study.objective else [])]
    return tuple(dict.fromkeys([*named, *runner.metrics, *results.regex, *pointers]))


def make_command(
    model: RunnerModel, goal: Goal, space: Space, baseline: Config, path: Path
) -> CommandSpec:
    """The program, checked against the parameters that it is given.

    Raises `InputError` for what `check_command` finds, for more than one way to the results, and
    for a baseline of which a parameter has no value.
    """
    metrics = [objective.metric for objective in goal.objectives]
    _refuse_step(metrics, model.metrics)
    file = model.parameters_file
    spec = CommandSpec(
        command=tuple(
            tuple(element) if isinstance(element, list) else element for element in model.command
        ),
        folder=path.parent.absolute(),
        environment=dict(model.environment),
        parameters_file=ParametersFile(file) if isinstance(file, str) else file,
        results=_results(model.results),
        metrics=tuple(dict.fromkeys([*metrics, *model.metrics])),
    )
    names = [parameter.name for parameter in space.parameters]
    optional = [parameter.name for parameter in space.parameters if parameter.conditions]
    check_command(spec, names, optional, "", "runner")
    if space.point_of(baseline.options) is None:
        why = "is no point of the space, and a program has no defaults of its own"
        allowed = "a value within the space for each parameter, here or as its default"
        raise FieldError("baseline", why=why, allowed=allowed)
    return spec


def _refuse_step(objectives: Sequence[str], others: Sequence[str]) -> None:
    """A line with `step` is an intermediate one (runners.command_results)."""
    for field, names in (("objective.metric", objectives), ("runner.metrics", others)):
        if STEP in names:
            why = "counts intermediate results, and is no metric"
            raise FieldError(field, why=why, found=STEP)


def _results(model: ResultsModel) -> Results:
    stated = [name for name in ResultsModel.model_fields if getattr(model, name)]
    if len(stated) > 1:
        field = f"runner.results.{stated[1]}"
        why = f"stands beside {stated[0]}"
        raise FieldError(field, why=why, allowed="one of them")
    if model.regex:
        return RegularExpressions(dict(model.regex))
    if model.json_pointer is not None:
        return model.json_pointer
    return JsonLines(stdout=model.json_lines == "stdout")


# --- From the models of workloads, objectives and pick to the Goal of a study.


@dataclass(frozen=True)
class StudyWorkloads:
    """The workloads of a study, their weights as stated, and what is to be said of them."""

    weighted: tuple[WeightedWorkload, ...]
    notes: tuple[str, ...] = ()


def make_workloads(study: StudyModel, path: Path) -> StudyWorkloads:
    """The workloads of the study; files that it names are from where its own `path` is.

    Raises `InputError` for none, for `workload` beside `workloads`, for a repeated label, and for
    what each of them has wrong.
    """
    if study.workload is not None and study.workloads:
        raise FieldError("workloads", why="stands beside workload", allowed="one of them")
    if study.workload is not None:
        _refuse_share(study.workload)
        weighted, notes = _workload(study, study.workload, "workload", path)
        return StudyWorkloads((weighted,), notes)
    if not study.workloads and own_command(study) is not None:
        return StudyWorkloads((WeightedWorkload(PROGRAM, program_workload(study), 1.0),))
    if not study.workloads:
        allowed = "a mapping with name and parameters, or workloads: a list of them"
        raise FieldError("workload", why="missing", allowed=allowed)
    made: list[WeightedWorkload] = []
    said: tuple[str, ...] = ()
    for index, fields in enumerate(study.workloads):
        field = f"workloads[{index}]"
        weighted, notes = _workload(study, fields, field, path)
        said += notes
        if weighted.label in [other.label for other in made]:
            why, allowed = "the same label twice", "a label of its own for each"
            raise FieldError(field, why=why, found=weighted.label, allowed=allowed)
        made.append(weighted)
    return StudyWorkloads(tuple(made), tuple(dict.fromkeys(said)))


def _refuse_share(fields: dict[str, Any]) -> None:
    for name in ("weight", "label"):
        if name in fields:
            why = "has no effect with a single workload"
            raise FieldError(f"workload.{name}", why=why, allowed="workloads: a list")


def _workload(
    study: StudyModel, fields: dict[str, Any], field: str, path: Path
) -> tuple[WeightedWorkload, tuple[str, ...]]:
    """One workload with its weight, and what is to be said of it."""
    stated_fields = dict(fields)
    weight = stated_fields.pop("weight", 1.0)
    label = stated_fields.pop("label", None)
    try:
        stated = workload_fields(stated_fields, path.parent, str(path))
    except InputError as error:
        if error.source != str(path):  # what a file of its own has wrong
            raise
        place = ".".join(part for part in (field, error.field) if part)
        raise error.but(field=place) from None
    workload = stated.workload
    label = workload.name if label is None else label
    if not isinstance(label, str) or not label or not label.isprintable():
        raise FieldError(f"{field}.label", found=label, allowed="text of one line")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or weight <= 0:
        raise FieldError(f"{field}.weight", found=weight, allowed="a number above 0")
    engine = "" if study.engine is None else study.engine.name
    if engine == "leveldb" and workload.durability is Durability.NONE:
        raise FieldError(
            f"{field}.durability",
            found=workload.durability.value,
            allowed="sync, wal; LevelDB cannot write without its log",
        )
    check_workload(workload, engine, "", field)
    return WeightedWorkload(label, workload, float(weight), stated.parameters), _notes(stated)


def _notes(stated: Stated) -> tuple[str, ...]:
    """What has no effect; properties of engines are a configuration, which is named elsewhere."""
    where = "name the file as baseline, options or start to use it"
    engine = [
        f"{found.where}: {name}: left out of the workload: {where}"
        for name, found in stated.engine.items()
    ]
    return (*stated.notes, *engine)


def make_goal(study: StudyModel, workloads: tuple[WeightedWorkload, ...]) -> Goal:
    """What the study makes better.

    Raises `InputError` for `objective` beside `objectives`, repeated or unknown objectives, and a
    `pick` that names none of them.
    """
    shares = _shares([weighted.weight for weighted in workloads], "workloads")
    if not study.objectives:
        _refuse_pick(study.pick)
        if study.objective is None and own_command(study) is not None:
            allowed = "a mapping with the metric that the program reports"
            raise FieldError("objective", why="missing", allowed=allowed)
        model = study.objective or ObjectiveModel()
        return Goal((_objective(model, "objective", study, workloads),), shares)
    if study.objective is not None:
        raise FieldError("objectives", why="stands beside objective", allowed="one of them")
    if len(study.objectives) < 2:
        allowed = "at least 2; a single one belongs under objective"
        raise FieldError("objectives", found=len(study.objectives), allowed=allowed)
    objectives: list[Objective] = []
    for index, model in enumerate(study.objectives):
        objective = _objective(model, f"objectives[{index}]", study, workloads)
        if objective.label in [other.label for other in objectives]:
            field = f"objectives[{index}].metric"
            raise FieldError(field, why="the same objective twice", found=objective.label)
        objectives.append(objective)
    return Goal(tuple(objectives), shares, _pick(study.pick, objectives))


def _refuse_pick(pick: PickModel | None) -> None:
    if pick is not None:
        why = "has no effect with a single objective"
        raise FieldError("pick", why=why, allowed="objectives: a list of at least 2")


def _objective(
    model: ObjectiveModel,
    field: str,
    study: StudyModel,
    workloads: Iterable[WeightedWorkload],
) -> Objective:
    own = own_command(study) is not None
    if own and model.metric not in METRICS and model.direction is None:
        # Of a metric that only the program knows, nobody here knows which way is better.
        raise FieldError(f"{field}.direction", why="missing", allowed="maximize, minimize")
    if not own and model.metric not in METRICS:
        raise FieldError(
            f"{field}.metric",
            found=model.metric,
            allowed=", ".join(METRICS),
            nearest=nearest_name(model.metric, METRICS),
        )
    for weighted in workloads:
        _check_phase(model.phase, field, weighted.workload)
    direction = (
        default_direction(model.metric) if model.direction is None else Direction(model.direction)
    )
    return Objective(model.metric, direction, model.phase)


def _check_phase(phase: str | None, field: str, workload: Workload) -> None:
    measured = [p.name for p in workload.phases if p.kind is PhaseKind.MEASURE]
    if phase is not None and phase not in measured:
        raise FieldError(
            f"{field}.phase",
            found=phase,
            allowed=", ".join(measured),
            nearest=nearest_name(phase, measured),
        )


def _pick(pick: PickModel | None, objectives: list[Objective]) -> Pick | None:
    """The weights as stated; None for a study that picks by all objectives alike."""
    if pick is None or (not pick.weights and pick.best is None):
        return None
    labels = [objective.label for objective in objectives]
    if pick.best is not None:
        if pick.weights:
            raise FieldError("pick.best", why="stands beside weights", allowed="one of them")
        _check_label(pick.best, "pick.best", labels)
        return Pick({pick.best: 1.0})
    for label, weight in pick.weights.items():
        _check_label(label, f"pick.weights.{label}", labels)
        if weight <= 0:
            field = f"pick.weights.{label}"
            raise FieldError(field, found=weight, allowed="a number above 0")
    _shares(list(pick.weights.values()), "pick.weights")
    return Pick(dict(pick.weights))


def _shares(weights: list[float], field: str) -> tuple[float, ...]:
    """Each of `weights` as a part of 1. Raises `InputError` where one comes to nothing."""
    total = sum(weights)
    shares = tuple(weight / total for weight in weights)
    if not all(share > 0 for share in shares):
        why = "a weight comes to nothing beside the others"
        raise FieldError(field, why=why, allowed="weights of similar size")
    return shares


def _check_label(label: str, field: str, labels: list[str]) -> None:
    if label not in labels:
        nearest = nearest_name(label, labels)
        raise FieldError(field, found=label, allowed=", ".join(labels), nearest=nearest)
