"""`grid`: every combination of a few values for each parameter, in an order shuffled by the seed.

Each choice and each special value is a value of the grid. A range gives `points` values from its
low to its high, even on its own scale: logarithmic, or by quantiles where it has a prior. A
parameter takes part where its conditions hold, and nowhere else. A grid of more than `LISTED_MAX`
configurations is not listed: each trial draws one of the values of each parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from optuna.distributions import FloatDistribution, IntDistribution

from lsmtune.model.config import OptionValue, option_text
from lsmtune.model.setting import Setting, whole
from lsmtune.search.plans import PlanSampler
from lsmtune.search.sampler import (
    SamplerContext,
    SamplerKind,
    SpaceExhaustedError,
    generator_of_trial,
)
from lsmtune.space.parameter import Parameter
from lsmtune.space.space import Space

LISTED_MAX = 20_000  # configurations of a grid; a larger one is drawn from at random


# --- all configurations of some values for each parameter


def every_configuration(
    space: Space, values: Mapping[str, Sequence[OptionValue]], limit: int
) -> list[dict[str, OptionValue]] | None:
    """The configurations in which each parameter, if active, has one of its `values`.

    `values` has every parameter's name. None when there are more than `limit` of them.
    """
    configs: list[dict[str, OptionValue]] = [{}]
    for parameter in space.evaluation_order:
        longer: list[dict[str, OptionValue]] = []
        for config in configs:
            if parameter.is_active(config):
                longer += [{**config, parameter.name: each} for each in values[parameter.name]]
            else:
                longer.append(config)
            if len(longer) > limit:
                return None
        configs = longer
    return configs


def every_value(parameter: Parameter, limit: int) -> Sequence[OptionValue] | None:
    """All values of `parameter`, or None when there are more than `limit` (or no end of them)."""
    if parameter.numbers is None:
        return parameter.choices if len(parameter.choices) <= limit else None
    in_range = parameter.numbers.listed(limit)
    if in_range is None:
        return None
    # A prior can leave numbers at its ends so improbable that no draw reaches them.
    return [
        *(special.value for special in parameter.specials),
        *(number for number in in_range if parameter.contains(number)),
    ]


def whole_space(space: Space, limit: int) -> list[dict[str, OptionValue]] | None:
    """Every configuration of `space`, or None when there are more than `limit`."""
    values: dict[str, Sequence[OptionValue]] = {}
    for parameter in space.parameters:
        listed = every_value(parameter, limit)
        if listed is None:
            return None
        values[parameter.name] = listed
    return every_configuration(space, values, limit)


# --- the sampler


class GridSampler(PlanSampler):
    """The configurations in a random order; of a grid that is too large to list, random ones."""

    def __init__(self, context: SamplerContext) -> None:
        super().__init__(context)
        points: int = context.settings["points"]
        self._values = {p.name: _grid_values(p, points) for p in context.space.parameters}
        self._listed = every_configuration(context.space, self._values, LISTED_MAX)
        self.ends = self._listed is not None
        self._order = self.rng.permutation(len(self._listed or ())).tolist()

    def variables_at(self, index: int) -> dict[str, Any]:
        """The variables of the grid's configuration `index` of the shuffled order."""
        if self._listed is None:
            return self.space.variables_of(self._drawn(index))
        if index >= len(self._listed):
            raise SpaceExhaustedError(f"each of the {len(self._listed)} configurations of the grid")
        return self.space.variables_of(self._listed[self._order[index]])

    def _drawn(self, index: int) -> dict[str, OptionValue]:
        rng, config = generator_of_trial(self.seed, index), dict[str, OptionValue]()
        for parameter in self.space.evaluation_order:
            if parameter.is_active(config):
                values = self._values[parameter.name]
                config[parameter.name] = values[int(rng.integers(len(values)))]
        return config


def _grid_values(parameter: Parameter, points: int) -> Sequence[OptionValue]:
    """All choices; of a range its specials and `points` numbers, a single one in the middle."""
    if parameter.numbers is None:
        return parameter.choices
    distribution = parameter.distributions()[parameter.variable]
    if not isinstance(distribution, IntDistribution | FloatDistribution):
        raise TypeError(f"not a range: {distribution}")
    # From low to high, evenly on the variable's scale, each on its steps.
    low, high, step = distribution.low, distribution.high, distribution.step
    shares = np.linspace(0.0, 1.0, points) if points > 1 else np.array([0.5])
    spread = low * (high / low) ** shares if distribution.log else low + shares * (high - low)
    if step is not None:
        spread = low + np.rint((spread - low) / step) * step

    whole = isinstance(distribution, IntDistribution)
    drawn = np.clip(spread, low, high).tolist()  # clips rounding errors only
    values = [parameter.value_of(int(each) if whole else each) for each in drawn]
    different = {option_text(value): value for value in values}
    return [*(special.value for special in parameter.specials), *different.values()]


KIND = SamplerKind(
    name="grid",
    summary="every combination of a few values for each parameter, in shuffled order",
    settings=(
        Setting(
            "points",
            "values of each numeric parameter, both ends included; special values come on top",
            5,
            whole(1, 10_000),
        ),
    ),
    several_objectives=True,
    make=GridSampler,
    learns=False,
    listed=True,
)
