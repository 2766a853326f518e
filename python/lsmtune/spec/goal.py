"""From the models of workloads, objectives and pick to the Goal of a study."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lsmtune.errors import InputError, nearest_name
from lsmtune.records.goal import Goal, Pick, WeightedWorkload
from lsmtune.records.objective import METRICS, Direction, Objective, default_direction
from lsmtune.records.workload import Durability, PhaseKind, Workload
from lsmtune.spec.models import ObjectiveModel, PickModel, StudyModel
from lsmtune.spec.program import PROGRAM, program_workload
from lsmtune.workloads import complete_parameters, make_workload


def make_workloads(study: StudyModel, source: str) -> tuple[WeightedWorkload, ...]:
    """The workloads of the study, their weights as stated.

    Raises `InputError` for none, for `workload` beside `workloads`, for a repeated label, and for
    what each of them has wrong.
    """
    if study.workload is not None and study.workloads:
        raise InputError(source, "workloads", why="stands beside workload", allowed="one of them")
    if study.workload is not None:
        _refuse_share(study.workload, source)
        return (_workload(study, study.workload, "workload", source),)
    if not study.workloads and study.runner is not None:
        return (WeightedWorkload(PROGRAM, program_workload(study), 1.0),)
    if not study.workloads:
        allowed = "a mapping with name and parameters, or workloads: a list of them"
        raise InputError(source, "workload", why="missing", allowed=allowed)
    made: list[WeightedWorkload] = []
    for index, fields in enumerate(study.workloads):
        field = f"workloads[{index}]"
        weighted = _workload(study, fields, field, source)
        if weighted.label in [other.label for other in made]:
            why, allowed = "the same label twice", "a label of its own for each"
            raise InputError(source, field, why=why, found=weighted.label, allowed=allowed)
        made.append(weighted)
    return tuple(made)


def _refuse_share(fields: dict[str, Any], source: str) -> None:
    for name in ("weight", "label"):
        if name in fields:
            why = "has no effect with a single workload"
            raise InputError(source, f"workload.{name}", why=why, allowed="workloads: a list")


def _workload(
    study: StudyModel, fields: dict[str, Any], field: str, source: str
) -> WeightedWorkload:
    parameters = dict(fields)
    name = parameters.pop("name")
    label, weight = parameters.pop("label", name), parameters.pop("weight", 1.0)
    if not isinstance(label, str) or not label or not label.isprintable():
        raise InputError(source, f"{field}.label", found=label, allowed="text of one line")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or weight <= 0:
        raise InputError(source, f"{field}.weight", found=weight, allowed="a number above 0")
    try:
        workload = make_workload(name, parameters, source)
    except InputError as error:
        raise InputError(
            source,
            f"{field}.{error.field}",
            found=error.found,
            allowed=error.allowed,
            nearest=error.nearest,
            why=error.why,
        ) from None
    leveldb = study.engine is not None and study.engine.name == "leveldb"
    if leveldb and workload.durability is Durability.NONE:
        raise InputError(
            source,
            f"{field}.durability",
            found=workload.durability.value,
            allowed="sync, wal; LevelDB cannot write without its log",
        )
    complete = complete_parameters(name, parameters, source)
    return WeightedWorkload(label, workload, float(weight), complete)


def make_goal(study: StudyModel, workloads: tuple[WeightedWorkload, ...], source: str) -> Goal:
    """What the study makes better.

    Raises `InputError` for `objective` beside `objectives`, repeated or unknown objectives, and a
    `pick` that names none of them.
    """
    shares = _shares([weighted.weight for weighted in workloads], "workloads", source)
    if not study.objectives:
        _refuse_pick(study.pick, source)
        if study.objective is None and study.runner is not None:
            allowed = "a mapping with the metric that the program reports"
            raise InputError(source, "objective", why="missing", allowed=allowed)
        model = study.objective or ObjectiveModel()
        return Goal((_objective(model, "objective", study, workloads, source),), shares)
    if study.objective is not None:
        raise InputError(source, "objectives", why="stands beside objective", allowed="one of them")
    if len(study.objectives) < 2:
        allowed = "at least 2; a single one belongs under objective"
        raise InputError(source, "objectives", found=len(study.objectives), allowed=allowed)
    objectives: list[Objective] = []
    for index, model in enumerate(study.objectives):
        objective = _objective(model, f"objectives[{index}]", study, workloads, source)
        if objective.label in [other.label for other in objectives]:
            field = f"objectives[{index}].metric"
            raise InputError(source, field, why="the same objective twice", found=objective.label)
        objectives.append(objective)
    return Goal(tuple(objectives), shares, _pick(study.pick, objectives, source))


def _refuse_pick(pick: PickModel | None, source: str) -> None:
    if pick is not None:
        why = "has no effect with a single objective"
        raise InputError(source, "pick", why=why, allowed="objectives: a list of at least 2")


def _objective(
    model: ObjectiveModel,
    field: str,
    study: StudyModel,
    workloads: Iterable[WeightedWorkload],
    source: str,
) -> Objective:
    if study.runner is not None and model.metric not in METRICS and model.direction is None:
        # Of a metric that only the program knows, nobody here knows which way is better.
        raise InputError(source, f"{field}.direction", why="missing", allowed="maximize, minimize")
    if study.runner is None and model.metric not in METRICS:
        raise InputError(
            source,
            f"{field}.metric",
            found=model.metric,
            allowed=", ".join(METRICS),
            nearest=nearest_name(model.metric, METRICS),
        )
    for weighted in workloads:
        _check_phase(model.phase, field, weighted.workload, source)
    direction = (
        default_direction(model.metric) if model.direction is None else Direction(model.direction)
    )
    return Objective(model.metric, direction, model.phase)


def _check_phase(phase: str | None, field: str, workload: Workload, source: str) -> None:
    measured = [p.name for p in workload.phases if p.kind is PhaseKind.MEASURE]
    if phase is not None and phase not in measured:
        raise InputError(
            source,
            f"{field}.phase",
            found=phase,
            allowed=", ".join(measured),
            nearest=nearest_name(phase, measured),
        )


def _pick(pick: PickModel | None, objectives: list[Objective], source: str) -> Pick | None:
    """The weights as stated; None for a study that picks by all objectives alike."""
    if pick is None or (not pick.weights and pick.best is None):
        return None
    labels = [objective.label for objective in objectives]
    if pick.best is not None:
        if pick.weights:
            raise InputError(
                source, "pick.best", why="stands beside weights", allowed="one of them"
            )
        _check_label(pick.best, "pick.best", labels, source)
        return Pick({pick.best: 1.0})
    for label, weight in pick.weights.items():
        _check_label(label, f"pick.weights.{label}", labels, source)
        if weight <= 0:
            field = f"pick.weights.{label}"
            raise InputError(source, field, found=weight, allowed="a number above 0")
    _shares(list(pick.weights.values()), "pick.weights", source)
    return Pick(dict(pick.weights))


def _shares(weights: list[float], field: str, source: str) -> tuple[float, ...]:
    """Each of `weights` as a part of 1. Raises `InputError` where one comes to nothing."""
    total = sum(weights)
    shares = tuple(weight / total for weight in weights)
    if not all(share > 0 for share in shares):
        why = "a weight comes to nothing beside the others"
        raise InputError(source, field, why=why, allowed="weights of similar size")
    return shares


def _check_label(label: str, field: str, labels: list[str], source: str) -> None:
    if label not in labels:
        nearest = nearest_name(label, labels)
        raise InputError(source, field, found=label, allowed=", ".join(labels), nearest=nearest)
