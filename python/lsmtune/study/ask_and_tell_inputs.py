"""The arguments of a Search, which are the words of a study file, read and checked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from optuna.pruners import BasePruner
from pydantic import Field, ValidationError

from lsmtune.engines.catalogue import catalogue_defaults
from lsmtune.engines.ready import known_spaces
from lsmtune.errors import FieldError, InputError
from lsmtune.model.codec import encode
from lsmtune.model.config import OptionValue
from lsmtune.model.fields import Option, StrictModel
from lsmtune.model.files import Document, first_problem
from lsmtune.model.goal import Direction
from lsmtune.search.pruners import PRUNERS, check_pruner, check_settings
from lsmtune.search.samplers import check_installed
from lsmtune.space.constraint import Constraint, ConstraintKind, broken_by
from lsmtune.space.space import Space, make_space
from lsmtune.study.build_space import (
    each_once,
    make_constraints,
    make_sampler_spec,
    ready_spaces,
    space_parameters,
)
from lsmtune.study.models import PrunerModel, RungsModel, SamplerModel, SpaceFields
from lsmtune.study.spec import SamplerSpec, compared_space

SOURCE = "Search"
UNNAMED = "value"  # the metric of a search with one objective that has no name


_ANY = Field(strict=False)  # a tuple is as good as a list, and any mapping as a dict


class _ArgumentsModel(StrictModel):
    space: SpaceFields
    sampler: SamplerModel = SamplerModel()
    pruner: PrunerModel = PrunerModel(name="none")
    constraints: Annotated[list[str], _ANY]
    metrics: Annotated[list[Annotated[str, Field(min_length=1)]], _ANY]
    start: Annotated[list[Annotated[dict[str, Option], _ANY]], _ANY]
    seed: int = Field(default=0, ge=0)


@dataclass(frozen=True)
class Arguments:
    """What a Search is made of. `engine` is that of the ready spaces, None without any.

    `fixed` are options that every configuration has beside its parameters. `objectives` are by
    their names.
    """

    space: Space
    engine: str | None
    fixed: Mapping[str, OptionValue]
    objectives: Mapping[str, Direction]
    constraints: tuple[Constraint, ...]
    sampler: SamplerSpec
    pruner: BasePruner
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

    def broken(self, values: Mapping[str, OptionValue]) -> Iterator[tuple[str, float]]:
        """The constraints on parameters that `values` break, and by how much."""
        return broken_by(self.of_kind(ConstraintKind.OPTIONS), [self.known(values)])

    def refusal(self, values: Mapping[str, OptionValue]) -> str:
        """Why `values` may not be tried, in one line; empty where they may."""
        return next((f"breaks {text}" for text, _ in self.broken(values)), "")

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Which way each objective is better."""
        return tuple(self.objectives.values())

    @property
    def text(self) -> str:
        """Kept in the folder of a Search for people to read."""
        described = {"ask_and_tell": encode(self.comparable_parts())}
        return json.dumps(described, indent=2) + "\n"

    def comparable_parts(self) -> dict[str, object]:
        """What has to be the same for two sessions to belong to one search."""
        return {
            "space": compared_space(self.space),
            # In their order, by which a trial's values are stored.
            "direction": [[name, way.value] for name, way in self.objectives.items()],
            "options": dict(self.fixed),
        }


def read_arguments(given: Mapping[str, Any]) -> Arguments:
    """The arguments of a Search, by name, checked. Raises InputError that names a wrong one."""
    stated = dict(given)
    try:
        direction = stated.pop("direction")
        try:
            model = _ArgumentsModel.model_validate(stated)
        except ValidationError as error:
            document = Document(SOURCE, stated, {})
            raise first_problem(error, document, _ArgumentsModel) from None
        return _checked(model, _directions(direction))
    except InputError as error:
        raise error.but(source=error.source or SOURCE) from None


def _checked(model: _ArgumentsModel, directions: Mapping[str, Direction]) -> Arguments:
    # The engine is that of the first ready space; the others have to be of the same.
    engines = [known_spaces()[name].engine for name in model.space.use if name in known_spaces()]
    engine = engines[0] if engines else None
    ready = ready_spaces(model.space, engine or "")
    fixed = {name: value for one in ready for name, value in one.fixed.items()}
    space = make_space(space_parameters(model.space, ready, fixed))
    stated = [(text, f"constraints[{index}]") for index, text in enumerate(model.constraints)]
    stated += [(text, f"space.use ({one.name})") for one in ready for text in one.constraints]
    named = [*directions, *model.metrics]
    constraints = make_constraints(stated, engine, space, [fixed], named, source=SOURCE)
    ways = tuple(directions.values())
    sampler, _ = make_sampler_spec(model.sampler, space, ways, model.seed)
    check_installed(sampler.name, "", "sampler")
    if model.pruner.rungs != RungsModel():
        why = "has no effect here: the steps are those that trial.report is given"
        raise FieldError("pruner.rungs", why=why)
    check_pruner(model.pruner.name, ways, "", "pruner")
    settings = check_settings(model.pruner.name, model.pruner.settings, "", "pruner")
    for index, values in enumerate(model.start):
        if not space.contains(values):
            names = ", ".join(p.name for p in space.parameters)
            allowed = f"a configuration of the space, with every active parameter of {names}"
            raise FieldError(f"start[{index}]", found=dict(values), allowed=allowed)
    arguments = Arguments(
        space=space,
        engine=engine,
        fixed=fixed,
        objectives=directions,
        constraints=each_once(constraints),
        sampler=sampler,
        pruner=PRUNERS[model.pruner.name].make(**settings),
        start=tuple(model.start),
        seed=model.seed,
    )
    for index, point in enumerate(arguments.start):
        if refusal := arguments.refusal(point):
            raise FieldError(f"start[{index}]", found=dict(point), why=refusal)
    return arguments


def _directions(given: object) -> dict[str, Direction]:
    named = given if isinstance(given, Mapping) else {UNNAMED: given}
    if not named:
        raise FieldError("direction", why="names no objective")
    for name, way in named.items():
        if not isinstance(name, str) or not name:
            raise FieldError("direction", found=name, allowed="texts, names of metrics")
        if not isinstance(way, str) or way not in set(Direction):
            field = f"direction.{name}" if named is given else "direction"
            raise FieldError(field, found=way, known=Direction)
    return {name: Direction(str(way)) for name, way in named.items()}
