"""From the models of a study file to a Spec: the checks that span several fields."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lsmtune.errors import InputError, nearest_name
from lsmtune.records.config import Config, OptionValue
from lsmtune.records.objective import Direction, Objective, default_direction
from lsmtune.records.request import Limits
from lsmtune.records.workload import Durability, PhaseKind, Workload
from lsmtune.space import OPTION_NAME_ALLOWED, Parameter, Space, is_option_name, make_space
from lsmtune.spec.build_space import make_parameter
from lsmtune.spec.document import Document
from lsmtune.spec.models import ObjectiveModel, SamplerModel, StudyModel
from lsmtune.spec.safety import DURABILITY_OPTIONS, UNSAFE_OPTIONS, flattened, unsafe_option
from lsmtune.spec.spec import Budget, ProofSpec, SamplerSpec, Spec
from lsmtune.workloads import complete_parameters, make_workload


def build_spec(study: StudyModel, document: Document, path: Path, text: str) -> Spec:
    """The Spec of `study`. Raises `InputError` whose field is dotted and whose source is bare."""
    source = document.source
    workload, parameters = _workload(study, source)
    baseline = dict(study.baseline or {})
    _check_option_names(study, baseline, source)
    space = make_space(
        [make_parameter(name, model, document) for name, model in study.space.items()], source
    )
    if study.budget.time is None and study.budget.trials is None:
        raise InputError(source, "budget", why="is empty", allowed="time, trials, or both")
    return Spec(
        name=study.name,
        path=path,
        text=text,
        engine_name=study.engine.name,
        engine_library=_library(study.engine.library, path),
        workload=workload,
        workload_parameters=parameters,
        objective=_objective(study.objective, workload, source),
        baseline=Config(baseline, "default" if study.baseline is None else "baseline"),
        fixed=dict(study.options),
        space=space,
        sampler=_sampler(study.sampler, source),
        budget=Budget(study.budget.time, study.budget.trials),
        limits=Limits(study.limits.deadline, study.limits.memory, study.limits.disk),
        proof=ProofSpec(study.proof.pairs, study.proof.confidence),
        seed=study.seed,
        unsafe_options=_unsafe_options(study, baseline, space, workload.durability, source),
    )


def _workload(study: StudyModel, source: str) -> tuple[Workload, dict[str, Any]]:
    parameters = dict(study.workload)
    name = parameters.pop("name")
    try:
        workload = make_workload(name, parameters, source)
    except InputError as error:
        raise InputError(
            source,
            f"workload.{error.field}",
            found=error.found,
            allowed=error.allowed,
            nearest=error.nearest,
            why=error.why,
        ) from None
    if study.engine.name == "leveldb" and workload.durability is Durability.NONE:
        raise InputError(
            source,
            "workload.durability",
            found=workload.durability.value,
            allowed="sync, wal; LevelDB cannot write without its log",
        )
    return workload, complete_parameters(name, parameters, source)


def _library(library: str | None, path: Path) -> Path | None:
    """The library's path, which a study file states from where it lies itself."""
    return None if library is None else path.parent.absolute() / Path(library).expanduser()


def _objective(model: ObjectiveModel, workload: Workload, source: str) -> Objective:
    measured = [phase.name for phase in workload.phases if phase.kind is PhaseKind.MEASURE]
    if model.phase is not None and model.phase not in measured:
        raise InputError(
            source,
            "objective.phase",
            found=model.phase,
            allowed=", ".join(measured),
            nearest=nearest_name(model.phase, measured),
        )
    direction = (
        default_direction(model.metric) if model.direction is None else Direction(model.direction)
    )
    return Objective(model.metric, direction, model.phase)


def _sampler(model: SamplerModel, source: str) -> SamplerSpec:
    if model.name == "random" and model.startup_trials is not None:
        why = "has no effect with the sampler random: all its trials are random"
        raise InputError(source, "sampler.startup_trials", why=why)
    return SamplerSpec(model.name, model.startup_trials)


