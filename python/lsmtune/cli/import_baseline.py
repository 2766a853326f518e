"""A baseline for an imported study of a program, which has no defaults of its own.

The study needs a point of its space to compare with. What the file says is taken where the space
holds it; the rest is the middle of each range, and the first choice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FixedTrial
from pydantic import ValidationError

from lsmtune.importers.render import render_study
from lsmtune.records.config import OptionValue
from lsmtune.space import Parameter, Space, make_space
from lsmtune.spec.build_space import space_parameters
from lsmtune.spec.document import parse_document
from lsmtune.spec.fields import space_parts
from lsmtune.spec.models import SpaceModel


def program_baseline(raw: Mapping[str, Any]) -> tuple[dict[str, OptionValue], dict[str, str]]:
    """A point of the space of the study `raw`, and by parameter why a stated value is not in it.

    A space that cannot be read gives no more than was stated: the study will not load, and says
    why. Raises InputError for a space that contradicts itself.
    """
    stated = raw.get("baseline", {})
    values: dict[str, OptionValue] = {}
    replaced: dict[str, str] = {}
    try:
        space = _space_of(raw)
    except ValidationError:
        return dict(stated), {}
    for parameter in space.evaluation_order:
        if not all(condition.holds(values) for condition in parameter.conditions):
            continue
        value = stated.get(parameter.name)
        if value is None or not parameter.contains(value):
            taken = _nearest(parameter, value)
            if value is not None:
                replaced[parameter.name] = f"{taken} in place of {value}, which is not in the space"
            value = taken
        values[parameter.name] = value
    return values, replaced


def _space_of(raw: Mapping[str, Any]) -> Space:
    document = parse_document(render_study({"space": raw["space"]}), "study.yaml")
    model = SpaceModel.model_validate(space_parts(document.data["space"]))
    return make_space(space_parameters(model, [], {}, document), document.source)


def _nearest(parameter: Parameter, value: OptionValue | None) -> OptionValue:
    """The bin nearest to `value` where there are bins to choose from, else the middle."""
    bins = [] if parameter.numbers is None else parameter.numbers.binned
    near = [number for number in bins if parameter.contains(number)]
    if isinstance(value, int | float) and near:
        return min(near, key=lambda number: abs(number - value))
    variables = {
        variable: 1.0 if variable == parameter.selector else _middle(distribution)
        for variable, distribution in parameter.distributions().items()
    }
    # A selector of 1 picks the range, not a special value.
    return parameter.suggest(FixedTrial(variables))


def _middle(distribution: BaseDistribution) -> Any:
    """The middle of a distribution, on its scale and its steps."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0]
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        raise TypeError(f"no middle of {distribution}")
    low, high, step = distribution.low, distribution.high, distribution.step
    middle = math.sqrt(low * high) if distribution.log else (low + high) / 2
    if step is not None:
        middle = low + math.floor((middle - low) / step) * step
    return int(middle) if isinstance(distribution, IntDistribution) else middle
