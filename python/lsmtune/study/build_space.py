"""What a study searches: from its file to parameters, constraints and strategies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from lsmtune.engines.catalogue import catalogue_defaults, option_catalogue
from lsmtune.engines.importers import read_config
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.engines.ready import PRESETS, READY_SPACES, ReadySpace, preset, ready_space
from lsmtune.errors import FieldError, InputError, nearest_name
from lsmtune.model.config import Config, OptionValue
from lsmtune.model.fields import CONFIG_ALLOWED
from lsmtune.model.files import Document
from lsmtune.model.goal import Goal, WeightedWorkload
from lsmtune.model.metrics import HIGHER_IS_BETTER, METRICS
from lsmtune.search.pruners import check_pruner
from lsmtune.search.pruners import check_settings as check_pruner_settings
from lsmtune.search.sampler import SamplerContext
from lsmtune.search.samplers import check_sampler
from lsmtune.search.samplers import check_settings as check_sampler_settings
from lsmtune.space.constraint import Constraint, ConstraintKind, make_constraint
from lsmtune.space.parameter import (
    Condition,
    Parameter,
    make_categorical,
    make_condition,
    make_number,
)
from lsmtune.space.prior import Prior, make_prior
from lsmtune.space.range import Range
from lsmtune.space.space import Space
from lsmtune.stats.sequential import pairs_at_least
from lsmtune.study.models import (
    CategoricalModel,
    FloatModel,
    IntModel,
    PriorModel,
    PrunerModel,
    RungsModel,
    SamplerModel,
    SpaceModel,
)
from lsmtune.study.spec import DataRungs, ProofSpec, PrunerSpec, SamplerSpec, TimeRungs

# What an expression can name besides options and metrics; `facts_of` has their values.
FACTS = ("num", "key_bytes", "value_bytes", "data_bytes", "threads", "memory_model_bytes")


def make_constraints(
    texts: Sequence[str],
    field: str,
    engine: str,
    space: Space,
    given: Sequence[Mapping[str, OptionValue]],
    metrics: Sequence[str],
) -> tuple[Constraint, ...]:
    """The constraints `texts` of `field`.

    `given` are the mappings of options that the study sets outside the space, those of every run
    first. Raises `InputError` for a text that is no expression, and for a name that is no option,
    metric or fact, or an option that some candidate leaves alone and of which neither the study
    nor the catalogue knows a default.
    """
    catalogue = option_catalogue(engine) if engine in ENGINE_KINDS else {}
    set_by_study = {p.name for p in space.parameters} | {name for g in given for name in g}
    options = sorted(set_by_study | catalogue.keys())
    with_value = catalogue_defaults(engine).keys() | always_known(space) | given[0].keys()
    made = []
    for index, text in enumerate(texts):
        place = f"{field}[{index}]"
        constraint = make_constraint(text, options, metrics, FACTS, "", place)
        refuse_unknown(constraint, with_value, "", place)
        made.append(constraint)
    return tuple(made)


def always_known(space: Space) -> set[str]:
    """The parameters that have a value in every configuration of `space`, or a default."""
    return {p.name for p in space.parameters if not p.conditions or p.default is not None}


def refuse_unknown(
    constraint: Constraint, with_value: Collection[str], source: str, place: str
) -> None:
    """Raises `InputError` for an option of `constraint` that is not among `with_value`."""
    for name in sorted(constraint.option_names):
        if name not in with_value:
            why = f"{name} has no value that is known here while nothing sets it"
            allowed = f"{name} under options, or in the space with a default"
            raise InputError(source, place, why=why, allowed=allowed)


def outcome_only(constraints: Sequence[Constraint], field: str) -> tuple[Constraint, ...]:
    """`constraints`, each of which must name a metric. Raises `InputError` otherwise."""
    for index, constraint in enumerate(constraints):
        if constraint.kind is not ConstraintKind.OUTCOME:
            why = "names no metric"
            raise FieldError(f"{field}[{index}]", why=why, allowed=", ".join(METRICS))
    return tuple(constraints)


# --- Configurations as a study file names them: default, a preset, an option file, or a mapping.

DEFAULT = "default"


@dataclass(frozen=True)
class Named:
    """A Config, and what the file that it came from says and a Config cannot, one line each."""

    config: Config
    notes: tuple[str, ...] = ()


def named_config(
    named: str | Mapping[str, OptionValue], engine: str, path: Path, field: str
) -> Named:
    """The Config that `field` of the study file at `path` names; a mapping is labelled by `field`.

    Raises `InputError` for a name that is neither a preset of `engine` nor a file beside `path`.
    """
    if not isinstance(named, str):
        return Named(Config(dict(named), field))
    if named == DEFAULT:
        return Named(Config())
    ours = [name for name, known in PRESETS.items() if known.engine == engine]
    if named in PRESETS:
        found = preset(named)
        if found.engine != engine:
            why = f"a preset of {found.engine}"
            raise FieldError(field, why=why, found=named, allowed=", ".join(ours))
        return Named(Config(found.options, named))
    file = _file(named, path)
    if file is not None:
        return _from_file(file, engine, named, field)
    nearest = nearest_name(named, [DEFAULT, *ours])
    raise FieldError(field, found=named, allowed=CONFIG_ALLOWED, nearest=nearest)


def _file(named: str, path: Path) -> Path | None:
    """The file that `named` means in the study file at `path`, if there is one."""
    try:
        file = path.parent / Path(named).expanduser()
        return file if file.is_file() else None
    except (OSError, RuntimeError):  # a name too long for any file, or of a user that is none
        return None


def _from_file(file: Path, engine: str, named: str, field: str) -> Named:
    try:
        found = read_config(file, engine)
        return Named(Config(found.options, named), tuple(map(str, found.notes)))
    except InputError as error:
        # The field is the study file's; the line of the other file is part of what is wrong.
        raise FieldError(field, why=str(error)) from None


# --- From the models of a space to its checked Parameters: ready ones, and those of the file.


def ready_spaces(model: SpaceModel, engine: str, source: str) -> list[ReadySpace]:
    """The ready spaces that the file uses. Raises `InputError` for those of another engine."""
    found = []
    for index, name in enumerate(model.use):
        field = f"space.use[{index}]" if len(model.use) > 1 else "space"
        ready = ready_space(name, source, field)
        if ready.engine != engine:
            ours = ", ".join(n for n, space in READY_SPACES.items() if space.engine == engine)
            why = f"a space of {ready.engine}"
            raise InputError(source, field, why=why, found=name, allowed=ours)
        found.append(ready)
    return found


def space_parameters(
    model: SpaceModel,
    ready: Sequence[ReadySpace],
    held: Mapping[str, OptionValue],
    document: Document,
) -> list[Parameter]:
    """The parameters of the ready spaces, less those left out, and over them the file's own.

    What is left out has its value in `held`, the options of every run, or its default; parameters
    that are active for another value alone are left out with it. Raises `InputError` for a
    parameter left out that no ready space has.
    """
    found = {parameter.name: parameter for space in ready for parameter in space.parameters}
    for index, name in enumerate(model.without):
        if name not in found:
            field = f"space.without[{index}]"
            why = "no parameter of the ready spaces in use" if ready else "no ready space is in use"
            nearest = nearest_name(name, found)
            raise InputError(document.source, field, why=why, found=name, nearest=nearest)
    left = {name: parameter for name, parameter in found.items() if name not in model.without}
    for name in model.without:
        left = _settled(left, name, held.get(name, found[name].default))
    own = {name: make_parameter(name, p, document) for name, p in model.parameters.items()}
    return list({**left, **own}.values())


def _settled(
    parameters: Mapping[str, Parameter], name: str, value: OptionValue | None
) -> dict[str, Parameter]:
    """`parameters` with the conditions on `name` settled, now that it always has `value`."""
    left: dict[str, Parameter] = {}
    for parameter in parameters.values():
        on_it = [condition for condition in parameter.conditions if condition.name == name]
        if on_it and (value is None or not all(c.holds({name: value}) for c in on_it)):
            continue
        others = tuple(c for c in parameter.conditions if c.name != name)
        left[parameter.name] = replace(parameter, conditions=others)
    for gone in parameters.keys() - left.keys():
        # A parameter that is never active lets those that depend on it be active no more.
        left = {n: p for n, p in left.items() if all(c.name != gone for c in p.conditions)}
    return left


def make_parameter(
    name: str, model: IntModel | FloatModel | CategoricalModel, document: Document
) -> Parameter:
    """The parameter `name`. Raises `InputError` whose field is `space.<name>.<part>`."""
    source = document.source
    conditions = _conditions(name, model.when, source)
    if isinstance(model, CategoricalModel):
        return make_categorical(
            name, model.choices, source, conditions=conditions, default=model.default
        )
    integer = isinstance(model, IntModel)
    return make_number(
        name,
        Range(
            model.low, model.high, log=model.log, step=model.step, integer=integer, bins=model.bins
        ),
        source,
        unit=_unit(model, document.data["space"][name]),
        specials=[(special.value, special.weight) for special in model.special],
        conditions=conditions,
        default=model.default,
        prior=_prior(name, model.prior, source),
    )


def _prior(name: str, model: PriorModel | None, source: str) -> Prior | None:
    if model is None:
        return None
    return make_prior(**model.model_dump(), source=source, field=f"space.{name}.prior")


def _conditions(name: str, when: Mapping[str, Any], source: str) -> list[Condition]:
    return [
        make_condition(other, values, source, f"space.{name}.when.{other}")
        for other, values in when.items()
    ]


def _unit(model: IntModel | FloatModel, written: Mapping[str, object]) -> str:
    """The unit as stated, or bytes where a bound was written as a size (`4MiB`)."""
    if isinstance(model, FloatModel):
        return ""
    sizes = any(isinstance(written.get(key), str) for key in ("low", "high", "step", "default"))
    return model.unit or ("bytes" if sizes else "")


# --- From the models of sampler, pruner and proof to their specs: settings and rungs, checked.

DEFAULT_EVERY_S = 1.0


def make_sampler_spec(model: SamplerModel, space: Space, goal: Goal, seed: int) -> SamplerSpec:
    """The sampler.

    Raises `InputError` for a setting that it does not have or take, and where it cannot search
    this space or this number of objectives.
    """
    settings = check_sampler_settings(model.name, model.settings, "", "sampler")
    context = SamplerContext(space, seed, settings, goal.directions)
    check_sampler(model.name, context, "", "sampler")
    return SamplerSpec(model.name, settings)


def check_proof(proof: ProofSpec) -> None:
    """Raises `InputError` where so few pairs could prove nothing."""
    least = pairs_at_least(proof.confidence)
    if proof.pairs < least:
        allowed = f"at least {least}, without which nothing is proved at {proof.confidence:g}"
        raise FieldError("proof.pairs", found=proof.pairs, allowed=allowed)


def make_pruner_spec(
    model: PrunerModel,
    goal: Goal,
    workloads: Sequence[WeightedWorkload],
    *,
    program: bool = False,
) -> PrunerSpec | None:
    """The pruner, None for `none`. Raises `InputError` for settings and rungs that do not fit.

    `program`: the runs are those of a program, which reports the objective itself at steps of its
    own; a driver's run tells its rate as time passes.
    """
    if model.name == "none":
        stated = [*model.settings, *(["rungs"] if model.rungs != RungsModel() else [])]
        if stated:
            why = "has no effect: nothing is pruned"
            raise FieldError(f"pruner.{stated[0]}", why=why, allowed="a pruner's name")
        return None
    settings = check_pruner_settings(model.name, model.settings, "", "pruner")
    check_pruner(model.name, goal.directions, "", "pruner")
    return PrunerSpec(model.name, settings, _rungs(model.rungs, goal, workloads, program))


def _rungs(
    model: RungsModel,
    goal: Goal,
    workloads: Sequence[WeightedWorkload],
    program: bool,
) -> TimeRungs | DataRungs:
    if model.num is not None:
        if model.every is not None:
            allowed = "every, or num with deadlines"
            raise FieldError("pruner.rungs.every", why="stands beside num", allowed=allowed)
        return _data_rungs(model, model.num, workloads)
    if model.deadlines:
        why = "has no effect without num"
        raise FieldError("pruner.rungs.deadlines", why=why, allowed="num beside it")
    if len(workloads) > 1:
        why = "time within a run says nothing of several workloads"
        raise FieldError("pruner.rungs", why=why, allowed="num: a list of sizes")
    if program and model.every is not None:
        why = "has no effect: the program counts its own steps"
        raise FieldError("pruner.rungs.every", why=why, allowed="num, or no rungs")
    metric = goal.objectives[0].metric
    if not program and metric in METRICS and metric not in HIGHER_IS_BETTER:
        why = f"the beginning of a run tells its rate, and nothing of {metric}"
        raise FieldError("pruner.rungs", why=why, allowed="num: a list of sizes")
    return TimeRungs(DEFAULT_EVERY_S if model.every is None else model.every)


def _data_rungs(
    model: RungsModel, num: list[int], workloads: Sequence[WeightedWorkload]
) -> DataRungs:
    field = "pruner.rungs.num"
    if len(num) < 2 or any(low >= high for low, high in pairwise(num)):
        allowed = "at least 2 numbers of keys, in rising order"
        raise FieldError(field, found=num, allowed=allowed)
    if num[0] < 1:
        raise FieldError(f"{field}[0]", found=num[0], allowed="at least 1")
    for weighted in workloads:
        if weighted.workload.num != num[-1]:
            allowed = f"{weighted.workload.num}, the workload's own number of keys"
            raise FieldError(f"{field}[{len(num) - 1}]", found=num[-1], allowed=allowed)
    if model.deadlines and len(model.deadlines) != len(num):
        allowed = f"{len(num)} times, one for each of num"
        place = "pruner.rungs.deadlines"
        raise FieldError(place, found=len(model.deadlines), allowed=allowed)
    rungs = DataRungs(tuple(num), tuple(model.deadlines))
    for rung in range(1, len(num)):
        if rungs.step(rung) == rungs.step(rung - 1):
            why = f"no step up from {num[rung - 1]} for a pruner: it counts in units of {num[0]}"
            allowed = f"at least {num[rung - 1] + num[0]}"
            raise FieldError(f"{field}[{rung}]", why=why, found=num[rung], allowed=allowed)
    return rungs
