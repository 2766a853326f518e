"""What a study searches: from its file to parameters, constraints and strategies.

A Search, whose arguments are the words of a study file, is made by the same functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from lsmtune.engines.catalogue import (
    OptionInfo,
    catalogue_defaults,
    has_catalogue,
    option_catalogue,
)
from lsmtune.engines.formats import read_config
from lsmtune.engines.library import ENGINE_KINDS
from lsmtune.engines.ready import ReadySpace, known_presets, known_spaces, ready_space
from lsmtune.errors import FieldError, InputError, nearest_name
from lsmtune.model.config import Config, OptionValue, option_text
from lsmtune.model.fields import CONFIG_ALLOWED
from lsmtune.model.goal import Direction, Goal, WeightedWorkload
from lsmtune.model.metrics import BURST, METRICS, RATES, SUSTAINED
from lsmtune.model.text import is_file
from lsmtune.search.pruners import FAR_BEHIND, PRUNERS, check_pruner
from lsmtune.search.pruners import check_settings as check_pruner_settings
from lsmtune.search.sampler import SamplerContext
from lsmtune.search.samplers import check_sampler
from lsmtune.search.samplers import check_settings as check_sampler_settings
from lsmtune.space.constraint import Constraint, make_constraint
from lsmtune.space.parameter import (
    Parameter,
    make_categorical,
    make_condition,
    make_number,
    same_value,
)
from lsmtune.space.range import Range
from lsmtune.space.space import Space
from lsmtune.study.models import (
    CategoricalModel,
    FloatModel,
    IntModel,
    PrunerModel,
    RungsModel,
    SamplerModel,
    SpaceModel,
)
from lsmtune.study.spec import DataRungs, PrunerSpec, SamplerSpec, TimeRungs


def make_constraints(
    stated: Sequence[tuple[str, str]],
    engine: str | None,
    space: Space,
    configs: Sequence[Mapping[str, OptionValue]],
    metrics: Sequence[str],
    facts: Sequence[str] = (),
    source: str = "",
) -> tuple[Constraint, ...]:
    """The constraints that are `stated`, each as its text and its field.

    They may name `metrics`, `facts`, and options: of the `engine`, the `space`, and `configs`, of
    which the first one is part of every run. Raises `InputError` for a text that is no condition,
    for an unknown name, for an option that some candidate leaves alone and of which nobody knows a
    default, and for one that is compared with what it never is.
    """
    infos = option_catalogue(engine) if engine is not None and has_catalogue(engine) else {}
    always = {p.name for p in space.parameters if not p.conditions or p.default is not None}
    with_value = always | catalogue_defaults(engine).keys() | configs[0].keys()
    options = {p.name for p in space.parameters} | infos.keys() | {n for c in configs for n in c}
    made = []
    for text, field in stated:
        constraint = make_constraint(text, sorted(options), metrics, facts, source, field)
        for name in sorted(constraint.option_names - with_value):
            why = f"{name} has no value that is known here while nothing sets it"
            allowed = f"{name} under options, or in the space with a default"
            raise InputError(source, field, why=why, allowed=allowed)
        for name, value in constraint.expression.compared_texts:
            option = constraint.full_names[name]
            choices = _choices(option, infos.get(option), space, configs)
            if choices and not any(same_value(value, choice) for choice in choices):
                texts = list(dict.fromkeys(map(option_text, choices)))
                # `kLZ4` is too short to be like `kLZ4Compression`.
                longer = next((each for each in texts if each.startswith(value)), "")
                nearest = longer or nearest_name(value, texts)
                why, allowed = f"{name} is never {value!r}", ", ".join(texts)
                raise InputError(source, field, why=why, allowed=allowed, nearest=nearest)
        made.append(constraint)
    return tuple(made)


def _choices(
    name: str, info: OptionInfo | None, space: Space, configs: Sequence[Mapping[str, OptionValue]]
) -> list[OptionValue]:
    """Every value of an option with choices, stated, searched or known; empty for any other."""
    searched = [choice for p in space.parameters if p.name == name for choice in p.choices]
    if not searched and (info is None or info.type != "enum"):
        return []
    values = [config[name] for config in configs if name in config] + searched
    if info is not None:
        older = (value for _, value in info.older_defaults)
        values += [v for v in (*info.choices, info.default, *older) if v is not None]
    return values


def each_once(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """`constraints`, of those with the same text the first."""
    made: dict[str, Constraint] = {}
    for constraint in constraints:
        made.setdefault(constraint.text, constraint)
    return tuple(made.values())


# --- Configurations as a study file names them: default, a preset, an option file, or a mapping.

DEFAULT = "default"


def named_config(
    named: str | Mapping[str, OptionValue], engine: str, path: Path, field: str
) -> tuple[Config, tuple[str, ...]]:
    """The Config that `field` of the study file at `path` names; a mapping is labelled by `field`.

    And what the file that it came from says and a Config cannot, a line each. Raises `InputError`
    for a name that is neither a preset of `engine` nor a file beside `path`.
    """
    if not isinstance(named, str):
        return Config(dict(named), field), ()
    if named == DEFAULT:
        return Config(), ()
    ours = [name for name, known in known_presets().items() if known.engine == engine]
    if named in known_presets():
        known = known_presets()[named]
        if known.engine != engine:
            why = f"a preset of {known.engine}"
            raise FieldError(field, why=why, found=named, allowed=", ".join(ours))
        return Config(known.options, named), ()
    file = path.parent / named
    with suppress(RuntimeError):  # of a user that is none
        file = path.parent / Path(named).expanduser()
    if not is_file(file):
        raise FieldError(field, found=named, allowed=CONFIG_ALLOWED, known=[DEFAULT, *ours])
    try:
        imported = read_config(file, engine)
    except InputError as error:
        # The field is the study file's; the line of the other file is part of what is wrong.
        raise FieldError(field, why=str(error)) from None
    return Config(imported.options, named), tuple(map(str, imported.notes))


# --- From the models of a space to its checked Parameters: ready ones, and those of the file.


def ready_spaces(model: SpaceModel, engine: str) -> list[ReadySpace]:
    """The ready spaces that the file uses. Raises `InputError` for those of another engine."""
    ready = []
    for index, name in enumerate(model.use):
        field = f"space.use[{index}]" if len(model.use) > 1 else "space"
        space = ready_space(name, "", field)
        if space.engine != engine:
            ours = ", ".join(n for n, other in known_spaces().items() if other.engine == engine)
            raise FieldError(field, why=f"a space of {space.engine}", found=name, allowed=ours)
        ready.append(space)
    return ready


def space_parameters(
    model: SpaceModel, ready: Sequence[ReadySpace], held: Mapping[str, OptionValue]
) -> list[Parameter]:
    """The parameters of the ready spaces, less those left out, and over them the file's own.

    What is left out has its value in `held`, the options of every run, or its default; parameters
    that are active for another value alone are left out with it. Raises `FieldError` for a
    parameter left out that no ready space has.
    """
    offered = {parameter.name: parameter for space in ready for parameter in space.parameters}
    for index, name in enumerate(model.without):
        if name not in offered:
            why = "no parameter of the ready spaces in use" if ready else "no ready space is in use"
            nearest = nearest_name(name, offered)
            raise FieldError(f"space.without[{index}]", why=why, found=name, nearest=nearest)
    left = {name: parameter for name, parameter in offered.items() if name not in model.without}
    for name in model.without:
        left = _settled(left, name, held.get(name, offered[name].default))
    own = {name: _parameter(name, fields) for name, fields in model.parameters.items()}
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
        rest = tuple(c for c in parameter.conditions if c.name != name)
        left[parameter.name] = replace(parameter, conditions=rest)
    for gone in parameters.keys() - left.keys():
        # A parameter that is never active lets those that depend on it be active no more.
        left = {n: p for n, p in left.items() if all(c.name != gone for c in p.conditions)}
    return left


def _parameter(name: str, fields: IntModel | FloatModel | CategoricalModel) -> Parameter:
    conditions = [
        make_condition(other, values, f"space.{name}.when.{other}")
        for other, values in fields.when.items()
    ]
    default = fields.default
    if isinstance(fields, CategoricalModel):
        return make_categorical(name, fields.choices, conditions=conditions, default=default)
    integer = isinstance(fields, IntModel)
    return make_number(
        name,
        Range(fields.low, fields.high, fields.log, fields.step, integer, fields.bins),
        unit=fields.unit or "" if isinstance(fields, IntModel) else "",
        specials=[(special.value, special.weight) for special in fields.special],
        conditions=conditions,
        default=default,
        prior=fields.prior,
    )


# --- From the models of sampler, pruner and proof to their specs: settings and rungs, checked.

DEFAULT_EVERY_S = 1.0
# What proposes where `auto` has nothing to stand on.
_FALLBACK = "tpe"


def make_sampler_spec(
    model: SamplerModel,
    space: Space,
    directions: tuple[Direction, ...],
    seed: int,
    engine: str = "",
) -> tuple[SamplerSpec, tuple[str, ...]]:
    """The sampler, and what the user is to be told of it, a line each.

    `auto` is for one objective of an `engine` that lsmtune knows; for others it stands for `tpe`.

    Raises `InputError` for a setting that it does not have or take, and where it cannot search
    this space or this number of objectives.
    """
    name, why, notes = model.name, "", tuple[str, ...]()
    if engine not in ENGINE_KINDS:
        why = f"lsmtune knows nothing of {engine or 'the program'}"
    if len(directions) > 1:
        why = "there are several objectives"
    if name == "auto" and why:
        why = f"auto stands for {_FALLBACK}, as {why}"
        if model.settings:
            field, allowed = f"sampler.{next(iter(model.settings))}", "a sampler's own name"
            raise FieldError(field, why=why, allowed=allowed)
        name, notes = _FALLBACK, (f"sampler {why}",)
    settings = check_sampler_settings(name, model.settings, "", "sampler")
    context = SamplerContext(space, seed, settings, directions)
    check_sampler(name, context, "", "sampler")
    return SamplerSpec(name, settings), notes


def make_pruner_spec(
    model: PrunerModel | None,
    goal: Goal,
    workloads: Sequence[WeightedWorkload],
    engine: str,
    sampler: str,
    *,
    program: bool,
) -> PrunerSpec | None:
    """The pruner, None for `none`. Raises `InputError` for settings and rungs that do not fit.

    Where the file states none, it is that of the `sampler`, if it can judge the study's runs.
    `program`: the runs are those of a program, which reports the objective itself at steps of its
    own; a driver's run of `engine` tells its rate as time passes.
    """
    if model is None:
        rated = len(goal.objectives) == 1 and goal.objectives[0].metric in RATES
        if sampler != "auto" or program or len(workloads) > 1 or not rated:
            return None
        model = PrunerModel(name=FAR_BEHIND.name)
    if model.name == "none":
        stated = list(model.settings)
        if model.rungs != RungsModel():
            stated.append("rungs")
        if stated:
            why = "has no effect: nothing is pruned"
            raise FieldError(f"pruner.{stated[0]}", why=why, allowed="a pruner's name")
        return None
    settings = check_pruner_settings(model.name, model.settings, "", "pruner")
    check_pruner(model.name, goal.directions, "", "pruner")
    rungs: TimeRungs | DataRungs
    if model.rungs.num is None:
        rungs = _time_rungs(model, goal, workloads, engine, program=program)
    elif PRUNERS[model.name].plain_rates:
        why = f"has no effect: {model.name} looks at time within a run"
        raise FieldError("pruner.rungs.num", why=why, allowed="every, or no rungs")
    else:
        rungs = _data_rungs(model.rungs, workloads)
    return PrunerSpec(model.name, settings, rungs)


def _time_rungs(
    model: PrunerModel,
    goal: Goal,
    workloads: Sequence[WeightedWorkload],
    engine: str,
    *,
    program: bool,
) -> TimeRungs:
    field, every_s, metric = "pruner.rungs", model.rungs.every, goal.objectives[0].metric
    if model.rungs.deadlines:
        why = "has no effect without num"
        raise FieldError(f"{field}.deadlines", why=why, allowed="num beside it")
    if len(workloads) > 1:
        why = "time within a run says nothing of several workloads"
        raise FieldError(field, why=why, allowed="num: a list of sizes")
    if program and every_s is not None:
        why = "has no effect: the program counts its own steps"
        raise FieldError(f"{field}.every", why=why, allowed="num, or no rungs")
    if not program and metric in METRICS and metric not in RATES:
        why = f"the beginning of a run tells its rate, and nothing of {metric}"
        raise FieldError(field, why=why, allowed="num: a list of sizes")
    phase = goal.objectives[0].phase_in(workloads[0].workload)
    plain = PRUNERS[model.name].plain_rates
    charged = not program and not plain and metric == SUSTAINED and phase.writes
    if charged and engine == "leveldb":
        why = f"leveldb does not tell what is left to compact, which {metric} charges"
        allowed = f"num: a list of sizes, or the objective {BURST}"
        raise FieldError(field, why=why, allowed=allowed)
    return TimeRungs(DEFAULT_EVERY_S if every_s is None else every_s, phase.name, charged)


def _data_rungs(model: RungsModel, workloads: Sequence[WeightedWorkload]) -> DataRungs:
    field, num = "pruner.rungs.num", model.num or []
    if model.every is not None:
        allowed = "every, or num with deadlines"
        raise FieldError("pruner.rungs.every", why="stands beside num", allowed=allowed)
    if len(num) < 2 or any(low >= high for low, high in pairwise(num)):
        raise FieldError(field, found=num, allowed="at least 2 numbers of keys, in rising order")
    if num[0] < 1:
        raise FieldError(f"{field}[0]", found=num[0], allowed="at least 1")
    for weighted in workloads:
        if weighted.workload.num != num[-1]:
            allowed = f"{weighted.workload.num}, the workload's own number of keys"
            raise FieldError(f"{field}[{len(num) - 1}]", found=num[-1], allowed=allowed)
    if model.deadlines and len(model.deadlines) != len(num):
        allowed = f"{len(num)} times, one for each of num"
        raise FieldError("pruner.rungs.deadlines", found=len(model.deadlines), allowed=allowed)
    rungs = DataRungs(tuple(num), tuple(model.deadlines))
    for rung in range(1, len(num)):
        if rungs.step(rung) == rungs.step(rung - 1):
            why = f"no step up from {num[rung - 1]} for a pruner: it counts in units of {num[0]}"
            allowed = f"at least {num[rung - 1] + num[0]}"
            raise FieldError(f"{field}[{rung}]", why=why, found=num[rung], allowed=allowed)
    return rungs
