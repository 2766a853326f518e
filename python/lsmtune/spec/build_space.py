"""From the models of a space to its checked Parameters: ready ones, and those of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lsmtune.engines.options.spaces import READY_SPACES, ReadySpace, ready_space
from lsmtune.errors import InputError, nearest_name
from lsmtune.records.config import OptionValue
from lsmtune.space import (
    Condition,
    Parameter,
    Prior,
    Range,
    make_categorical,
    make_condition,
    make_number,
    make_prior,
)
from lsmtune.spec.document import Document
from lsmtune.spec.models import CategoricalModel, FloatModel, IntModel, PriorModel, SpaceModel


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
