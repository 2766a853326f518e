"""The arguments of a Search, which are the words of a study file, read and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import Field, ValidationError

from lsmtune.engines.catalogue import catalogue_defaults
from lsmtune.engines.ready import READY_SPACES, ReadySpace
from lsmtune.errors import InputError, nearest_name
from lsmtune.model.config import OptionValue
from lsmtune.model.fields import Option, StrictModel
from lsmtune.model.files import Document, first_problem
from lsmtune.model.goal import Direction
from lsmtune.search.pruners import check_pruner
from lsmtune.search.pruners import check_settings as check_pruner_settings
from lsmtune.search.sampler import SamplerContext
from lsmtune.search.samplers import check_sampler
from lsmtune.search.samplers import check_settings as check_sampler_settings
from lsmtune.space.constraint import Constraint, ConstraintKind, make_constraint
from lsmtune.space.space import Space, make_space
from lsmtune.study.build_space import always_known, ready_spaces, refuse_unknown, space_parameters
from lsmtune.study.models import (
    PrunerModel,
    RungsModel,
    SamplerModel,
    SpaceFields,
)

SOURCE = "Search"
UNNAMED = "value"  # the metric of a search with one objective that has no name


class _ArgumentsModel(StrictModel):
    space: SpaceFields
    sampler: SamplerModel = SamplerModel()
    pruner: PrunerModel = PrunerModel()
    constraints: list[str]
    start: list[dict[str, Option]]
    seed: int = Field(default=0, ge=0)


@dataclass(frozen=True)
class Arguments:
    """What a Search is made of. `engine` is that of the ready spaces, None without any.

    `fixed` are options that every configuration has beside its parameters. `directions` are by the
    names of the objectives.
    """

    space: Space
    engine: str | None
    fixed: Mapping[str, OptionValue]
    directions: Mapping[str, Direction]
    constraints: tuple[Constraint, ...]
    sampler: str
    sampler_settings: Mapping[str, object]
    pruner: str
    pruner_settings: Mapping[str, object]
    start: tuple[Mapping[str, OptionValue], ...]
    seed: int

    def of_kind(self, kind: ConstraintKind) -> tuple[Constraint, ...]:
        """The constraints that can be checked then."""
        return tuple(c for c in self.constraints if c.kind is kind)

    def options(self, values: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
        """What a configuration sets: `values` of the space over the fixed options."""
        return {**self.fixed, **values}

    def known(self, values: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
        """What constraints may look at: the options, and below them defaults of what is not set."""
        own = {p.name: p.default for p in self.space.parameters if p.default is not None}
        return {**catalogue_defaults(self.engine), **own, **self.options(values)}

    def comparable_parts(self) -> dict[str, object]:
        """What has to be the same for two sessions to belong to one search."""
        return {
            "space": {p.name: _parameter_parts(asdict(p)) for p in self.space.parameters},
            "direction": {name: way.value for name, way in self.directions.items()},
            "options": dict(self.fixed),
        }


def read_arguments(
    *,
    space: object,
    sampler: object,
    pruner: object,
    seed: object,
    direction: object,
    constraints: Sequence[str],
    metrics: Sequence[str],
    start: Sequence[Mapping[str, OptionValue]],
) -> Arguments:
    """The checked arguments. Raises InputError that names the argument and what is allowed."""
    lists = {"constraints": constraints, "metrics": metrics, "start": start}
    for name, several in lists.items():
        # A text is a sequence too, of letters, and a mapping one of its keys.
        if not isinstance(several, Sequence) or isinstance(several, str):
            raise InputError(SOURCE, name, found=several, allowed="a list")
    _check_texts("metrics", metrics)
    for index, values in enumerate(start):
        if not isinstance(values, Mapping):
            allowed = "a mapping of parameter to value"
            raise InputError(SOURCE, f"start[{index}]", found=values, allowed=allowed)
    given: dict[str, Any] = {
        "space": space,
        "sampler": {"name": sampler} if isinstance(sampler, str) else sampler,
        "pruner": {"name": pruner} if isinstance(pruner, str) else pruner,
        "constraints": list(constraints),
        "start": [dict(values) for values in start],
        "seed": seed,
    }
    document = Document(SOURCE, given, {}, {})
    try:
        model = _ArgumentsModel.model_validate(given)
    except ValidationError as error:
        raise first_problem(error, document, _ArgumentsModel) from None
    engine = _engine(model.space.use)
    ready = ready_spaces(model.space, engine or "", SOURCE)
    fixed = {name: value for one in ready for name, value in one.fixed.items()}
    made = make_space(space_parameters(model.space, ready, fixed, document), SOURCE)
    directions = _directions(direction)
    arguments = Arguments(
        space=made,
        engine=engine,
        fixed=fixed,
        directions=directions,
        constraints=_constraints(
            model.constraints, ready, made, fixed, engine, [*directions, *metrics]
        ),
        sampler=model.sampler.name,
        sampler_settings=_sampler_settings(model, made, directions),
        pruner=model.pruner.name,
        pruner_settings=_pruner_settings(model.pruner, directions),
        start=tuple(model.start),
        seed=model.seed,
    )
    _check_start(arguments)
    return arguments


def _check_texts(field: str, names: Iterable[object]) -> None:
    for name in names:
        if not isinstance(name, str) or not name:
            raise InputError(SOURCE, field, found=name, allowed="texts, names of metrics")


def _engine(names: Sequence[str]) -> str | None:
    """The engine of the first ready space; the others have to be of the same."""
    known = [READY_SPACES[name].engine for name in names if name in READY_SPACES]
    return known[0] if known else None


def _directions(given: object) -> dict[str, Direction]:
    named = given if isinstance(given, Mapping) else {UNNAMED: given}
    if not named:
        raise InputError(SOURCE, "direction", why="names no objective")
    _check_texts("direction", named)
    return {str(name): _direction(name, way, named is given) for name, way in named.items()}


def _direction(name: object, way: object, is_named: bool) -> Direction:
    field = f"direction.{name}" if is_named else "direction"
    if isinstance(way, str) and way in set(Direction):
        return Direction(way)
    allowed = ", ".join(Direction)
    raise InputError(
        SOURCE, field, found=way, allowed=allowed, nearest=nearest_name(str(way), Direction)
    )


def _sampler_settings(
    model: _ArgumentsModel, space: Space, directions: Mapping[str, Direction]
) -> Mapping[str, object]:
    name = model.sampler.name
    settings = check_sampler_settings(name, model.sampler.settings, SOURCE, "sampler")
    context = SamplerContext(space, model.seed, settings, tuple(directions.values()))
    check_sampler(name, context, SOURCE, "sampler")
    return settings


def _pruner_settings(
    model: PrunerModel, directions: Mapping[str, Direction]
) -> Mapping[str, object]:
    if model.rungs != RungsModel():
        why = "has no effect here: the steps are those that trial.report is given"
        raise InputError(SOURCE, "pruner.rungs", why=why)
    check_pruner(model.name, tuple(directions.values()), SOURCE, "pruner")
    return check_pruner_settings(model.name, model.settings, SOURCE, "pruner")


def _constraints(
    own: Sequence[str],
    ready: Sequence[ReadySpace],
    space: Space,
    fixed: Mapping[str, OptionValue],
    engine: str | None,
    metrics: Sequence[str],
) -> tuple[Constraint, ...]:
    """Those of the caller and of the ready spaces, each text once."""
    set_somewhere = fixed.keys() | catalogue_defaults(engine).keys()
    options = {p.name for p in space.parameters} | set_somewhere
    known = always_known(space) | set_somewhere
    texts = [(text, f"constraints[{index}]") for index, text in enumerate(own)]
    texts += [(text, f"space.use ({one.name})") for one in ready for text in one.constraints]
    made: dict[str, Constraint] = {}
    for text, field in texts:
        constraint = make_constraint(text, sorted(options), metrics, (), SOURCE, field)
        refuse_unknown(constraint, known, SOURCE, field)
        made.setdefault(constraint.text, constraint)
    return tuple(made.values())


def _check_start(arguments: Arguments) -> None:
    for index, values in enumerate(arguments.start):
        if not arguments.space.contains(values):
            names = ", ".join(p.name for p in arguments.space.parameters)
            raise InputError(
                SOURCE,
                f"start[{index}]",
                found=dict(values),
                allowed=f"a configuration of the space, with every active parameter of {names}",
            )


def _parameter_parts(parts: dict[str, Any]) -> dict[str, Any]:
    """What the search sees of a parameter: not its unit and default, which only people read."""
    return {name: part for name, part in parts.items() if name not in ("unit", "default")}
