"""From the model of one parameter to a checked Parameter of the space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lsmtune.space import (
    Condition,
    Parameter,
    Range,
    make_categorical,
    make_condition,
    make_number,
)
from lsmtune.spec.document import Document
from lsmtune.spec.models import CategoricalModel, FloatModel, IntModel


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
        Range(model.low, model.high, log=model.log, step=model.step, integer=integer),
        source,
        unit=_unit(model, document.data["space"][name]),
        specials=[(special.value, special.weight) for special in model.special],
        conditions=conditions,
        default=model.default,
    )


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