def _check_option_names(
    study: StudyModel, baseline: Mapping[str, OptionValue], source: str
) -> None:
    for field, names in (("space", study.space), ("baseline", baseline)):
        for name in names:
            clash = _clash(name, study.options)
            if clash:
                raise InputError(source, f"{field}.{name}", why=f"also set by options.{clash}")
    for field, names in (
        ("options", study.options),
        ("baseline", baseline),
        ("space", study.space),
    ):
        for name in names:
            if not is_option_name(name):
                why = "not an option's name"
                raise InputError(source, f"{field}.{name}", why=why, allowed=OPTION_NAME_ALLOWED)
            if name.lower().rpartition(".")[2] in DURABILITY_OPTIONS:
                why = "durability belongs to the workload"
                allowed = "workload.durability: sync, wal or none"
                raise InputError(source, f"{field}.{name}", why=why, allowed=allowed)
            clash = _clash(name, [other for other in names if other != name])
            if clash:
                raise InputError(source, f"{field}.{name}", why=f"overlaps with {field}.{clash}")


def _clash(name: str, others: Mapping[str, Any] | list[str]) -> str:
    """The option among `others` that is `name`, holds it, or lies within it."""
    for other in others:
        if other == name or other.startswith(f"{name}.") or name.startswith(f"{other}."):
            return other
    return ""


def _unsafe_options(
    study: StudyModel,
    baseline: Mapping[str, OptionValue],
    space: Space,
    durability: Durability,
    source: str,
) -> dict[str, str]:
    """The unsafe options that the study uses and allows, with their reasons."""
    engine, used = study.engine.name, {}
    for field, name, value in _values_used(study, baseline, space):
        unsafe = unsafe_option(engine, name, durability)
        bad = [] if unsafe is None else unsafe.unsafe_values([value])
        if unsafe is None or not bad:
            continue
        if name not in study.allow_unsafe:
            why = f"unsafe under durability {durability.value} ({unsafe.reason})"
            allowed = f"another value, or allow_unsafe: [{name}]"
            raise InputError(source, field, why=why, found=bad[0], allowed=allowed)
        used[name] = unsafe.reason
    _check_allowances(study, used, source)
    return used


def _values_used(
    study: StudyModel, baseline: Mapping[str, OptionValue], space: Space
) -> list[tuple[str, str, OptionValue]]:
    """Field, option and value of every value that any run of the study may use."""
    values = [("options", study.options), ("baseline", baseline)]
    found = [
        (f"{field}.{name}", name, value)
        for field, options in values
        for name, value in flattened(options)
    ]
    for parameter in space.parameters:
        for value in _notable_values(parameter):
            for name, inner in flattened({parameter.name: value}):
                found.append((f"space.{parameter.name}", name, inner))
    return found


def _notable_values(parameter: Parameter) -> list[OptionValue]:
    """The values of a parameter that could be unsafe: those with a name, and 0 and 1."""
    if parameter.numbers is None:
        return list(parameter.choices)
    specials: list[OptionValue] = [special.value for special in parameter.specials]
    return specials + [flag for flag in (0, 1) if parameter.numbers.contains(flag)]


def _check_allowances(study: StudyModel, used: Mapping[str, str], source: str) -> None:
    known = [unsafe.option for unsafe in UNSAFE_OPTIONS if unsafe.engine == study.engine.name]
    for index, name in enumerate(study.allow_unsafe):
        field = f"allow_unsafe[{index}]"
        if name not in known:
            allowed = ", ".join(known) or f"nothing, as {study.engine.name} has no such option"
            nearest = nearest_name(name, known)
            raise InputError(source, field, found=name, allowed=allowed, nearest=nearest)
        if name not in used:
            why = "has no effect: the study does not use it with an unsafe value"
            raise InputError(source, field, found=name, why=why)
